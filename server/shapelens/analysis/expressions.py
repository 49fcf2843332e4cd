"""What to write for a size that was written as an expression: the part of it that is right, rather than a number, where there is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

# What an argument is now, and what it should be, for each layer that a constructor call built.
Sizes = Sequence[tuple[int, int]]


def replacement(text: str, sizes: Sizes) -> str | None:
    """The text to put in the place of an argument's.

    `hidden` for `hidden * 2` where half is wanted each time, else the number where one is wanted by all, else None: no single number
    would be right for all layers.
    """
    for part, values in _parts(text, [now for now, _ in sizes]):
        if values == [wanted for _, wanted in sizes]:
            return part
    numbers = {wanted for _, wanted in sizes}
    return str(numbers.pop()) if len(numbers) == 1 else None


def _parts(text: str, values: list[int]) -> Iterator[tuple[str, list[int]]]:
    """The operands of `a + 2`, `2 * a`, ... that are no numbers, with the values that they must have had for the whole to have `values`."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return
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
