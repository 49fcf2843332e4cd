"""Shapes, sizes and counts written out, for hints, hovers, findings and lenses alike.

A list of dims is always `[a, b, c]`; nothing else that we write into a hint is in square brackets, so that a reader (and a program) can
tell a shape at a glance. Sequences are in round brackets and mappings in braces for that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shapelens.protocol import Value

NARROW_SPACE = "\u202f"
SHORT_DTYPES = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
}
# What is made of floats and of ints when nobody says otherwise, by torch and by numpy.
DEFAULT_DTYPES = {"tensor": {"", "float32", "int64"}, "array": {"", "float64", "int64"}}
MOST_ITEMS = 6  # of a tuple, list or dict; the rest becomes an ellipsis


def dims_text(value: Value, dims: str = "names") -> str:
    """The dims of a tensor: `[B, 6, 28, 28]` with dims="names", `[2, 6, 28, 28]` with dims="numbers"; `?` for a size that is not known."""
    if dims == "names" and value.named is not None:
        return "[" + ", ".join(name.replace("*", "·") for name in value.named) + "]"
    return sizes_text(value.shape or [])


def sizes_text(shape: Sequence[int | None]) -> str:
    """`[2, 3, ?]` of `[2, 3, None]`."""
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def shape_text(value: Value, dims: str = "names", *, ints: bool = False) -> str:
    """A value's shape as it stands in a hint: `[B, 6, 28, 28]`, `bool[B, T]`, `([B, T], [B])`, `{q: [B, T]}`, `ndarray [64, 784]`.

    The dtype is written only where it is not the default of its kind (float32, int64; of numpy's arrays float64, int64). A list of more
    than two tensors of one shape is `[B, 4] ×12`. The items of a named tuple carry their names: `(values: [B, 5], indices: [B, 5])`. A
    number that follows from a shape is its formula, `H/4`; any other value without tensors is its text or its type's name. ints: write
    int64 too, as other dtypes are around it.
    """
    if has_dims(value):
        is_default = value.dtype in DEFAULT_DTYPES[value.kind] and not (ints and value.dtype == "int64")
        dtype = "" if is_default else SHORT_DTYPES.get(value.dtype, value.dtype)
        return ("ndarray " if value.kind == "array" else "") + dtype + dims_text(value, dims)
    if value.kind == "sequence":
        return _sequence_text(value, dims, ints=ints)
    if value.kind == "scalar":
        return value.named[0].replace("*", "·") if dims == "names" and value.named else value.text
    if value.kind == "mapping":
        pairs = [f"{key}: {shape_text(item, dims, ints=ints)}" for key, item in zip(value.keys or [], value.items or [], strict=True)]
        return "{" + ", ".join(_capped(pairs)) + "}"
    return value.text or value.type_name or "?"


def dtype_text(value: Value, dims: str = "names") -> str:
    """A tensor's shape with its dtype, be it the default or not: `i64[8]`."""
    return SHORT_DTYPES.get(value.dtype, value.dtype) + dims_text(value, dims) if value.kind == "tensor" else shape_text(value, dims)


def _sequence_text(value: Value, dims: str, *, ints: bool) -> str:
    texts = [shape_text(item, dims, ints=ints) for item in value.items or []]
    if len(texts) > 2 and len(set(texts)) == 1 and has_tensor(value):
        return f"{texts[0]} ×{len(texts)}"
    if value.keys:
        texts = [f"{key}: {text}" for key, text in zip(value.keys, texts, strict=True)]
    return "(" + ", ".join(_capped(texts)) + ("," if len(texts) == 1 else "") + ")"


def _capped(texts: list[str]) -> list[str]:
    return texts if len(texts) <= MOST_ITEMS else [*texts[: MOST_ITEMS - 1], "…"]


def has_dims(value: Value) -> bool:
    """True if the value is a tensor or an array of numpy."""
    return value.kind in DEFAULT_DTYPES


def has_tensor(value: Value) -> bool:
    """True if the value is a tensor or an array of numpy, or holds one, at any depth."""
    return has_dims(value) or any(has_tensor(item) for item in value.items or [])


def tensors_in(value: Value) -> Iterator[Value]:
    """The tensors and arrays in a value from left to right, however deeply they are nested."""
    if has_dims(value):
        yield value
    for item in value.items or []:
        yield from tensors_in(item)


def is_size(value: Value) -> bool:
    """True if the value is a number that follows from shapes (`x.size(0)`, `h // 2`), or a tuple of such (`x.shape`)."""
    if value.kind == "scalar":
        return value.type_name == "size"
    return value.kind == "sequence" and not has_tensor(value) and any(is_size(item) for item in value.items or [])


def is_shown(value: Value) -> bool:
    """True if a hint says something of the value."""
    return has_tensor(value) or is_size(value) or value.kind == "unknown"


def distinct(values: Iterable[Value], dims: str = "names", *, ints: bool = False) -> list[str]:
    """The different texts of those values that hold tensors or are sizes, in the order in which they first came."""
    return list(dict.fromkeys(shape_text(value, dims, ints=ints) for value in values if is_shown(value)))


def count_text(count: int) -> str:
    """`62 006`, with narrow no-break spaces between the thousands."""
    return f"{count:,}".replace(",", NARROW_SPACE)


def memory_text(size: int) -> str:
    """A number of bytes in the unit that suits it; 1 MB is 2**20 bytes, as torch's own memory summaries have it."""
    for unit, power in (("GB", 30), ("MB", 20)):
        if size >= 0.1 * 2**power:
            return f"{size / 2**power:.2f} {unit}"
    return f"{size / 2**10:.1f} KB" if size >= 1024 else f"{size} B"


def plural(count: int, noun: str) -> str:
    """`1 parameter`, `62 006 parameters`."""
    return f"{count_text(count)} {noun}" + ("" if count == 1 else "s")
