"""The parts of analysis that need no run: how shapes, counts and labels are written, and what a flatten multiplied."""

from __future__ import annotations

import pytest

from shapelens.analysis import layer_arguments
from shapelens.analysis.display.hints import joined
from shapelens.analysis.explanations.messages import product
from shapelens.analysis.repairs.size_expressions import replacement
from shapelens.analysis.shapes import count_text, memory_text, shape_text
from shapelens.protocol import LayerSeen, Origin, Value


def tensor(*shape: int | None, dtype: str = "float32", named: list[str] | None = None) -> Value:
    return Value("tensor", shape=list(shape), dtype=dtype, named=named)


def many(*items: Value) -> Value:
    return Value("sequence", type_name="tuple", items=list(items))


@pytest.mark.parametrize(
    ("value", "names", "numbers"),
    [
        (tensor(2, 6, 28, 28, named=["B", "6", "28", "28"]), "[B, 6, 28, 28]", "[2, 6, 28, 28]"),
        (tensor(), "[]", "[]"),
        (tensor(2, None), "[2, ?]", "[2, ?]"),
        (tensor(2, 8, named=["B", "H*W"]), "[B, H·W]", "[2, 8]"),
        (tensor(2, dtype="int64"), "[2]", "[2]"),
        (tensor(2, 3, dtype="bool"), "bool[2, 3]", "bool[2, 3]"),
        (tensor(2, dtype="float16"), "f16[2]", "f16[2]"),
        (many(tensor(2, named=["B"]), tensor(3)), "([B], [3])", "([2], [3])"),
        (many(tensor(2), Value("other", type_name="NoneType")), "([2], NoneType)", "([2], NoneType)"),
        (many(tensor(2)), "([2],)", "([2],)"),
        (many(*[tensor(2, 3)] * 12), "[2, 3] ×12", "[2, 3] ×12"),
        (many(*[tensor(size) for size in range(9)]), "([0], [1], [2], [3], [4], …)", "([0], [1], [2], [3], [4], …)"),
        (Value("mapping", keys=["q", "k"], items=[tensor(2), tensor(3)]), "{q: [2], k: [3]}", "{q: [2], k: [3]}"),
    ],
)
def test_shape_text(value: Value, names: str, numbers: str) -> None:
    assert shape_text(value) == names
    assert shape_text(value, "numbers") == numbers


def test_counts_and_memory() -> None:
    assert count_text(62006) == "62\u202f006"
    assert count_text(999) == "999"
    assert [memory_text(size) for size in (40, 2048, 62006 * 4, 3 << 30)] == ["40 B", "2.0 KB", "0.24 MB", "3.00 GB"]


def test_labels_fit_into_what_vs_code_shows() -> None:
    assert joined(["[B, 6, 14, 14]", "[B, 16, 5, 5]"]) == "[B, 6, 14, 14] | [B, 16, 5, 5]"
    shapes = [f"[B, {64 << level}, {56 >> level}, {56 >> level}]" for level in range(4)]
    assert joined(shapes) == "[B, 64, 56, 56] | [B, 128, 28, 28] | …"
    assert joined(["[B, T, " + "9, " * 20 + "9]", "[1]"]).endswith("9] | …")


@pytest.mark.parametrize(
    ("shape", "result", "size", "factors"),
    [
        ([2, 16, 5, 5], [2, 400], 400, "16·5·5"),
        ([2, 400], [2, 400], 400, ""),  # Nothing was multiplied.
        ([4, 3, 8], [12, 8], 12, "4·3"),
        ([2, 8, 12], [2, 12, 8], 12, ""),  # A transpose multiplies nothing.
        ([2, None, 5], [2, 20], 20, ""),
        ([2, 1, 400], [2, 400], 400, ""),
    ],
)
def test_product_of_a_flatten(shape: list[int | None], result: list[int | None], size: int, factors: str) -> None:
    assert product(Origin("flatten", None, shape, result), size) == factors


def layer(kind: str, arguments: str) -> LayerSeen:
    return LayerSeen(0, kind, f"torch.nn.modules.{kind}", "x", f"{kind}({arguments})", None, 0)


def test_a_size_has_to_go_with_the_layers_other_arguments() -> None:
    grouped = layer("Conv2d", "8, 8, kernel_size=(3, 3), stride=(1, 1), groups=4")
    assert layer_arguments.fits(grouped, "in_channels", 12)
    assert not layer_arguments.fits(grouped, "in_channels", 6)
    assert not layer_arguments.fits(layer("GroupNorm", "4, 32, eps=1e-05, affine=True"), "num_channels", 30)
    assert not layer_arguments.fits(layer("Linear", "in_features=3, out_features=4, bias=True"), "in_features", 0)


def test_where_a_constructor_takes_an_argument() -> None:
    assert layer_arguments.index_of(layer("GroupNorm", ""), "num_channels") == 1
    own = LayerSeen(0, "Linear", "project.blocks.Linear", "x", "Linear()", None, 0)
    assert layer_arguments.index_of(own, "in_features") is None


def test_recurrent_weights_in_words() -> None:
    both = layer("LSTM", "16, 20, num_layers=2, bidirectional=True")
    assert layer_arguments.parameter_meaning(both, "weight_ih_l0") == "[4·hidden, input]"
    assert layer_arguments.parameter_meaning(both, "weight_ih_l1_reverse") == "[4·hidden, 2·hidden]"
    assert layer_arguments.parameter_meaning(layer("GRU", "16, 20"), "bias_hh_l0") == "[3·hidden]"


@pytest.mark.parametrize(
    ("text", "sizes", "new"),
    [
        ("576", [(576, 400)], "400"),
        ("16 * 6 * 6", [(576, 400)], "400"),
        ("2 * hidden", [(64, 32), (96, 48)], "hidden"),
        ("(dim) + 1", [(73, 72)], "dim"),
        ("self.dim - 1", [(7, 8)], "self.dim"),
        ("8 - dim", [(3, 5)], "dim"),
        ("dim", [(64, 32), (96, 48)], None),  # No number is right for both.
        ("2 * hidden", [(64, 32), (96, 50)], None),
        ("", [(576, 400)], "400"),
        ("dim * * 2", [(576, 400)], "400"),
    ],
)
def test_what_to_write_for_a_size(text: str, sizes: list[tuple[int, int]], new: str | None) -> None:
    assert replacement(text, sizes) == new
