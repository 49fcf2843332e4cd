"""The parts that the text of a step or a function takes out of a batch, also in the functions that get the batch.

`x, y = batch`, `(first, second), _ = batch`, `batch["image"]`, `self.shared_step(batch, "train")`: the parts of a batch, and which of them
go into `forward`.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable, Collection, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ..search.code.sources import Index, function_node, function_of, index_of
from ..search.inputs.forms import Form
from ..search.inputs.model_inputs import GivenParts

DEEPEST = 4  # methods that a batch is handed on through, and containers in one another
MOST_PARTS = 8
_SAME_SHAPE = ("to", "cuda", "cpu", "float", "long", "half", "double", "int", "contiguous", "clone", "detach", "type")


class BatchPart(NamedTuple):
    """A batch, or a part of one. opening: `(`, `{` or `.` of what holds the `parts`, by their `keys`; "" for a tensor."""

    name: str  # what the text calls it
    opening: str = ""
    keys: Tuple[str, ...] = ()
    parts: Tuple[BatchPart, ...] = ()
    place: Optional[int] = None  # which argument of `forward` it is, where it is given to the model as it stands

    def leaves(self) -> Iterator[BatchPart]:
        """The tensors in it, in their order."""
        if not self.opening:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def written(self, texts: Iterator[str]) -> str:
        """The expression of such a batch with these tensors in it."""
        if not self.opening:
            return next(texts)
        inner = [part.written(texts) for part in self.parts]
        if self.opening == "(":
            return "(%s)" % ", ".join(inner) if len(inner) > 1 else "(%s,)" % inner[0]
        if self.opening == "{":
            return "{%s}" % ", ".join("%r: %s" % pair for pair in zip(self.keys, inner))
        return "SimpleNamespace(%s)" % ", ".join("%s=%s" % pair for pair in zip(self.keys, inner))


def batch_parts(method: Any, parameter: str, cls: type) -> BatchPart:
    """Returns the parts that the text of a class's method takes out of one of its parameters."""
    return _Reader(cls, ("self",)).of_parameter(method, parameter, 0)


def parts_of_target(function: Any, target: ast.expr, models: Collection[str]) -> Optional[BatchPart]:
    """Returns the parts that the text of a function takes out of a target of its own; None where the target binds no name. models: the
    function's names of models."""
    node = function_node(function)
    if node is None:
        return None
    if isinstance(target, ast.Name):
        return _Reader(None, models, function).of_name(target.id, index_of(node), 0)
    return _Reader(None, models, function).of_target(target, index_of(node), 0, "")


def target_of_items(generator: Any, target: ast.expr) -> Optional[ast.expr]:
    """Returns the part of a target that gets an item of the loader behind a generator function. That is the second of `epoch, batch` where
    the function yields `epoch, next(loader)`. None where the text does not tell."""
    node = function_node(generator)
    if node is None:
        return None
    items = {part.target.id for part in ast.walk(node) if isinstance(part, ast.For) and isinstance(part.target, ast.Name)}

    def is_item(value: Optional[ast.expr]) -> bool:
        is_next = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "next"
        return is_next or (isinstance(value, ast.Name) and value.id in items)

    given = next((part.value for part in ast.walk(node) if isinstance(part, ast.Yield)), None)
    if not isinstance(given, ast.Tuple):
        return target if is_item(given) else None
    places = [number for number, value in enumerate(given.elts) if is_item(value)]
    fits = isinstance(target, ast.Tuple) and len(target.elts) == len(given.elts) and len(places) == 1
    return target.elts[places[0]] if fits and isinstance(target, ast.Tuple) else None


def parts_given(part: BatchPart, name: str, forms_of_leaf: Callable[[BatchPart, str], List[Form]]) -> Optional[GivenParts]:
    """The parts of what is called so, with their forms; None for a tensor, and where they have parts themselves.

    forms_of_leaf: the forms of a tensor in it, by what the text calls it and by its path.
    """
    if not part.opening or any(inner.opening for inner in part.parts):
        return None
    keys = part.keys or tuple(map(str, range(len(part.parts))))
    opening = "SimpleNamespace(" if part.opening == "." else part.opening
    return GivenParts(opening, {key: forms_of_leaf(leaf, "%s.%s" % (name, key)) for key, leaf in zip(keys, part.parts)})


class _Taken:
    """The parts that the uses of a name take out of it."""

    def __init__(self) -> None:
        self.keys: Dict[str, BatchPart] = {}
        self.attributes: Dict[str, BatchPart] = {}
        self.items: Dict[int, BatchPart] = {}
        self.place: Optional[int] = None  # among the arguments of the model
        self.handed_on: Optional[BatchPart] = None  # what a method takes out of it

    def part(self, name: str) -> BatchPart:
        """All of that as one: keys or attributes, or else items; a tensor where there are none."""
        for opening, found in (("{", self.keys), (".", self.attributes)):
            if found and len(found) <= MOST_PARTS:
                return BatchPart(name, opening, tuple(found), tuple(found.values()))
        if len(self.items) > 1 and max(self.items) < MOST_PARTS:
            return BatchPart(name, "(", (), tuple([self.items.get(number, BatchPart("_")) for number in range(max(self.items) + 1)]))
        if self.handed_on is not None and (self.handed_on.opening or self.place is None):
            return self.handed_on._replace(name=name)
        if list(self.items) == [0] and self.place is None:
            return BatchPart(name, "(", (), (self.items[0], BatchPart("_")))
        return BatchPart(name, place=self.place)


class _Reader:
    """cls: whose methods `self` has; models: the names by which the text calls the model."""

    def __init__(self, cls: Optional[type], models: Collection[str], function: Any = None) -> None:
        self._cls = cls
        self._models = models
        self._names = getattr(function_of(function), "__globals__", {}) if function is not None else {}
        self._under_way: List[Tuple[Any, str]] = []

    def of_parameter(self, method: Any, name: str, depth: int) -> BatchPart:
        node = function_node(method)
        if node is None or depth > DEEPEST or (node, name) in self._under_way:
            return BatchPart(name)
        self._under_way.append((node, name))
        try:
            return self.of_name(name, index_of(node), depth)
        finally:
            self._under_way.pop()

    def of_name(self, name: str, index: Index, depth: int) -> BatchPart:
        """Returns the parts that all uses of a name take out of it."""
        taken = _Taken()
        for node in index.loads.get(name, ()) if depth <= DEEPEST else ():
            whole = self._note(taken, node, name, index, depth + 1)
            if whole is not None:
                return whole
        return taken.part(name)

    def _note(self, taken: _Taken, node: ast.expr, name: str, index: Index, depth: int) -> Optional[BatchPart]:
        """Note what one use of a name takes out of it; all that it holds where that use tells it."""
        parent = index.parents.get(node)
        if isinstance(parent, ast.Assign) and parent.value is node:
            found = self.of_target(parent.targets[0], index, depth, name)
            return found._replace(name=name) if found is not None and found.opening else None
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._note_item(taken, parent, name, index, depth)
        if isinstance(parent, ast.Attribute) and not hasattr(torch.Tensor, parent.attr):
            call = index.parents.get(parent)
            if parent.attr not in ("items", "keys", "values") and not (isinstance(call, ast.Call) and call.func is parent):
                taken.attributes.setdefault(parent.attr, self._of_value(parent, parent.attr, index, depth))
        elif isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            found = self.of_target(parent.target, index, depth, name)
            return BatchPart(name, "(", (), (found, found)) if found is not None else None
        elif isinstance(parent, (ast.Call, ast.Starred, ast.keyword)):
            taken.place = self._place(node, parent, index) if taken.place is None else taken.place
            taken.handed_on = taken.handed_on or self._handed_on(node, parent, index, depth)
        return None

    def _note_item(self, taken: _Taken, item: ast.Subscript, name: str, index: Index, depth: int) -> Optional[BatchPart]:
        """Note an item, by its key or number; what a slice of it holds where that is unpacked."""
        key = item.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            taken.keys.setdefault(key.value, self._of_value(item, key.value, index, depth))
        elif isinstance(key, ast.Constant) and type(key.value) is int and key.value >= 0:
            taken.items.setdefault(key.value, self._of_value(item, name, index, depth))
        elif isinstance(key, ast.Slice):
            found = self._of_value(item, name, index, depth)
            return found._replace(name=name) if found.opening == "(" else None
        return None

    def _of_value(self, node: ast.expr, name: str, index: Index, depth: int) -> BatchPart:
        """Returns the parts taken out of the value of an expression: out of the names that it is assigned to."""
        parent = index.parents.get(node)
        while isinstance(parent, ast.Attribute) and parent.attr in _SAME_SHAPE:  # `batch["ids"].to(device)`
            call = index.parents.get(parent)
            if not (isinstance(call, ast.Call) and call.func is parent):
                break
            node, parent = call, index.parents.get(call)
        if isinstance(parent, ast.Assign) and parent.value is node:
            found = self.of_target(parent.targets[0], index, depth, name)
            if found is not None:
                return found
        if isinstance(parent, ast.Call):
            return BatchPart(name, place=self._place(node, parent, index))
        return BatchPart(name)

    def of_target(self, target: ast.expr, index: Index, depth: int, name: str) -> Optional[BatchPart]:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = [self.of_target(part, index, depth, "x") or BatchPart("x") for part in target.elts if not isinstance(part, ast.Starred)]
            return BatchPart(name, "(", (), tuple(parts)) if 0 < len(parts) <= MOST_PARTS else None
        if isinstance(target, ast.Name):
            return None if target.id == name else self.of_name(target.id, index, depth)
        return None

    def _place(self, node: ast.AST, parent: ast.AST, index: Index) -> Optional[int]:
        """The position among the arguments of `self(…)` or `self.forward(…)` at which an expression stands."""
        if isinstance(parent, ast.Call) and self._is_forward(parent.func):
            return next((number for number, argument in enumerate(parent.args) if argument is node), None)
        return None

    def _handed_on(self, node: ast.AST, parent: ast.AST, index: Index, depth: int) -> Optional[BatchPart]:
        """Returns the parts that a method takes out of the expression that it is given."""
        call = parent if isinstance(parent, ast.Call) else index.parents.get(parent)
        if not isinstance(call, ast.Call):
            return None
        method = self._method(call.func)
        if method is None:
            return None
        definition = function_node(method)
        if definition is None:
            return None
        own = _names(definition)[0 if self._cls is None else 1 :]
        if isinstance(parent, ast.Starred):
            before = call.args.index(parent)
            parts = self._parameters(method, own, call, depth)[before:]
            return BatchPart("batch", "(", (), parts) if parts and before == len(call.args) - 1 else None
        if isinstance(parent, ast.keyword):
            if parent.arg is not None:
                return self.of_parameter(method, parent.arg, depth) if parent.arg in own else None
            parts = self._parameters(method, own, call, depth)
            return BatchPart("batch", "{", tuple(own), parts) if parts else None
        place = next((number for number, argument in enumerate(call.args) if argument is node), None)
        if place is None or place >= len(own) or self._is_forward(call.func):
            return None
        return self.of_parameter(method, own[place], depth)

    def _parameters(self, method: Any, names: List[str], call: ast.Call, depth: int) -> Tuple[BatchPart, ...]:
        """Returns the parts that a method takes out of each of its parameters."""
        if self._is_forward(call.func):
            return tuple([BatchPart(name, place=number) for number, name in enumerate(names)])
        return tuple([self.of_parameter(method, name, depth) for name in names])

    def _method(self, function: ast.expr) -> Any:
        """The method or function that an expression calls; None for what is not the user's own."""
        if self._cls is None:
            found = self._names.get(function.id) if isinstance(function, ast.Name) else None
            return found if inspect.isfunction(found) else None
        if isinstance(function, ast.Name) and function.id == "self":
            return getattr(self._cls, "forward", None)
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self"):
            return None
        return getattr(self._cls, function.attr, None)

    def _is_forward(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute):
            return function.attr == "forward" and isinstance(function.value, ast.Name) and function.value.id in self._models
        return isinstance(function, ast.Name) and function.id in self._models


def _names(definition: ast.FunctionDef) -> List[str]:
    """The parameters of a method that have to be given."""
    found = [each.arg for each in definition.args.posonlyargs + definition.args.args]
    return found[: len(found) - len(definition.args.defaults)]
