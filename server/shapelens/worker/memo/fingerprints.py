"""Tells a value from others: two values with the same fingerprint are the same to the code that is given them, as far as shapes go."""

from __future__ import annotations

import functools
import types
from enum import Enum
from typing import Any, Hashable, List

import torch

from ..loading.module_snapshot import is_all_in_its_attributes
from ..trace.value_summary import STAND_IN, VAGUE
from ..unknown import unknown_sizes

Tensor = torch.Tensor

DEEPEST = 5
MOST_PARTS = 256  # of one sequence or mapping
_PLAIN_TENSORS = (Tensor, torch.nn.Parameter)
_BY_VALUE = frozenset(
    [int, float, complex, str, bytes, bool, type(None), range, torch.dtype, torch.device, torch.layout, torch.memory_format]
)
_BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, Enum)
_SEQUENCES = (tuple, list, torch.Size)


class NoFingerprint(Exception):
    """It cannot be told which values are like this one."""


def fingerprint(value: Any, tensors: List[Tensor], depth: int = 0) -> Hashable:
    """Returns what tells a value from others; the tensors in it, which have to be meta tensors, are added to `tensors`.

    No code of the value's class runs. Raises NoFingerprint.
    """
    cls = type(value)
    if cls in _BY_VALUE:
        return cls, value
    if cls in _PLAIN_TENSORS:
        return _of_tensor(value, tensors)
    if depth > DEEPEST:
        raise NoFingerprint
    if cls in _SEQUENCES:
        if len(value) > MOST_PARTS:
            raise NoFingerprint
        return cls, tuple([fingerprint(item, tensors, depth + 1) for item in value])
    if isinstance(value, _BY_IDENTITY):
        return cls, id(value)
    if cls is dict or cls is types.SimpleNamespace or is_all_in_its_attributes(cls):
        return _of_names(value, tensors, depth)
    if cls is functools.partial:
        return cls, fingerprint((value.func, value.args, value.keywords), tensors, depth + 1)
    raise NoFingerprint


def _of_tensor(value: Tensor, tensors: List[Tensor]) -> Hashable:
    with torch._C.DisableTorchFunction():
        if not value.is_meta or value.layout is not torch.strided or value.__dict__.get(STAND_IN) == VAGUE:
            raise NoFingerprint
        tensors.append(value)
        return value.shape, value.stride(), value.dtype, value.requires_grad


def _of_names(value: Any, tensors: List[Tensor], depth: int) -> Hashable:
    names = value if type(value) is dict else object.__getattribute__(value, "__dict__")
    if isinstance(value, (torch.nn.Module, unknown_sizes.UnknownInt, unknown_sizes.UnknownFloat)) or len(names) > MOST_PARTS:
        raise NoFingerprint
    parts = tuple([(name, fingerprint(item, tensors, depth + 1)) for name, item in names.items()])
    if not all(type(name) in _BY_VALUE for name, _ in parts):
        raise NoFingerprint
    return type(value), parts
