"""Values reduced to small hashable keys, so that no tensor is kept alive, and those turned into the protocol's values.

A key is a tuple that starts with the kind of value:
    ("tensor", shape, dtype, stride, requires_grad, stand_in)   ("sequence", type name, names of fields or None, (key, ...))
    ("array", shape, dtype), of numpy
    ("mapping", type name, (name, ...), (key, ...))             ("layer", index)
    ("scalar", type name, value or None if it depends on data)  ("other", type name), in a sequence or mapping

No code of the user runs for a key: containers are read past the methods that their classes override, attributes past descriptors.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import types
from typing import Any, Dict, List, Optional, Tuple

import torch

from ...protocol import Value
from ..unknown import data_arrays, unknown_sizes

Key = Tuple[Any, ...]

MOST_ITEMS = 64  # of a sequence or mapping
MOST_ATTRIBUTES = 24  # of an object that is looked into
MOST_SIZES = 8  # of a tuple of numbers
MOST_VALUES = 10_000  # that are kept for those that are like them
DEEPEST = 4

LAYER = "_shapelens_layer"  # in a module's __dict__: its index in Trace.layers
OF_EXAMPLE = "_shapelens_of_example"  # in a module's __dict__: whether the example's own expression constructed it
MODE = "_shapelens_mode"  # in a module's __dict__: whether the example has set it to training
HALF_BUILT = "_shapelens_half_built"  # in the __dict__ of a layer whose constructor refused its arguments
STAND_IN = "_shapelens_stand_in"  # an attribute of tensors that stand in for the result of a failed operation: True, or VAGUE
VAGUE = "vague"  # a stand-in of which nothing is known
ORIGIN = "_shapelens_origin"  # an attribute of tensors: see provenance.py
TAKEN = "_shapelens_taken"  # an attribute of tensors: the sizes that layers say which took it, by dim

SCALARS = {
    int: "int",
    float: "float",
    bool: "bool",
    type(None): "NoneType",
    unknown_sizes.UnknownInt: "int",
    unknown_sizes.UnknownFloat: "float",
}
# Packages whose objects hold nothing to show.
_WITHOUT_PARTS = {"builtins", "numpy", "collections", "typing", "re", "pathlib", "logging", "functools", "inspect", "einops"}

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


# --- kinds of types ---

KINDS: Dict[type, str] = {}  # "tensor", "array", "layer", "sequence", "mapping", "object", or "" for what holds nothing; by type


def kind_of(cls: type) -> str:
    """The kind of a type's values."""
    found = KINDS.get(cls)
    if found is None:
        found = KINDS[cls] = _classified(cls)
    return found


def _classified(cls: type) -> str:
    if cls in SCALARS:
        return ""
    bases = type.__getattribute__(cls, "__mro__")
    for base, kind in _BASES:
        if any(known is base for known in bases):
            return kind
    if any((base.__module__, base.__name__) == ("numpy", "ndarray") for base in bases):  # Numpy need not be there.
        return "array"
    package = type.__getattribute__(cls, "__module__")
    return "object" if isinstance(package, str) and package.partition(".")[0] not in _WITHOUT_PARTS else ""


_BASES = (
    (Tensor, "tensor"),
    (torch.nn.Module, "layer"),
    (tuple, "sequence"),
    (list, "sequence"),
    (collections.deque, "sequence"),
    (dict, "mapping"),
    (collections.UserDict, "mapping"),
    (type, ""),
    (types.ModuleType, ""),
    (torch.dtype, ""),
    (torch.device, ""),
)


# --- keys ---

_PLAIN = (Tensor, torch.nn.Parameter)  # whose sizes and strides are numbers
_DTYPES: Dict[torch.dtype, str] = {}
_SHAPE: Any = torch._C.TensorBase.shape  # as it is in torch, whatever user code makes of `Tensor.shape`
_shape_of = _SHAPE.__get__


def tensor_key(tensor: Tensor) -> Optional[Key]:
    """The key of a tensor; None for a vague stand-in. An unknown size (of data, or a nested tensor's) is None."""
    with _plainly():  # The modes of a run would see each of these attributes: 4 µs instead of 0.6.
        return _tensor_key(tensor)


def _tensor_key(tensor: Tensor) -> Optional[Key]:
    stand_in = tensor.__dict__.get(STAND_IN, False)
    if stand_in == VAGUE:
        return None
    if type(tensor) in _PLAIN and not unknown_sizes.state.met and tensor.layout is torch.strided:  # Nearly always.
        return ("tensor", tuple(_shape_of(tensor)), dtype_name(tensor.dtype), tensor.stride(), tensor.requires_grad, stand_in)
    try:
        shape = tuple([size if type(size) is int else None for size in _shape_of(tensor)])
    except RuntimeError:  # A nested tensor has no single shape.
        return ("tensor", tuple([None] * tensor.dim()), dtype_name(tensor.dtype), None, tensor.requires_grad, False)
    try:
        stride: Optional[Tuple[int, ...]] = tuple([step if type(step) is int else 0 for step in tensor.stride()])
    except (RuntimeError, NotImplementedError):  # Sparse tensors have none.
        stride = None
    if unknown_sizes.state.met and unknown_sizes.any_unknown(shape):
        shape, stride = tuple([None if unknown_sizes.is_unknown(size) else size for size in shape]), None
    return ("tensor", shape, dtype_name(tensor.dtype), stride, tensor.requires_grad, stand_in)


def _array_key(array: Any) -> Optional[Key]:
    """The key of an array of numbers; None for a single number, and for texts and objects."""
    base: Any = next(base for base in type(array).__mro__[::-1] if base.__name__ == "ndarray")
    shape, dtype = base.shape.__get__(array), base.dtype.__get__(array)
    if not shape or dtype.kind not in "biufc":
        return None
    return ("array", data_arrays.known_shape(array, shape), str(dtype))


def dtype_name(dtype: torch.dtype) -> str:
    """`float32`"""
    return _DTYPES.get(dtype) or _DTYPES.setdefault(dtype, str(dtype)[6:])


def key_of(value: Any) -> Optional[Key]:
    """The key of a value that is a layer, or holds tensors or arrays; None for anything else."""
    kind = kind_of(type(value))
    if kind == "tensor":
        return tensor_key(value)
    if kind == "array":
        return _array_key(value)
    if kind != "layer" and not (kind and _leads_to_tensor(value, kind, 0)):
        return None
    key = _key(value, 0)
    return key if key[0] == "layer" or _holds_tensor(key) else None


def _leads_to_tensor(value: Any, kind: str, depth: int) -> bool:
    """True if a value holds a tensor or an array as deep as keys go: most lists and dicts hold none, and need no key."""
    items = _items(value) if kind == "sequence" else [item for _, item in _parts(value, kind) or ()]
    for item in items:
        inner = kind_of(type(item))
        if inner in ("tensor", "array"):
            return True
        if inner and inner != "layer" and depth + 1 < DEEPEST and _leads_to_tensor(item, inner, depth + 1):
            return True
    return False


def _key(value: Any, depth: int) -> Key:
    cls = type(value)
    if cls in SCALARS:
        return _scalar_key(value)
    kind = kind_of(cls)
    if kind == "tensor":
        return tensor_key(value) or ("other", "?")
    if kind == "array":
        return _array_key(value) or ("other", cls.__name__)
    if kind == "layer":
        index = value.__dict__.get(LAYER)
        return ("other", cls.__name__) if index is None else ("layer", index)
    if depth < DEEPEST and kind == "sequence":
        items = _items(value)
        if not all(type(item) in SCALARS for item in items):
            keys = tuple([_key(item, depth + 1) for item in items])
            if any(map(_holds_tensor, keys)):
                return ("sequence", cls.__name__, _fields(value, len(items)), keys)
        return (number_key(value) if depth else None) or ("other", cls.__name__)
    parts = _parts(value, kind) if depth < DEEPEST and kind else None
    if parts:
        keys = tuple([_key(item, depth + 1) for _, item in parts])
        if any(map(_holds_tensor, keys)):
            return ("mapping", cls.__name__, tuple([_text(name) for name, _ in parts]), keys)
    return ("other", "?" if cls in unknown_sizes.STAND_INS else cls.__name__)


def number_key(value: Any) -> Optional[Key]:
    """The key of a number, of None, or of a tuple of sizes; None for anything else."""
    cls = type(value)
    if cls in SCALARS:
        return _scalar_key(value)
    if kind_of(cls) != "sequence":
        return None
    items = _items(value)
    if 0 < len(items) <= MOST_SIZES and all(SCALARS.get(type(item)) == "int" for item in items):
        return ("sequence", cls.__name__, _fields(value, len(items)), tuple([_scalar_key(item) for item in items]))
    return None


def _scalar_key(value: Any) -> Key:
    cls = type(value)
    unsure = (
        cls is unknown_sizes.UnknownInt
        or cls is unknown_sizes.UnknownFloat
        or (unknown_sizes.state.met and unknown_sizes.is_unknown(value))
    )
    return ("scalar", SCALARS[cls], None if unsure else value)


def _items(value: Any) -> List[Any]:
    """The first items of a tuple, list or deque, whatever its class makes of iteration."""
    bases: Tuple[Any, ...] = (tuple, list, collections.deque)
    base = next(base for base in bases if isinstance(value, base))
    return list(itertools.islice(base.__iter__(value), MOST_ITEMS))


def _fields(value: Any, count: int) -> Optional[Tuple[str, ...]]:
    """The names of a named tuple's items, or of what `torch.max` and its like return."""
    cls = type(value)
    if cls in (tuple, list):
        return None
    names = getattr(cls, "_fields", None) or getattr(cls, "__match_args__", None)
    return tuple(names) if isinstance(names, tuple) and len(names) == count else None


def _parts(value: Any, kind: str) -> Optional[List[Tuple[Any, Any]]]:
    """The named parts of a mapping, a dataclass, or another object that keeps tensors in attributes of its own."""
    if kind == "mapping":
        pairs: Any = value if isinstance(value, dict) else value.__dict__.get("data")
        return list(itertools.islice(dict.items(pairs), MOST_ITEMS)) if isinstance(pairs, dict) else None
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        return [(item.name, _attribute(value, own, item.name)) for item in dataclasses.fields(cls)]
    if type(own) is not dict or len(own) > MOST_ATTRIBUTES:
        return None
    # Only what is a tensor itself: the attributes of an object may lead anywhere.
    return [(name, item) for name, item in own.items() if kind_of(type(item)) == "tensor" and not name.startswith("__")]


_COMPUTED = object()


def _attribute(value: Any, own: Dict[str, Any], name: str) -> Any:
    """An attribute that is kept in the object itself or in a slot; _COMPUTED where its class would compute it."""
    for base in type(value).__mro__:
        slot = base.__dict__.get(name)
        if type(slot) is types.MemberDescriptorType:
            return slot.__get__(value)
    return own.get(name, _COMPUTED)


def _text(name: Any) -> str:
    return str(name) if type(name) in (str, int, float, bool) else type(name).__name__


def _holds_tensor(key: Key) -> bool:
    return key[0] in ("tensor", "array") or (key[0] in ("sequence", "mapping") and any(map(_holds_tensor, key[-1])))


def _layer(key: Key, named: Any, size: bool) -> Value:
    return Value("layer", layer=key[1])


def _tensor(key: Key, named: Any, size: bool) -> Value:
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


def _array(key: Key, named: Any, size: bool) -> Value:
    return Value("array", type_name="ndarray", shape=list(key[1]), dtype=key[2], named=None if named is None else list(named))


def _scalar(key: Key, named: Any, size: bool) -> Value:
    follows = key[1] == "int" and (size or (named is not None and named != str(key[2])))
    unsure = key[2] is None and key[1] != "NoneType"
    text = "?" if unsure else "%.6g" % key[2] if key[1] == "float" else str(key[2])
    return Value("scalar", type_name="size" if follows else key[1], text=text, named=[named] if named not in (None, text) else None)


_SIMPLE = {"layer": _layer, "tensor": _tensor, "array": _array, "scalar": _scalar}
_values: Dict[Any, Value] = {}  # of these


def value_of(key: Optional[Key], named: Optional[Any] = None, size: bool = False) -> Value:
    """A key as the protocol's Value; `named` has the same structure, with dims as strings in place of shapes.

    size: numbers in it follow from shapes, as far as the text tells. What has the same key may be the same Value: nobody changes it.
    """
    if key is None:
        return Value("other")
    if key[0] in _SIMPLE:
        known = key, tuple(named) if type(named) is list else named, size
        value = _values.get(known)
        if value is None:
            if len(_values) >= MOST_VALUES:
                _values.clear()
            value = _values[known] = _SIMPLE[key[0]](key, named, size)
        return value
    if key[0] == "other":
        return Value("other", type_name=key[1])
    parts = key[-1]
    names = [None] * len(parts) if named is None else named
    items = [value_of(part, name, size) for part, name in zip(parts, names)]
    return Value(key[0], type_name=key[1], items=items, keys=None if key[2] is None else list(key[2]))
