"""The length of a slice as far as its text says it (worker/rewrite/windows.py)."""

from __future__ import annotations

import ast

import pytest

from shapelens.worker.rewrite.windows import length_of


@pytest.mark.parametrize(
    ("window", "length"),
    [
        ("i : i + n", "n"),
        ("i + 1 : i + 1 + n", "n"),
        ("i * n : (i + 1) * n", "n"),
        ("k - 2 : k + 3", "5"),
        ("self.at : self.at + self.block.size * 2", "2 * self.block.size"),
        ("i : n", None),
        (": n", None),
        ("i : i", None),
        ("3 : 3 + n", None),  # where it begins is known
        ("i : i + n : 2", None),
        ("f(i) : f(i) + n", None),
        ("i : i + n % 3", None),
    ],
)
def test_length(window: str, length: object) -> None:
    subscript = ast.parse(f"x[{window}]", mode="eval").body
    assert isinstance(subscript, ast.Subscript) and isinstance(subscript.slice, ast.Slice)
    found = length_of(subscript.slice)
    assert (ast.unparse(found).replace("(", "").replace(")", "") if found is not None else None) == length
