"""Makes harmless, for the time of a run, what compiles, loads weights, parses arguments, or asks for accelerators and other processes."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List

import torch
import torch.utils.checkpoint

from ..meta import legacy_constructors
from ..meta.mode import META, computing
from ..trace import autocast
from ..trace.devices import devices
from ..unknown import missing_modules
from . import (
    accelerators,
    checkpointing,
    checkpoints,
    command_line,
    compilers,
    data_loaders,
    distributed,
    file_access,
    network,
    optimizers,
    process_control,
    processes,
)
from .compilers import Replacement
from .data_sets import absences, files
from .patch_on_import import replaced


def _module_to(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Module.to less the device: only a floating dtype is of interest."""
    if devices.active:
        devices.move_module(module, "to", args, kwargs)
    dtype = kwargs.get("dtype")
    for argument in args:
        if isinstance(argument, (torch.Tensor, torch.dtype)):
            dtype = argument.dtype if isinstance(argument, torch.Tensor) else argument
    if dtype is None:
        return module
    return module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() or tensor.is_complex() else tensor)


def _module_moves(operation: str) -> Any:
    """Module.cuda and its kin: nothing but a label."""

    def move(module: Any, *args: Any, **kwargs: Any) -> Any:
        if devices.active:
            devices.move_module(module, operation, args, kwargs)
        return module

    return move


def _own() -> List[Replacement]:
    make = torch.nn.Parameter.__new__

    def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        """Parameters are data, even those that begin as zeros."""
        if data is not None and not computing.for_real:
            with torch._C.DisableTorchFunction():
                given, data = data, data if data.is_meta else data.detach().to(META)
            if devices.active:
                made = make(cls, data, requires_grad)
                devices.made_parameter(made, given)
                return made
        return make(cls, data, requires_grad)

    return [
        (torch.nn.Parameter, "__new__", staticmethod(parameter)),
        (torch.utils.checkpoint, "checkpoint", checkpointing.checkpoint),
        *((torch.nn.Module, name, _module_moves(name)) for name in ("cuda", "cpu", "xpu")),
        (torch.nn.Module, "to", _module_to),
        (torch.distributions.Distribution, "_validate_args", False),  # Whether parameters are in range depends on data.
    ]


@contextlib.contextmanager
def harmless(mode: Any) -> Iterator[None]:
    """Put the replacements in place for a run under this mode, and take them back at the end."""
    dtype = torch.get_default_dtype()
    absences.said.clear()
    everything = (
        _own()
        + missing_modules.replacements()
        + legacy_constructors.replacements()
        + autocast.replacements()
        + compilers.replacements()
        + accelerators.replacements()
        + distributed.replacements()
        + data_loaders.replacements()
        + checkpoints.replacements()
        + command_line.replacements()
        + file_access.replacements()
        + files.replacements()
        + network.replacements()
        + optimizers.replacements()
        + process_control.replacements()
        + processes.replacements(mode)
    )
    with replaced(everything), distributed.launched():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
