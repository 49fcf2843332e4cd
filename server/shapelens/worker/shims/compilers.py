"""Compiling, scripting, tracing, exporting and quantizing leave a model as it is: its shapes are the same."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, List, Tuple

import torch

from ..calls.state_dicts import COMPILED
from ..locations import TORCH

Replacement = Tuple[Any, str, Any]  # (owner, name, value)


def unchanged(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator or wrapper that does nothing, with or without arguments of its own."""
    return model if model is not None else lambda function: function


def _compiled(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    """torch.compile: the names of its parameters begin with another word then."""
    if isinstance(model, torch.nn.Module):
        model.__dict__[COMPILED] = True
    return unchanged(model)


def nothing(*args: Any, **kwargs: Any) -> Any:
    """Returns what is done instead of something that only has effects."""
    return None


def _unless_torch(wrapper: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper for user code; torch scripts some of its own decompositions when they are first needed, and uses the graphs."""

    def replaced(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        return (original if caller.startswith(TORCH) else wrapper)(*args, **kwargs)

    return replaced


def _traced(model: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A traced or scripted model is the model; what else such a thing can be asked for tells nothing about shapes."""
    answers = {"graph": "", "inlined_graph": "", "code": "", "save": nothing, "graph_for": nothing, "save_to_buffer": bytes}
    for name, answer in answers.items():
        if model is not None and hasattr(model, "__dict__") and not isinstance(model, type) and not hasattr(model, name):
            model.__dict__[name] = answer
    return unchanged(model) if model is not None else lambda function: _traced(function)


class ScriptModule(torch.nn.Module):
    """In the place of torch.jit.ScriptModule, whose methods are compiled when a class is made."""


class Exported:
    """The result of torch.export.export: a program that can be asked for its module."""

    def __init__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        self.graph_module = model
        self.graph = ""
        self.state_dict = model.state_dict() if isinstance(model, torch.nn.Module) else {}

    def module(self, *args: Any, **kwargs: Any) -> Any:
        """The model that was exported."""
        return self.graph_module

    def run_decompositions(self, *args: Any, **kwargs: Any) -> "Exported":
        """The program itself."""
        return self

    save = optimize = nothing


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run."""
    jit: Any = torch.jit
    out: List[Replacement] = [
        (torch, "compile", _compiled),
        (jit, "script", _unless_torch(_traced, jit.script)),
        (jit, "trace", _unless_torch(_traced, jit.trace)),
        (jit, "trace_module", _traced),
        (jit, "freeze", unchanged),
        (jit, "optimize_for_inference", unchanged),
        (jit, "script_method", _unless_torch(unchanged, jit.script_method)),
        (jit, "export", _unless_torch(unchanged, jit.export)),
        (jit, "ignore", _unless_torch(unchanged, jit.ignore)),
        (jit, "unused", _unless_torch(unchanged, jit.unused)),
        (jit, "save", nothing),
        (jit, "ScriptModule", ScriptModule),
        (torch.nn.Module, "compile", nothing),
    ]
    compiler = getattr(torch, "compiler", None)
    if compiler is not None:
        # Each of these would import the whole of dynamo.
        out += [(compiler, name, unchanged) for name in ("compile", "disable", "allow_in_graph", "assume_constant_result")]
        out += [(compiler, name, nothing) for name in ("reset", "cudagraph_mark_step_begin")]
    return out


def onnx(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.onnx`."""
    return [(module, name, nothing) for name in ("export", "dynamo_export") if hasattr(module, name)]


def dynamo(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch._dynamo`, once something has imported it."""
    names = {
        "disable": unchanged, "allow_in_graph": unchanged, "optimize": lambda *args, **kwargs: unchanged, "reset": nothing,
        "graph_break": nothing, "mark_dynamic": nothing, "mark_static": nothing, "maybe_mark_dynamic": nothing,
    }  # fmt: skip
    return [(module, name, value) for name, value in names.items() if hasattr(module, name)]


def transforms(module: ModuleType) -> List[Replacement]:
    """The replacements in what `torch.func` is made of: its gradients would import the whole of dynamo, to have it step aside."""
    own = getattr(module, "_autograd_grad", None)
    if "_dynamo" not in getattr(getattr(own, "__code__", None), "co_names", ()):
        return []

    def gradients(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool = False, create_graph: bool = True) -> Any:
        given = grad_outputs if grad_outputs is not None else [None] * len(outputs)
        pairs = [(output, grad) for output, grad in zip(outputs, given) if output.requires_grad]
        if not pairs:
            return tuple([torch.zeros_like(each) for each in inputs])
        of, with_grads = zip(*pairs)
        found = torch.autograd.grad(of, inputs, with_grads, retain_graph, create_graph, allow_unused=True)
        return tuple([torch.zeros_like(each) if grad is None else grad for grad, each in zip(found, inputs)])

    return [(module, "_autograd_grad", gradients)]


def export(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.export`."""
    return [(module, name, Exported) for name in ("export", "export_for_training", "export_for_inference") if hasattr(module, name)]


def _quantized(model: Any, *args: Any, **kwargs: Any) -> Any:
    return model


def quantization(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.ao.quantization`: observers read values, quantized kernels have no meta version."""
    names = ("prepare", "prepare_qat", "convert", "quantize_dynamic", "quantize", "quantize_qat", "fuse_modules", "fuse_modules_qat")
    return [(module, name, _quantized) for name in names if hasattr(module, name)]
