"""Functions that read values and whose outcome is known all the same, or does not matter for any shape."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ..trace.provenance import tensors_in
from .constants import LARGEST_REAL
from .mode import META, SPECIAL, Args, Kwargs, named, together

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


def _close(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.allclose: data is taken to be as the code hopes, if it can be compared at all."""
    args, kwargs = together(func, args, kwargs)
    with _plainly():
        tensors = list(tensors_in((args, kwargs)))
        if not any(tensor.is_meta for tensor in tensors):
            return func(*args, **kwargs)
        torch.eq(tensors[0], tensors[-1])  # Raises where they do not broadcast.
        return True


def _permutation(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.randperm: some permutation, as each leads to the same shapes; its numbers can be read."""
    dtype = kwargs.get("dtype") or torch.int64
    size = args[0] if args else kwargs["n"]
    with _plainly():
        return torch.arange(size, dtype=dtype, device=META if size > LARGEST_REAL else None).flip(0)


def _formatted(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """f"{loss:.3f}": some text, as what is printed changes nothing."""
    with _plainly():
        return func(*args, **kwargs) if not args[0].is_meta or args[0].dim() else "?"


def _nothing(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """A method that only concerns where a tensor lies."""
    return None


def _stays(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    return args[0]


for _rule, _functions in (
    (_close, named(torch, "allclose") | named(Tensor, "allclose")),
    (_permutation, {torch.randperm}),
    (_formatted, {Tensor.__format__}),
    (_nothing, named(Tensor, "record_stream")),
    (_stays, named(Tensor, "share_memory_")),
):
    SPECIAL.update(dict.fromkeys(_functions, _rule))
