"""A module as its constructor left it, to tell later whether it still is so."""

from __future__ import annotations

from operator import is_
from typing import Any, List

import torch

from ..trace.value_summary import LAYER, MODE, OF_EXAMPLE
from .fingerprints import NoFingerprint, fingerprint

Module = torch.nn.Module
Tensor = torch.Tensor

_OURS = {"training", LAYER, MODE, OF_EXAMPLE}  # in a module's __dict__: what may change after its constructor
HELD = ("_parameters", "_buffers", "_modules")
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
PLAIN = (int, float, bool, str, type(None))  # types of values that are the same wherever they are equal
OF_ALL = {*Module().__dict__, *_OURS}  # attributes that every module has


class ModuleState:
    """A module as its constructor left it.

    thorough: with the contents of its attributes and the shapes of its parameters, for `is_unchanged`.
    """

    __slots__ = ("contents", "held", "names", "shapes", "training", "values")

    def __init__(self, module: Any, *, thorough: bool = True) -> None:
        own = module.__dict__
        self.names = tuple([name for name in own if name not in _OURS])
        self.values = list(map(own.get, self.names))
        self.held = [(tuple(own[name]), tuple(own[name].values())) for name in HELD]
        self.training = own["training"]
        self.contents = _contents(module) if thorough else None
        self.shapes = _shapes(module) if thorough else None

    def holds_the_same(self, module: Any) -> bool:
        """True if a module still has the same parts and attributes, and no hooks."""
        own = module.__dict__
        if len(own) > len(self.names) + len(_OURS) or not all(map(is_, map(own.get, self.names), self.values)):
            return False
        for name, (names, values) in zip(HELD, self.held):
            now = own[name]
            if len(now) != len(names) or not all(map(is_, map(now.get, names), values)):
                return False
        return not any(own[name] for name in HOOKS)

    def is_unchanged(self, module: Any) -> bool:
        """Also: whether what its attributes contain and the shapes of its parameters are the same."""
        return self.holds_the_same(module) and self.contents == _contents(module) and self.shapes == _shapes(module)


def have_the_same_attributes(before: Any, now: Any) -> bool:
    """True if two modules of a class have the same attributes, but for the modules and parameters that they hold."""
    if type(before) is not type(now) or before.__dict__.keys() - OF_ALL != now.__dict__.keys() - OF_ALL:
        return False
    for name, value in before.__dict__.items():
        if name in OF_ALL:
            continue
        try:
            if fingerprint(value, []) != fingerprint(now.__dict__[name], []) and not callable(value):
                return False
        except NoFingerprint:
            continue
    return True


def _contents(module: Any) -> Any:
    """The attributes that can change in place."""
    found: List[Any] = []
    for name, value in module.__dict__.items():
        if type(value) in PLAIN or name in OF_ALL:
            continue
        if isinstance(value, (list, tuple, set)) and any(isinstance(item, (Module, Tensor)) for item in value):
            found.append((name, type(value), [id(item) for item in value]))
            continue
        try:
            found.append((name, fingerprint(value, [])))
        except NoFingerprint:
            found.append((name, id(value)))
    return found


def _shapes(module: Any) -> Any:
    """The shapes of parameters and buffers; of real ones also how often they were changed."""
    with torch._C.DisableTorchFunction():
        return [
            (tensor.shape, tensor.dtype, None if tensor.is_meta or tensor.is_inference() else tensor._version)
            for held in (module._parameters, module._buffers)
            for tensor in held.values()
            if isinstance(tensor, Tensor)
        ]
