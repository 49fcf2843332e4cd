"""Operations whose result depends on data: on data its size or value is unknown, on what is known it is computed."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import torch

from ..trace.tape import tape
from ..unknown import data_arrays, unknown_sizes
from ..unknown.conditions import called_by_library, decide
from . import constants, eager_checks, op_cache
from .expected_shapes import broadcast
from .mode import META, SPECIAL, WITHIN, Args, Kwargs, made, named, operation, together

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

unknown_sizes._Unknown.decide = staticmethod(decide)


def _empty(shape: Any, dtype: torch.dtype) -> Tensor:
    return torch.empty(tuple(shape), dtype=dtype, device=META)


def _on_data(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for data: what is known is computed, and told that all of it lies on one device."""

    def apply(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
        with _plainly():
            return rule(func, args, kwargs) if args and isinstance(args[0], Tensor) and args[0].is_meta else func(*args, **kwargs)

    return apply


# --- which elements: a mask, the ones that are not zero ---

_SELECTED = "_shapelens_selected"  # an attribute of indices that data has selected: of these there may be less than a slice asks for


def selected(mask: Tensor) -> int:
    """Returns how many elements a mask selects."""
    return unknown_sizes.size() if mask.is_meta else int(mask.count_nonzero())


def positions(index: Any) -> Any:
    """An index whose masks are replaced by the positions that they select, of an unknown number where a mask is data."""
    if isinstance(index, tuple):
        out: List[Any] = []
        for part in index:
            found = positions(part)
            out.extend(found) if isinstance(found, tuple) else out.append(found)
        return tuple(out)
    if isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) and index.dim():
        return _indices(index)
    return index


def _indices(mask: Tensor) -> Tuple[Tensor, ...]:
    if not mask.is_meta:
        return mask.nonzero(as_tuple=True)
    count = selected(mask)
    found = tuple([_empty((count,), torch.int64) for _ in range(mask.dim())])
    for each in found:
        each.__dict__[_SELECTED] = True
    return found


def _unbounded(tensor: Tensor, index: Any) -> Tuple[Tensor, Any]:
    """x[:n] with an unknown n: a tensor that has an unknown size there, and the index without the bound."""
    parts = index if isinstance(index, tuple) else (index,)
    behind = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    out, shape, dim = list(parts), list(tensor.shape), 0
    for place, part in enumerate(parts):
        if place == behind:
            dim = tensor.dim() - sum(1 for later in parts[place + 1 :] if later is not None)
            continue
        if isinstance(part, slice) and unknown_sizes.any_unknown((part.start, part.stop)) and dim < len(shape):
            shape[dim], out[place] = unknown_sizes.size(), slice(None)
        dim += part is not None
    return _empty(shape, tensor.dtype), tuple(out)


def _has_unknown_bound(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, slice) and unknown_sizes.any_unknown((part.start, part.stop)) for part in parts)


def _is_mask(index: Any) -> bool:
    if type(index) is tuple:
        return any(_is_mask(part) for part in index)
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def _plain(index: Any) -> Any:
    """An index whose parts that are single numbers of data are plain numbers: an element, or a bound that is unknown."""
    if type(index) is tuple:
        return tuple([_plain(part) for part in index])
    if isinstance(index, slice):
        return slice(*[_bound(part) for part in (index.start, index.stop, index.step)])
    if isinstance(index, Tensor) and index.is_meta and not index.dim() and index.dtype not in (torch.bool, torch.uint8):
        return 0
    return index


def _bound(part: Any) -> Any:
    return unknown_sizes.size() if isinstance(part, Tensor) and part.is_meta else part


def _index(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """x[i] and x[i] = y."""
    if type(args[1]) is not int:
        with _plainly():
            args = (args[0], _plain(args[1])) + args[2:]
            if args[0].is_meta:
                eager_checks.indices_in_range(args[0], args[1])
    if _is_mask(args[1]):
        with _plainly():
            if args[0].is_meta or any(part.is_meta for part in args[1:] if isinstance(part, Tensor)):
                args = (args[0], positions(args[1])) + args[2:]
    if func is Tensor.__getitem__ and type(args[1]) is slice and args[1].stop is not None and _SELECTED in args[0].__dict__:
        args = (args[0], slice(args[1].start, unknown_sizes.size()))  # `nms(…)[:100]`: at most 100.
    if unknown_sizes.state.met and func is Tensor.__getitem__ and type(args[1]) is slice:
        with _plainly():
            args = (args[0], unknown_sizes.within_length(args[1], args[0].shape[0]) if args[0].dim() else args[1])
    if unknown_sizes.state.met and func is Tensor.__getitem__ and _has_unknown_bound(args[1]):
        with _plainly():
            args = _unbounded(*args)
    args, kwargs = together(func, args, kwargs)
    return func(*args, **kwargs)


def _nonzero(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    if kwargs.get("as_tuple"):
        return _indices(args[0])
    return _empty((selected(args[0]), args[0].dim()), torch.int64)


def _where(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.where(mask) gives positions, torch.where(mask, x, y) is elementwise."""
    if len(args) == 1 and not kwargs:
        with _plainly():
            return _indices(args[0])
    args, kwargs = together(func, args, kwargs)
    return func(*args, **kwargs)


def _masked_select(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    values, mask = args[0], args[1] if len(args) > 1 else kwargs["mask"]
    with _plainly():
        if not values.is_meta and not mask.is_meta:
            return func(values, mask)
        shape = [size or 0 for size in broadcast([values.shape, mask.shape])]
        return _empty((selected(mask if mask.is_meta else mask.expand(tuple(shape))),), values.dtype)


# --- how many different ones ---


def _unique(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(input, sorted, return_inverse, return_counts, dim); `unique_consecutive` has no `sorted`."""
    names = ["input", "sorted", "return_inverse", "return_counts", "dim"]
    if "consecutive" in getattr(func, "__name__", ""):
        names.remove("sorted")
    given = {**dict(zip(names, args)), **kwargs}
    values, dim, count = given["input"], given.get("dim"), unknown_sizes.size()
    shape = [count] if dim is None else [count if index == dim % values.dim() else size for index, size in enumerate(values.shape)]
    out = [_empty(shape, values.dtype)]
    if given.get("return_inverse"):
        out.append(_empty(values.shape if dim is None else (values.shape[dim],), torch.int64))
    if given.get("return_counts"):
        out.append(_empty((count,), torch.int64))
    return out[0] if len(out) == 1 else tuple(out)


def _bincount(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    weights = args[1] if len(args) > 1 else kwargs.get("weights")
    return _empty((unknown_sizes.size(),), torch.int64 if weights is None else torch.float64)


def _one_hot(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    return _empty((*args[0].shape, unknown_sizes.size() if classes == -1 else classes), torch.int64)


def _repeat_interleave(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """(input, repeats, dim); with repeats alone, the indices to repeat."""
    names = ["input", "repeats", "dim"] if len(args) > 1 or "repeats" in kwargs else ["repeats"]
    given = {**dict(zip(names, args)), **kwargs}
    values, repeats, dim = given.get("input"), given["repeats"], given.get("dim")
    with _plainly():
        if not isinstance(repeats, Tensor) or (not repeats.is_meta and (values is None or not values.is_meta)):
            return func(*args, **kwargs)
        count = given.get("output_size")
        if count is None and repeats.is_meta:
            count = unknown_sizes.size()
        elif count is None:
            each = values.numel() if dim is None else values.shape[dim]  # type: ignore[union-attr]
            count = int(repeats.sum()) * (each if repeats.numel() == 1 else 1)
        if values is None:
            return _empty((count,), torch.int64)
        shape = [count] if dim is None else [count if index == dim % values.dim() else size for index, size in enumerate(values.shape)]
        return _empty(shape, values.dtype)


def _pieces(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """unbind and split along an unknown size: a few pieces in place of millions."""
    args, kwargs = together(func, args, kwargs)
    if unknown_sizes.state.met:
        with _plainly():
            splits = "split" in getattr(func, "__name__", "")
            dim = kwargs.get("dim", args[1 + splits] if len(args) > 1 + splits else 0)
            whole = args[0].shape[dim] if args[0].dim() else 0
            piece = (args[1] if len(args) > 1 else next(iter(kwargs.values()))) if splits else 1
            if unknown_sizes.is_unknown(whole) and isinstance(piece, int) and not unknown_sizes.is_unknown(piece):
                unknown_sizes.state.cut = True
                few = args[0].narrow(dim, 0, piece * unknown_sizes.few())
                return few.split(piece, dim) if splits else few.unbind(dim)
    return func(*args, **kwargs)


def _chunks(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """chunk into an unknown number of pieces: a few of them, of one step each where there are as many pieces as steps."""
    args, kwargs = together(func, args, kwargs)
    chunks = args[1] if len(args) > 1 else kwargs.get("chunks")
    if not (unknown_sizes.state.met and isinstance(chunks, int) and unknown_sizes.is_unknown(chunks)):
        return func(*args, **kwargs)
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    with _plainly():
        whole = args[0].shape[dim]
        step = 1 if whole == chunks else unknown_sizes.size()
        unknown_sizes.state.cut = True
        shape = [step if place == dim % args[0].dim() else size for place, size in enumerate(args[0].shape)]
    return tuple([made(shape, args[0].dtype, args[0].requires_grad) for _ in range(unknown_sizes.few())])


def _gathered(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """cat and stack of what a loop over an unknown number of things gathered: their number is unknown."""
    args, kwargs = together(func, args, kwargs)
    result = func(*args, **kwargs)
    parts = args[0] if args else kwargs.get("tensors")
    if not isinstance(parts, list):
        return result
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if unknown_sizes.is_of_unknown_length(parts) or (unknown_sizes.state.text and unknown_sizes.counts_text(result.shape[dim])):
        shape = list(result.shape)
        shape[dim] = unknown_sizes.size()
        return made(shape, result.dtype, result.requires_grad)
    return result


def _from_list(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """tensor(data) and as_tensor(data): as many rows as a list has, which is unknown of one that a loop cut short has gathered"""
    parts = args[0] if args else kwargs.get("data")
    if isinstance(parts, list) and parts and (unknown_sizes.is_partial(parts) or unknown_sizes.counts_text(len(parts))):
        row = func([parts[0]], *args[1:], **{name: value for name, value in kwargs.items() if name != "data"})
        return made([unknown_sizes.size(), *row.shape[1:]], row.dtype, row.requires_grad)
    return constants.known(func, args, kwargs)


# --- numbers, lists and arrays ---


def _number(dtype: torch.dtype) -> Any:
    if dtype is torch.bool:
        return decide()
    if dtype.is_complex:
        return 0.5 + 0j
    return unknown_sizes.UnknownFloat(0.5) if dtype.is_floating_point else unknown_sizes.UnknownInt(unknown_sizes.size())


def _item(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """One element; eager's complaint where there are more."""
    if args[0].numel() != 1:
        return func(torch.zeros(tuple(args[0].shape), dtype=args[0].dtype))
    if WITHIN in args[0].__dict__ and called_by_library():
        return args[0].__dict__[WITHIN]
    return _number(args[0].dtype)


def _topk(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """The k largest, of an unknown number where k is a tensor."""
    count = kwargs.get("k", args[1] if len(args) > 1 else None)
    if not (isinstance(count, Tensor) and count.is_meta and args and isinstance(args[0], Tensor) and args[0].is_meta):
        return operation(op_cache.key_of(func, args, kwargs), func, args, kwargs)
    with _plainly():
        shape: List[int] = list(args[0].shape)
        dim: int = kwargs["dim"] if "dim" in kwargs else args[2] if len(args) > 2 else -1
        if shape:
            shape[dim] = unknown_sizes.size()
        return torch.return_types.topk((_empty(shape, args[0].dtype), _empty(shape, torch.int64)))


def _count(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Returns how many elements there are."""
    return unknown_sizes.whole(None) if unknown_sizes.any_unknown(args[0].shape) else func(*args, **kwargs)


def _index_of(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """As a position (`layers[i]`, `range(n)`): Python takes a plain int only."""
    return int(_item(func, args, kwargs))


def _float_of(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    return float(_item(func, args, kwargs))


def _listed(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    def part(shape: Tuple[int, ...]) -> Any:
        if not shape:
            return _number(args[0].dtype)
        unknown_sizes.state.cut = unknown_sizes.state.cut or unknown_sizes.is_unknown(shape[0])
        return [part(shape[1:]) for _ in range(unknown_sizes.few() if unknown_sizes.is_unknown(shape[0]) else shape[0])]

    return part(tuple(args[0].shape))


def _array(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Tensor.numpy(), Tensor.__array__(dtype). Raises RuntimeError, as torch words it, where gradients would end there."""
    if tape.active and not kwargs.get("force") and tape.requires_gradient(args[0]):
        raise RuntimeError(NUMPY_OF_GRADIENT)
    kind = torch.zeros((), dtype=args[0].dtype).numpy().dtype
    dtype = kwargs.get("dtype") or next((argument for argument in args[1:] if argument is not None), None)
    return data_arrays.data_array(tuple(args[0].shape), dtype or kind)


NUMPY_OF_GRADIENT = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."  # as torch words it

_functional = torch.functional
for _rule, _functions in (
    (_index, {Tensor.__getitem__, Tensor.__setitem__}),
    (_on_data(_nonzero), {torch.nonzero, Tensor.nonzero, torch.argwhere, Tensor.argwhere}),
    (_where, {torch.where}),
    (_masked_select, {torch.masked_select, Tensor.masked_select}),
    (_on_data(_unique), {torch.unique, Tensor.unique, torch.unique_consecutive, Tensor.unique_consecutive}
     | named(_functional, "_unique_impl _return_output _return_inverse _return_counts _consecutive_return_output"
             " _consecutive_return_inverse _consecutive_return_counts _unique_consecutive_impl")),
    (_on_data(_bincount), {torch.bincount, Tensor.bincount}),
    (_on_data(_one_hot), {torch.nn.functional.one_hot}),
    (_repeat_interleave, {torch.repeat_interleave, Tensor.repeat_interleave}),
    (_gathered, {torch.cat, torch.stack}),
    (_from_list, {torch.tensor, torch.as_tensor}),
    (_pieces, {torch.unbind, Tensor.unbind, torch.split, Tensor.split}),
    (_chunks, {torch.chunk, Tensor.chunk}),
    (_topk, {torch.topk, Tensor.topk}),
    (_on_data(_item), {Tensor.item}),
    (_on_data(_index_of), {Tensor.__int__, Tensor.__index__}),
    (_on_data(_float_of), {Tensor.__float__}),
    (_on_data(_listed), {Tensor.tolist}),
    (_on_data(_count), {torch.numel, Tensor.numel, Tensor.nelement}),
    (_on_data(_array), named(Tensor, "numpy __array__")),
):  # fmt: skip
    SPECIAL.update(dict.fromkeys(_functions, _rule))
