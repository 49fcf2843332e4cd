"""Defaults of parameters and lists of classes that code fills: `def layers(self, made=nn.ModuleList())`, `class Net: parts = []`.

In a real run a class is built once or a few times. Here it is built many times, and what one time leaves in them is not for the next:
that gets a copy of what was there before. The models that were built keep theirs. What only changes in place is not looked for.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Dict, Iterator, List, Tuple

import torch

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
_PLAIN = (list, dict, set)


class _Watched:
    """A container that a function has as a default, or a class as an attribute, and what was in it when that was defined."""

    def __init__(self, owner: Any, key: str, value: Any) -> None:
        """key: the name of the parameter or attribute."""
        self.owner, self.key, self.kind = owner, key, type(value)
        self.holder = _holder(value)
        self.items = list(self.holder.items()) if hasattr(self.holder, "items") else list(self.holder)

    def is_filled(self) -> bool:
        return len(self.holder) != len(self.items)

    def renew(self) -> None:
        """Let the owner have another container with what was in this one."""
        made = self.kind() if self.kind in _CONTAINERS else self.kind(self.items)
        if self.kind in _CONTAINERS:
            made._modules.update(self.items)
        self.holder = _holder(made)
        if isinstance(self.owner, type):
            setattr(self.owner, self.key, made)
            return
        names = _names_of_defaults(self.owner)
        if self.key in names:
            place = names.index(self.key)
            self.owner.__defaults__ = (*self.owner.__defaults__[:place], made, *self.owner.__defaults__[place + 1 :])
        else:
            self.owner.__kwdefaults__[self.key] = made


class _MutableDefaults:
    """Those that definitions of user files have made."""

    def __init__(self) -> None:
        self._defaults: Dict[Tuple[int, str], _Watched] = {}
        self._lists: Dict[Tuple[int, str], _Watched] = {}  # of classes, empty at first

    def note(self, defined: Any) -> None:
        """Remember those of a function or class that has just been defined."""
        if isinstance(defined, type):
            for name, value in list(vars(defined).items()):
                if type(value) is list and not value and not (name.startswith("__") and name.endswith("__")):
                    self._lists[id(defined), name] = _Watched(defined, name, value)
        for function in _functions_of(defined):
            named = zip(_names_of_defaults(function), function.__defaults__ or ())
            for name, value in (*named, *(function.__kwdefaults__ or {}).items()):
                if type(value) in _PLAIN or type(value) in _CONTAINERS:
                    self._defaults[id(function), name] = _Watched(function, name, value)

    @contextlib.contextmanager
    def executing(self) -> Iterator[None]:
        """Meanwhile a statement of a module is executed: what it puts into the lists of classes stays."""
        before = [(watched, len(watched.holder)) for watched in self._lists.values()]
        try:
            yield
        finally:
            for watched, count in before:
                if len(watched.holder) != count:
                    watched.items = list(watched.holder)

    def begin(self) -> None:
        """Make them what they were, before something is evaluated."""
        for watched in (*self._defaults.values(), *self._lists.values()):
            if watched.is_filled():
                watched.renew()


def _holder(value: Any) -> Any:
    return value._modules if type(value) in _CONTAINERS else value


def _names_of_defaults(function: Any) -> List[str]:
    code = function.__code__
    return list(code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) : code.co_argcount])


def _functions_of(defined: Any) -> Iterator[Any]:
    """A function, or those of a class, without their decorators."""
    for value in vars(defined).values() if isinstance(defined, type) else [defined]:
        value = getattr(value, "__func__", value)
        if inspect.isfunction(value):
            function = inspect.unwrap(value)
            if inspect.isfunction(function):
                yield function


mutable_defaults = _MutableDefaults()
