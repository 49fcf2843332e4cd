"""Axes through layers, matrix products and attention, and which numbers they put together."""

from __future__ import annotations

import string
from typing import Dict, List, Optional, Sequence

import torch

from .evidence import note_heads, note_samples
from .factors import DERIVED, FEATURES, Dim, Dims, is_known, new_dim, note_used, part_of, roots_of
from .tracking import TorchCall, best, rule

Tensor = torch.Tensor


@rule("linear")
def _linear(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor = call.tensors[0]
    if tensor.dim() == 0:
        return None
    dims = call.dims(tensor)
    call.tracking.mixed(call, tensor, -1)
    _weighted_sum(call, tensor, -1)
    if len(dims) == 2 and roots_of(dims[1:]) - roots_of(dims[:1]):
        note_samples(dims[0])  # All of the rest are features.
    return [(*dims[:-1], new_dim(call.results[0].shape[-1], FEATURES))] if call.results[0].dim() == tensor.dim() else None


@rule("bilinear")
def _bilinear(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [(*call.dims(call.tensors[0])[:-1], new_dim(call.results[0].shape[-1], FEATURES))]


@rule("embedding")
def _embedding(call: TorchCall) -> Optional[Sequence[Dims]]:
    indices = next((tensor for tensor in call.tensors if not tensor.is_floating_point()), None)
    return None if indices is None else [(*call.dims(indices), new_dim(call.results[0].shape[-1], FEATURES))]


@rule("matmul __matmul__ __rmatmul__ mm bmm mv dot")
def _product(call: TorchCall) -> Optional[Sequence[Dims]]:
    first, second = call.tensors[:2] if call.name != "__rmatmul__" else call.tensors[1::-1]
    one, other = call.dims(first), call.dims(second)
    call.tracking.mixed(call, first, -1)
    call.tracking.mixed(call, second, -2 if second.dim() > 1 else -1)
    _weighted_sum(call, first, -1)
    _weighted_sum(call, second, -2 if second.dim() > 1 else -1)
    rows = one[-2:-1] if first.dim() > 1 else ()
    columns = other[-1:] if second.dim() > 1 else ()
    return [(*_batched(call, [first, second], 2), *rows, *columns)]


def _batched(call: TorchCall, tensors: Sequence[Tensor], inner: int) -> Dims:
    """The dims in front of those that a product is taken over."""
    sizes = tuple(call.results[0].shape)
    count = max([tensor.dim() - inner for tensor in tensors] + [0])
    found: List[Dim] = []
    for place in range(count):
        given = []
        for tensor in tensors:
            own = place - (count - (tensor.dim() - inner))
            if own >= 0 and tensor.shape[own] == sizes[place]:
                given.append(call.dims(tensor)[own])
        found.append(best([dim for dim in given if dim], sizes[place]))
        for dim in given if len(given) > 1 and given[0] != given[1] else ():  # Rows of torn axes meet others.
            note_used(dim)
    return tuple(found)


def _weighted_sum(call: TorchCall, weights: Tensor, dim: int) -> None:
    """A product sums over a dim of a distribution: the softmax has to have been over the same one."""
    softmax, dims = call.tracking.traced(weights).softmax, call.dims(weights)
    if softmax is not None and is_known(dims) and len(dims) > 2 and softmax.place not in (0, dim % len(dims)) and dims[dim]:
        call.tracking.softmax_over_another(softmax, dims)


@rule("addmm baddbmm addbmm")
def _added_product(call: TorchCall) -> Optional[Sequence[Dims]]:
    first, second = call.tensors[-2:]
    call.tracking.mixed(call, first, -1)
    call.tracking.mixed(call, second, -2)
    one, other = call.dims(first), call.dims(second)
    return [(*one[:-1], other[-1])] if call.name != "addbmm" else None


@rule("einsum")
def _einsum(call: TorchCall) -> Optional[Sequence[Dims]]:
    equation = call.args[0] if call.args and isinstance(call.args[0], str) else call.kwargs.get("equation")
    if not isinstance(equation, str):
        return None
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not right or "." in equation or len(terms) != len(call.tensors):
        return _einsum_with_dots(call, terms, right) if "." in equation and len(terms) == len(call.tensors) else None
    return _einsum_of(call, [list(term) for term in terms], list(right))


def _einsum_with_dots(call: TorchCall, terms: Sequence[str], right: str) -> Optional[Sequence[Dims]]:
    """Dots stand for dims in front, which are named here."""
    found, most = [], 0
    for term, tensor in zip(terms, call.tensors):
        count = tensor.dim() - len(term.replace("...", ""))
        most = max(most, count if "..." in term else 0)
    letters = [each for each in string.ascii_uppercase if each not in "".join(terms)]
    dots = letters[:most]
    for term, tensor in zip(terms, call.tensors):
        count = tensor.dim() - len(term.replace("...", ""))
        found.append(list(term.replace("...", "".join(dots[most - count :]) if count else "")))
    return _einsum_of(call, found, list(right.replace("...", "".join(dots)))) if right else None


def _einsum_of(call: TorchCall, terms: Sequence[List[str]], right: List[str]) -> Optional[Sequence[Dims]]:
    dims: Dict[str, List[Dim]] = {}
    for term, tensor in zip(terms, call.tensors):
        if len(term) != tensor.dim():
            return None
        for place, (letter, dim) in enumerate(zip(term, call.dims(tensor))):
            dims.setdefault(letter, []).append(dim)
            if letter not in right:
                call.tracking.mixed(call, tensor, place)
                if len(terms) > 1:
                    _weighted_sum(call, tensor, place)
    result = call.results[0]
    return [tuple([best([each for each in dims[letter] if each], size) for letter, size in zip(right, result.shape)])]


@rule("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
def _convolution(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    spatial = int(call.name[-2])
    dims = call.dims(tensor)
    batch = dims[: tensor.dim() - spatial - 1]
    if batch:
        note_samples(batch[0])
    call.tracking.mixed(call, tensor, -spatial - 1)
    for place in range(-spatial, 0):
        weight = call.tensors[1] if len(call.tensors) > 1 else None
        if weight is not None and weight.dim() == spatial + 2 and weight.shape[place] > 1:
            call.tracking.mixed(call, tensor, place)
    rest = [part_of(dim, size, own) for dim, size, own in zip(dims[-spatial:], result.shape[-spatial:], tensor.shape[-spatial:])]
    return [(*batch, new_dim(result.shape[-spatial - 1], FEATURES), *rest)]


@rule(
    "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d"
    " adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d lp_pool1d lp_pool2d interpolate upsample"
    " _max_pool1d _max_pool2d _max_pool3d _adaptive_max_pool1d _adaptive_max_pool2d _adaptive_max_pool3d"
)
def _pooled(call: TorchCall) -> Optional[Sequence[Dims]]:
    tensor, result = call.tensors[0], call.results[0]
    if result.dim() != tensor.dim():
        return None
    dims = call.dims(tensor)
    return [tuple([part_of(dim, size, own) for dim, size, own in zip(dims, each.shape, tensor.shape)]) for each in call.results]


@rule("scaled_dot_product_attention")
def _attention(call: TorchCall) -> Optional[Sequence[Dims]]:
    query, key, value = (call.argument(number, name) for number, name in enumerate(("query", "key", "value")))
    call.tracking.mixed(call, key, -2)
    front = _batched(call, [query, key, value], 2)
    note_heads(call.dims(key))
    return [(*front, call.dims(query)[-2], call.dims(value)[-1])]


@rule("multi_head_attention_forward")
def _multi_head_attention(call: TorchCall) -> Optional[Sequence[Dims]]:
    """Takes `[T, B, features]`: the layer itself turns what comes with the batch first."""
    query, key = call.args[0], call.args[1]
    dims = call.dims(query)
    if query.dim() == 3:
        call.tracking.mixed(call, key, 0)
    weights = [tuple([new_dim(size, DERIVED, roots_of(dims)) for size in each.shape]) for each in call.results[1:]]
    return [(*dims[:-1], new_dim(call.results[0].shape[-1], FEATURES)), *weights]


@rule("lstm gru rnn_tanh rnn_relu")
def _recurrent(call: TorchCall) -> Optional[Sequence[Dims]]:
    """(input, hx, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first); packed sequences have other arguments."""
    args = call.args
    if len(args) != 9 or not isinstance(args[3], bool):
        return None
    tensor, is_batch_first = args[0], bool(args[8])
    dims = call.dims(tensor)
    if tensor.dim() != 3:
        return None
    time, batch = (1, 0) if is_batch_first else (0, 1)
    call.tracking.mixed(call, tensor, time)
    output = (*dims[:2], new_dim(call.results[0].shape[-1], FEATURES))
    states = [(new_dim(each.shape[0], FEATURES), dims[batch], new_dim(each.shape[-1], FEATURES)) for each in call.results[1:]]
    return [output, *states]


@rule("gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell")
def _cell(call: TorchCall) -> Optional[Sequence[Dims]]:
    return [(*call.dims(call.tensors[0])[:-1], new_dim(each.shape[-1], FEATURES)) for each in call.results]


@rule("tensordot outer cdist kron cross inner")
def _other_product(call: TorchCall) -> Optional[Sequence[Dims]]:
    if call.name == "outer":
        return [(call.dims(call.tensors[0])[0], call.dims(call.tensors[1])[0])]
    if call.name == "cdist":
        return [(*_batched(call, call.tensors[:2], 2), call.dims(call.tensors[0])[-2], call.dims(call.tensors[1])[-2])]
    return None
