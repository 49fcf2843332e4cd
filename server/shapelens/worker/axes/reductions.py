"""Axes through sums, means, softmax and normalisations, and which numbers they put together."""

from __future__ import annotations

from typing import List, Optional, Sequence

import torch

from .evidence import note_heads, note_pooled, note_samples
from .factors import DERIVED, UNKNOWN, Dims, is_known, new_dim, part_of, roots_of
from .tracking import TorchCall, combined, rule

Tensor = torch.Tensor
_STATISTICS = ("mean", "std", "var", "std_mean", "var_mean")


@rule(
    "sum mean amax amin max min var std var_mean std_mean norm vector_norm logsumexp argmax argmin any all prod median nanmean nansum mode"
    " count_nonzero aminmax nanmedian quantile"
)
def _reduced(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor = call.tensors[0]
    if call.name in ("max", "min") and len(call.tensors) == 2:
        return None
    where = 2 if call.name in ("norm", "vector_norm", "quantile") else 1
    dim = call.argument(where, "dim", "axis")
    rank = tensor.dim()
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return [()] * len(call.results) if call.results[0].dim() == 0 else None
    places = [each % rank for each in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    dims = call.dims(tensor)
    keeps = call.results[0].dim() == rank
    # A mean over the samples that is put back along them: of one number a sample it is a statistic of the batch.
    if len(places) == 1 and (call.name not in _STATISTICS or (keeps and rank > 2)):
        call.tracking.mixed(call, tensor, places[0])
    if len(places) == 1 and not keeps:
        note_pooled(dims, places[0])
    found = tuple([() if place in places else own for place, own in enumerate(dims) if keeps or place not in places])
    return [found] * len(call.results)


@rule("softmax log_softmax softmin gumbel_softmax")
def _softmax(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, dim = call.tensors[0], call.argument(1, "dim")
    if type(dim) is int and tensor.dim():
        call.tracking.mixed(call, tensor, dim)
        if call.tracking.traced(tensor).are_scores:
            note_heads(call.dims(tensor))
    return [call.dims(tensor)]


@rule("normalize")
def _normalised(call: TorchCall) -> Optional[Sequence[Dims]]:
    dim = call.argument(2, "dim", default=1)
    if type(dim) is int:
        call.tracking.mixed(call, call.tensors[0], dim)
    return [call.dims(call.tensors[0])]


@rule("cumsum cumprod logcumsumexp")
def _scanned(call: TorchCall) -> Optional[Sequence[Dims]]:
    dim = call.argument(1, "dim")
    if type(dim) is int:
        call.tracking.mixed(call, call.tensors[0], dim)
    return [call.dims(call.tensors[0])]


@rule("layer_norm rms_norm local_response_norm")
def _layer_norm(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor = call.tensors[0]
    sizes = call.argument(1, "normalized_shape", default=())
    for place in range(len(sizes) if isinstance(sizes, (tuple, list, torch.Size)) else 0):
        call.tracking.mixed(call, tensor, -place - 1)
    return [call.dims(tensor)]


@rule("batch_norm group_norm instance_norm")
def _batch_norm(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = call.dims(call.tensors[0])
    if len(dims) > 2:
        note_samples(dims[0])
    return [dims]


@rule("cross_entropy nll_loss")
def _loss(call: TorchCall) -> Optional[Sequence[Dims]]:
    dims = call.dims(call.tensors[0])
    if len(dims) >= 2:
        note_samples(dims[0])
    return None


@rule("sort topk argsort kthvalue msort")
def _sorted(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor = call.tensors[0]
    dims: List[Dims] = []
    where = 2 if call.name in ("topk", "kthvalue") else 1
    dim = call.argument(where, "dim", default=-1)
    dim = dim if type(dim) is int else -1
    own = call.dims(tensor)
    for each in call.results:
        if each.dim() != tensor.dim():
            return None
        dims.append(
            tuple(
                [
                    new_dim(each.shape[place], UNKNOWN, roots_of([one])) if place == dim % tensor.dim() else one
                    for place, one in enumerate(own)
                ]
            )
        )
    return dims


@rule("gather take_along_dim scatter scatter_ scatter_add scatter_add_ index_add index_copy index_put masked_scatter index_put_")
def _gathered(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    if call.name not in ("gather", "take_along_dim"):
        return [call.dims(tensor)]
    index = call.argument(2, "index") if call.name == "gather" else call.argument(1, "indices")
    if not isinstance(index, Tensor) or index.dim() != tensor.dim():
        return None
    known = combined(call, [index], tuple(result.shape))
    return [known if is_known(known) else tuple([new_dim(size, UNKNOWN) for size in result.shape])]


@rule("tril triu diagonal diag_embed diag")
def _triangle(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    return [call.dims(tensor)] if tensor.shape == result.shape else None


@rule("glu")
def _gated(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    return [tuple([part_of(dim, size, own) for dim, size, own in zip(call.dims(tensor), result.shape, tensor.shape)])]


@rule("one_hot")
def _one_hot(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [(*call.dims(call.tensors[0]), new_dim(call.results[0].shape[-1], DERIVED))]
