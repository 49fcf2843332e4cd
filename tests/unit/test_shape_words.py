"""The rules that tell what one dim of a shape is, each alone."""

from __future__ import annotations

import pytest

from shapelens.stated.shape_words import DIM_RULES, Dim, read_dim, stated_shapes

CASES = {
    "_number": ("64", 64),
    "_given_size": ("channels=3", 3),
    "_with_remark": ("T (time)", "T"),
    "_name": ("seq_len", "seq_len"),
    "_attribute": ("config.hidden_size", "hidden_size"),
    "_hyphenated": ("batch-size", "batch_size"),
    "_computed": ("H * W", None),
    "_several_words": ("batch size", "batch_size"),
}


def test_each_rule_has_a_case() -> None:
    assert list(CASES) == [rule.__name__ for rule in DIM_RULES]


@pytest.mark.parametrize("name", CASES)
def test_one_rule_knows_a_dim(name: str) -> None:
    text, dim = CASES[name]
    known = {rule.__name__: found for rule in DIM_RULES if (found := rule(text, True)) is not None}
    assert known[name] == (dim,)
    assert next(iter(known)) == name
    assert read_dim(text) == dim


@pytest.mark.parametrize("text", ["optional", "lambda", "decoder.weights_only", "the first of them", "a * tensor", ""])
def test_no_rule_knows_a_dim(text: str) -> None:
    with pytest.raises(ValueError):
        read_dim(text)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("of shape (B, C, H, W)", ("B", "C", "H", "W")),
        ("x is B x T x 80", ("B", "T", 80)),
        ("in NCHW format, or format NCHW", tuple("NCHW")),
    ],
)
def test_shapes_are_found_in_brackets_and_without(text: str, dims: tuple[Dim, ...]) -> None:
    assert stated_shapes(text)[0].dims == dims
