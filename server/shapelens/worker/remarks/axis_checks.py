"""Calls that mix axes, though every shape fits: views across dims, attention over heads."""

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
        if inside <= wanted or wanted <= inside or _is_shifted(tensor, asked):
            return None
        if not is_data(tensor):
            is_turned = not isinstance(tensor, torch.nn.Parameter) and sorted(given) == sorted(asked)
            return OddCall("torn-view", (tensor, result), given="constants") if is_turned else None
        return OddCall("torn-view", (tensor, result), given="input" if maker_of(tensor) is provenance.INPUT else "")


def _is_shifted(tensor: Tensor, asked: Sequence[int]) -> bool:
    """True if rows are padded by one and read as if they were not, which shifts each of them: scores of relative positions.

    Source: Dai et al., "Transformer-XL", appendix B.
    """
    node = node_of(tensor)
    return node is not None and node.operation in ("pad", "cat", "concat") and sorted(asked) == sorted(tensor.shape)


def _boundaries(shape: Sequence[int]) -> Set[int]:
    """Returns the strides of a contiguous tensor of a shape, from the last dim on."""
    found, product = {1}, 1
    for size in reversed(shape):
        product *= size
        found.add(product)
    return found


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
    """True if a tensor `[B, T, heads, size]` is the output of a linear layer whose features were split, with the dims in this order."""
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
    """True if a linear layer gave a tensor, or a part of it."""
    for _ in range(3):
        if node is None:
            return False
        if isinstance(node.module, torch.nn.Linear) or node.operation == "linear":
            return True
        node = node.parents[0][0] if node.parents and node.operation in ("chunk", "split", "__getitem__", "contiguous", "unbind") else None
    return False
