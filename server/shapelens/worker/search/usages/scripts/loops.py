"""The first items of loops, and the items that a loop appends to a list."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple

from .....stated.syntax_trees import dotted
from .values import UNKNOWN, ScriptValue, checked, constant, integer

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


class AppendingLoop:
    """A loop that is gone through, once, and the layers that it appends to lists: `for _ in range(6): blocks.append(Block(512))`."""

    def __init__(self, body: List[ast.stmt], target: Optional[ast.expr], turns: Optional[ast.expr], empty: Set[str]) -> None:
        """turns: how many it takes, None where nobody knows; empty: the names of the lists that are empty when it begins."""
        self.empty = empty
        self._turns = turns if _turns_alike(body, target) else None
        self._body = body
        self._layers: Dict[str, ScriptValue] = {}

    def appended(self, statement: ast.Expr, name: str, layer: ScriptValue) -> None:
        """A statement has changed the list of that name."""
        is_append = isinstance(statement.value, ast.Call) and dotted(statement.value.func) == name + ".append"
        in_each_turn = any(each is statement for each in self._body)
        self._layers[name] = layer if is_append and in_each_turn and name not in self._layers else UNKNOWN

    def lists_of_layers(self) -> Iterator[Tuple[str, ScriptValue]]:
        """Names, and the lists that these hold after the loop, where each turn appends one layer, and all are built alike."""
        for name, layer in self._layers.items():
            if self._turns is not None and name in self.empty and layer.is_model and layer.node is not None:
                turns = ast.Call(ast.Name("range", ast.Load()), [self._turns], [])
                each = ast.comprehension(ast.Name("_", ast.Store()), turns, [], 0)
                yield name, ScriptValue(checked(ast.ListComp(layer.node, [each])))


def _turns_alike(body: List[ast.stmt], target: Optional[ast.expr]) -> bool:
    """True if each turn of a loop does what the others do: none is left early, and none reads what another one, or the target, says."""
    carried = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)} if target is not None else set()
    set_until_now: Set[str] = set()
    read_before: Set[str] = set()
    for statement in body:
        parts = list(ast.walk(statement))
        if any(isinstance(part, (ast.Break, ast.Continue, ast.Return)) for part in parts):
            return False
        names = [part for part in parts if isinstance(part, ast.Name)]
        added = {part.target.id for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)}
        read_before |= (added | {name.id for name in names if isinstance(name.ctx, ast.Load)}) - set_until_now
        set_until_now |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return read_before.isdisjoint(carried | set_until_now)


def empty_lists(values: Mapping[str, ScriptValue]) -> Set[str]:
    """The names that hold an empty list."""
    return {name for name, value in values.items() if isinstance(value.node, ast.List) and not value.node.elts}


def turns_of(value: ScriptValue) -> Optional[ast.expr]:
    """Returns the number of turns of a loop over `range(n)`; None for any other loop."""
    known = value.known()
    is_range = isinstance(known, ast.Call) and dotted(known.func) == "range" and len(known.args) == 1
    return known.args[0] if is_range else None  # type: ignore[union-attr]


def first_of(node: ast.expr) -> ast.expr:
    """`next(iter(node))`"""
    inner = ast.Call(ast.Name("iter", ast.Load()), [node], [])
    return ast.Call(ast.Name("next", ast.Load()), [inner], [])


def iterated(name: str, given: List[ScriptValue]) -> Optional[ScriptValue]:
    """Returns the items of `enumerate`, `zip` and progress bars, for a loop; None for any other function."""
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
