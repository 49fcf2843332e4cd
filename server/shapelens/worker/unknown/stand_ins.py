"""Stand-ins for missing things: a package that is not installed, a file that is not there.

Code can call a stand-in, subclass it, decorate with it, iterate over it (it is empty) and ask it for any attribute or item. As a number or
size it is an unknown one. It is no tensor, so that no finding reports its results.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Tuple

import torch

from ..torch_calls import is_in_place
from . import unknown_sizes
from .unpacking import unpacked_count
from .values_at_hand import rests_on_data, values_at_hand
from .world_errors import world_cause

called: List[Any] = []  # the stand-ins that were used since this list was cleared: what comes out of them is unknown


STAND_IN_TYPE = "_StandInMetaclass"  # as messages of torch call what a stand-in is


# Of torch, which takes a TypeError of theirs for "ask the other operand", so that Python says that the two are not equal.
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}

OF_SHAPES = "data-dependent"  # the code of a stand-in for the shape of a tensor of which nothing is known

# Of torch, which make a tensor of the sizes that they are given.
_FACTORIES = {"zeros", "ones", "empty", "rand", "randn"}


class _NoArray:
    """The answer to numpy's protocols of arrays: none is made of a stand-in, as it would look like one of no elements."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("the elements of an array are not known")


class NoItems:
    """Goes through a stand-in: there are no items, and nobody knows how many there would be."""

    def __iter__(self) -> "NoItems":
        return self

    def __next__(self) -> Any:
        raise StopIteration


class _StandInMetaclass(type):
    __array__ = _NoArray()  # Numpy does not call a method of a class.

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        found = absent("%s.%s" % (cls.__name__, name), cls._shapelens_code)
        found._shapelens_gives_tensors = cls._shapelens_is_tensor
        return found

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _is_absent(cls):
            return super().__call__(*args, **kwargs)
        known = BEHAVIOURS.get(cls.__name__) or BEHAVIOURS.get(cls.__name__.rpartition(".")[2])
        if known is not None and cls._shapelens_code == "missing-import":
            return known(*args, **kwargs)
        called.append(cls)
        if len(args) == 1 and not kwargs and callable(args[0]) and not (isinstance(args[0], torch.nn.Module) or is_absent(args[0])):
            return args[0]  # As a decorator it hands back what it decorates.
        return _result(cls) if cls._shapelens_gives_tensors or any(map(_is_tensor, (*args, *kwargs.values()))) else cls

    def _unknown(cls, *args: Any) -> Any:
        called.append(cls)
        return cls

    def __mod__(cls, other: Any) -> Any:
        called.append(cls)
        return unknown_sizes.whole(None)

    __rmod__ = __mod__

    def __fspath__(cls) -> str:
        called.append(cls)
        return cls.__name__.replace("/", " ")

    def __getitem__(cls, place: Any) -> Any:
        called.append(cls)
        return unknown_sizes.size() if cls._shapelens_code == OF_SHAPES and not isinstance(place, slice) else cls

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __enter__ = _unknown
    __neg__ = __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __and__ = __rand__ = _unknown

    def __exit__(cls, *args: Any) -> None:
        """Nothing to end."""

    def __setitem__(cls, key: Any, value: Any) -> None:
        """Forgotten."""

    def __iter__(cls) -> Any:
        called.append(cls)
        count = unpacked_count(sys._getframe(1))  # Who unpacks it gets as many parts as are asked for.
        if count is None:
            return NoItems()
        return iter([unknown_sizes.size() if cls._shapelens_code == OF_SHAPES else cls] * count)

    def __len__(cls) -> int:
        called.append(cls)
        return unknown_sizes.size(lasting=True)

    __index__ = __int__ = __len__

    def __float__(cls) -> float:
        called.append(cls)
        return 0.5

    def __format__(cls, form: str) -> str:
        return cls.__name__

    def __contains__(cls, item: Any) -> bool:
        return False

    def __bool__(cls) -> bool:
        return not _is_absent(cls)

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __array_function__(cls, func: Any, types: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Returns an unknown for numpy's functions: https://numpy.org/neps/nep-0018-array-function-protocol.html"""
        return cls._unknown()

    def __array_ufunc__(cls, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return cls._unknown()

    @classmethod
    def __torch_function__(meta, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        """A tensor that is filled with it stays what it is, and one that is made with it as a size has an unknown one; what else an
        operation makes of it is unknown.
        """
        given = [argument for argument in (*args, *(kwargs or {}).values()) if isinstance(argument, meta)]
        called.extend(given)
        if args and isinstance(args[0], torch.Tensor) and (is_in_place(func) or getattr(func, "__name__", "") == "__set__"):
            return args[0]
        if getattr(func, "__name__", "") in _FACTORIES and all(type(size) is int or isinstance(size, meta) for size in args):
            sizes = [int(size) for size in args]  # An unknown size for one that is not known.
            return func(*sizes, **{name: value for name, value in (kwargs or {}).items() if not isinstance(value, meta)})
        said = "%s is not known" % (given[0].__name__ if given else "an argument")
        raise RuntimeError(said) if getattr(func, "__name__", "") in _COMPARISONS else TypeError(said)


unknown_sizes.STAND_INS.add(_StandInMetaclass)


def _is_absent(cls: Any) -> bool:
    return bool(cls.__dict__.get("_shapelens_absent"))


def is_absent(value: Any) -> bool:
    """True if a value is a stand-in itself, and no class of the file that derives from one."""
    return isinstance(value, _StandInMetaclass) and _is_absent(value)


def holds_absent(values: Any, depth: int = 0, expected: bool = False) -> bool:
    """True if one of some values, or of the lists, tuples and dicts among them, is a stand-in. expected: only one that every input meets,
    for a package that could not be imported, and for the shape of its results."""
    for value in values:
        kind = type(value)
        if kind is _StandInMetaclass:
            if _is_absent(value) and (not expected or value._shapelens_code in ("missing-import", OF_SHAPES)):
                return True
        elif depth < 3 and (kind is list or kind is tuple) and holds_absent(value[:64], depth + 1, expected):
            return True
    return False


def is_unknown_tensor(value: Any) -> bool:
    """True if a stand-in is the result of a call with tensors."""
    return isinstance(value, _StandInMetaclass) and value._shapelens_is_tensor and _is_absent(value)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or is_unknown_tensor(value)


def _result(cls: Any) -> Any:
    """Returns the result of a stand-in that is called with tensors."""
    if cls._shapelens_is_tensor:
        return cls
    found = cls.__dict__.get("_shapelens_result")
    if found is None:
        found = cls._shapelens_result = absent(cls.__name__, cls._shapelens_code)
        found._shapelens_is_tensor = True
    return found


class _Absent(metaclass=_StandInMetaclass):
    """The base of all stand-ins: what a class of the file that derives from one inherits."""

    _shapelens_code = "missing-import"
    _shapelens_is_tensor = _shapelens_gives_tensors = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except TypeError:
            super().__init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Takes whatever keywords the real class takes."""

    def __getattr__(self, name: str) -> Any:
        inherited = getattr(super(), "__getattr__", None)
        if inherited is not None:
            try:
                return inherited(name)
            except AttributeError:
                pass
        if name.startswith("_"):
            raise AttributeError(name)
        return absent("%s.%s" % (type(self).__name__, name))


class _AbsentModule(_Absent, torch.nn.Module):
    """The base of stand-ins for what derives from torch.nn.Module: a `LightningModule`, a `PreTrainedModel`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        torch.nn.Module.__init__(self)
        if args and not isinstance(args[0], torch.nn.Module):
            self.config = args[0]  # As transformers does.


MODULES = {
    "LightningModule",
    "PreTrainedModel",
    "PretrainedModel",
    "PeftModel",
    "ModelMixin",
    "BaseModule",
    "MessagePassing",
}


def unknown_shape() -> Any:
    """Returns the replacement for such a shape: it has as many sizes as code asks for, each unknown."""
    return absent("a shape", OF_SHAPES)


def absent(name: str, code: str = "missing-import") -> Any:
    """A stand-in for what is called `name`; `code` is that of the finding if the run ends because of it."""
    if code != "missing-import":  # What is computed from it may be a size.
        unknown_sizes.note_made(lasting=True)
    base: Any = _AbsentModule if name.rpartition(".")[2] in MODULES and code == "missing-import" else _Absent
    return _StandInMetaclass(name, (base,), {"_shapelens_absent": True, "_shapelens_code": code})


def unknown_value() -> Any:
    """Returns the value of a name that a cell of a notebook would define, where the cell is no Python."""
    return absent("what a cell defines that is no Python", "definition")


def cause_of(error: BaseException) -> Optional[Tuple[str, str]]:
    """(code, message) where what ended an example or a definition is no mistake in it: the machine lacks something, a stand-in was used, or
    the code met a value that only data has."""
    cause = world_cause(error)
    if cause is not None:
        return cause
    first = _asked_of_base(error)
    if first is None:  # A stand-in is false.
        first = called[0] if called else _held(error)
    if first is None:
        return ("data-dependent", type(error).__name__) if rests_on_data(error) else None
    if first._shapelens_code == "missing-import":
        return "missing-import", "this needs %s, which could not be imported" % first.__name__
    return first._shapelens_code, "this needs %s, which is not known" % first.__name__


def _asked_of_base(error: BaseException) -> Any:
    """The stand-in for a base class of which `super()` was asked for what the real one may have; None for any other error."""
    asked: Any = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    cls: Any = getattr(asked, "__self_class__", None) if type(asked) is super else None
    bases = cls.__mro__ if cls is not None else ()
    return next((base for base in bases if is_absent(base)), None)


def _held(error: BaseException) -> Any:
    """A stand-in for something of the world that the code which failed had in its hands; None where it had none."""
    for value in values_at_hand(error):
        if is_absent(value) and value._shapelens_code != "missing-import":
            return value
    return None


class StandInModule(ModuleType):
    """A module that could not be imported."""

    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return absent("%s.%s" % (self.__name__, name))


def _bar(items: Any = (), *args: Any, **kwargs: Any) -> Any:
    """tqdm and its like: the items, with methods that show nothing."""
    return _Bar(items)


class _Bar:
    def __init__(self, items: Any) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *args: Any) -> None:
        """Nothing to end."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def _settings_by_default(settings: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the settings of a class, or the result of a function, without a command line."""
    return settings()


# By their name, or the last part of it: stand-ins of which it is known what they do.
BEHAVIOURS: Dict[str, Any] = {
    "tqdm": _bar,
    "track": _bar,
    "trange": lambda *args, **kwargs: _Bar(range(*args)),
    "tyro.cli": _settings_by_default,
    "simple_parsing.parse": _settings_by_default,
}
