"""Tests for known sizes that do not fit together, so that an operation fails whatever the unknown sizes of its arguments are."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..meta.expected_shapes import BINARY, COMPARE, MATMUL
from ..torch_calls import factors
from ..trace.provenance import tensors_in
from ..unknown import unknown_sizes

Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]


def known_sizes_clash(function: Callable[..., Any], args: Args, kwargs: Kwargs) -> bool:
    """True if sizes that have to be equal are known and differ. False where that is unclear: of most functions nothing is known."""
    if unknown_sizes.state.cut:  # What a loop gathered that was cut short has a size that only looks known.
        return False
    name = getattr(function, "__name__", "")
    shapes = [tuple(tensor.shape) for tensor in tensors_in((args, kwargs), 64)]
    if name == "linear" and len(shapes) > 1 and shapes[0] and shapes[1]:
        return _differ(shapes[0][-1], shapes[1][-1])
    if name in MATMUL and len(shapes) > 1:
        left, right = factors(name, shapes)
        if not left or not right:
            return False
        return _differ(left[-1], right[-2] if len(right) > 1 else right[-1]) or _cannot_broadcast([left[:-2], right[:-2]])
    if name in BINARY or name in COMPARE:
        return _cannot_broadcast(shapes)
    if name in ("cat", "concat", "concatenate"):
        return _cannot_be_joined(shapes, kwargs.get("dim", args[1] if len(args) > 1 else 0))
    return False


def _differ(*sizes: int) -> bool:
    known = {size for size in sizes if not unknown_sizes.is_unknown(size)}
    return len(known) > 1


def _cannot_broadcast(shapes: Sequence[Sequence[int]]) -> bool:
    from_the_end: List[Tuple[int, ...]] = list(zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1))
    return any(_differ(*[size for size in sizes if size != 1]) for sizes in from_the_end)


def _cannot_be_joined(shapes: Sequence[Sequence[int]], dim: Any) -> bool:
    rank = len(shapes[0]) if shapes else 0
    if not isinstance(dim, int) or not -rank <= dim < rank or any(len(shape) != rank for shape in shapes):
        return False
    return any(_differ(*sizes) for index, sizes in enumerate(zip(*shapes)) if index != dim % rank)
