"""Parameters that a function takes for plain numbers: `assert 0 < truncation <= 1`, `math.sqrt(scale)`, `range(steps)`. And for texts:
`if phase == "transition":`."""

from __future__ import annotations

import ast
import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ....stated.syntax_trees import dotted

_TRIED = (0.5, 2, 1, 8, 0, 100, -1)  # the first that meets what is asked of it
_COMPARED: Dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


def plain_number(function: ast.AST, name: str) -> Optional[str]:
    """A number for a parameter, as an expression; None where the function does not take it for one. What it asserts of it holds."""
    asserted: List[ast.Compare] = []
    is_number = is_whole = False
    for node in ast.walk(function):
        if isinstance(node, (ast.Assert, ast.If, ast.While)):
            for compare in _compares(node.test):
                if _is_about(compare, name):
                    is_number = True
                    asserted += [compare] if isinstance(node, ast.Assert) else []
        elif isinstance(node, ast.Call) and any(_uses_plainly(argument, name) for argument in node.args):
            called = dotted(node.func)
            is_whole = is_whole or called == "range"
            is_number = is_number or is_whole or called.startswith("math.")
    if not is_number:
        return None
    tried = [number for number in _TRIED if type(number) is int or not is_whole]
    return str(next((number for number in tried if all(_holds(each, number) for each in asserted)), tried[0]))


def plain_texts(function: ast.AST, name: str) -> List[str]:
    """The texts that a function compares a parameter with, each once, as it comes to them; [] where it compares it with none."""
    found: List[Tuple[int, str]] = []
    for node in ast.walk(function):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            continue
        left, right = node.left, node.comparators[0]
        other = right if isinstance(left, ast.Name) and left.id == name else left
        if other is left and not (isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and isinstance(right, ast.Name) and right.id == name):
            continue
        is_one = isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        items = [other] if is_one else other.elts if isinstance(other, (ast.Tuple, ast.List, ast.Set)) else []
        found += [(node.lineno, each.value) for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return list(dict.fromkeys(text for _, text in sorted(found, key=lambda each: each[0])))


def _compares(test: ast.expr) -> Iterator[ast.Compare]:
    """The comparisons that a condition is made of."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _compares(part)
    elif isinstance(test, ast.Compare):
        yield test


def _is_about(compare: ast.Compare, name: str) -> bool:
    """True if a comparison is one of a parameter with numbers."""
    operands = [compare.left, *compare.comparators]
    others = [each for each in operands if not (isinstance(each, ast.Name) and each.id == name)]
    is_ordered = all(type(each) in _COMPARED for each in compare.ops)
    return is_ordered and len(others) < len(operands) and all(_number(each) is not None for each in others)


def _number(node: ast.expr) -> Optional[float]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if type(value) in (int, float) else None


def _holds(compare: ast.Compare, number: float) -> bool:
    values: List[Any] = [number if isinstance(each, ast.Name) else _number(each) for each in (compare.left, *compare.comparators)]
    return all(_COMPARED[type(asked)](values[at], values[at + 1]) for at, asked in enumerate(compare.ops))


def _uses_plainly(node: ast.expr, name: str) -> bool:
    """True if an argument is a parameter, or an arithmetic expression of it: no size, item or attribute of one."""
    if isinstance(node, ast.BinOp):
        return _uses_plainly(node.left, name) or _uses_plainly(node.right, name)
    return isinstance(node, ast.Name) and node.id == name
