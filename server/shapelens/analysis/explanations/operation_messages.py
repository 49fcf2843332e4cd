"""Words for what is wrong with an operation: its operands by their names, the sizes that do not fit.

Each function takes a `Failed` and gives the words, or "" where eager's message has to do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shapelens.analysis.explanations.expression_parts import Parts
from shapelens.analysis.explanations.tape_messages import tape_words
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import Mismatch, Value

# What eager says.
_EXPAND = re.compile(r"expanded size of the tensor \((-?\d+)\) must match the existing size \((\d+)\) at non-singleton dimension (\d+)")
_SUBSCRIPT = re.compile(r"subscript (\w) has size (\d+) for operand (\d+) which does not broadcast with previously seen size (\d+)")
# The functions that compare an input with a target. A call of a loss as a layer is told as one of the function.
_FLOATS = ("float", "bfloat")
OF_CLASSES = ("cross_entropy", "nll_loss")  # losses whose target holds the numbers of classes
LOSSES = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss",
    "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "hinge_embedding_loss",
)  # fmt: skip


@dataclass(frozen=True)
class Failed:
    """An operation that failed. tensors: what it was given; names: what they are called in the code, "" where that is not known."""

    mismatch: Mismatch
    tensors: list[Value]
    names: list[str]
    parts: Parts | None

    @property
    def message(self) -> str:
        return self.mismatch.message

    @property
    def operation(self) -> str:
        return (self.parts.function if self.parts is not None else "") or self.mismatch.operation.strip("_")

    def named(self, index: int) -> str:
        """`x [B, 3, 8]`."""
        return f"{self.names[index]} {dims_text(self.tensors[index])}".strip()


def words(failed: Failed) -> str:
    """The words for a failed operation; "" where there are none better than eager's."""
    said = tape_words(failed.mismatch, failed.named(0) if failed.tensors else "") or _kernel(failed.message)
    if said:
        return said
    say = _BY_CODE.get(failed.mismatch.code)
    if say is None or not failed.tensors:
        return ""
    try:
        return say(failed)
    except (IndexError, KeyError, ValueError):
        return ""  # The arguments are not what the words are for.


def failed_at(mismatch: Mismatch, parts: Parts | None) -> Failed:
    """A mismatch with what its expression says."""
    tensors = [value for value in mismatch.inputs if value.kind == "tensor"]
    if parts is not None and mismatch.operation in LOSSES and not parts.function.endswith(("cross_entropy", "_loss", "kl_div")):
        parts = replace(parts, function=mismatch.operation, receiver=None)  # `self.criterion(out, y)`
    if parts is not None and (mismatch.layer is not None or not _does(parts.function, mismatch.operation)):
        parts = None
    return Failed(mismatch, tensors, parts.names(tensors) if parts is not None else [""] * len(tensors), parts)


def _does(written: str, operation: str) -> bool:
    """True if the function or operator that is written is the torch function that failed, rather than one that calls it."""
    name = operation.strip("_")
    if written.isidentifier() or "." in written:
        return written.rpartition(".")[2].strip("_") == name
    if written == "[]":
        return name in ("getitem", "setitem")
    return operation.startswith("__") or name in ("matmul", "add", "sub", "mul", "div", "eq", "pow", "floor_divide", "remainder")


def _dim(value: Value, dim: int) -> str:
    """The name of a size, or its number."""
    if value.named is not None:
        return value.named[dim].replace("*", "·")
    size = (value.shape or [])[dim]
    return "?" if size is None else str(size)


def _same(first: Value, first_dim: int, second: Value, second_dim: int) -> bool:
    sizes = (first.shape or [])[first_dim], (second.shape or [])[second_dim]
    return None in sizes or sizes[0] == sizes[1]


# --- products ---


def _matmul(failed: Failed) -> str:
    if len(failed.tensors) < 2:
        return ""
    index = 1 if failed.operation in ("addmm", "baddbmm", "addbmm") and len(failed.tensors) > 2 else 0
    left, right = failed.tensors[index : index + 2]
    if not left.shape or not right.shape:
        return ""
    if failed.operation == "linear":
        if _same(left, -1, right, -1):
            return ""
        return f"{failed.named(index)} has {_dim(left, -1)} features, the weight {failed.named(index + 1)} takes {_dim(right, -1)}"
    inner = -2 if len(right.shape) > 1 else -1
    product = f"{failed.named(index)} @ {failed.named(index + 1)}"
    if _same(left, -1, right, inner):
        batches = left.shape[:-2], right.shape[:-2]
        return f"{product}: the batches are {list(batches[0])} and {list(batches[1])}" if batches[0] != batches[1] else ""
    said = f"{product}: the inner sizes are {_dim(left, -1)} and {_dim(right, inner)}"
    if failed.names[index + 1] and len(right.shape) > 1 and left.shape[-1] == right.shape[-1]:
        turned = f"{failed.names[index + 1]}{'.T' if len(right.shape) == 2 else '.transpose(-2, -1)'}"
        for already in (".t()", ".T", ".mT", ".transpose(-2, -1)", ".transpose(-1, -2)"):
            turned = turned if not failed.names[index + 1].endswith(already) else failed.names[index + 1][: -len(already)]
        said += f"; did you mean {turned}?"
    return said


def _attention(failed: Failed) -> str:
    if len(failed.tensors) < 3:
        return ""
    query, key, value = failed.tensors[:3]
    if not _same(query, -1, key, -1):
        return f"query {failed.named(0)} and key {failed.named(1)} differ in their last dim, {_dim(query, -1)} and {_dim(key, -1)}"
    if not _same(key, -2, value, -2):
        return f"key {failed.named(1)} and value {failed.named(2)} differ in their length, {_dim(key, -2)} and {_dim(value, -2)}"
    return ""


# --- what has to agree ---


def _broadcast(failed: Failed) -> str:
    found = _EXPAND.search(failed.message)
    if found and len(failed.tensors) == 1:
        wanted, size, dim = found.groups()
        return f"only dims of size 1 can be expanded: dim {dim} of {failed.named(0)} is {size}, not {wanted}"
    if len(failed.tensors) < 2:
        return ""
    left, right = failed.tensors[:2]
    for back in range(1, min(len(left.shape or []), len(right.shape or [])) + 1):
        if not _same(left, -back, right, -back) and 1 not in ((left.shape or [])[-back], (right.shape or [])[-back]):
            sizes = f"dim -{back} is {_dim(left, -back)} and {_dim(right, -back)}"
            return f"{failed.named(0)} and {failed.named(1)} do not broadcast: {sizes}"
    return ""


def _cat(failed: Failed) -> str:
    ranks = {len(value.shape or []) for value in failed.tensors}
    if len(failed.tensors) < 2:
        return ""
    if len(ranks) > 1:
        shown = list(dict.fromkeys(failed.named(index) for index in range(len(failed.tensors))))
        return f"{' and '.join(shown[:4])} cannot be joined: they have different numbers of dims"
    found = re.search(r"must match except in dimension (\d+)\. .*for tensor number (\d+)", failed.message)
    along = int(found.group(1)) if found else None
    number = int(found.group(2)) if found else 1
    first, other = failed.tensors[0], failed.tensors[number]
    for dim in range(ranks.pop()):
        if dim != along and not _same(first, dim, other, dim):
            rest = f" all dims but {along}" if along is not None else " all dims"
            how = f"{failed.operation} needs{rest} to agree"
            return f"{how}: dim {dim} is {_dim(first, dim)} in {failed.named(0)} and {_dim(other, dim)} in {failed.named(number)}"
    return ""


def _dtype(failed: Failed) -> str:
    dtypes = [value.dtype for value in failed.tensors]
    if "bool" in dtypes and "operator" in failed.message:
        return f"{failed.named(dtypes.index('bool'))} is a mask (bool), which has no minus: use ~ to invert it, or convert it to a number"
    if "target" in failed.message and len(dtypes) > 1:
        return f"the target {failed.named(1)} is {dtypes[1]}: class indices have to be int64"
    differing = [number for number, dtype in enumerate(dtypes[1:], 1) if dtype != dtypes[0]]
    if differing and re.search("same|match|found|but got", failed.message):
        of_floats = [number for number in differing if dtypes[0].startswith(_FLOATS) and dtypes[number].startswith(_FLOATS)]
        other = (of_floats or differing)[:1]
        for number in other:
            named = f"{'the weight ' if number == 2 and failed.operation in OF_CLASSES else ''}{failed.named(number)}"
            needs = f"{failed.operation or 'this'} needs them to be the same"
            return f"{failed.named(0)} is {dtypes[0]} and {named} is {dtypes[number]}: {needs}"
    return ""


# --- views ---


def _view(failed: Failed) -> str:
    value = failed.tensors[0]
    if "not compatible" in failed.message:
        return f"the strides of {failed.named(0)} do not allow this view: use reshape, or contiguous() before it"
    found = re.search(r"shape '\[(.*?)\]' is invalid for input of size (\d+)", failed.message)
    if not found or not value.shape or None in value.shape:
        return ""
    asked = [int(size) for size in found.group(1).split(",") if size.strip()]
    shape = [size for size in value.shape if size is not None]
    rest = [size for size in asked if size != -1]
    call = f"{failed.operation or 'view'}({', '.join(map(str, asked))})"
    if asked and asked[0] in (-1, shape[0]) and len(shape) > 1:
        behind = math.prod(rest[1:] if asked[0] != -1 else rest)
        if -1 not in asked[1:]:
            wanted = f"rows of {behind}" if asked[0] == -1 else f"{behind} elements after the first dim"
            has = f"{failed.named(0)} has {math.prod(shape[1:])}"
            return f"{call} wants {wanted}; {has}{' after the first dim' if asked[0] == -1 else ''} ({_times(shape[1:])})"
    total = f"{failed.named(0)} has {math.prod(shape)} elements ({_times(shape)})"
    return f"{call} wants {'a multiple of ' if -1 in asked else ''}{math.prod(rest)}; {total}"


def _times(sizes: Sequence[int]) -> str:
    return "·".join(map(str, sizes))


def _dim_argument(failed: Failed) -> str:
    rank = len(failed.tensors[0].shape or [])
    found = re.search(r"[Dd]imension out of range \(expected to be in range of \[-?\d+, -?\d+\], but got (-?\d+)\)", failed.message)
    if found:
        return f"there is no dim {found.group(1)}: {failed.named(0)} has dims 0 to {rank - 1}" if rank else ""
    found = re.search(r"input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)", failed.message)
    if found:
        return f"{failed.operation or 'permute'} names {found.group(2)} dims, {failed.named(0)} has {found.group(1)}"
    return ""


def _split(failed: Failed) -> str:
    found = re.search(r"sum exactly to (\d+) \(input tensor's size at dimension (-?\d+)\), but got split_sizes=\[(.*)\]", failed.message)
    if not found:
        return ""
    sizes = [int(size) for size in found.group(3).split(",")]
    return f"the sizes {sizes} add up to {sum(sizes)}, but dim {found.group(2)} of {failed.named(0)} is {found.group(1)}"


def _index(failed: Failed) -> str:
    found = re.search(r"Target (-?\d+) is out of bounds", failed.message)
    if found and len(failed.tensors) > 1 and failed.tensors[0].shape:
        classes = failed.tensors[0].shape[1 if len(failed.tensors[0].shape) > 1 else 0]
        return f"the target {failed.named(1)} holds class {found.group(1)}, but {failed.named(0)} has {classes} classes, counted from 0"
    found = re.search(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", failed.message)
    if not found:
        return ""
    index, dim, size = found.groups()
    return f"index {index} is out of range: dim {dim} of {failed.named(0)} has size {size}"


def _embedding(failed: Failed) -> str:
    if len(failed.tensors) < 2:
        return ""
    return f"an index in {failed.named(0)} lies outside of the {_dim(failed.tensors[1], 0)} rows of {failed.named(1)}"


def _einsum(failed: Failed) -> str:
    found = _SUBSCRIPT.search(failed.message)
    if found:
        letter, size, number, before = found.groups()
        equation = re.search(r"[\w, .]+->", failed.parts.arguments[0].text) if failed.parts is not None and failed.parts.arguments else None
        inputs = equation.group(0)[:-2].replace(" ", "").split(",") if equation else []
        first = next((index for index, letters in enumerate(inputs) if letter in letters), None)
        there = f" in {failed.named(first)}" if first is not None and first != int(number) else ""
        return f"`{letter}` is {before}{there} and {size} in {failed.named(int(number))}"
    found = re.search(
        r"number of subscripts in the equation \((\d+)\) does not match the number of dimensions \((\d+)\) for operand (\d+)",
        failed.message,
    )
    if found:
        letters, dims, number = found.groups()
        return f"the equation has {letters} letters for {failed.named(int(number))}, which has {dims} dims"
    return ""


# --- layers as functions, and losses ---


def _channels(failed: Failed) -> str:
    found = re.search(r"to have (\d+) channels, but got (\d+) channels", failed.message)
    if not found or len(failed.tensors) < 2:
        return ""
    return f"{failed.named(0)} has {found.group(2)} channels, the weight {failed.named(1)} takes {found.group(1)}"


def _kernel(message: str) -> str:
    found = re.search(r"a list of (\d+) values to match the convolution dimensions, but got stride=\[(.*?)\]", message)
    if not found:
        return ""
    wanted = found.group(2).count(",") + 1
    return f"kernel_size has {found.group(1)} number{'' if found.group(1) == '1' else 's'} and needs {wanted}"


def _window(failed: Failed) -> str:
    found = re.search(r"input size per channel: \((.*?)\)\. Kernel size: \((.*?)\)", failed.message)
    if found:
        size, kernel = (each.replace(" x ", "×") for each in found.groups())
        return f"the kernel {kernel} is larger than the input {size}, its padding included (given {failed.named(0)})"
    return f"the input {failed.named(0)} is too small: nothing would be left of it" if "too small" in failed.message else ""


def _shape(failed: Failed) -> str:
    found = re.search(r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", failed.message)
    if found and len(failed.tensors) > 1:
        return f"{failed.named(0)} has {found.group(1)} rows and the target {failed.named(1)} has {found.group(2)}"
    found = re.search(r"size mismatch \(got input: \[(.*?)\] ?, target: \[(.*?)\]", failed.message)
    if found and len(failed.tensors) > 1:
        return f"the target {failed.named(1)} does not fit {failed.named(0)}: it needs the same shape without the classes (dim 1)"
    found = re.search(r"Expected target size \[(.*?)\], got \[(.*?)\]", failed.message)
    if found and len(failed.tensors) > 1:
        said = f"{failed.named(0)} has its classes in dim 1, so that the target needs to be [{found.group(1)}], not {failed.named(1)}"
        classes_last = list((failed.tensors[0].shape or [])[:-1]) == failed.tensors[1].shape
        return said + ("; did you mean to move the last dim to dim 1?" if classes_last else "")
    if re.search(r"0D or 1D target tensor expected", failed.message) and len(failed.tensors) > 1:
        return f"the target {failed.named(1)} of class numbers needs to have the shape of {failed.named(0)} without its last dim"
    if "target with class probabilities" in failed.message and len(failed.tensors) > 1:
        dtype = failed.tensors[1].dtype
        return f"the target {failed.named(1)} has a number for each class of {failed.named(0)}: these need to be floats, not {dtype}"
    found = re.search(r"normalized_shape=\[(.*?)\], expected", failed.message)
    if found:
        return f"normalized_shape is [{found.group(1)}], but {failed.named(0)} ends otherwise"
    found = re.search(
        r"Target size \(.*\) must be the same as input size|target size .* (must be|different to) .* input size", failed.message
    )
    if found and len(failed.tensors) > 1:
        return f"{failed.named(0)} and the target {failed.named(1)} need to have the same shape"
    return ""


def _backward_scalar(failed: Failed) -> str:
    return f"backward() starts from a single number; {failed.named(0)} has more: take its mean or its sum first"


_BY_CODE: dict[str, Callable[[Failed], str]] = {
    "matmul": _matmul,
    "attention": _attention,
    "broadcast": _broadcast,
    "cat": _cat,
    "dtype": _dtype,
    "view": _view,
    "dim": _dim_argument,
    "split": _split,
    "index": _index,
    "backward-scalar": _backward_scalar,
    "embedding-range": _embedding,
    "einsum": _einsum,
    "conv-in-channels": _channels,
    "kernel-size": _window,
    "shape": _shape,
}
