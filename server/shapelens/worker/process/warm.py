"""Loads torch, and what torch loads only when a kernel is first used on the meta device, ahead of the first run."""

from __future__ import annotations

import gc
from types import FunctionType
from typing import Any, Callable

from .library_process import import_library

MARK = "__dynamo_disable"  # where torch keeps what a function is called by while the compiler is told to step aside


def leave_out_the_compiler() -> None:
    """Keep torch from loading its compiler for nothing, which takes as long as two thirds of torch itself.

    Many of its functions have the compiler step aside when they are first called (torch/_compile.py), and the call loads it for that. Here
    nothing is ever compiled, so that each of them can be called as it is. Another version of torch may do this in another way; then nothing
    is left out.
    """
    try:
        import torch
        from torch import _compile

        original: Any = _compile._disable_dynamo
        code = original(lambda: None).__code__
    except (ImportError, AttributeError):
        return
    if MARK not in code.co_consts or "fn" not in code.co_freevars:
        return
    place = code.co_freevars.index("fn")
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__ is code and each.__closure__ is not None:
            _call_as_it_is(each.__closure__[place].cell_contents)

    def disable(fn: Any = None, recursive: bool = True) -> Any:
        if fn is not None:
            _call_as_it_is(fn)
        return original(fn, recursive)

    _compile._disable_dynamo = torch._disable_dynamo = disable  # type: ignore[attr-defined]


def _call_as_it_is(function: Any) -> None:
    try:
        setattr(function, MARK, function)
    except AttributeError:
        pass  # No function of Python's own kind.


def load_kernels() -> None:
    """Run one of each common layer on the meta device: the first convolution alone costs 0.5 s of imports."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    with torch.device("meta"):
        image = torch.empty(2, 3, 16, 16)
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.GELU(), nn.AdaptiveAvgPool2d(2))(image)
        tokens = torch.empty(2, 5, 8)
        layers: Any = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        layers(tokens)
        nn.LSTM(8, 8)(tokens)
        nn.LayerNorm(8)(nn.Linear(8, 8)(tokens))
        nn.Embedding(4, 8)(torch.empty(2, 5, dtype=torch.int64))
        torch.cat([tokens, tokens.softmax(-1) + 1], 1).transpose(1, 2).reshape(2, -1) @ torch.empty(80, 3)
        torch.einsum("bij,bkj->bik", tokens, tokens)
        _fail(lambda: tokens + torch.empty(7))
        _fail(lambda: tokens @ torch.empty(7, 7))
        _fail(lambda: torch.cat([tokens, torch.empty(2, 5, 7)]))
    import torch.utils._device
    import torch.utils.checkpoint

    for library in ("einops", "einops.layers.torch"):  # Guarded in runs, for which they have to be there before.
        import_library(library)


def _fail(operation: Callable[[], Any]) -> None:
    """Runs an operation that fails, so that what torch loads to say what is wrong is there from now on."""
    try:
        operation()
    except RuntimeError:
        pass
