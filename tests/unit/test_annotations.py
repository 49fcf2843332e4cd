"""What the text of a `forward` says of its inputs."""

import ast
import textwrap

import pytest

from shapelens.worker.search.annotations import display_names, input_shapes
from shapelens.worker.search.evidence import InputShape


def said(text: str) -> dict[str, InputShape]:
    """What the last class of a file, or its only function, says of the parameters of `forward`."""
    text = textwrap.dedent(text)
    module = ast.parse(text)
    holder = module.body[-1]
    if isinstance(holder, ast.FunctionDef):
        return input_shapes(holder, text.splitlines(), None, module)
    assert isinstance(holder, ast.ClassDef)
    forward = next(one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "forward")
    return input_shapes(forward, text.splitlines(), holder, module)


def of_signature(signature: str, before: str = "") -> InputShape | None:
    return said(f"{before}\ndef forward({signature}):\n    return x\n").get("x")


def of_body(body: str) -> InputShape | None:
    return said("def forward(x, flag=False):\n" + textwrap.indent(textwrap.dedent(body), "    ")).get("x")


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
        ("x is (B, *, D)", None),
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


@pytest.mark.parametrize(
    ("body", "dims"),
    [
        ("B, T, C = x.shape", ("B", "T", "C")),
        ("b, c, _, _ = x.size()", ("b", "c", None, None)),
        ("b, n, _, h, device = *x.shape, self.heads, x.device", ("b", "n", None)),
        ("(b, n), device = x.shape, x.device", ("b", "n")),
        ("shape = x.shape\nb, n = shape", ("b", "n")),
        ("h, w = x.shape[2:]", (None, None, "h", "w")),
        ("assert x.ndim == 4", (None,) * 4),
        ("assert x.dim() == 3 and x.size(2) == self.dim", (None, None, "dim")),
        ("if x.dim() != 3:\n    raise ValueError\nT = x.size(1)", (None, "T", None)),
        ("y = rearrange(x, 'b c (h p1) (w p2) -> b (h w) (p1 p2 c)', p1=4, p2=4)", ("b", "c", None, None)),
        ("y = einops.repeat(x, 'n d -> b n d', b=2)", ("n", "d")),
        ("y = torch.einsum('bhid,bhjd->bhij', x, k)", ("b", "h", "i", "d")),
        ("y = x.permute(0, 2, 1)", (None,) * 3),
        ("y = torch.bmm(x, x)", (None,) * 3),
        ("x = F.relu(x.float())\nB, C = x.shape", ("B", "C")),
        ("h = x\nB, C = h.shape", ("B", "C")),
        ("if flag:\n    b, c, h, w = x.shape\nelse:\n    b, c, h, w = x.size()", ("b", "c", "h", "w")),
        ("with torch.no_grad():\n    B, C = x.shape", ("B", "C")),
        ("if x is None:\n    x = torch.zeros(2, 2)\nn, m = x.shape", ("n", "m")),
        ("x = self.embed(x)\nB, T, C = x.shape", None),
        ("if flag:\n    b, c, h, w = x.shape", None),
        ("if flag:\n    x = x.flatten(1)\nb, d = x.shape", None),
        ("def inner(x):\n    a, b = x.shape", None),
        ("for x in x:\n    a, b = x.shape", None),
        ("y = x.shape[0], x[:, :, 0]", None),
        ("y = self.bmm(x)", None),
    ],
)
def test_the_body_tells_the_rank(body: str, dims: tuple[str | None, ...] | None) -> None:
    found = of_body(body)
    assert (found.dims if found is not None else None) == dims


@pytest.mark.parametrize(
    ("body", "pattern", "least"),
    [
        ("b, c, *_, h, w = x.shape", ("b", "c", "...", "h", "w"), 4),
        ("b, *_, device = *x.shape, x.device", ("b", "..."), 1),
        ("B = x.shape[0]\nT = x.size(1)", ("B", "T", "..."), 2),
        ("b, t = x.shape[:2]", ("b", "t", "..."), 2),
        ("h, w = x.shape[-2:]", ("...", "h", "w"), 2),
        ("y = rearrange(x, '... (h d) -> ... h d', h=8)", ("...", None), 1),
        ("y = x[:, :, 0]", (), 3),
        ("y = g(x.size(3))", (), 4),
        ("y = x.transpose(1, 2)", (), 3),
        ("y = torch.cat([x, z], dim=2)", (), 3),
        ("y = x.mean(dim=(2, 3))", (), 4),
    ],
)
def test_the_body_tells_the_least_rank(body: str, pattern: tuple[str | None, ...], least: int) -> None:
    found = of_body(body)
    assert found is not None
    assert (found.dims, found.pattern, found.min_rank) == (None, pattern, least)


def test_conditions_on_the_rank_make_alternatives() -> None:
    found = of_body("if x.dim() == 2:\n    x = x.unsqueeze(1)\nb, c, t = x.shape")
    assert found is not None
    assert (found.dims, found.alternatives) == (("b", "c", "t"), ((None, None),))
    found = of_body("if x.ndim == 4:\n    b, c, h, w = x.shape\nelif x.ndim == 3:\n    b, n, c = x.shape")
    assert found is not None
    assert (found.dims, found.alternatives) == (None, (("b", "c", "h", "w"), ("b", "n", "c")))


def test_layers_of_the_class_tell_the_rank_and_keep_shapes() -> None:
    found = said(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(64)
                self.to_patches = nn.Sequential(Rearrange("b c (h p) (w p) -> b (h w) (p p c)", p=4), nn.Linear(48, 64))
                self.conv = nn.Conv1d(3, 4, 5)

            def forward(self, x, img, wave, mask=None):
                x = self.norm(x)
                b, n, d = x.shape
                return self.to_patches(img) + self.conv(wave)
        """
    )
    assert {name: one.dims for name, one in found.items()} == {
        "x": ("b", "n", "d"),
        "img": ("b", "c", None, None),
        "wave": (None, None, None),
    }


def test_the_body_is_believed_rather_than_prose() -> None:
    text = """
    def forward(x):  # (B, C, H, W)
        B, N, C = x.shape
    """
    found = said(text)["x"]
    assert (found.dims, found.where) == (("B", "N", "C"), "line 3")


def test_names_of_weaker_sources_fill_gaps() -> None:
    found = said("def forward(x):  # (batch, H * W, C)\n    b, n, c = x.shape\n")["x"]
    assert (found.dims, found.where) == (("batch", "n", "C"), "line 1")


def test_names_that_are_good_to_show() -> None:
    shape = InputShape(dims=("batch_size", 3, None, "h", "a_rather_long_name_for_a_dim", "N"))
    assert display_names(shape) == ("batch_size", None, None, "h", None, "N")


def test_one_size_has_one_name() -> None:
    found = said(
        '''
        def forward(x, context):
            """x: (batch, time, dim)"""
            b, n, d = x.shape
            b, m, d = context.shape
        '''
    )
    assert (found["x"].dims, found["context"].dims) == (("batch", "time", "dim"), ("batch", "m", "dim"))


def test_layers_of_a_base_class_in_the_file_count() -> None:
    found = said(
        """
        class Base(nn.Module):
            def __init__(self):
                self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())

        class Net(Base):
            def forward(self, x):
                return self.stem(x)
        """
    )
    assert found["x"].dims == (None,) * 4
