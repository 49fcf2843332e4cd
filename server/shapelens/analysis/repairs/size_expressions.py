"""Expressions for a size that was written as an expression: the part of it that is right, rather than a number, where there is one."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from shapelens.protocol import Origin
from shapelens.stated.syntax_trees import expression_of

# What an argument is now, and what it should be, for each layer that a constructor call built.
Sizes = Sequence[tuple[int, int]]


def replacement(text: str, sizes: Sizes) -> str | None:
    """The text to put in the place of an argument's.

    `hidden` for `hidden * 2` where half is wanted each time, else the number where one is wanted by all, else None: no single number
    would be right for all layers.
    """
    wanted_sizes = [wanted for _, wanted in sizes]
    for part, values in _parts(text, [now for now, _ in sizes]):
        if values == wanted_sizes:
            return part
        factors = {wanted // value if value > 0 and wanted % value == 0 else 0 for value, wanted in zip(values, wanted_sizes, strict=True)}
        if len(factors) == 1 and min(factors) > 1 and isinstance((product := _product(text)), ast.BinOp):
            # The same multiple of one part is right for all of them: `3 * hidden` for `2 * hidden`.
            factor = product.left if isinstance(product.left, ast.Constant) else product.right
            return _with_text(text, factor, str(min(factors)))
    numbers = {wanted for _, wanted in sizes}
    return str(numbers.pop()) if len(numbers) == 1 else None


def flattened_dims(origin: Origin, size: int | None) -> Iterator[list[int]]:
    """The dims that a flatten or view multiplied into a size, those of size 1 among them: [128, 4, 4] of 2048."""
    dims = [dim for dim in origin.shape if dim is not None]
    if origin.layer is not None or size not in origin.result or len(dims) != len(origin.shape) or None in origin.result:
        return
    for start in range(len(dims)):
        for end in range(len(dims), start + 1, -1):
            if math.prod(dims[start:end]) == size:
                yield dims[start:end]


def with_factors(text: str, dims: Sequence[int]) -> str | None:
    """A product with its numbers changed to these factors, as `128 * 4 * 4` for `128 * 8 * 8`; names in it stay. None for other texts."""
    leaves = _factors(expression_of(text.strip()))
    if len(leaves) != len(dims) or not any(isinstance(leaf, ast.Constant) for leaf in leaves) or "\n" in text.strip():
        return None
    if len(leaves) == 2 and 1 in dims:
        return None  # One factor alone says it.
    # The channels may be written in front or at the end: what agrees with more of the factors was meant.
    orders = [list(dims), [*dims[1:], dims[0]]]
    best = max(orders, key=lambda order: sum(_is_number(leaf, size) for leaf, size in zip(leaves, order, strict=True)))
    new = text.strip()
    for leaf, size in reversed(list(zip(leaves, best, strict=True))):
        if isinstance(leaf, ast.Constant) and not _is_number(leaf, size):
            new = new[: leaf.col_offset] + str(size) + new[leaf.end_col_offset :] if new.isascii() else new
    return new if new != text.strip() else None


def _factors(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node] if node is not None else []


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


def operands(text: str) -> list[str]:
    """The operands of `a + 2`, `2 * a`, ... that are no numbers: what may have been meant alone."""
    node = expression_of(text.strip())
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
        return []
    pairs = ((node.left, node.right), (node.right, node.left))
    return [ast.unparse(one) for one, other in pairs if isinstance(other, ast.Constant) and not isinstance(one, ast.Constant)]


def _product(text: str) -> ast.expr | None:
    node = expression_of(text.strip())
    return node if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else None


def _with_text(text: str, node: ast.expr, new_text: str) -> str | None:
    """The expression with a part of it written anew; None where it has several lines."""
    stripped = text.strip().encode()
    if b"\n" in stripped:
        return None
    return (stripped[: node.col_offset] + new_text.encode() + stripped[node.end_col_offset :]).decode()


def _parts(text: str, values: list[int]) -> Iterator[tuple[str, list[int]]]:
    """The operands of `a + 2`, `2 * a`, ... that are no numbers, with the values that they must have had for the whole to have `values`."""
    node = expression_of(text.strip())
    if not isinstance(node, ast.BinOp):
        return
    for operand, number, on_the_left in ((node.left, node.right, True), (node.right, node.left, False)):
        if isinstance(number, ast.Constant) and type(number.value) is int and not isinstance(operand, ast.Constant):
            found = [_undone(node.op, value, number.value, on_the_left=on_the_left) for value in values]
            known = [value for value in found if value is not None]
            if len(known) == len(values):
                yield ast.unparse(operand), known


def _undone(operation: ast.operator, value: int, number: int, *, on_the_left: bool) -> int | None:
    """The operand that gives `value` together with a number; None where the operation cannot be undone."""
    if isinstance(operation, ast.Add):
        return value - number
    if isinstance(operation, ast.Sub):
        return value + number if on_the_left else number - value
    if isinstance(operation, ast.Mult) and number and value % number == 0:
        return value // number
    return None
