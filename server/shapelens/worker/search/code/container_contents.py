"""The parts that `forward` takes from an input that is no tensor, read in its text: keys of a dict, attributes of an object, items of a
list."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import nn

from .data_flow import Follower
from .sources import Index, function_node, index_of
from .uses import DICT_METHODS, Uses

MOST_PARTS = 12
_AROUND_ITEMS = ("zip", "enumerate", "reversed", "len", "list", "tuple", "isinstance")


class Container(NamedTuple):
    """The container of an example: its opening ("{", "SimpleNamespace(", "[" or "("), its keys, and the layers that take its items, if
    known."""

    opening: str
    keys: List[str]
    layers: List[Any]
    of_items: Tuple[str, ...] = ()  # the keys of each item, where those are dicts


def container_of(model: Any, name: str) -> Optional[Container]:
    """The container that a parameter of a model's `forward`, or of a function, is; None for a tensor, and where the text does not tell."""
    forward = getattr(model, "forward", model)
    function = function_node(forward)
    if function is None:
        return None
    parts = _unpacked_at_once(function, name) or _only_first(model, function, name)
    if parts is not None:
        return Container("(", _numbered(parts), [])
    uses = Uses()
    Follower().parameter(forward, name, uses, cls=type(model), owner=_owner(model), building=False)
    keys = [key for key in uses.parts if key.isprintable() and '"' not in key and key not in uses.optional]
    if uses.kinds.get("tensor"):
        return None
    if uses.kinds.get("dict"):
        return Container("{", keys[:MOST_PARTS], []) if keys else None
    own = [key for key in keys if key.isidentifier() and not hasattr(torch.Tensor, key) and key not in DICT_METHODS]
    if own:
        return Container("SimpleNamespace(", own[:MOST_PARTS], []) if "Tensor" not in uses.guarded else None
    return _items(model, index_of(function), name)


def _owner(model: Any) -> Optional[type]:
    return next((base for base in type(model).__mro__ if "forward" in vars(base)), None)


def _unpacked_at_once(function: Any, name: str) -> Optional[int]:
    """Returns the number of parts of a parameter that is only unpacked, `x, lengths = x`, before its name stands for something else; else
    None."""
    index = index_of(function)
    loads = sorted(index.loads.get(name, ()), key=_position)
    first = index.parents.get(loads[0]) if loads else None
    if not (first in function.body and isinstance(first, ast.Assign) and isinstance(first.targets[0], ast.Tuple)):
        return None
    targets = first.targets[0].elts
    if any(isinstance(target, ast.Starred) for target in targets):
        return None
    if any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return len(targets)
    # `a, b = x`, then `x = f(a, b)` before anything reads the name again.
    again = next((statement for statement in function.body if _binds(statement, name)), None)
    return len(targets) if again is not None and all(_position(load) > _position(again) for load in loads[1:]) else None


def _position(node: Any) -> Tuple[int, int]:
    return node.lineno, node.col_offset


def _binds(statement: ast.stmt, name: str) -> bool:
    """True if a statement of its own assigns to a name, of what it does not read itself."""
    if not (isinstance(statement, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)):
        return False
    return not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(statement.value))


def _only_first(model: Any, function: Any, name: str) -> Optional[int]:
    """1 where all that is done with the first parameter is `self.embed(x[0])`, or `x = x[0]` comes before all: the rest is not read."""
    index, parameters = index_of(function), function.args.args
    if not isinstance(model, nn.Module) or len(parameters) < 2 or parameters[1].arg != name:
        return None
    loads = index.loads.get(name, ())
    for statement in function.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement) == "%s = %s[0]" % (name, name):
            return 1
        if any(node in loads for node in ast.walk(statement)):
            break
    for node in loads:
        taken = index.parents.get(node)
        call = index.parents.get(taken) if isinstance(taken, ast.Subscript) and _number(taken.slice) == 0 else None
        layer = call.func if isinstance(call, ast.Call) and taken in call.args else None
        if not isinstance(layer, ast.Attribute) or not isinstance(getattr(model, layer.attr, None), nn.Module):
            return None
    return 1 if loads else None


class _ItemsRead:
    """The uses of a list or tuple in a text."""

    def __init__(self, model: Any, index: Index) -> None:
        self._model = model
        self._index = index
        self.numbers: Set[int] = set()  # of the items that are read
        self.unpacked = 0  # into how many names
        self.gone_through = False
        self.lists: List[Optional[Any]] = []  # of layers, that are gone through beside it

    def note(self, node: ast.expr) -> bool:
        """True if it is known what the text does with it at one place."""
        parent = self._index.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            number = _number(parent.slice)
            self.numbers |= {number} if number is not None else set()
        elif isinstance(parent, ast.Call) and _is_state_of_lstm(self._model, parent, node):
            self.unpacked = 2
        elif isinstance(parent, ast.Return) or (isinstance(parent, ast.Tuple) and isinstance(self._index.parents.get(parent), ast.Return)):
            pass  # Mostly of what the name holds by then.
        elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
            self.unpacked = len(parent.targets[0].elts)
        elif isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            self.gone_through = True
        elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _AROUND_ITEMS:
            self.gone_through = self.gone_through or parent.func.id in ("zip", "enumerate", "reversed")
            self.lists += [_module_list(self._model, argument) for argument in parent.args]
        else:
            return False
        return True

    def layers(self) -> Any:
        """The list of layers that has one for each item, as far as the text tells; None where it does not."""
        along = next((found for found in self.lists if found is not None), None)
        if along is None and (self.gone_through or len(self.numbers) > 1):
            parts = self._model.__dict__.get("_modules", {}).values() if isinstance(self._model, nn.Module) else ()
            along = next((each for each in parts if isinstance(each, nn.ModuleList) and _is_list(each)), None)
        return along


def _items(model: Any, index: Index, name: str) -> Optional[Container]:
    """A list or tuple: it is unpacked, gone through, or only single items of it are read."""
    read, keys = _ItemsRead(model, index), _keys_of_items(index, name)
    for node in index.loads.get(name, ()):
        parent = index.parents.get(node)
        if isinstance(parent, ast.Subscript) and parent.value is node and _number(parent.slice) is None:
            return None
        if not read.note(node) and not keys:
            return None
    if read.unpacked >= 2:
        return Container("(", _numbered(read.unpacked), [])
    along, numbers = read.layers(), read.numbers
    if along is not None and read.gone_through and len(along) <= MOST_PARTS:
        return Container("[", _numbered(len(along)), list(along))
    if read.gone_through or len([number for number in numbers if number >= 0]) > 1:
        count = max([2, *[number + 1 if number >= 0 else -number for number in numbers]])
        return Container("[", _numbered(count), [], _with_keys_elsewhere(model, index, name, keys))
    return None


def _with_keys_elsewhere(model: Any, index: Index, name: str, keys: Sequence[str]) -> Tuple[str, ...]:
    """The keys of a list's items: those here, in methods that have the list under the same name, in parts that are called with it."""
    if not keys:
        return ()
    found = [*keys]
    for method in vars(type(model)).values():
        node = function_node(method) if isinstance(method, FunctionType) else None
        if node is not None and any(argument.arg == name for argument in node.args.args):
            found += _keys_of_items(index_of(node), name)
    for load in index.loads.get(name, ()):
        call: Any = index.parents.get(load)
        called: Any = call.func if isinstance(call, ast.Call) and _is_of_self(call.func) else None
        part = getattr(model, called.attr, None) if called is not None else None
        node = function_node(part.forward) if isinstance(part, nn.Module) and load in call.args else None
        if node is not None and call.args.index(load) + 1 < len(node.args.args):
            found += _keys_of_items(index_of(node), node.args.args[call.args.index(load) + 1].arg)
    return tuple(dict.fromkeys(found))[:MOST_PARTS]


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _keys_of_items(index: Index, name: str) -> Tuple[str, ...]:
    """The keys that code takes from each item of a list that it goes through: `[each["boxes"] for each in targets]`."""
    keys: List[str] = []
    for node in index.loads.get(name, ()):
        loop, target = _loop_over(index, node)
        if not isinstance(target, ast.Name):
            continue
        around = index.parents.get(loop, loop) if isinstance(loop, ast.comprehension) else loop
        for part in ast.walk(around):
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == target.id:
                key = part.slice.value if isinstance(part.slice, ast.Constant) else None
                keys += [key] if isinstance(key, str) and key.isprintable() and '"' not in key else []
    return tuple(dict.fromkeys(keys))[:MOST_PARTS]


def _loop_over(index: Index, node: ast.AST) -> Tuple[Any, Optional[ast.expr]]:
    """The loop or comprehension that goes through what a node stands for, itself or in `zip` or `enumerate`, and the name of an item."""
    parent: Any = index.parents.get(node)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent, parent.target if parent.iter is node else None
    loop: Any = index.parents.get(parent)
    is_in_call = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and isinstance(loop, (ast.For, ast.comprehension))
    if not is_in_call or loop.iter is not parent or not isinstance(loop.target, ast.Tuple):
        return None, None
    at = parent.args.index(node) if parent.func.id == "zip" else 1 if parent.func.id == "enumerate" else -1
    return (loop, loop.target.elts[at]) if 0 <= at < len(loop.target.elts) else (None, None)


def _is_state_of_lstm(model: Any, call: ast.Call, node: ast.expr) -> bool:
    """True if `node` is h and c in `self.lstm(x, node)`."""
    if len(call.args) < 2 or call.args[1] is not node or not isinstance(call.func, ast.Attribute):
        return False
    return isinstance(getattr(model, call.func.attr, None), (nn.LSTM, nn.LSTMCell))


def _module_list(model: Any, node: ast.expr) -> Optional[nn.ModuleList]:
    """The list of layers that `self.x` stands for."""
    if isinstance(node, ast.Attribute) and _is_of_self(node):
        found = getattr(model, node.attr, None)
        return found if _is_list(found) else None
    return None


def _is_list(module: Any) -> bool:
    return isinstance(module, nn.ModuleList) and len(module) > 1


def _numbered(count: int) -> List[str]:
    return [str(number) for number in range(min(count, MOST_PARTS))]


def _number(node: ast.expr) -> Optional[int]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None
