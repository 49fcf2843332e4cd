"""Hooks that `backward` calls: they are given gradients of the shapes of what they are registered for, as there is no graph.

A program registers them on tensors (`y.register_hook(f)`, `w.register_post_accumulate_grad_hook(f)`), and on modules
(`layer.register_full_backward_hook(f)`), as Grad-CAM does to weigh a layer's activations.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import op_cache
from .mode import SPECIAL, Args, Kwargs, operation

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction


class BackwardHooks:
    """Those that wait for the next `backward`."""

    def __init__(self) -> None:
        self._of_tensors: List[Tuple[Tensor, Any, Callable[[Any], Any], bool]] = []  # with their handles, and whether they take a gradient
        self._of_modules: Dict[int, Tuple[Any, Any, Any]] = {}  # by their ids: a module, what it was given last, what it gave

    def clear(self) -> None:
        """Another program begins."""
        self._of_tensors.clear()
        self._of_modules.clear()

    def add(self, tensor: Tensor, handle: Any, hook: Callable[[Any], Any], *, takes_gradient: bool) -> None:
        """A hook has been registered on a tensor."""
        self._of_tensors.append((tensor, handle, hook, takes_gradient))

    def called(self, module: Any, given: Tuple[Any, ...], result: Any) -> None:
        """A module was called: its hooks, where it has any, are called when that is gone back through."""
        if op_cache.state.assumes_gradients and (module._backward_hooks or getattr(module, "_backward_pre_hooks", None)):
            self._of_modules[id(module)] = module, given, result

    def call(self, *, keeps_graph: bool) -> None:
        """`backward` goes back through all that was called, the last one first. Raises what hooks raise."""
        modules, tensors = list(self._of_modules.values()), list(self._of_tensors)
        if not keeps_graph:
            self._of_modules.clear()
            self._of_tensors = [entry for entry in tensors if isinstance(entry[0], torch.nn.Parameter)]
        for tensor, handle, hook, takes_gradient in reversed(tensors):
            if takes_gradient and _is_registered(handle):
                hook(_gradient(tensor))
        for module, given, result in reversed(modules):
            gradients = _gradients(result, all_of_them=True)
            for hook in list(getattr(module, "_backward_pre_hooks", {}).values()):
                hook(module, gradients)
            for hook in list(module._backward_hooks.values()):
                hook(module, _gradients(given, all_of_them=False), gradients)
        for tensor, handle, hook, takes_gradient in tensors:
            if not takes_gradient and _is_registered(handle):
                hook(tensor)


def _is_registered(handle: Any) -> bool:
    hooks = handle.hooks_dict_ref()
    return hooks is not None and handle.id in hooks


def _gradient(tensor: Tensor) -> Tensor:
    with _plainly():
        return torch.empty_like(tensor, device="meta", requires_grad=False)


def _gradients(values: Any, *, all_of_them: bool) -> Tuple[Optional[Tensor], ...]:
    """Of the tensors among values, or a None where one requires none."""
    tensors = [value for value in (values if isinstance(values, (tuple, list)) else (values,)) if isinstance(value, Tensor)]
    return tuple([_gradient(tensor) if all_of_them or tensor.requires_grad else None for tensor in tensors])


hooks = BackwardHooks()


def _register_hook(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Tensor.register_hook(hook), Tensor.register_post_accumulate_grad_hook(hook)"""
    handle = operation(None, func, args, kwargs)
    if op_cache.state.assumes_gradients:
        hook = args[1] if len(args) > 1 else kwargs["hook"]
        hooks.add(args[0], handle, hook, takes_gradient=func is Tensor.register_hook)
    return handle


SPECIAL[Tensor.register_hook] = _register_hook
if hasattr(Tensor, "register_post_accumulate_grad_hook"):  # Since torch 2.1.
    SPECIAL[Tensor.register_post_accumulate_grad_hook] = _register_hook
