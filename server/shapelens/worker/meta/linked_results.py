"""Results that are made by their shape alone, as the operation has no kernel on the meta device, or a slow one.

Gradients end at such a result: nobody asks for more, but for a training step that is profiled. There they go on to what it was made from.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Sequence, Tuple

import torch

from ..unknown import unknown_sizes
from .mode import META, made

Tensor = torch.Tensor
PADDED = "_shapelens_padded"  # an attribute of batch sizes: (longest, batch), where one of those is unknown


class _State:
    def __init__(self) -> None:
        self.linked = False


_state = _State()


@contextlib.contextmanager
def linked() -> Iterator[None]:
    """Have gradients go through results that are made meanwhile."""
    _state.linked = True
    try:
        yield
    finally:
        _state.linked = False


def made_from(given: Sequence[Tensor], shapes: Sequence[Sequence[int]], dtype: torch.dtype) -> List[Tensor]:
    """Meta tensors of these shapes, which an operation makes from those that are given."""
    needed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    if _state.linked and needed:
        return list(_Linked.apply(shapes, dtype, *given))  # type: ignore[no-untyped-call]
    return [made(shape, dtype, needed) for shape in shapes]


class _Linked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shapes: Sequence[Sequence[int]], dtype: torch.dtype, *given: Tensor) -> Tuple[Tensor, ...]:
        ctx.given = [(tuple(tensor.shape), tensor.dtype) for tensor in given]
        return tuple([torch.empty(tuple(shape), dtype=dtype, device=META) for shape in shapes])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        made_for = zip(ctx.given, ctx.needs_input_grad[2:])
        return (None, None, *[torch.empty(shape, dtype=dtype, device=META) if needed else None for (shape, dtype), needed in made_for])


def packed_anyway(sequence: Any, lengths: Any, batch_first: bool = False) -> Any:
    """Returns what packing gives of so many sequences, of lengths that nobody knows."""
    batch, longest = (sequence.shape[0], sequence.shape[1]) if batch_first else (sequence.shape[1], sequence.shape[0])
    sizes = torch.full((1,), batch, dtype=torch.int64)
    sizes.__dict__[PADDED] = longest, batch
    return made_from([sequence], [(unknown_sizes.size(), *sequence.shape[2:])], sequence.dtype)[0], sizes
