"""Notes what a module holds, as far as running its functions may change it: two equal states tell that it has not been changed."""

from __future__ import annotations

import ast
import collections
import functools
import importlib.util
import io
import logging
import pathlib
import re
import sys
import types
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterable, List, Set, Tuple

import torch

from ..unknown.stand_ins import StandInModule
from .statements import bound_names

MOST_VALUES = 20_000  # that a state is made of: some 60 ms
MOST_AT_ONCE = 2_000  # where somebody waits
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice)
# Which object it is, is all that there is to know of these.
OPAQUE = (
    ModuleType, types.BuiltinFunctionType, types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, getattr(types, "GenericAlias", ModuleType),
    getattr(types, "UnionType", ModuleType), logging.Logger, pathlib.PurePath, re.Pattern, torch.dtype, torch.device, torch.layout,
    torch.memory_format,
)  # fmt: skip
_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter)  # hold nothing once they are closed
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, types.MappingProxyType)
NOT_READ = {"__builtins__", "__spec__", "__loader__"}
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
CACHE = type(functools.lru_cache(maxsize=None)(len))  # of what `functools.lru_cache` makes of a function


def only_imported(module: ModuleType, body: Iterable[ast.AST]) -> Set[str]:
    """The names that statements at module level import, and bind in no other way; of `from x import *` those that x has now."""
    imported: Set[str] = set()
    bound: Set[str] = set()
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
            todo += ast.iter_child_nodes(node)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__dict__.get("__package__"))
            imported.update(vars(sys.modules[source]) if source in sys.modules else ())
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            bound.update(bound_names(node))
    return imported - bound


class TooMuch(Exception):
    """There are values of which nobody knows whether they change."""


class ModuleSnapshot:
    """Holds what the names of a module hold, as far as running its functions may change it. What it has imported is the other modules'.

    No code of the user runs. Raises TooMuch where it cannot be told.
    """

    def __init__(self, module: ModuleType, imported: Set[str]) -> None:
        values = _ObjectReader(module)
        names = [name for name in module.__dict__ if name not in imported and not name.startswith("__shapelens_")]
        try:
            self.held = {name: values.read(module.__dict__[name]) for name in names}
        except RecursionError:
            raise TooMuch from None
        self.empty_caches = values.empty_caches
        self.size = len(values.seen)


def contents(cell: Any) -> Any:
    """Returns what a cell of a closure holds; None where it is empty."""
    try:
        return cell.cell_contents
    except ValueError:  # It is empty.
        return None


# What stands for functions, and what it is made of.
_WRAPPERS: Dict[Any, Callable[[Any], Tuple[Any, ...]]] = {
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset, value.fdel),
    types.MethodType: lambda value: (value.__self__, value.__func__),
    functools.partial: lambda value: (value.func, value.args, value.keywords),
    functools.cached_property: lambda value: (value.func,),
}


class _ObjectReader:
    """Reads values, each object once."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.empty_caches: List[Any] = []
        self.seen: Set[int] = set()

    def read(self, value: Any) -> Any:
        cls = type(value)
        if cls in PLAIN:
            return cls, repr(value)
        if id(value) in self.seen:
            return id(value)
        self.seen.add(id(value))
        if len(self.seen) > MOST_VALUES:
            raise TooMuch
        return id(value), self._parts(value, cls)

    def _all(self, *values: Any) -> Any:
        return tuple([self.read(value) for value in values])

    def _parts(self, value: Any, cls: type) -> Any:
        if issubclass(cls, type):
            of_module = type.__getattribute__(value, "__module__") == self.module.__name__
            own = type.__getattribute__(value, "__dict__") if of_module else {}
            return tuple([(name, self.read(part)) for name, part in own.items() if name != "_abc_impl"])
        if cls is FunctionType:
            if value.__globals__ is not self.module.__dict__ and value.__module__ != self.module.__name__:
                return None
            return self._all(value.__dict__, value.__defaults__, value.__kwdefaults__, *map(contents, value.__closure__ or ()))
        if cls in _WRAPPERS:
            return self._all(*_WRAPPERS[cls](value))
        if cls is CACHE:
            size = value.cache_info().currsize
            self.empty_caches += [] if size else [value]
            return size, self.read(value.__wrapped__)
        if cls in _SEQUENCES:
            return self._all(*value)
        if cls in _MAPPINGS:
            return self._all(*value, *value.values())
        if cls is torch.Tensor:
            with torch._C.DisableTorchFunction():
                return tuple(value.shape), None if value.is_inference() else value._version
        if cls in _FILES and value.closed:
            return None
        if issubclass(cls, OPAQUE) or cls is StandInModule or cls.__module__ in ("typing", "dataclasses"):
            return None
        if is_all_in_its_attributes(cls):
            return self.read(object.__getattribute__(value, "__dict__"))
        raise TooMuch


def is_all_in_its_attributes(cls: type) -> bool:
    """True if a class is written in Python, with no state but that in the `__dict__` of its objects."""
    bases = type.__getattribute__(cls, "__mro__")
    written = all(base is object or (base.__flags__ & _HEAP_TYPE and not base.__dict__.get("__slots__")) for base in bases)
    return written and any(type(base.__dict__.get("__dict__")) is types.GetSetDescriptorType for base in bases)
