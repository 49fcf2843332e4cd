"""Gradients without a graph: a parameter's gradient has its shape, so that `backward` has nothing to compute.

In force while a program is followed (`op_cache.state.assumes_gradients`); an example that asks for gradients goes through torch's own
graph. `backward` of more than one number is refused as eager would, and that of what was cut off from all parameters where that is sure.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from ..trace import gradient_paths
from ..trace.tape import tape
from ..unknown import unknown_sizes
from . import op_cache
from .backward_hooks import hooks
from .mode import GRADIENT_OF, SPECIAL, Args, Kwargs, operation

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

NO_GRADIENT = "element 0 of tensors does not require grad and does not have a grad_fn"  # as `torch.autograd` words it
NOT_A_SCALAR = "grad can be implicitly created only for scalar outputs"  # as `torch.autograd` words it


class Training:
    """Holds what has been trained in this process."""

    steps = 0  # calls of `backward`


training = Training()


def _backward(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Tensor.backward(gradient, retain_graph, create_graph, inputs), torch.autograd.backward(tensors, grad_tensors, …)"""
    if not op_cache.state.assumes_gradients:
        op_cache.graph_is_needed()
        return operation(None, func, args, kwargs)
    training.steps += 1
    given = args[0] if args else kwargs.get("tensors")
    tensors = [given] if isinstance(given, Tensor) else list(given or ())
    gradients = args[1] if len(args) > 1 else kwargs.get("gradient", kwargs.get("grad_tensors"))
    _check(tensors, gradients)
    keeps_graph = bool(kwargs.get("retain_graph") or kwargs.get("create_graph") or any(args[2:4]))
    if tape.active and not kwargs.get("inputs"):
        with _plainly():
            tape.go_back(tensors, keeps_graph=keeps_graph)
    hooks.call(keeps_graph=keeps_graph)
    return None


def _grad(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, …): one of the shape of each input"""
    if not op_cache.state.assumes_gradients:
        op_cache.graph_is_needed()
        return operation(None, func, args, kwargs)
    outputs, inputs = args[0] if args else kwargs["outputs"], args[1] if len(args) > 1 else kwargs["inputs"]
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    _check(outputs, args[2] if len(args) > 2 else kwargs.get("grad_outputs"))
    graph = bool(kwargs.get("create_graph"))
    with _plainly():
        inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        return tuple([torch.empty_like(tensor, device="meta", requires_grad=graph) for tensor in inputs])


def _check(tensors: Sequence[Tensor], gradients: Any) -> None:
    with _plainly():
        for tensor in tensors:
            if gradients is None and tensor.numel() != 1 and not unknown_sizes.any_unknown(tensor.shape):
                raise RuntimeError(NOT_A_SCALAR)
        if tensors and not any(tensor.requires_grad for tensor in tensors) and gradient_paths.cut_off(tensors[0]) is not None:
            raise RuntimeError(NO_GRADIENT)


def _gradient_of(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """Tensor.grad: of a leaf that requires one, or a tensor that retains it, once something was gone back through"""
    (tensor,) = args
    with _plainly():
        known = func(tensor)
        is_kept = tensor.is_leaf or tensor.retains_grad
        if known is None and op_cache.state.assumes_gradients and training.steps and tensor.requires_grad and is_kept:
            known = tensor.grad = torch.empty_like(tensor, requires_grad=False)
        return known


SPECIAL.update({Tensor.backward: _backward, torch.autograd.backward: _backward, torch.autograd.grad: _grad, GRADIENT_OF: _gradient_of})
