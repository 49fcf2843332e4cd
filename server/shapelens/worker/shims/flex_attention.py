"""torch's flex_attention: its checks run as they are, its kernels do not, as there is none for the meta device."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any, Callable, List, Tuple

import torch

from ..meta.linked_results import made_from
from ..meta.mode import made
from .compilers import Replacement, nothing

Tensor = torch.Tensor


def attention(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.nn.attention.flex_attention`."""
    found: List[Replacement] = [
        (module, "flex_attention_hop", _kernel(3 if hasattr(module, "AuxRequest") else 2)),
        # It would refuse tensors that need gradients, unless they are on an accelerator.
        (module, "_validate_device", nothing),
        (module, "setup_compilation_env", lambda: contextlib.nullcontext("eager")),
    ]
    return [replacement for replacement in found if hasattr(module, replacement[1])]


def _kernel(results: int) -> Callable[..., Any]:
    def kernel(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, ...]:
        """[batch, heads, length, features of value], and of each row the log of its sum [batch, heads, length] and its maximum."""
        grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        rows = tuple(query.shape[:-1])
        numbers = [made(rows, torch.float32, grad) for _ in range(results - 1)]
        return (*made_from((query, key, value), [(*rows, value.shape[-1])], query.dtype), *numbers)

    return kernel
