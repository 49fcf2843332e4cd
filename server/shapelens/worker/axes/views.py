"""Axes through views, permutations, indices and concatenations."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from .evidence import note_pooled
from .factors import DERIVED, FEATURES, PADDED, REPEATED, UNKNOWN, Dim, Dims, Tear, is_known, new_dim, part_of, roots_of, viewed
from .tracking import TorchCall, combined, rule

Tensor = torch.Tensor


@rule("view reshape view_as reshape_as flatten unflatten _unsafe_view ravel")
def _view(call: TorchCall) -> Optional[Sequence[Dims]]:
    if not call.tensors or any(isinstance(each, torch.dtype) for each in call.args):
        return None
    tensor, result = call.tensors[0], call.results[0]
    dims, tears = viewed(call.dims(tensor), tuple(result.shape))
    for tear in tears:
        is_first = tear.cause is None and not any(factor.axis.tear is not None for factor in tear.factors)
        if is_first and is_known([tear.factors]) and not _is_shift(tear) and (tear.roots or _is_turned_table(tensor, result)):
            call.tracking.event("torn", call, tear.roots, tear=tear)
    return [dims]


def _is_turned_table(tensor: Tensor, result: Tensor) -> bool:
    """True if what was looked up or computed of constants gets the sizes of its dims in another order: the bias of relative positions."""
    return not isinstance(tensor, torch.nn.Parameter) and tensor.shape != result.shape and sorted(tensor.shape) == sorted(result.shape)


def _is_shift(tear: Tear) -> bool:
    """True if rows are padded by one and read as if they were not, which shifts each of them: scores of relative positions.

    Source: Dai et al., "Transformer-XL", appendix B.
    """
    sizes = sorted(factor.size for factor in tear.factors)
    return tear.factors[-1].axis.kind == PADDED and sizes == sorted(axis.size for axis in tear.axes)


@rule("contiguous clone detach alias to float double half bfloat16 long int bool cpu cuda type type_as requires_grad_ data dropout dropout_"
      " dropout1d dropout2d dropout3d alpha_dropout feature_dropout pin_memory __deepcopy__ real imag checkpoint")  # fmt: skip
def _same(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [call.dims(call.tensors[0])] if call.tensors and call.tensors[0].shape == call.results[0].shape else None


@rule("transpose swapaxes swapdims transpose_")
def _transpose(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = list(call.dims(call.tensors[0]))
    one, other = call.argument(1, "dim0", "axis0"), call.argument(2, "dim1", "axis1")
    dims[one], dims[other] = dims[other], dims[one]
    return [tuple(dims)]


@rule("permute")
def _permute(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = call.dims(call.tensors[0])
    order = call.argument(1, "dims")
    order = order if isinstance(order, (tuple, list, torch.Size)) else call.args[1:]
    return [tuple([dims[place] for place in order])]


@rule("movedim moveaxis")
def _movedim(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = call.dims(call.tensors[0])
    one, other = call.argument(1, "source"), call.argument(2, "destination")
    rank = len(dims)
    sources = [place % rank for place in (one if isinstance(one, (tuple, list)) else (one,))]
    targets = [place % rank for place in (other if isinstance(other, (tuple, list)) else (other,))]
    rest = iter([place for place in range(rank) if place not in sources])
    order = [sources[targets.index(place)] if place in targets else next(rest) for place in range(rank)]
    return [tuple([dims[place] for place in order])]


@rule("t T mT adjoint H mH")
def _turned(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = call.dims(call.tensors[0])
    if call.name in ("t", "T"):
        return [dims[::-1]]
    return [(*dims[:-2], dims[-1], dims[-2])]


@rule("squeeze unsqueeze squeeze_ unsqueeze_")
def _squeezed(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [_aligned([dim for dim in call.dims(call.tensors[0]) if dim], tuple(call.results[0].shape))]


def _aligned(dims: Sequence[Dim], shape: Sequence[int]) -> Dims:
    """Dims of more than one number, in the places that a shape has for them."""
    rest = iter(dims)
    return tuple([next(rest) if size != 1 else () for size in shape])


@rule("expand expand_as broadcast_to")
def _expanded(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    dims, new = call.dims(tensor), result.dim() - tensor.dim()
    kept = [dims[place - new] if place >= new and tensor.shape[place - new] == size else None for place, size in enumerate(result.shape)]
    return [tuple([new_dim(result.shape[place], REPEATED) if dim is None else dim for place, dim in enumerate(kept)])]


@rule("repeat tile")
def _repeated(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    dims, new = call.dims(tensor), result.dim() - tensor.dim()
    found: List[Dim] = []
    for place, size in enumerate(result.shape):
        own = dims[place - new] if place >= new else ()
        times = size // (tensor.shape[place - new] if place >= new and tensor.shape[place - new] else 1)
        found.append((*new_dim(times, REPEATED), *own))
    return [tuple(found)]


@rule("repeat_interleave")
def _repeated_each(call: TorchCall) -> Optional[Sequence[Dims]]:
    times, dim = call.argument(1, "repeats"), call.argument(2, "dim")
    dims = list(call.dims(call.tensors[0]))
    if type(times) is not int or type(dim) is not int:
        return None
    dims[dim] = (*dims[dim], *new_dim(times, REPEATED))
    return [tuple(dims)]


@rule("__getitem__")
def _picked(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    index = call.args[1]
    parts = list(index) if isinstance(index, tuple) else [index]
    dims, rank = call.dims(tensor), tensor.dim()
    taken = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if Ellipsis in [part for part in parts if not isinstance(part, Tensor)]:
        place = next(number for number, part in enumerate(parts) if part is Ellipsis)
        parts[place : place + 1] = [slice(None)] * (rank - taken)
    else:
        parts += [slice(None)] * (rank - taken)
    if any(isinstance(part, (Tensor, list)) for part in parts):
        return _indexed(call, parts)
    found: List[Dim] = []
    place = 0
    numbers = [number for number, part in enumerate(parts) if type(part) is int]
    if len(numbers) == 1 and all(part == slice(None) for part in parts[: numbers[0]]):
        note_pooled(dims, numbers[0])
    for part in parts:
        if part is None:
            found.append(())
            continue
        if isinstance(part, slice):
            size = len(range(tensor.shape[place])[part])
            found.append(part_of(dims[place], size, tensor.shape[place]) if size else new_dim(0, UNKNOWN))
        place += 1
    return [tuple(found)] if len(found) == result.dim() else None


def _indexed(call: TorchCall, parts: Sequence[Any]) -> Optional[Sequence[Dims]]:
    """A tensor as an index of one dim, and slices: what is picked lies along the index."""
    tensor = call.tensors[0]
    picks = [place for place, part in enumerate(parts) if isinstance(part, (Tensor, list))]
    if len(picks) != 1 or any(part is None or not isinstance(part, (slice, Tensor)) for part in parts):
        return None
    (place,) = picks
    index = parts[place]
    dims = call.dims(tensor)
    if not isinstance(index, Tensor) or index.dtype is torch.bool:
        return None
    along = call.dims(index)
    if not roots_of(along):  # Constants: positions, a permutation; of a table of constants they are the rows of another one.
        kind = UNKNOWN if roots_of([dims[place]]) else FEATURES
        along = tuple([new_dim(size, kind, roots_of([dims[place]])) for size in index.shape])
    found: List[Dim] = []
    for number, part in enumerate(parts):
        if number == place:
            found += along
        else:
            found.append(part_of(dims[number], len(range(tensor.shape[number])[part]), tensor.shape[number]))
    return [tuple(found)]


@rule("select narrow index_select unbind chunk split tensor_split")
def _part(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    dims = list(call.dims(tensor))
    where = {"chunk": 2, "split": 2, "tensor_split": 2}.get(call.name, 1)
    dim = call.argument(where, "dim", default=0)
    if type(dim) is not int:
        return None
    own = dims.pop(dim)
    if call.name in ("select", "unbind"):
        return [tuple(dims)] * len(call.results)
    dim %= tensor.dim()
    if call.name == "index_select" and len(call.tensors) > 1:
        along = call.dims(call.tensors[1])
        piece = along[0] if along and roots_of(along) else new_dim(result.shape[dim], UNKNOWN, roots_of([own]))
        return [(*dims[:dim], piece, *dims[dim:])]
    return [(*dims[:dim], part_of(own, each.shape[dim], tensor.shape[dim]), *dims[dim:]) for each in call.results]


@rule("cat concat concatenate stack")
def _joined(call: TorchCall) -> Optional[Sequence[Dims]]:
    result = call.results[0]
    dim = call.argument(1, "dim", "axis", default=0)
    if type(dim) is not int:
        return None
    dim %= result.dim()
    if call.name == "stack":
        shape = [size for place, size in enumerate(result.shape) if place != dim]
        found = combined(call, call.tensors, shape)
        return [(*found[:dim], new_dim(result.shape[dim], FEATURES), *found[dim:])]
    parts = [call.dims(tensor) for tensor in call.tensors if tensor.dim() == result.dim()]
    if not parts:
        return None
    dims: List[Dim] = []
    for place, size in enumerate(result.shape):
        own = [each[place] for each in parts]
        if place != dim:
            known = [each for each in own if roots_of([each]) and is_known([each])]
            dims.append(known[0] if known else own[0])
        elif len(parts) == 1:
            dims.append(own[0])
        else:
            of_inputs = [each for each in own if roots_of([each])]
            is_padded = len(of_inputs) < 2 and is_known(own)
            dims.append(_padded_dim(of_inputs[0] if of_inputs else (), size) if is_padded else _joined_dim(own, size))
    return [tuple(dims)]


def _joined_dim(parts: Sequence[Dim], size: int) -> Dim:
    return new_dim(size, DERIVED if is_known(parts) else UNKNOWN, roots_of(parts))


@rule("grid_sample")
def _sampled(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [(*call.dims(call.tensors[0])[:2], *call.dims(call.tensors[1])[1:-1])]


@rule("flip roll fliplr flipud")
def _turned_round(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [call.dims(call.tensors[0])]


@rule("unfold")
def _unfolded(call: TorchCall) -> Optional[Sequence[Dims]]:
    """`x.unfold(dim, size, step)`, or windows of pictures as columns."""
    tensor, result = call.tensors[0], call.results[0]
    dims = list(call.dims(tensor))
    if result.dim() == tensor.dim() + 1 and type(call.argument(1, "dimension")) is int:
        place = call.argument(1, "dimension") % tensor.dim()
        dims[place] = part_of(dims[place], result.shape[place], tensor.shape[place])
        return [(*dims, new_dim(result.shape[-1], FEATURES))]
    return (
        [(dims[0], new_dim(result.shape[1], FEATURES), new_dim(result.shape[2], DERIVED, roots_of(dims[2:])))] if len(dims) == 4 else None
    )


@rule("pixel_shuffle pixel_unshuffle channel_shuffle")
def _shuffled(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    dims = call.dims(tensor)
    spatial = [part_of(dim, size, own) for dim, size, own in zip(dims[-2:], result.shape[-2:], tensor.shape[-2:])]
    return [(*dims[:-3], new_dim(result.shape[-3], FEATURES), *spatial)]


@rule("pad constant_pad_nd")
def _padded(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    sizes = zip(call.dims(tensor), result.shape, tensor.shape)
    return [tuple([dim if size == own else _padded_dim(dim, size) for dim, size, own in sizes])]


def _padded_dim(dim: Dim, size: int) -> Dim:
    return new_dim(size, PADDED if is_known([dim]) else UNKNOWN, roots_of([dim]))
