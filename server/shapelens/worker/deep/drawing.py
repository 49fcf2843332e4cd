"""Numbers for a model that is run for real: of parameters, of inputs, and others in the place of some of them.

Nothing is zero and nothing is constant, so that nothing hides what it takes part in: a residual branch that begins as zero, a gain of one.
"""

from __future__ import annotations

import random
import sys
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import torch

from ..trace.module_memory import parts_of

Tensor = torch.Tensor
_NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm")
MASKED = 2  # the step at which values are zeros and ones
FEW = 5  # integers of an input are less, and more than zero, which often stands for padding


def seed(number: int) -> None:
    """Let all that is drawn by chance be drawn alike."""
    torch.default_generator.manual_seed(number)  # What a run replaces for user code is no matter here.
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


def fill(tensor: Tensor) -> Tensor:
    """A tensor that was made without values, with values in it: those of a weight are as large as a layer's are."""
    if tensor.is_floating_point():
        if tensor.dim() < 2:
            return tensor.normal_(0.5, 0.2)
        inputs = tensor.numel() // max(tensor.shape[0], 1)
        return tensor.normal_(0.0, min(max(inputs, 1) ** -0.5, 1.0))
    return tensor.zero_() if not tensor.is_complex() else tensor.normal_()


def draw(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """An input: numbers around zero, small integers, or bits of which both come."""
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(tuple(shape), dtype=dtype if dtype not in (torch.float16, torch.bfloat16) else torch.float32).to(dtype)
    if dtype is torch.bool:
        return torch.rand(tuple(shape)) < 0.7
    return torch.randint(1, FEW, tuple(shape)).to(dtype)


def draw_parameters(model: Any) -> None:
    """Parameters that are constant get values of their own; those of normalisations stay near one and zero. What is data stays."""
    drawn = set()
    for part in parts_of(model):
        of_norm = any(word in type(part).__name__ for word in _NORMS)
        for name, tensor in part._parameters.items():
            if tensor is None or torch.nn.parameter.is_lazy(tensor) or id(tensor) in drawn:
                continue
            if tensor.is_meta:
                filled = fill(torch.empty(tensor.shape, dtype=tensor.dtype))
                part._parameters[name] = tensor = torch.nn.Parameter(filled, tensor.requires_grad)
            drawn.add(id(tensor))
            data = tensor.detach()
            if not data.is_floating_point() or not tensor.requires_grad or not data.numel():
                continue
            if of_norm or name == "bias":
                data.normal_(1.0 if of_norm and name != "bias" else 0.0, 0.2)
            elif bool((data == data.flatten()[0]).all()) or not bool(torch.isfinite(data).all()):
                fill(data)
        for name, tensor in part._buffers.items():
            if tensor is not None and tensor.is_meta:
                part._buffers[name] = fill(torch.empty(tensor.shape, dtype=tensor.dtype))


def shaken(model: Any) -> List[Tuple[Tensor, Tensor]]:
    """Give the parameters other values; returns each with those that it had. Zeros stay, as they may be a mask."""
    before, seen = [], set()
    for part in parts_of(model):
        for tensor in part._parameters.values():
            if tensor is not None and tensor.is_floating_point() and tensor.requires_grad and id(tensor) not in seen:
                seen.add(id(tensor))  # Two layers may share one.
                data = tensor.detach()
                before.append((data, data.clone()))
                data.mul_(torch.empty_like(data).normal_(1.0, 0.5))
    return before


def others(tensor: Tensor, dim: Optional[int], place: int, step: int) -> Tensor:
    """The tensor with other values in one slice of a dim, or everywhere. Integers stay in the range that they are in.

    step: which other values, from 1 on.
    """
    made = tensor.clone()
    part = made if dim is None else made.select(dim, place)
    before = part.clone()
    if dim is None and step == MASKED:  # `mask == 0` asks for zeros, and ones may have been all that there was.
        zeros = torch.rand(part.shape) < 0.5
        part.copy_(torch.where(zeros, torch.zeros_like(part), torch.ones_like(part)))
    elif part.dtype is torch.bool:
        part.logical_not_()
    elif part.is_floating_point() or part.is_complex():
        scale = before.abs().mean() if before.numel() else 1.0
        part.copy_(torch.randn(part.shape).to(part.dtype) * (float(scale) or 1.0) * (1 + step) + (0.0 if step % 2 else 0.5))
    elif part.numel():
        low, high = int(tensor.min()), int(tensor.max())
        span = high - low + 1
        part.copy_(low + (before - low + step) % span if span > step else before + step)
    return made


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[Tuple[str, Tensor]]:
    """The tensors in arguments or results, each with the way to it: `[0]`, `["logits"]`, `.loss`."""
    if isinstance(value, Tensor):
        yield path, value
    elif depth < 4 and isinstance(value, dict):
        for key, item in list(value.items())[:64]:
            yield from leaves(item, "%s[%r]" % (path, key), depth + 1)
    elif depth < 4 and isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value):
            yield from leaves(item, "%s.%s" % (path, name), depth + 1)
    elif depth < 4 and isinstance(value, (tuple, list)):
        for number, item in enumerate(value[:64]):
            yield from leaves(item, "%s[%d]" % (path, number), depth + 1)
    elif depth < 4 and hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from leaves(getattr(value, name, None), "%s.%s" % (path, name), depth + 1)


def mapped(value: Any, change: Callable[[Tensor], Tensor], depth: int = 0) -> Any:
    """Arguments with each tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if depth >= 4:
        return value
    if type(value) in (tuple, list):
        return type(value)([mapped(item, change, depth + 1) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[mapped(item, change, depth + 1) for item in value])
    if type(value) is dict:
        return {name: mapped(item, change, depth + 1) for name, item in value.items()}
    return value


def replaced(value: Any, old: Optional[Tensor], new: Optional[Tensor]) -> Any:
    """Arguments with a tensor in the place of another one, and all others as copies, so that a call changes none of ours."""
    return mapped(value, lambda tensor: new.clone() if tensor is old and new is not None else tensor.clone())
