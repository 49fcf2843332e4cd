"""What the body of a `forward` says of its inputs."""

import pytest

from inputs_said import of_body, said


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
