"""What the text of a `forward` says of its inputs."""

import pytest

from inputs_said import of_body, said
from shapelens.worker.search.evidence import InputShape
from shapelens.worker.search.text.annotations import display_names


def of_signature(signature: str, before: str = "") -> InputShape | None:
    return said(f"{before}\ndef forward({signature}):\n    return x\n").get("x")


def of_docstring(entry: str) -> InputShape | None:
    return said(
        f'def forward(x):\n    r"""Computes it.\n\n    Args:\n        {entry}\n\n    Returns:\n        x: (q, w, e, r, t)\n    """\n'
    ).get("x")


@pytest.mark.parametrize(
    ("annotation", "dims", "dtype"),
    [
        ('Float[Tensor, "b c h w"]', ("b", "c", "h", "w"), "f32"),
        ('Int[Tensor, "batch seq"]', ("batch", "seq"), "i64"),
        ('Float32[torch.Tensor, "b 3 rows=4 h*w _ #n"]', ("b", 3, 4, None, None, "n"), "f32"),
        ('Float[Tensor, ""]', (), "f32"),
        ("\"Float[Tensor, 'b n d']\"", ("b", "n", "d"), "f32"),
        ("Float['b n d']", ("b", "n", "d"), "f32"),
        ('Bool[Tensor, "b n"] | None', ("b", "n"), "bool"),
        ('Optional[Complex[Tensor, "b f t"]]', ("b", "f", "t"), "c64"),
        ('TensorType["batch", "channels": 3, -1, float]', ("batch", 3, None), "f32"),
        ('Annotated[torch.Tensor, "B C H W"]', ("B", "C", "H", "W"), ""),
        ('Annotated[Tensor, (3, "h", "w")]', (3, "h", "w"), ""),
        ('Annotated[Tensor, "B", 3, "H", "W"]', ("B", 3, "H", "W"), ""),
        ('Annotated[torch.LongTensor, "(batch, time)"]', ("batch", "time"), "i64"),
        ("Tensor[B, T, 64]", ("B", "T", 64), ""),
        ("Image", ("b", 3, "h", "w"), "f32"),
    ],
)
def test_annotations_give_dims(annotation: str, dims: tuple[str | int | None, ...], dtype: str) -> None:
    found = of_signature(f"x: {annotation}", before='Image = Float[Tensor, "b 3 h w"]')
    assert found is not None
    assert (found.dims, found.dtype, found.where) == (dims, dtype, "the annotation")


@pytest.mark.parametrize(
    "annotation",
    [
        "int",
        "Optional[float]",
        "Tuple[int, int]",
        "Callable[..., Tensor]",
        "str | None",
        "list[int]",
        "'bool'",
        'Float[np.ndarray, "b c"]',
        "Config",
    ],
)
def test_what_is_no_tensor_has_no_shape(annotation: str) -> None:
    found = of_signature(f"x: {annotation}")
    assert found is None or found.dims is None


def test_an_annotation_may_leave_the_rank_open() -> None:
    found = of_signature('x: Float[Tensor, "*batch c h w"]')
    assert found is not None
    assert (found.dims, found.pattern, found.min_rank) == (None, ("...", "c", "h", "w"), 3)


def test_annotations_of_torch_give_dtypes_and_containers() -> None:
    found = said(
        """
        def forward(
            ids: torch.LongTensor,
            mask: Optional[BoolTensor] = None,
            maps: list[Tensor] = (),
            hidden: Tuple[Tensor, Float[Tensor, "b d"]] = None,
            batch: Dict[str, Float[Tensor, "b t"]] = None,
            either: Union[Float[Tensor, "b"], Float[Tensor, "b t"]] = None,
        ): ...
        """
    )
    assert (found["ids"].dtype, found["ids"].dims) == ("i64", None)
    assert (found["mask"].dtype, found["mask"].optional) == ("bool", True)
    assert found["maps"].container == "list"
    assert found["hidden"].container == "tuple"
    assert [part.dims for part in found["hidden"].parts] == [None, ("b", "d")]
    assert (found["batch"].container, found["batch"].dims) == ("dict", ("b", "t"))
    assert (found["either"].dims, found["either"].alternatives) == (("b",), (("b", "t"),))


@pytest.mark.parametrize(
    ("comment", "dims"),
    [
        ("x: (B, C, H, W)", ("B", "C", "H", "W")),
        ("x: [batch, seq_len, dim]", ("batch", "seq_len", "dim")),
        ("x.shape = [B, T, C]", ("B", "T", "C")),
        ("x: [bs x nvars x seq_len]", ("bs", "nvars", "seq_len")),
        ("x : B x T x C", ("B", "T", "C")),
        ("x (b, 3, 224, 224), y (b, 10)", ("b", 3, 224, 224)),
        ("x: (B, C, T) -> (B, T, C)", ("B", "C", "T")),
        ("x shape: (batch size, H * W, channels)", ("batch_size", None, "channels")),
        ("input: (N, L, d_model)", ("N", "L", "d_model")),
        ("x = [src len, batch size, emb dim]", ("src_len", "batch_size", "emb_dim")),
        ("x: [Batch, Input length, Channel]", ("Batch", "Input_length", "Channel")),
        ("x: (batch, channels=3, height=32, width)", ("batch", 3, 32, "width")),
        ("x -> (batch,)", ("batch",)),
        ("x is (B, *, D)", None),
        ("x: (query, key, value)", None),
        ("x: (H, W), of the patches", None),
        ("x: (optional), y: (B, T)", None),
        ("y: (B, T)", None),
        ("scale x by (a, b)", None),
        ("x in [0, 1]", None),
        ("x: (see the paper, section 3)", None),
    ],
)
def test_comments_at_the_head_of_the_body(comment: str, dims: tuple[str | int | None, ...] | None) -> None:
    found = of_body(f"# {comment}\ny = g(x)\n")
    assert (found.dims if found is not None else None) == dims


def test_comments_behind_parameters() -> None:
    found = said(
        """
        def forward(
            self_attn,  # a layer
            x,  # (b, 3, 224, 224)
            mask=None,  # B x T
            lengths=None,  # optional
            context=None,  # shape [B, S, D], may be left out
        ): ...
        """
    )
    assert {name: (one.dims, one.where, one.optional) for name, one in found.items()} == {
        "x": (("b", 3, 224, 224), "line 4", False),
        "mask": (("B", "T"), "line 5", True),
        "context": (("B", "S", "D"), "line 7", True),
    }


def test_a_comment_about_a_result_is_not_about_the_input() -> None:
    assert of_body("x = embed(x)  # x: (B, T, C)\nreturn x") is None
    assert of_body("y = pool(x)  # (B, C)\nreturn y") is None
    assert of_body("x = embed(x)\n# x: (B, T, C)\nreturn x") is None


@pytest.mark.parametrize(
    ("entry", "dims", "dtype"),
    [
        ("x (Tensor): input of shape (N, C, H, W).", ("N", "C", "H", "W"), ""),
        ("x: Tensor, shape ``[seq_len, batch_size, embedding_dim]``", ("seq_len", "batch_size", "embedding_dim"), ""),
        (
            "x (torch.LongTensor of shape `(batch_size, sequence_length)`, *optional*):\n            Indices.",
            ("batch_size", "sequence_length"),
            "i64",
        ),
        ("x (`torch.FloatTensor`): hidden states, of shape\n            `(batch, seq_len, dim)`", ("batch", "seq_len", "dim"), "f32"),
        ("x: (batch, time)", ("batch", "time"), ""),
        ("x: Input logits (batch_size, num_classes).", ("batch_size", "num_classes"), ""),
        (r"x (torch.Tensor): Features :math:`\mathbf{X} \in \mathbb{R}^{B \times N \times F}`, with", ("B", "N", "F"), ""),
        ("x (torch.Tensor): the ideal shape is :obj:`[n, 128]`. Here, :obj:`n` is the batch size", ("n", 128), ""),
        ("x: BxCxHxW images", ("B", "C", "H", "W"), ""),
        ("x: 3D input tensor with shape BCDHW.", ("B", "C", "D", "H", "W"), ""),
        ("x: a 4D tensor", (None,) * 4, ""),
        ("x (torch.Tensor of shape `(batch_size, seq_len // 2 + 1, 2 * d)`):", ("batch_size", None, None), ""),
        ("x: an [N x (3 * H * C) x T] tensor of Qs, Ks, and Vs.", ("N", None, "T"), ""),
        ("x: an [N] Tensor of labels, if class-conditional.", ("N",), ""),
        ("x: a 1-D batch of timesteps.", (None,), ""),
        ("x: Should be shape\n            B x embedding_dim x h x w for any h and w.", ("B", "embedding_dim", "h", "w"), ""),
        ("x: input features with shape of (num_windows*B, N, C)", (None, "N", "C"), ""),
        (r"x   (N, \sum_{l=0}^{L-1} H_l \cdot W_l, C), flattened", ("N", None, "C"), ""),
        ("x   (n_levels, 2), [(H_0, W_0), (H_1, W_1), ...]", ("n_levels", 2), ""),
        ("x: [M, T], M is batch size, T is #samples", ("M", "T"), ""),
        ("x (tuple): image size (height, width)", None, ""),
        ("x: image size (height, width)", None, ""),
        ("x (Tensor): whatever (default: None)", None, ""),
        ("x (int): its size, as in (B, C, H, W)", None, ""),
        ("x (Tuple[int, int]): (height, width) of the picture", None, ""),
        ("x: a value of (mean, std), in the range [0, 1]", None, ""),
        ("x: a tensor of any shape", None, ""),
        ("x: shape (N, C, *)", None, ""),
        ("x: shape (B, C, spatial_dims)", None, ""),
        ("y: shape (B, C, H)", None, ""),
    ],
)
def test_docstrings(entry: str, dims: tuple[str | int | None, ...] | None, dtype: str) -> None:
    found = of_docstring(entry)
    assert (found.dims if found is not None else None) == dims
    assert dtype == (found.dtype if found is not None else "")


def test_a_docstring_may_allow_several_shapes() -> None:
    found = of_docstring("x: (L, N, E) when batch_first=False or (N, L, E) when batch_first=True")
    assert found is not None
    assert (found.dims, found.alternatives) == (("L", "N", "E"), (("N", "L", "E"),))


def test_docstrings_in_other_styles() -> None:
    found = said(
        '''
        def forward(src, tgt, weights):
            """Decodes.

            :param src: encoded (batch, time, dim)
            :type tgt: Tensor
            :param torch.Tensor tgt: shape (batch, steps)
            :return: weights: (batch, time)
            """
        '''
    )
    assert {name: one.dims for name, one in found.items()} == {"src": ("batch", "time", "dim"), "tgt": ("batch", "steps")}
    found = said(
        '''
        def forward(q, k):
            """
            Parameters
            ----------
            q : torch.Tensor, shape (b, n, d)
                The queries.
            k : torch.Tensor
                The keys, of shape (b, m, d).

            Returns
            -------
            q : (b, n, n)
            """
        '''
    )
    assert {name: one.dims for name, one in found.items()} == {"q": ("b", "n", "d"), "k": ("b", "m", "d")}


def test_the_docstring_of_the_class_counts_where_it_is_about_the_input() -> None:
    found = said(
        '''
        class Pool(nn.Module):
            """Pools.

            Args:
                size: of the window, shape (kh, kw)

            Shape:
                - Input: :math:`(N, C, L_{in})`
                - Output: :math:`(N, C)`
            """

            def __init__(self, size): ...

            def forward(self, x, size=None): ...
        '''
    )
    assert {name: one.dims for name, one in found.items()} == {"x": ("N", "C", "L_in")}


def test_names_that_are_good_to_show() -> None:
    shape = InputShape(dims=("batch_size", 3, None, "h", "a_rather_long_name_for_a_dim", "N"))
    assert display_names(shape) == ("batch_size", None, None, "h", None, "N")
