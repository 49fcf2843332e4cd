"""What the sites of a run held: values are reduced to small hashable keys at once, so that no tensor is kept alive.

A key is a tuple that starts with the kind of value:
    ("tensor", shape, dtype, stride, requires_grad, stand_in)   ("sequence", type name, names of fields or None, (key, ...))
    ("mapping", type name, (name, ...), (key, ...))             ("layer", index)
    ("scalar", type name, value or None if it depends on data)  ("other", type name), in a sequence or mapping
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import types
from typing import Any, Callable, Container, Dict, List, Optional, Tuple

import torch

from ..protocol import Observation, Span, Value
from . import unknown
from .prepared import PREPARED
from .sites import BOUND, NAMES, READ, SCALAR, VALUE, Site

Key = Tuple[Any, ...]
Naming = Callable[[Key], Optional[Key]]

LONGEST_SEQUENCE = 512  # occurrences of a site that are kept in order, for the comparison with a probe
MOST_ITEMS = 64  # of a sequence or mapping
MOST_ATTRIBUTES = 24  # of an object that is looked into
MOST_SIZES = 8  # of a tuple of numbers
MOST_NUMBERS = 16  # distinct ones of a site
DEEPEST = 4

SCALARS = {int: "int", float: "float", bool: "bool", type(None): "NoneType", unknown.UnknownInt: "int", unknown.UnknownFloat: "float"}
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
SILENT = {*SCALARS, str, bytes, slice, range, torch.Size, torch.dtype, torch.device, *_FUNCTIONS}
# Packages whose objects are not looked into.
_WITHOUT_PARTS = {"builtins", "numpy", "collections", "typing", "re", "pathlib", "logging", "functools", "inspect", "einops"}
_PLAIN: Dict[type, bool] = {}  # by type: whether its objects have no parts

LAYER = "_shapelens_layer"  # in a module's __dict__: its index in Trace.layers
HALF_BUILT = "_shapelens_half_built"  # in the __dict__ of a layer whose constructor refused its arguments
STAND_IN = "_shapelens_stand_in"  # an attribute of tensors that stand in for the result of a failed operation: True, or VAGUE
VAGUE = "vague"  # a stand-in of which nothing is known
ORIGIN = "_shapelens_origin"  # an attribute of tensors: see origins.py

Tensor = torch.Tensor
Module = torch.nn.Module
_plainly = torch._C.DisableTorchFunction


class Seen:
    """The values of one site (or one layer): counts of distinct keys, and the order in which they came."""

    __slots__ = ("counts", "sequence", "total")

    def __init__(self) -> None:
        self.counts: Dict[Key, int] = {}
        self.sequence: List[Key] = []
        self.total = 0

    def add(self, key: Key) -> None:
        self.total += 1
        self.counts[key] = self.counts.get(key, 0) + 1
        if len(self.sequence) < LONGEST_SEQUENCE:
            self.sequence.append(key)


def tensor_key(tensor: Tensor) -> Optional[Key]:
    """The key of a tensor; None for a vague stand-in. An unknown size (of data, or a nested tensor's) is None."""
    with _plainly():  # The modes of a run would see each of these attributes: 4 µs instead of 0.6.
        return _tensor_key(tensor)


def _tensor_key(tensor: Tensor) -> Optional[Key]:
    stand_in = tensor.__dict__.get(STAND_IN, False)
    if stand_in == VAGUE:
        return None
    try:
        shape = tuple([size if type(size) is int else None for size in tensor.shape])
    except RuntimeError:  # A nested tensor has no single shape.
        return ("tensor", tuple([None] * tensor.dim()), _dtype(tensor), None, tensor.requires_grad, False)
    try:
        stride: Optional[Tuple[int, ...]] = tuple([step if type(step) is int else 0 for step in tensor.stride()])
    except (RuntimeError, NotImplementedError):  # Sparse tensors have none.
        stride = None
    if unknown.state.met and unknown.any_unknown(shape):
        shape, stride = tuple([None if unknown.is_unknown(size) else size for size in shape]), None
    return ("tensor", shape, _dtype(tensor), stride, tensor.requires_grad, stand_in)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype)[6:]


def key_of(value: Any) -> Optional[Key]:
    """The key of a value that is a layer or holds tensors; None for anything else."""
    if isinstance(value, Tensor):
        return tensor_key(value)
    key = _key(value, 0)
    return key if key[0] == "layer" or _holds_tensor(key) else None


def _key(value: Any, depth: int) -> Key:
    if isinstance(value, Tensor):
        return tensor_key(value) or ("other", "?")
    kind = type(value)
    if kind in SCALARS:
        return _scalar_key(value)
    if isinstance(value, Module):
        index = value.__dict__.get(LAYER)
        return ("other", kind.__name__) if index is None else ("layer", index)
    if depth < DEEPEST:
        if isinstance(value, (tuple, list, collections.deque)):
            items = list(itertools.islice(value, MOST_ITEMS))
            if not all(type(item) in SCALARS for item in items):
                keys = tuple([_key(item, depth + 1) for item in items])
                if any(map(_holds_tensor, keys)):
                    return ("sequence", kind.__name__, _fields(value), keys)
            return (number_key(value) if depth else None) or ("other", kind.__name__)
        parts = _parts(value)
        if parts:
            keys = tuple([_key(item, depth + 1) for _, item in parts])
            if any(map(_holds_tensor, keys)):
                return ("mapping", kind.__name__, tuple([str(name) for name, _ in parts]), keys)
    return ("other", kind.__name__)


def number_key(value: Any) -> Optional[Key]:
    """The key of a number, of None, or of a tuple of sizes; None for anything else."""
    kind = type(value)
    if kind in SCALARS:
        return _scalar_key(value)
    if isinstance(value, (tuple, list)) and 0 < len(value) <= MOST_SIZES and all(SCALARS.get(type(item)) == "int" for item in value):
        return ("sequence", kind.__name__, _fields(value), tuple([_scalar_key(item) for item in value]))
    return None


def _scalar_key(value: Any) -> Key:
    kind = type(value)
    unsure = kind is unknown.UnknownInt or kind is unknown.UnknownFloat or (unknown.state.met and unknown.is_unknown(value))
    return ("scalar", SCALARS[kind], None if unsure else value)


def _fields(value: Any) -> Optional[Tuple[str, ...]]:
    """The names of a named tuple's items, or of what `torch.max` and its like return."""
    if type(value) in (tuple, list):
        return None
    names = getattr(value, "_fields", None) or getattr(type(value), "__match_args__", None)
    return tuple(names) if isinstance(names, tuple) and len(names) == len(value) else None


def _parts(value: Any) -> Optional[List[Tuple[Any, Any]]]:
    """The named parts of a mapping, a dataclass, or another object that keeps tensors in attributes of its own."""
    if isinstance(value, (dict, collections.UserDict)):
        return list(itertools.islice(value.items(), MOST_ITEMS))
    kind = type(value)
    plain = _PLAIN.get(kind)
    if plain is None:
        plain = _PLAIN[kind] = kind.__module__.partition(".")[0] in _WITHOUT_PARTS or isinstance(value, (type, *_FUNCTIONS))
    if plain:
        return None
    if dataclasses.is_dataclass(value):
        return [(item.name, getattr(value, item.name, None)) for item in dataclasses.fields(value)]
    own = getattr(value, "__dict__", None)
    if type(own) is not dict or len(own) > MOST_ATTRIBUTES:
        return None
    # Only what is a tensor itself: the attributes of an object may lead anywhere.
    return [(name, item) for name, item in own.items() if isinstance(item, Tensor) and not name.startswith("__")]


def _holds_tensor(key: Key) -> bool:
    return key[0] == "tensor" or (key[0] in ("sequence", "mapping") and any(map(_holds_tensor, key[-1])))


def value_of(key: Optional[Key], named: Optional[Any] = None, size: bool = False) -> Value:
    """A key as the protocol's Value; `named` has the same structure, with dims as strings in place of shapes.

    size: numbers in it follow from shapes, as far as the text tells.
    """
    if key is None:
        return Value("other")
    if key[0] == "tensor":
        _, shape, dtype, stride, requires_grad, stand_in = key
        return Value(
            "tensor",
            type_name="Tensor",
            shape=list(shape),
            dtype=dtype,
            stride=None if stride is None else list(stride),
            requires_grad=requires_grad,
            stand_in=stand_in,
            named=None if named is None else list(named),
        )
    if key[0] == "layer":
        return Value("layer", layer=key[1])
    if key[0] == "scalar":
        follows = key[1] == "int" and (size or (named is not None and named != str(key[2])))
        unsure = key[2] is None and key[1] != "NoneType"
        text = "?" if unsure else "%.6g" % key[2] if key[1] == "float" else str(key[2])
        return Value("scalar", type_name="size" if follows else key[1], text=text, named=[named] if named not in (None, text) else None)
    if key[0] == "other":
        return Value("other", type_name=key[1])
    parts = key[-1]
    names = [None] * len(parts) if named is None else named
    items = [value_of(part, name, size) for part, name in zip(parts, names)]
    return Value(key[0], type_name=key[1], items=items, keys=None if key[2] is None else list(key[2]))


class Recorder:
    """Takes what rewritten code reports, for one example at a time."""

    def __init__(self, on_module: Callable[[Any, Site], None]) -> None:
        PREPARED.forget_run()
        self.sites: List[Site] = PREPARED.sites
        self.files: List[Tuple[int, str]] = PREPARED.files  # the first site of each file, and the file
        self.rewritten: Dict[str, int] = {}  # the first site of each file that is in use
        self._first_sites: List[int] = [first for first, _ in self.files]
        self.seen: Dict[int, Seen] = {}
        self.defined: Dict[int, Seen] = {}  # of the sites that run once, with the definitions
        self.last = -1  # the site that reported last: before Python 3.11, what tells where a statement failed
        self._on_module = on_module

    def add_file(self, file: str, first: Optional[int] = None) -> None:
        """The sites that are added from now on are of this file, or those from `first` on, which are there already."""
        self.rewritten[file] = len(self.sites) if first is None else first
        if first is not None:
            return
        self.files.append((len(self.sites), file))
        self._first_sites.append(len(self.sites))

    def start_example(self) -> None:
        """Forget what the sites held; the sites themselves stay."""
        self.seen = {}
        self.last = -1

    def reporters(self) -> Dict[str, Any]:
        """The functions that rewritten code calls, by name."""
        return {VALUE: self.value, SCALAR: self.scalar, NAMES: self.names, BOUND: self.bound, READ: self.read}

    # The reporters are called from rewritten code. They are on the path of every expression that runs.

    def value(self, number: int, value: Any) -> Any:
        """Report the value of a site, and hand it back."""
        self.last = number
        if type(value) in SILENT:
            return value
        if isinstance(value, Tensor):
            key: Optional[Key] = tensor_key(value)
            origin = value.__dict__.get(ORIGIN)
            if origin is not None and origin.site < 0:
                origin.site = number
        elif isinstance(value, Module):
            if self.sites[number].is_call:
                self._on_module(value, self.sites[number])
            key = key_of(value)
        else:
            key = key_of(value)
        if key is not None:
            self._add(number, key)
        return value

    def scalar(self, number: int, value: Any) -> Any:
        """Report the value of a site where numbers count, and hand it back."""
        key = number_key(value)
        if key is None:
            return self.value(number, value)
        self.last = number
        self._add(number, key)
        return value

    def names(self, first: int, *values: Any) -> bool:
        """Report the values of several sites that follow each other."""
        for number, value in enumerate(values, start=first):
            self.scalar(number, value)
        return True

    def bound(self, first: int, *values: Any) -> bool:
        """Report the tensors among the values of several sites that follow each other."""
        for number, value in enumerate(values, start=first):
            self.value(number, value)
        return True

    def read(self, number: int, function: Callable[[], Any]) -> None:
        """Report what a target holds now; nothing where it cannot be read."""
        try:
            with _plainly():
                value = function()
        except Exception:  # A property without a getter, an index that only data says.
            return
        self.scalar(number, value)

    def _add(self, number: int, key: Key) -> None:
        seen = self.seen.get(number)
        if seen is None:
            seen = self.defined.setdefault(number, Seen()) if self.sites[number].defining else self.seen.setdefault(number, Seen())
        if key[0] == "scalar" and len(seen.counts) >= MOST_NUMBERS and key not in seen.counts:
            seen.total += 1
        else:
            seen.add(key)

    def file_of(self, number: int) -> str:
        """The file that a site is in."""
        return self.files[bisect.bisect_right(self._first_sites, number) - 1][1]

    def sites_of(self, file: str) -> range:
        """The sites of a file."""
        first = self.rewritten[file]
        behind = bisect.bisect_right(self._first_sites, first)
        return range(first, self._first_sites[behind] if behind < len(self._first_sites) else len(self.sites))

    def span_of(self, number: int) -> Span:
        """Where a site is."""
        return Span(self.file_of(number), *self.sites[number].place)

    def observations(
        self, example: int, name: Callable[[int, Seen], List[Tuple[Key, Optional[Key]]]], files: Container[str]
    ) -> List[Observation]:
        """What the sites of these files held in this example, and with the first one what the definitions gave.

        `name(site, seen)` gives the distinct keys of a site, with the named dims where they are known.
        """
        out = []
        every = {**self.defined, **self.seen} if example == 0 else self.seen
        for number in sorted(every):
            seen, site = every[number], self.sites[number]
            file = self.file_of(number)
            if file not in files:
                continue
            values = [value_of(key, named, site.size) for key, named in name(number, seen)]
            statement = None if site.statement is None else Span(file, *site.statement)
            out.append(Observation(Span(file, *site.place), site.kind, site.name, site.function, example, values, seen.total, statement))
        return out
