"""Windows of data: slices `data[i : i + n]`, whose length follows from the text although nobody knows where they begin."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, List, Optional, Tuple

# A sum of products: for the factors of each product (as text), how often it is added.
_Sum = Dict[Tuple[str, ...], int]

MOST_PRODUCTS = 8


def length_of(window: ast.Slice) -> Optional[ast.expr]:
    """The expression for a slice's length where all of the lower bound cancels out of it: `n` for `i * n : (i + 1) * n`. None otherwise."""
    if window.lower is None or window.upper is None or window.step is not None or isinstance(window.lower, ast.Constant):
        return None
    lower, upper = _sum_of(window.lower), _sum_of(window.upper)
    if not lower or not upper or any(upper.get(factors) != count for factors, count in lower.items() if factors):
        return None
    difference = {factors: upper.get(factors, 0) - lower.get(factors, 0) for factors in [*upper, *lower]}
    products = [_product(factors, count) for factors, count in difference.items() if count]
    if not products:
        return None
    length = ast.parse(" + ".join(products), mode="eval").body
    for node in ast.walk(length):
        ast.copy_location(node, window)
    return length


def _sum_of(node: ast.expr) -> Optional[_Sum]:
    """An expression of names, attributes of names and whole numbers; None for any other."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return {(): node.value}
    if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node)):
        return {(ast.unparse(node),): 1}
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _sum_of(node.left), _sum_of(node.right)
    if left is None or right is None or len(left) * len(right) > MOST_PRODUCTS:
        return None
    found: Counter[Tuple[str, ...]] = Counter(left)
    if isinstance(node.op, ast.Add):
        found.update(right)
    elif isinstance(node.op, ast.Sub):
        found.subtract(right)
    elif isinstance(node.op, ast.Mult):
        found = Counter()
        for ours, count in left.items():
            for theirs, times in right.items():
                found[tuple(sorted(ours + theirs))] += count * times
    else:
        return None
    return dict(found)


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _product(factors: Tuple[str, ...], count: int) -> str:
    parts: List[str] = ["(%d)" % count] if count != 1 or not factors else []
    return " * ".join(parts + list(factors))
