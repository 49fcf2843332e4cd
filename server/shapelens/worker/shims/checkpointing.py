"""Gradient checkpointing: a function is called as it is, unless memory is counted, which checkpointing is about."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
import torch.utils.checkpoint

from ..trace import autocast

_original = torch.utils.checkpoint.checkpoint
# Backward runs unobserved, but what is computed again in it is code of the model. Not before torch 2.3.
_observed: Callable[[], Any] = getattr(torch._C, "_EnableTorchFunction", contextlib.nullcontext)
_OPTIONS = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")


class _Checkpoints:
    respected = False  # whether checkpoints are made


_state = _Checkpoints()


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """In the place of `torch.utils.checkpoint.checkpoint`."""
    for name in _OPTIONS:
        kwargs.pop(name, None)
    if not _state.respected:
        return function(*args, **kwargs)
    dtype = autocast.autocast_dtype()

    def again(*given: Any, **named: Any) -> Any:
        with autocast.under(dtype), _observed():  # Backward computes it again as forward did.
            return function(*given, **named)

    # The way that does without a second evaluation under a graph of its own; values, and so random numbers, do not count.
    return _original(again, *args, use_reentrant=False, preserve_rng_state=False, determinism_check="none", **kwargs)


@contextlib.contextmanager
def respected() -> Iterator[None]:
    """Have checkpoints made meanwhile: what is inside of them is computed again by backward, rather than kept."""
    before, _state.respected = _state.respected, True
    early_stop = getattr(torch.utils.checkpoint, "set_checkpoint_early_stop", None)  # Not before torch 2.1.
    try:
        # Stopping is an exception in the middle of an operation, which would look like one that fails.
        with early_stop(False) if early_stop is not None else contextlib.nullcontext():
            yield
    finally:
        _state.respected = before
