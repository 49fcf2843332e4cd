"""Defaults of parameters and attributes of classes that code fills: `def layers(self, made=nn.ModuleList())`, `names = []`.

In a real run a class is built once or a few times. Here it is built many times, and what one time leaves in them is not for the next:
that gets a copy of what was there before. The models that were built keep theirs.
"""

from __future__ import annotations

import contextlib
import inspect
from operator import is_
from typing import Any, Dict, Iterator, List, Tuple

import torch

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
_PLAIN = (list, dict, set)


class _MutableDefaults:
    """Those that definitions of user files have made."""

    def __init__(self) -> None:
        self._functions: Dict[int, Tuple[Any, List[List[Any]]]] = {}  # with what was in each default when it was defined
        self._attributes: Dict[Tuple[int, str], Tuple[type, List[Any]]] = {}  # of classes, with what statements of modules put into it

    def note(self, defined: Any) -> None:
        """Remember those of a function or class that has just been defined."""
        if isinstance(defined, type):
            for name, value in list(vars(defined).items()):
                if type(value) in _PLAIN and not (name.startswith("__") and name.endswith("__")):
                    self._attributes[id(defined), name] = defined, _items(value)
        for function in _functions_of(defined):
            held = [_items(value) for value in _defaults(function)]
            if any(type(value) in (*_PLAIN, *_CONTAINERS) for value in _defaults(function)):
                self._functions[id(function)] = function, held

    @contextlib.contextmanager
    def executing(self) -> Iterator[None]:
        """Meanwhile a statement of a module is executed: what it puts into the attributes of classes stays."""
        before = {key: _items(vars(cls).get(key[1])) for key, (cls, _) in self._attributes.items()}
        try:
            yield
        finally:
            for key, items in before.items():
                cls, _ = self._attributes[key]
                if not _holds(vars(cls).get(key[1]), items):
                    self._attributes[key] = cls, _items(vars(cls).get(key[1]))

    def begin(self) -> None:
        """Make them what they were, before something is evaluated."""
        for function, held in self._functions.values():
            values = list(_defaults(function))
            if not all(map(_holds, values, held)):
                fresh = iter([value if _holds(value, items) else _made(value, items) for value, items in zip(values, held)])
                if function.__defaults__:
                    function.__defaults__ = tuple([next(fresh) for _ in function.__defaults__])
                if function.__kwdefaults__:
                    function.__kwdefaults__ = {name: next(fresh) for name in function.__kwdefaults__}
        for (_, name), (cls, items) in self._attributes.items():
            value = vars(cls).get(name)
            if type(value) in _PLAIN and not _holds(value, items):
                setattr(cls, name, _made(value, items))


def _holds(value: Any, items: List[Any]) -> bool:
    current = _items(value)
    return len(current) == len(items) and (isinstance(value, set) or all(map(is_, current, items)))


def _made(value: Any, items: List[Any]) -> Any:
    """A container of the same class with these items."""
    pairs = dict(zip(items[::2], items[1::2]))
    if isinstance(value, torch.nn.Module):
        made = type(value)()
        made._modules.update(pairs)
        return made
    return pairs if isinstance(value, dict) else type(value)(items)


def _items(value: Any) -> List[Any]:
    """What is in it; of a dict, and of a container of modules, its keys and values by turns."""
    if type(value) in _CONTAINERS:
        value = value._modules
    if type(value) in (dict, type(torch.nn.ModuleList()._modules)):
        return [part for pair in value.items() for part in pair]
    return list(value) if type(value) in (list, set) else []


def _defaults(function: Any) -> Tuple[Any, ...]:
    return (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def _functions_of(defined: Any) -> Iterator[Any]:
    """A function, or those of a class, without their decorators."""
    for value in vars(defined).values() if isinstance(defined, type) else [defined]:
        value = getattr(value, "__func__", value)
        if inspect.isfunction(value):
            function = inspect.unwrap(value)
            if inspect.isfunction(function):
                yield function


mutable_defaults = _MutableDefaults()
