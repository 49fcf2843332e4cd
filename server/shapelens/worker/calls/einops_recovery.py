"""Going on past what einops refuses: the shape that a pattern asks for, as far as the sizes of its axes are known."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch

from ..meta.expected_shapes import Shape
from ..meta.mode import NotRecovered
from ..trace.value_summary import STAND_IN, VAGUE

Tensor = torch.Tensor
FUNCTIONS = ("rearrange", "reduce", "repeat", "einsum")
LAYERS = ("Rearrange", "Reduce")  # each of which does what the function of its name does
_TERM = re.compile(r"\([^()]*\)|\S+")


def shape_of(pattern: str, tensors: List[Tensor], sizes: Dict[str, Any]) -> Optional[Shape]:
    """The shape of what a pattern gives; None where not even the number of dims is known.

    `b (h w) c -> b c h w` of [2, 12, 3] with {"h": 4} gives [2, 3, 4, None].
    """
    given, arrow, wanted = pattern.partition("->")
    if not arrow or "..." in wanted:
        return None
    known: Dict[str, Any] = {name: size for name, size in sizes.items() if isinstance(size, int)}
    for terms, tensor in zip(given.split(","), tensors):
        axes = _TERM.findall(terms)
        if len(axes) == tensor.dim():
            found = {axis: size for axis, size in zip(axes, tensor.shape) if axis.isidentifier()}
            # A size that is asked for and another one that arrived: one of them is wrong.
            known.update({axis: size if known.get(axis, size) == size else None for axis, size in found.items()})
    return [_size(term, known) for term in _TERM.findall(wanted)]


def _size(term: str, known: Dict[str, Any]) -> Optional[int]:
    product = 1
    for axis in term.strip("()").split():
        size = int(axis) if axis.isdecimal() else known.get(axis)
        if size is None:
            return None
        product *= size
    return product


@contextlib.contextmanager
def recovering_patterns(refused: Callable[..., Any]) -> Iterator[None]:
    """Hand the exceptions of einops' functions and layers to `refused(error, tensors, shape)`; what it gives is the result."""
    module, of_layers = sys.modules.get("einops"), sys.modules.get("einops.layers.torch")
    before = {name: getattr(module, name) for name in FUNCTIONS if hasattr(module, name)}
    layers = {getattr(of_layers, name): before[name.lower()] for name in LAYERS if hasattr(of_layers, name) and name.lower() in before}
    forwards = {layer: layer.forward for layer in layers}
    for name, function in before.items():
        setattr(module, name, _guarded(function, refused))
    for layer, function in layers.items():
        layer.forward = _guarded_layer(layer.forward, _guarded(function, refused))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(module, name, function)
        for layer, forward in forwards.items():
            layer.forward = forward


def _guarded_layer(forward: Any, function: Any) -> Any:
    """The `forward` of a layer. What it refuses is given to the function of the same name, whose words name the pattern and the axes."""

    @functools.wraps(forward)
    def guarded(layer: Any, given: Any) -> Any:
        try:
            return forward(layer, given)
        except Exception as error:
            known = getattr(layer, "pattern", None), getattr(layer, "axes_lengths", None), getattr(layer, "reduction", None)
            if not isinstance(given, Tensor) or not isinstance(known[0], str) or not isinstance(known[1], dict):
                raise
            refusing = error
        reduction = [known[2]] if known[2] is not None else []
        result = function(given, known[0], *reduction, **known[1])
        if not isinstance(result, Tensor):
            raise refusing
        return result

    return guarded


def _is_vague(value: Any) -> bool:
    """True if nothing is known of the shape of a tensor, not even how many dims it has."""
    return isinstance(value, Tensor) and value.__dict__.get(STAND_IN) == VAGUE


def _guarded(function: Any, refused: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def guarded(*args: Any, **sizes: Any) -> Any:
        if args and _is_vague(args[0]):  # A pattern with an ellipsis would name as many dims as there may be.
            return args[0]
        try:
            return function(*args, **sizes)
        except Exception as error:
            tensors = [part for part in args if isinstance(part, Tensor)]
            patterns = [part for part in (*args, sizes.get("pattern")) if isinstance(part, str) and "->" in part]
            if not tensors or not patterns:
                raise
            try:
                return refused(error, tensors, shape_of(patterns[0], tensors, sizes))
            except NotRecovered:
                raise error  # noqa: B904  It is the same exception, that was not looked at.

    return guarded
