"""What docstrings say of parameters and results, in the styles in which people write them."""

from __future__ import annotations

import pytest

from shapelens.stated.docstring_entries import described

GOOGLE = """Encodes.

Args:
    x (Tensor): input of shape
        (B, T, C)
    mask: [B, T]

Returns:
    Tensor: of shape (B, C)

Example:
    x: (1, 2)
"""
NUMPY = """Encodes.

Parameters
----------
x : Tensor
    Shape (B, T, C).
mask : (B, T)

Returns
-------
out : Tensor, shape (B, C)

Notes
-----
(B, T)
"""
SPHINX = """Encodes.

:param x: (B, T, C)
:param torch.Tensor mask: (B, T)
:return: (B, C)
:raises ValueError: (B, T)
"""
SHAPES = """Shape:
    - Input: (B, T, C)
    - Output: (B, C)
"""


@pytest.mark.parametrize(("text", "names"), [(GOOGLE, ["x", "mask", ""]), (NUMPY, ["x", "mask", ""]), (SPHINX, ["x", "mask", ""])])
def test_parameters_and_results_are_read_in_each_style(text: str, names: list[str]) -> None:
    entries = described(text, ["x", "mask"], None)
    assert [each.name for each in entries] == names
    for entry, shape in zip(entries, ("(B, T, C)", "B, T", "(B, C)"), strict=True):
        assert shape in entry.text and shape in "\n".join(text.splitlines()[entry.line : entry.end_line + 1])


def test_the_input_is_the_one_parameter() -> None:
    assert [(each.name, each.text.strip(), each.line) for each in described(SHAPES, ["x"], "x")] == [
        ("x", "(B, T, C)", 1),
        ("", "(B, C)", 2),
    ]
    assert [each.name for each in described(SHAPES, ["x", "mask"], None)] == [""]


def test_a_parameter_that_is_called_output_is_no_result() -> None:
    assert [each.name for each in described("output: (B, C)\ntarget: (B,)\n", ["output", "target"], None) if not each.name] == []
