"""Checks what eager refuses and the meta device lets pass: dtypes that do not go together, and the operations whose meta kernels check too
little.

A check is made before the operation, with the tensors that are to go into it. None of them costs anything in a run that only holds float32
tensors and common operations: a combination of dtypes is tried once for each function, on tensors of two elements a dim.
"""

from __future__ import annotations

import re
import types
from typing import Any, Callable, Dict, List, Set, Tuple

import torch

from ..sandbox.exceptions import message_of
from ..trace.autocast import autocast_is_on
from ..trace.provenance import tensors_in
from . import second_opinion

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]

HALVES = {torch.float16, torch.bfloat16} | {getattr(torch, name) for name in dir(torch) if name.startswith("float8")}
MOST_ELEMENTS = 1 << 20  # of all arguments of an operation that is tried before it runs
ABOUT_DTYPES = re.compile(
    r"[dD]ata ?type|dtype|scalar ?type|not (yet )?(implemented|supported)|not support|complex|[bB]ool|integer|floating"
    r"|should be the same|type of|must be (long|int|byte)|share same|same type",
)
ABOUT_VALUES = re.compile(
    r"singular|positive.definite|converge|probability|distribution|sorted|ascending|max index|ones in mask|division by zero|ZeroDivision"
    r"|not allocate|offsets\[",
    re.IGNORECASE,
)
CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, torch.nn.Module)

_accepted: Set[Any] = set()  # what eager was asked and takes: (function, dtypes), and signatures


def about_values(error: BaseException) -> bool:
    """True if eager complains about values, which are made up where it is asked."""
    return type(error).__name__.endswith("LinAlgError") or bool(ABOUT_VALUES.search(message_of(error)))


# --- dtypes ---


def dtypes_go_together(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises what eager raises for tensors of these dtypes, whatever their shapes are."""
    found = tuple([(tensor.dtype, tensor.dim() == 0) for tensor in tensors_in((args, kwargs))])
    key = func, found
    if key in _accepted:
        return
    _accepted.add(key)
    if autocast_is_on() or getattr(func, "__name__", "") in second_opinion.BY_VALUE or any(isinstance(part, CALLABLE) for part in args):
        _accepted.discard(key)
        return
    for resize in (_small, None):
        opinion = second_opinion.ask(func, args, kwargs, resize)
        if opinion is None or opinion.error is None:
            return
    assert opinion is not None and opinion.error is not None
    if not ABOUT_DTYPES.search(str(opinion.error)) or about_values(opinion.error):
        return
    if not HALVES.isdisjoint([dtype for dtype, _ in found]):
        # Many kernels take half floats on an accelerator only: what counts is whether they mix with the others.
        full = second_opinion.ask(func, args, kwargs, None, _doubled)
        if full is None or full.error is None:
            return
    _accepted.discard(key)
    raise opinion.error


def _small(tensor: Tensor) -> Tensor:
    """Of two elements in each dim that has more than one; zeros, as they may be indices."""
    return torch.zeros([min(size, 2) for size in tensor.shape], dtype=tensor.dtype, device=tensor.device)


def _doubled(dtype: torch.dtype) -> torch.dtype:
    """float32 for half floats, and float64 for float32: the same differences between dtypes that all kernels know."""
    return torch.float32 if dtype in HALVES else torch.float64 if dtype is torch.float32 else dtype


# --- shapes ---


def as_eager(func: Callable[..., Any], args: Args, kwargs: Kwargs, most: int = MOST_ELEMENTS) -> None:
    """Raises what eager raises for arguments of these shapes, and for indices that are known; each signature is tried once. Arguments of
    more than `most` elements are not tried."""
    tensors = list(tensors_in((args, kwargs)))
    if not any(tensor.is_meta for tensor in tensors) or sum(tensor.numel() for tensor in tensors) > most:
        return
    key = func, _signature(args), _signature(kwargs)
    if key in _accepted and all(tensor.is_meta for tensor in tensors):
        return
    opinion = second_opinion.ask(func, args, kwargs)
    if opinion is None or opinion.error is None:
        _accepted.add(key)
    elif not isinstance(opinion.error, NotImplementedError) and not about_values(opinion.error) and not autocast_is_on():
        raise opinion.error


def _signature(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, (tuple, list)):
        return tuple([_signature(item) for item in value])
    if isinstance(value, dict):
        return tuple([(name, _signature(item)) for name, item in value.items()])
    return value if isinstance(value, (int, float, str, bool, torch.dtype, type(None))) else type(value)


def dim_in_range(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises IndexError where the argument `dim`, the second one, names no dim of the first."""
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    tensor = args[0] if args else kwargs.get("input")
    if isinstance(tensor, Tensor) and type(dim) is int:
        rank = max(tensor.dim(), 1)
        if not -rank <= dim < rank:
            raise IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)" % (-rank, rank - 1, dim))


def convolution_fits(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises what eager raises for groups, a bias, a padding or an output padding that do not go with the weight."""
    transposed = "transpose" in func.__name__
    others = ("output_padding", "groups", "dilation") if transposed else ("dilation", "groups")
    names = ("input", "weight", "bias", "stride", "padding", *others)
    given = {**dict(zip(names, args)), **kwargs}
    tensor, weight, bias, groups = given.get("input"), given.get("weight"), given.get("bias"), given.get("groups", 1)
    if not (isinstance(tensor, Tensor) and isinstance(weight, Tensor) and type(groups) is int):
        return
    rank = int(func.__name__[-2]) + 2
    defaults = (("padding", 0), ("output_padding", 0), ("stride", 1), ("dilation", 1))
    steps = [_numbers(given.get(name, default)) for name, default in defaults]
    fits = weight.dim() == rank and groups > 0 and weight.shape[0] % groups == 0
    fits = fits and min(steps[0] + steps[1]) >= 0 and min(steps[2] + steps[3]) > 0
    if fits and transposed:
        fits = tensor.shape[1 - rank] == weight.shape[0] and max(steps[1]) < max(steps[2] + steps[3])
    if fits and isinstance(bias, Tensor):
        fits = tuple(bias.shape) == (weight.shape[1] * groups if transposed else weight.shape[0],)
    if not fits:
        as_eager(func, args, kwargs, second_opinion.MOST_ELEMENTS)  # It refuses them before it computes anything.
        if weight.dim() != rank:  # Too large to be asked about.
            wanted = "a single integer value or a list of %d values to match the convolution dimensions" % (weight.dim() - 2)
            raise RuntimeError("expected stride to be %s, but got stride=%s" % (wanted, steps[2]))
    elif transposed and max(steps[1]) > 0:
        as_eager(func, args, kwargs)


def _numbers(value: Any) -> List[int]:
    return [value] if type(value) is int else list(value) if isinstance(value, (tuple, list)) else [1]


def samples_fit(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises what eager raises where multinomial is to draw more samples than there are classes, or gets no probabilities."""
    given = {**dict(zip(("input", "num_samples", "replacement"), args)), **kwargs}
    count, weights = given.get("num_samples"), given.get("input")
    if isinstance(weights, Tensor) and not weights.is_floating_point():
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: %s" % str(weights.dtype)[6:])
    if isinstance(weights, Tensor) and weights.dim() and type(count) is int and not given.get("replacement") and count > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")


def storage_suffices(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises what eager raises where as_strided reaches behind the end of the tensor's storage."""
    given = {**dict(zip(("input", "size", "stride", "storage_offset"), args)), **kwargs}
    tensor, sizes, strides, offset = given.get("input"), given.get("size"), given.get("stride"), given.get("storage_offset")
    if isinstance(tensor, Tensor) and tensor.is_meta and sizes and strides and 0 not in sizes and len(sizes) == len(strides):
        start = tensor.storage_offset() if offset is None else offset
        needed = start + sum((size - 1) * step for size, step in zip(sizes, strides)) + 1
        if needed * tensor.element_size() > tensor.untyped_storage().nbytes():
            words = "sizes %s, strides %s, storage offset %d need a storage of %d elements" % (list(sizes), list(strides), start, needed)
            raise RuntimeError("setStorage: %s, which is out of bounds" % words)


# --- indices that are known ---


def indices_in_range(tensor: Tensor, index: Any) -> None:
    """Raises IndexError where a known index of `tensor[index]` lies outside of its dim; what holds a mask or an ellipsis is left alone."""
    dim = 0
    for part in index if isinstance(index, tuple) else (index,):
        if part is None:
            continue
        if type(part) is list and part and all(type(number) is int for number in part):
            part = torch.tensor(part)
        if isinstance(part, Tensor) and part.dtype not in (torch.bool, torch.uint8) and dim < tensor.dim():
            if not part.is_meta and part.numel() and part.dtype in (torch.int64, torch.int32):
                _in_range(part, tensor.shape[dim], dim)
        elif not isinstance(part, (int, slice)) or isinstance(part, bool):
            return
        dim += 1


def _in_range(index: Tensor, size: int, dim: int) -> None:
    low, high = int(index.min()), int(index.max())
    if low < -size or high >= size:
        raise IndexError("index %d is out of bounds for dimension %d with size %d" % (high if high >= size else low, dim, size))


def embedding_in_range(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
    """Raises IndexError where known indices lie outside of an embedding's rows."""
    given = {**dict(zip(("input", "weight"), args)), **kwargs}
    index, weight = given.get("input"), given.get("weight")
    if not (isinstance(index, Tensor) and isinstance(weight, Tensor)) or index.is_meta or index.is_floating_point() or not index.numel():
        return
    if weight.dim() == 2 and (int(index.min()) < 0 or int(index.max()) >= weight.shape[0]):
        raise IndexError("index out of range in self")
