"""The two operands of an expression, by their places in its text."""

from __future__ import annotations

import ast

from shapelens import protocol
from shapelens.source.positions import Lines
from shapelens.stated.syntax_trees import expression_of

_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def operands(text: str) -> list[tuple[int, int, bool]]:
    """(start, end, needs brackets before a `.method`) of the operands of `a - b` or `a == b`, or of the first two arguments of a call.

    Start and end are indices into the text; [] where it is no such expression. A method's first operand is what it is called on, unless
    that is a module or layer: `x.sub(y)` and `F.mse_loss(x, y)` look the same, so that two arguments are taken where there are two.
    """
    node = expression_of(f"({text})")
    if isinstance(node, ast.BinOp):
        found: list[ast.expr] = [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        found = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and not any(isinstance(argument, ast.Starred) for argument in node.args):
        found = list(node.args[:2])
        if len(found) == 1 and isinstance(node.func, ast.Attribute):
            found = [node.func.value, found[0]]
    else:
        return []
    lines = Lines(f"({text})")
    places = []
    for each in found:
        span = lines.span_from_bytes(
            protocol.FileSpan("", each.lineno, each.col_offset, each.end_lineno or each.lineno, each.end_col_offset or each.col_offset)
        )
        start, end = lines.offset(span.start) - 1, lines.offset(span.end) - 1
        places.append((start, end, not isinstance(each, _PRIMARY)))
    return places
