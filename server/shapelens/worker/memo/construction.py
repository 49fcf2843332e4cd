"""Takes part in the construction of modules: `Module.__new__` asks a `Builder` for the module, which may be built already."""

from __future__ import annotations

import sys
import types
from abc import ABCMeta
from typing import Any, Dict, List, Optional, Protocol, Tuple

import torch

Module = torch.nn.Module


class Builder(Protocol):
    """Constructs modules as long as it is `set_builder`."""

    def construct(self, cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """A module of a class: a bare one, or one whose constructor has run and that is of the class's inert class."""


_builders: List[Builder] = []  # at most one


def set_builder(builder: Optional[Builder]) -> None:
    """From now on the construction of modules is a matter of this builder, or of none.

    The first time it changes `Module.__new__` for good, which only a process that ends with its run should do.
    """
    _builders[:] = [] if builder is None else [builder]
    if builder is not None and Module.__dict__.get("__new__") is None:
        Module.__new__ = _new  # type: ignore[method-assign]


def _new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`Module.__new__`: Python calls `__init__` of what it returns next, which does nothing for a module of an inert class."""
    if not _builders or cls.__new__ is not _new or "__new__" in sys._getframe(1).f_code.co_names:  # As `copy.deepcopy` calls it.
        return unconstructed(cls)
    return _builders[0].construct(cls, args, kwargs)


def unconstructed(cls: Any) -> Any:
    """A module whose constructor has not run."""
    return super(Module, cls).__new__(cls)


def inert_class_of(cls: Any) -> Any:
    """A subclass whose constructor does nothing but make the module one of `cls`; None where there cannot be one."""
    if cls not in _inert_classes:
        _inert_classes[cls] = _inert(cls)
    return _inert_classes[cls]


_inert_classes: Dict[type, Any] = {}


def _inert(cls: Any) -> Any:
    if type(cls) not in (type, ABCMeta) or not isinstance(cls.__init_subclass__, types.BuiltinMethodType):
        return None  # Making a subclass may do anything.

    def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(module, "__class__", cls)

    names = {"__init__": __init__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    try:
        return type(cls)(cls.__name__, (cls,), names)
    except TypeError:
        return None
