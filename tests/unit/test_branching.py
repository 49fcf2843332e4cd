"""How much of a function waits for a parameter that is None."""

from __future__ import annotations

import ast
import textwrap

import pytest

from shapelens.worker.search.code.branches import is_passed_on, statements_without


def function(body: str) -> ast.FunctionDef:
    (found,) = ast.parse("def forward(self, x, mask=None, context=None):\n" + textwrap.indent(textwrap.dedent(body), "    ")).body
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("if mask is not None:\n    x = x * mask\nreturn x", 1),
        ("if mask is None:\n    return x\ny = f(x)\nreturn y @ mask", 2),
        ("if mask is None:\n    mask = f(x)\nelse:\n    x = f(mask)\nreturn f(x)", 1),
        ("if exists(mask) and self.causal:\n    x = f(x)\nreturn x", 1),
        ("given = mask is not None\nfor layer in self.layers:\n    if given:\n        x = layer(x)\nreturn x", 1),
        ("y = f(mask) if mask is not None else x\nreturn y", 1),
        ("if not torch.is_tensor(mask):\n    return x\nreturn f(x)", 1),
        # It runs whether or not the parameter is given, or computes nothing.
        ("mask = default(mask, x)\nreturn f(x, mask)", 0),
        ("if self.training:\n    x = f(x)\nreturn x", 0),
        ("if context is not None:\n    x = f(context)\nreturn x", 0),
        ("if mask is not None:\n    raise ValueError(mask)\nreturn f(x)", 0),
        ("if mask is not None or self.causal:\n    x = f(x)\nreturn x", 0),
    ],
)
def test_statements_that_do_not_run(body: str, count: int) -> None:
    assert statements_without(function(body), "mask") == count


def test_passed_on() -> None:
    assert is_passed_on(function("return self.layer(x, mask=mask)"), "mask")
    assert not is_passed_on(function("return exists(mask)"), "mask")
