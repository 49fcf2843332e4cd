"""Makes harmless, for the time of a run, what compiles, scripts, loads weights or asks for an accelerator."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Tuple

import torch
import torch.utils.checkpoint

from . import autocast, legacy
from .meta import META


def _unchanged(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator or wrapper that does nothing, with or without arguments of its own."""
    return model if model is not None else lambda function: function


def _nothing(*args: Any, **kwargs: Any) -> Any:
    return None


def _direct(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Checkpointing without the checkpoints."""
    for name in ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"):
        kwargs.pop(name, None)
    return function(*args, **kwargs)


def _module_to(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Module.to less the device: only a floating dtype is of interest."""
    dtype = kwargs.get("dtype")
    for argument in args:
        if isinstance(argument, (torch.Tensor, torch.dtype)):
            dtype = argument.dtype if isinstance(argument, torch.Tensor) else argument
    if dtype is None:
        return module
    return module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() or tensor.is_complex() else tensor)


def _replacements() -> List[Tuple[Any, str, Any]]:
    make = torch.nn.Parameter.__new__

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        """Parameters are data, even those that begin as zeros."""
        if data is not None:
            with torch._C.DisableTorchFunction():
                data = data if data.is_meta else data.detach().to(META)
        return make(cls, data, requires_grad)

    return (
        [
            (torch.nn.Parameter, "__new__", staticmethod(parameter)),
            (torch, "compile", _unchanged),
            (torch.jit, "script", _unchanged),
            (torch.jit, "script_method", _unchanged),
            (torch.jit, "export", _unchanged),
            (torch.jit, "ignore", _unchanged),
            (torch, "manual_seed", _nothing),
            (torch.cuda, "manual_seed", _nothing),
            (torch.cuda, "manual_seed_all", _nothing),
            (torch.cuda, "synchronize", _nothing),
            (torch.cuda, "empty_cache", _nothing),
            (torch.cuda, "set_device", _nothing),
            (torch.utils.checkpoint, "checkpoint", _direct),
            (torch.nn.Module, "cuda", _unchanged),
            (torch.nn.Module, "cpu", _unchanged),
            (torch.nn.Module, "to", _module_to),
            (torch.nn.Module, "load_state_dict", _nothing),
        ]
        + legacy.replacements()
        + autocast.replacements()
    )


@contextlib.contextmanager
def harmless() -> Iterator[None]:
    """Put the replacements in place, and take them back at the end."""
    replaced = _replacements()
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
