"""Lists that are written as arithmetic: `[8] * 3`, `(4, 5) + (6,)`, `sizes[:2]`."""

from __future__ import annotations

import ast
from typing import List, Optional

from .values import integer

LONGEST = 16


def lists_written_out(node: ast.expr) -> ast.expr:
    """The same expression with such lists written out."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _repeated(node.left, node.right) or _repeated(node.right, node.left) or node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _parts(node.left), _parts(node.right)
        if left is not None and right is not None and type(node.left) is type(node.right):
            return _like(node.left, left + right) or node
    return node


def slice_of_literal(whole: Optional[ast.expr], bounds: ast.expr) -> Optional[ast.expr]:
    """`whole[1:3]` of a list that is written out; None for any other."""
    parts = _parts(whole)
    if whole is None or parts is None or not isinstance(bounds, ast.Slice) or bounds.step is not None:
        return None
    lower, upper = integer(bounds.lower), integer(bounds.upper)
    if (bounds.lower is not None and lower is None) or (bounds.upper is not None and upper is None):
        return None
    return _like(whole, parts[lower:upper])


def _repeated(whole: ast.expr, times: ast.expr) -> Optional[ast.expr]:
    parts, count = _parts(whole), integer(times)
    return _like(whole, parts * count) if parts is not None and count is not None and 0 <= count <= LONGEST else None


def _parts(node: Optional[ast.expr]) -> Optional[List[ast.expr]]:
    if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(part, ast.Starred) for part in node.elts):
        return node.elts
    return None


def _like(node: ast.expr, parts: List[ast.expr]) -> Optional[ast.expr]:
    if len(parts) > LONGEST:
        return None
    return ast.Tuple(parts, ast.Load()) if isinstance(node, ast.Tuple) else ast.List(parts, ast.Load())
