"""What a loop over something gives first."""

from __future__ import annotations

import ast
from typing import List, Optional

from .module_names import dotted
from .values import UNKNOWN, ScriptValue, constant, integer

PROGRESS = {"tqdm", "trange", "track", "progress_bar", "iter", "list", "tuple", "sorted", "reversed", "cycle", "islice", "prefetch"}


def first_element(value: ScriptValue) -> ScriptValue:
    """The first thing that iterating gives."""
    if value.element is not None:
        return value.element
    if value.items:
        return value.items[0]
    known = value.known()
    if isinstance(known, (ast.Tuple, ast.List)) and known.elts and not isinstance(known.elts[0], ast.Starred):
        return ScriptValue(known.elts[0])
    if isinstance(known, ast.Dict) and known.keys and known.keys[0] is not None:
        return ScriptValue(known.keys[0])
    if value.node is None:
        return UNKNOWN
    if isinstance(known, ast.Call) and dotted(known.func) == "range" and known.args:
        start = integer(known.args[0]) if len(known.args) > 1 else 0
        return ScriptValue(constant(start)) if start is not None else UNKNOWN
    return ScriptValue(first_of(value.node))


def turns_of(value: ScriptValue) -> Optional[ast.expr]:
    """How many turns a loop over `range(n)` takes; None for any other loop."""
    known = value.known()
    is_range = isinstance(known, ast.Call) and dotted(known.func) == "range" and len(known.args) == 1
    return known.args[0] if is_range else None  # type: ignore[union-attr]


def first_of(node: ast.expr) -> ast.expr:
    """`next(iter(node))`"""
    inner = ast.Call(ast.Name("iter", ast.Load()), [node], [])
    return ast.Call(ast.Name("next", ast.Load()), [inner], [])


def iterated(name: str, given: List[ScriptValue]) -> Optional[ScriptValue]:
    """What `enumerate`, `zip` and progress bars make of what they are given, for a loop; None for any other function."""
    tail = name.rpartition(".")[2]
    if tail == "enumerate" and given:
        return _pairs([ScriptValue(constant(0)), first_element(given[0])])
    if tail == "zip" and given:
        return _pairs([first_element(value) for value in given])
    if tail in PROGRESS and given and name not in ("list", "tuple", "sorted", "iter"):
        return given[0]
    if tail == "iter" and given:
        return ScriptValue(None, element=first_element(given[0]))
    if tail == "next" and given:
        return first_element(given[0])
    return None


def _pairs(parts: List[ScriptValue]) -> ScriptValue:
    return ScriptValue(None, element=ScriptValue(_tuple(parts), items=tuple(parts)))


def _tuple(parts: List[ScriptValue]) -> Optional[ast.expr]:
    nodes = [part.node for part in parts]
    return ast.Tuple([node for node in nodes if node is not None], ast.Load()) if all(node is not None for node in nodes) else None
