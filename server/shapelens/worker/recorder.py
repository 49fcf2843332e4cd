"""What the sites of a run held: values are reduced to small hashable keys at once, so that no tensor is kept alive.

A key is a tuple that starts with the kind of value:
    ("tensor", shape, dtype, stride, requires_grad, stand_in)   ("sequence", type name, (key, ...))
    ("mapping", type name, (name, ...), (key, ...))             ("layer", index)
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ..protocol import Observation, Span, Value
from . import unknown
from .rewrite import Site

Key = Tuple[Any, ...]
Naming = Callable[[Key], Optional[Key]]

LONGEST_SEQUENCE = 512  # occurrences of a site that are kept in order, for the comparison with a probe
MOST_ITEMS = 64  # of a sequence or mapping
DEEPEST = 4

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


def key_of(value: Any, depth: int = 0) -> Optional[Key]:
    """The key of a value that holds tensors or layers; None for anything else."""
    if isinstance(value, Tensor):
        return tensor_key(value)
    if isinstance(value, (tuple, list)):
        if depth == DEEPEST or not value or isinstance(value, torch.Size) or type(value[0]) in (int, float, str, bool):
            return None
        keys = [key_of(item, depth + 1) for item in value[:MOST_ITEMS]]
        return ("sequence", type(value).__name__, tuple(keys)) if any(_holds_tensor(key) for key in keys) else None
    if isinstance(value, Module):
        index = value.__dict__.get(LAYER)
        return None if index is None else ("layer", index)
    if isinstance(value, dict):
        if depth == DEEPEST or not value:
            return None
        items = list(value.items())[:MOST_ITEMS]
        keys = [key_of(item, depth + 1) for _, item in items]
        return (
            ("mapping", type(value).__name__, tuple([str(name) for name, _ in items]), tuple(keys))
            if any(map(_holds_tensor, keys))
            else None
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and depth < DEEPEST:
        return key_of({item.name: getattr(value, item.name, None) for item in dataclasses.fields(value)}, depth + 1)
    return None


def _holds_tensor(key: Optional[Key]) -> bool:
    return key is not None and key[0] != "layer"


def value_of(key: Optional[Key], named: Optional[Key] = None) -> Value:
    """A key as the protocol's Value; `named` has the same structure, with dims as strings in place of shapes."""
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
    parts = key[-1]
    names = [None] * len(parts) if named is None else named
    items = [value_of(part, name) for part, name in zip(parts, names)]
    return Value(key[0], type_name=key[1], items=items, keys=list(key[2]) if key[0] == "mapping" else None)


class Recorder:
    """Takes what rewritten code reports, for one example at a time."""

    def __init__(self, on_module: Callable[[Any, Site], None]) -> None:
        self.sites: List[Site] = []
        self.files: List[Tuple[int, str]] = []  # the first site of each file, and the file
        self.seen: Dict[int, Seen] = {}
        self.last = -1  # the site that reported last: before Python 3.11, what tells where a statement failed
        self._on_module = on_module

    def start_example(self) -> None:
        """Forget what the sites held; the sites themselves stay."""
        self.seen = {}
        self.last = -1

    # The two reporters are called from rewritten code. They are on the path of every expression that runs.

    def value(self, number: int, value: Any) -> Any:
        """Report the value of a site, and hand it back."""
        self.last = number
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
            seen = self.seen.get(number)
            if seen is None:
                seen = self.seen[number] = Seen()
            seen.add(key)
        return value

    def names(self, first: int, *values: Any) -> None:
        """Report the values of several sites that follow each other."""
        for offset, value in enumerate(values):
            self.value(first + offset, value)

    def file_of(self, number: int) -> str:
        """The file that a site is in."""
        found = ""
        for first, file in self.files:
            if first <= number:
                found = file
        return found

    def span_of(self, number: int) -> Span:
        """Where a site is."""
        return Span(self.file_of(number), *self.sites[number].place)

    def observations(self, example: int, name: Callable[[int, Seen], List[Tuple[Key, Optional[Key]]]]) -> List[Observation]:
        """What the sites held in this example. `name(site, seen)` gives its distinct keys, with the named dims where they are known."""
        out = []
        for number in sorted(self.seen):
            seen, site = self.seen[number], self.sites[number]
            file = self.file_of(number)
            values = [value_of(key, named) for key, named in name(number, seen)]
            statement = None if site.statement is None else Span(file, *site.statement)
            out.append(Observation(Span(file, *site.place), site.kind, site.name, site.function, example, values, seen.total, statement))
        return out
