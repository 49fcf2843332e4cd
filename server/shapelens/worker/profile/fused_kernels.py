"""Attention and recurrent layers as the kernels of real devices do them, where the meta device would go another way.

On the meta device attention keeps the scores of all pairs of positions, and a recurrent layer is walked through step by step. Elsewhere
both are one kernel each: attention keeps its result and a number for each row of scores, a recurrent layer its gates and states.
"""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any, Callable, Iterator, Tuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ..locations import TORCH
from ..meta.linked_results import linked
from ..meta.mode import named
from ..torch_calls import argument
from .mixed_precision import cast_lower

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction
_FLASH = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
_attention = F.scaled_dot_product_attention

# How many numbers of the hidden size the kernel keeps for each position, beside its result.
_GATES = {"lstm": 5, "gru": 4, "rnn_tanh": 1, "rnn_relu": 1}
_RECURRENT = {function: name for name in _GATES for function in named(torch, name)}


class FusedKernels(TorchFunctionMode):
    """In force while a model is profiled. dropout: whether attention with dropout is one kernel too, as it is on a CUDA device."""

    def __init__(self, add_flops: Callable[[int, bool], None], *, dropout: bool) -> None:
        super().__init__()
        self._add_flops = add_flops
        self._dropout = dropout

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _attention:
            return self.attention(*args, **kwargs)
        if func in _RECURRENT:
            result = self._recurrent(_RECURRENT[func], args)
            if result is not None:
                return result
        return func(*args, **kwargs)

    def attention(self, *args: Any, **kwargs: Any) -> Any:
        """`F.scaled_dot_product_attention`, as one kernel where it would be one."""
        query, key, value = (argument(args, kwargs, place, name) for place, name in enumerate(("query", "key", "value")))
        mask, dropout = argument(args, kwargs, 3, "attn_mask"), argument(args, kwargs, 4, "dropout_p", default=0.0)
        with _plainly():
            if _FLASH is None or kwargs.get("enable_gqa") or not self._is_one(query, key, value, mask) or (dropout and not self._dropout):
                return _attention(*args, **kwargs)
            query, key, value = cast_lower((query, key, value))
            if mask is not None:
                # A mask of booleans is made one of numbers first, which stays.
                mask = torch.zeros_like(mask, dtype=query.dtype, device="meta") if mask.dtype is torch.bool else mask.to("meta")
            causal = bool(argument(args, kwargs, 5, "is_causal", default=False))
            return _FLASH(query, key, value, 0.0, causal, attn_mask=mask, scale=kwargs.get("scale"))[0]

    def _is_one(self, query: Any, key: Any, value: Any, mask: Any) -> bool:
        tensors = (query, key, value)
        if not all(isinstance(tensor, Tensor) and tensor.is_meta and tensor.dim() == 4 for tensor in tensors):
            return False
        shapes = [tensor.shape for tensor in tensors]
        fits = len({shape[-1] for shape in shapes}) == 1 and len({(shape[0], shape[1]) for shape in shapes}) == 1
        same = shapes[1][2] == shapes[2][2] and len({tensor.dtype for tensor in tensors}) == 1
        return fits and same and query.is_floating_point() and (mask is None or (mask.dim() in (2, 4) and not mask.requires_grad))

    def _recurrent(self, name: str, args: Tuple[Any, ...]) -> Any:
        """(input, hx, weights, has_biases, layers, dropout, train, bidirectional, batch_first).

        (data, batch_sizes, hx, weights, has_biases, layers, dropout, train, bidirectional) of a packed sequence.
        """
        if not isinstance(args[3], bool):
            args = (args[0], *args[2:])
        states = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
        weights = args[2]
        with _plainly():
            if not args[0].is_meta:
                return None
            directions = 2 if args[7] else 1
            if states[0].shape[0] != args[4] * directions:
                return None
            positions = math.prod(args[0].shape[:-1])
            work = 2 * positions * sum(weight.numel() for weight in weights if weight.dim() == 2)
            self._add_flops(work, False)
            if torch.is_grad_enabled():
                self._add_flops(2 * work - _not_needed(args[0], states, weights), True)
            shape = (*args[0].shape[:-1], directions * states[0].shape[-1])
            kept = _GATES[name] * positions * directions * args[4] * states[0].shape[-1]
            states, weights = cast_lower((list(states), list(weights)))
            args = (cast_lower(args[0]),)
            return _Recurrent.apply(  # type: ignore[no-untyped-call]
                shape, kept, len(states), args[0], *states, *weights
            )


def _not_needed(data: Any, states: Any, weights: Any) -> int:
    """The operations for gradients of the input and the first states, where these need none."""
    matrices = [weight for weight in weights if weight.dim() == 2]
    count = 0
    if not any(state.requires_grad for state in states):
        count += 2 * states[0].shape[-2] * sum(weight.numel() for weight in matrices if weight.shape[1] == states[0].shape[-1])
    if not data.requires_grad:
        first = matrices[0]
        count += 2 * math.prod(data.shape[:-1]) * first.numel()
    return count


class _Recurrent(torch.autograd.Function):
    """Holds what a recurrent layer gives, keeps and gives back, without what it computes."""

    @staticmethod
    def forward(ctx: Any, shape: Any, kept: int, states: int, *tensors: Any) -> Any:
        made = tensors[0].new_empty(shape)
        ctx.save_for_backward(made, tensors[0].new_empty(kept), *tensors)
        return (made, *[torch.empty_like(state) for state in tensors[1 : 1 + states]])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        _, _, *tensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[3:]
        return (None, None, None, *[torch.empty_like(tensor) if wanted else None for tensor, wanted in zip(tensors, needed)])


@contextlib.contextmanager
def fused(kernels: FusedKernels) -> Iterator[None]:
    """Have these kernels used, by torch's own layers too."""

    def attention(*args: Any, **kwargs: Any) -> Any:
        by_torch = sys._getframe(1).f_code.co_filename.startswith(TORCH)
        return (kernels.attention if by_torch else _attention)(*args, **kwargs)

    F.scaled_dot_product_attention = attention
    try:
        with kernels, linked():
            yield
    finally:
        F.scaled_dot_product_attention = _attention
