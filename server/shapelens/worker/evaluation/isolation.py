"""Takes back the process-wide changes of evaluated code before the next evaluation. `torch.set_default_dtype` in one class's `forward`
is not for the next class, nor is `builtins.len = None` for anybody.

Settings of the time when definitions ran stay, as in a real run. The search takes less than 0.1 ms: it covers changes that reach far, in
builtins, torch's tensors, modules and functional, in `sys` and in torch's settings. Other monkeypatches only keep the process from being
used again (monkeypatches.py).
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from operator import is_
from typing import Any, Callable, Dict, Mapping, Tuple

import torch
from torch.nn.modules import module as torch_module

from ..sandbox.originals import os
from ..trace.definition_time import executing
from ..trace.mutable_defaults import mutable_defaults

OWNERS: Tuple[Any, ...] = (builtins, torch.Tensor, torch.nn.Module, torch.nn.functional)
IN_SYS = ("stdin", "stdout", "stderr", "excepthook", "displayhook", "modules", "path", "meta_path", "path_hooks", "argv")
LISTS_IN_SYS = ("path", "meta_path", "path_hooks")
HOOKS_OF_MODULES = [value for name, value in vars(torch_module).items() if name.startswith("_global_") and hasattr(value, "keys")]

ENVIRONMENT: Any = os.environ


class ProcessSettings:
    """The state of the process that evaluated code can change, as it is now."""

    def __init__(self) -> None:
        self._held = [(owner, names, tuple(names), tuple(names.values())) for owner, names in ((each, vars(each)) for each in OWNERS)]
        self._in_sys = {name: getattr(sys, name) for name in IN_SYS if hasattr(sys, name)}
        self._lists = [(getattr(sys, name), list(getattr(sys, name))) for name in LISTS_IN_SYS]
        self._of_torch = _torch_settings()
        self._hooks = [dict(hooks) for hooks in HOOKS_OF_MODULES]
        self._filters = list(warnings.filters)
        self._recursion = sys.getrecursionlimit()
        self._environment = dict(ENVIRONMENT._data)
        self._folder = _folder()

    def restore(self) -> None:
        """Make the process as it was. Modules that are missing are added."""
        if sys.gettrace() is not None or sys.getprofile() is not None:
            sys.settrace(None)
            sys.setprofile(None)
        for owner, names, keys, values in self._held:
            if len(names) != len(values) or not all(map(is_, names.values(), values)):
                _restore_names(owner, names, dict(zip(keys, values)))
        for name, value in self._in_sys.items():
            if getattr(sys, name, None) is not value:
                setattr(sys, name, value)
        for current, before in self._lists:
            if current != before:
                current[:] = before
        executing.restore_modules()
        if sys.modules.get("torch") is not torch:
            sys.modules["torch"] = torch
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if _torch_settings() != self._of_torch:
            _set_torch(self._of_torch)
        for hooks, held in zip(HOOKS_OF_MODULES, self._hooks):
            if list(hooks) != list(held):
                hooks.clear()
                hooks.update(held)
        if warnings.filters != self._filters:
            warnings.filters[:] = self._filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]
        if ENVIRONMENT._data != self._environment:
            _set_environment(self._environment)
        if _folder() != self._folder:
            with contextlib.suppress(OSError):
                os.chdir(self._folder)


def _restore_names(owner: Any, names: Mapping[str, Any], before: Dict[str, Any]) -> None:
    for name, value in list(names.items()):
        if name not in before:
            if owner is builtins or isinstance(owner, type):  # Modules load parts of themselves when these are first asked for.
                with contextlib.suppress(AttributeError, TypeError):
                    delattr(owner, name)
        elif value is not before[name]:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(owner, name, before[name])
    for name in before.keys() - names.keys():
        with contextlib.suppress(AttributeError, TypeError):
            setattr(owner, name, before[name])


def _torch_settings() -> Tuple[Any, ...]:
    return (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    )


def _set_torch(settings: Tuple[Any, ...]) -> None:
    dtype, gradients, inference, deterministic, anomalies, functions, _ = settings
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    torch.set_default_dtype(dtype)
    if torch.is_inference_mode_enabled() != inference:
        torch._C._set_grad_enabled(gradients)
    torch.set_grad_enabled(gradients)
    torch.use_deterministic_algorithms(deterministic)
    torch.autograd.set_detect_anomaly(anomalies)


def _set_environment(before: Mapping[Any, Any]) -> None:
    for name in [each for each in ENVIRONMENT._data if each not in before]:
        del ENVIRONMENT[ENVIRONMENT.decodekey(name)]
    for name, value in before.items():
        if ENVIRONMENT._data.get(name) != value:
            ENVIRONMENT[ENVIRONMENT.decodekey(name)] = ENVIRONMENT.decodevalue(value)


def _folder() -> str:
    try:
        return str(os.getcwd())
    except OSError:
        return ""


def isolated(evaluate: Callable[[], Any]) -> None:
    """Evaluates without effect on later evaluations, unless statements of a file ran for it: these change the later ones."""
    executing.note_modules()
    mutable_defaults.begin()
    before, executed = ProcessSettings(), executing.count
    try:
        evaluate()
    finally:
        if executing.count == executed:
            before.restore()
