"""Calls that mix axes, though every shape fits: views across dims, attention over heads, the batch taken for the time."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Set, Tuple

import torch

from ..torch_calls import argument
from ..trace import provenance
from ..unknown import unknown_sizes
from .odd_calls import Args, Kwargs, OddCall, Tensor, is_data, maker_of, node_of, plainly

NEAR = 12  # operations
_TURNS = {"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "view", "reshape"}
_PRODUCTS = ("matmul", "__matmul__", "bmm")
_SPLITS = {"view", "reshape", "unflatten"}


def torn(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """A view that neither joins neighbouring dims nor splits them alone: whether it tears them, the names of dims tell."""
    tensor = args[0] if args else None
    if not isinstance(tensor, Tensor) or not isinstance(result, Tensor):
        return None
    with plainly():
        given, asked = tensor.shape, result.shape
        if len(given) < 2 or len(asked) < 2 or given == asked or unknown_sizes.any_unknown((*given, *asked)):
            return None
        inside, wanted = _boundaries(given), _boundaries(asked)
        if inside <= wanted or wanted <= inside or not is_data(tensor) or _is_shifted(tensor, asked):
            return None
        return OddCall("torn-view", (tensor, result), given="input" if maker_of(tensor) is provenance.INPUT else "")


def _is_shifted(tensor: Tensor, asked: Sequence[int]) -> bool:
    """Whether rows are padded by one and read as if they were not, which shifts each of them: scores of relative positions.

    Source: Dai et al., "Transformer-XL", appendix B.
    """
    node = node_of(tensor)
    return node is not None and node.operation in ("pad", "cat", "concat") and sorted(asked) == sorted(tensor.shape)


def _boundaries(shape: Sequence[int]) -> Set[int]:
    """How many numbers lie inside of each dim of a shape, from the last one on."""
    found, product = {1}, 1
    for size in reversed(shape):
        product *= size
        found.add(product)
    return found


def picked_from_batch(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`out[:, -1]` of a layer that takes dim 0 for the time: what is meant as the last step is the last sample."""
    index = args[1] if len(args) > 1 else None
    if type(index) is not tuple or len(index) < 2 or type(index[1]) is not int or index[0] != slice(None):
        return None
    return _in_batch(args[0]) if all(each == slice(None) or each is Ellipsis for each in index[2:]) else None


def reduced_batch(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`out.mean(1)`, the same of all steps."""
    return _in_batch(args[0]) if argument(args, kwargs, 1, "dim") == 1 and isinstance(args[0], Tensor) else None


def _in_batch(tensor: Tensor) -> Optional[OddCall]:
    with plainly():
        node = node_of(tensor)
        if node is None or len(node.result) != 3 or unknown_sizes.any_unknown(node.result) or node.result[1] == 1:
            return None
        for _ in range(NEAR):
            if node is None or not node.parents:
                return None
            before, shape = node.parents[0]
            if node.module is not None and _takes_time_first(node.module):
                kept = len(shape) == 3 and shape[:2] == tuple(node.result)[:2] and not (node.stand_in or _is_turned(before))
                return OddCall("batch-first", (tensor,), 1, type(node.module).__name__, maker=node) if kept else None
            if tuple(shape) != tuple(node.result) or node.operation in _TURNS:
                return None
            node = before
    return None


def _takes_time_first(module: Any) -> bool:
    """Whether a layer takes `[T, B, C]`, as recurrent and attention layers do unless `batch_first` says otherwise."""
    if isinstance(module, torch.nn.TransformerEncoder) and len(module.layers):
        module = module.layers[0]
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        module = module.self_attn
    return getattr(module, "batch_first", None) is False and isinstance(module, (torch.nn.RNNBase, torch.nn.MultiheadAttention))


def _is_turned(node: Optional[provenance.Derivation]) -> bool:
    """Whether the dims of a tensor were exchanged shortly before: its author arranged them for the layer."""
    for _ in range(NEAR):
        if node is None or not node.parents:
            return False
        if node.operation in _TURNS:
            return True
        node = node.parents[0][0]
    return False


def scores_of_heads(tensor: Tensor, dim: Any) -> Optional[OddCall]:
    """A softmax over scores of heads with each other: the product of queries and keys that were split into heads, and not transposed."""
    with plainly():
        if tensor.dim() != 4 or dim not in (-1, 3):
            return None
        node = node_of(tensor)
        for _ in range(NEAR):
            if node is None or not node.parents:
                return None
            if node.operation in _PRODUCTS:
                return OddCall("attention-axis", (tensor,)) if _is_split_into_heads(*node.parents[0]) else None
            node = node.parents[0][0]
    return None


def attends_to_heads(args: Args, kwargs: Kwargs, result: Any) -> Optional[OddCall]:
    """`scaled_dot_product_attention` of `[B, T, heads, size]`: each position attends to its own heads."""
    query = argument(args, kwargs, 0, "query")
    with plainly():
        if not isinstance(query, Tensor) or query.dim() != 4 or not _is_split_into_heads(node_of(query), tuple(query.shape)):
            return None
        return OddCall("attention-axis", (query,))


def _is_split_into_heads(node: Optional[provenance.Derivation], shape: Tuple[Any, ...]) -> bool:
    """Whether a tensor `[B, T, heads, size]` is the output of a linear layer whose features were split, with the dims in this order."""
    heads, size = shape[-2:]
    for _ in range(NEAR):
        if node is None or not node.parents:
            return False
        before, given = node.parents[0]
        features = given[-1] if given else None
        if node.operation in _TURNS - _SPLITS:
            return False  # As many positions as heads look the same when they are transposed.
        if node.operation in _SPLITS:
            is_split = (
                len(shape) == 4 and tuple(given[:-1]) == tuple(shape[:2]) and type(features) is int and features % (heads * size) == 0
            )
            return is_split and heads > 1 and _is_linear(before)
        if tuple(given) != shape and node.operation not in ("unbind", "__getitem__", "select", "squeeze", "chunk", "split"):
            return False
        node = before
    return False


def _is_linear(node: Optional[provenance.Derivation]) -> bool:
    """Whether a linear layer gave a tensor, or a part of it."""
    for _ in range(3):
        if node is None:
            return False
        if isinstance(node.module, torch.nn.Linear) or node.operation == "linear":
            return True
        node = node.parents[0][0] if node.parents and node.operation in ("chunk", "split", "__getitem__", "contiguous", "unbind") else None
    return False
