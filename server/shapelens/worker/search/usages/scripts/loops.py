"""What a loop over something gives first."""

from __future__ import annotations

import ast
from typing import List, Optional

from .module_names import dotted
from .values import UNKNOWN, Value, constant, integer

PROGRESS = {"tqdm", "trange", "track", "progress_bar", "iter", "list", "tuple", "sorted", "reversed", "cycle", "islice", "prefetch"}


def element(value: Value) -> Value:
    """The first thing that iterating gives."""
    if value.element is not None:
        return value.element
    if value.items:
        return value.items[0]
    known = value.known()
    if isinstance(known, (ast.Tuple, ast.List)) and known.elts and not isinstance(known.elts[0], ast.Starred):
        return Value(known.elts[0])
    if isinstance(known, ast.Dict) and known.keys and known.keys[0] is not None:
        return Value(known.keys[0])
    if value.node is None:
        return UNKNOWN
    if isinstance(known, ast.Call) and dotted(known.func) == "range" and known.args:
        start = integer(known.args[0]) if len(known.args) > 1 else 0
        return Value(constant(start)) if start is not None else UNKNOWN
    return Value(first_of(value.node))


def first_of(node: ast.expr) -> ast.expr:
    """`next(iter(node))`"""
    inner = ast.Call(ast.Name("iter", ast.Load()), [node], [])
    return ast.Call(ast.Name("next", ast.Load()), [inner], [])


def looped(name: str, given: List[Value]) -> Optional[Value]:
    """What `enumerate`, `zip` and progress bars make of what they are given, for a loop; None for any other function."""
    tail = name.rpartition(".")[2]
    if tail == "enumerate" and given:
        return _pairs([Value(constant(0)), element(given[0])])
    if tail == "zip" and given:
        return _pairs([element(value) for value in given])
    if tail in PROGRESS and given and name not in ("list", "tuple", "sorted", "iter"):
        return given[0]
    if tail == "iter" and given:
        return Value(None, element=element(given[0]))
    if tail == "next" and given:
        return element(given[0])
    return None


def _pairs(parts: List[Value]) -> Value:
    return Value(None, element=Value(_tuple(parts), items=tuple(parts)))


def _tuple(parts: List[Value]) -> Optional[ast.expr]:
    nodes = [part.node for part in parts]
    return ast.Tuple([node for node in nodes if node is not None], ast.Load()) if all(node is not None for node in nodes) else None
