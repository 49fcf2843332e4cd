"""Inputs as the layers of a class say them: its rank, and which of them leave its shape as it is."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, Optional, Set

from ....stated.syntax_trees import last_name

_METHODS = frozenset((
    "float", "half", "double", "bfloat16", "long", "int", "bool", "to", "cuda", "cpu", "type", "type_as", "contiguous", "clone",
    "detach", "requires_grad_", "relu", "sigmoid", "tanh", "abs", "exp", "log", "sqrt", "clamp", "pin_memory", "square", "neg",
    "nan_to_num",
))  # fmt: skip
_FUNCTIONS = frozenset((
    "relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "dropout", "dropout2d", "dropout1d", "softplus", "mish",
    "layer_norm", "group_norm", "batch_norm", "instance_norm", "normalize", "rms_norm",
))  # fmt: skip
_LAYERS = frozenset((
    "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LocalResponseNorm", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout",
    "Identity", "ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "LeakyReLU", "ELU", "SELU", "PReLU", "Mish", "Hardswish", "ReLU6",
    "Softplus",
))  # fmt: skip


_RANKS = {
    "Conv1d": 3, "Conv2d": 4, "Conv3d": 5, "ConvTranspose1d": 3, "ConvTranspose2d": 4, "ConvTranspose3d": 5, "BatchNorm2d": 4,
    "BatchNorm3d": 5, "MaxPool1d": 3, "MaxPool2d": 4, "MaxPool3d": 5, "AvgPool1d": 3, "AvgPool2d": 4, "AvgPool3d": 5,
    "AdaptiveAvgPool1d": 3, "AdaptiveAvgPool2d": 4, "AdaptiveAvgPool3d": 5,
    "AdaptiveMaxPool2d": 4, "PixelShuffle": 4, "PixelUnshuffle": 4, "LSTM": 3, "GRU": 3, "RNN": 3,
}  # fmt: skip

Layers = Dict[str, Optional[ast.Call]]


def layers_of(cls: Optional[ast.ClassDef], module: Optional[ast.Module] = None) -> Layers:
    """The layers that `__init__` assigns to attributes of self, as the calls that make them; None where there are several.

    module: the file's, for the layers of the base classes that stand in it.
    """
    found: Layers = {}
    for one in _with_bases(cls, module):
        own: Layers = {}
        for node in (node for function in one.body if getattr(function, "name", "") == "__init__" for node in ast.walk(function)):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self":
                own[target.attr] = node.value if isinstance(node.value, ast.Call) and target.attr not in own else None
        found = {**own, **found}
    return found


def _with_bases(cls: Optional[ast.ClassDef], module: Optional[ast.Module]) -> Iterator[ast.ClassDef]:
    classes = {one.name: one for one in module.body if isinstance(one, ast.ClassDef)} if module is not None else {}
    pending = [cls] if cls is not None else []
    seen: Set[str] = set()
    while pending:
        one = pending.pop(0)
        if one.name not in seen:
            seen.add(one.name)
            yield one
            pending += [classes[base.id] for base in one.bases if isinstance(base, ast.Name) and base.id in classes]


def applied_to(call: ast.Call, layers: Layers) -> Optional[ast.Call]:
    """The layer of self that a call applies to its argument, as the call that makes it; of a Sequential the first. None if it is none."""
    function = call.func
    if not call.args or not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name) or function.value.id != "self":
        return None
    layer = layers.get(function.attr)
    while layer is not None and last_name(layer.func) == "Sequential":
        layer = layer.args[0] if layer.args and isinstance(layer.args[0], ast.Call) else None
    return layer


def wanted_rank(layer: ast.Call) -> Optional[int]:
    """The rank of a batch that one of torch's layers takes; None where it takes several, or the layer is not known by its name."""
    owner = layer.func.value if isinstance(layer.func, ast.Attribute) else None
    return (
        _RANKS.get(last_name(layer.func))
        if owner is None or getattr(owner, "id", "") in ("nn", "torch") or getattr(owner, "attr", "") == "nn"
        else None
    )


class Preserving:
    """The calls of one class's methods that keep a shape."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def argument(self, node: ast.AST) -> Optional[ast.expr]:
        """The expression whose shape a call's result has: x of `x.float()`, `F.relu(x)`, `self.norm(x)`. None where it is not known."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        owner, name = node.func.value, node.func.attr
        if isinstance(owner, ast.Name) and owner.id in ("F", "torch", "functional"):
            return node.args[0] if name in _FUNCTIONS and node.args else None
        if isinstance(owner, ast.Name) and owner.id == "self":
            layer = self._layers.get(name)
            return node.args[0] if layer is not None and last_name(layer.func) in _LAYERS and len(node.args) == 1 else None
        return owner if name in _METHODS else None
