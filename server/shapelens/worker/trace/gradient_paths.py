"""The search for an operation that cut a tensor off from all parameters before `backward`: `detach`, say, or `no_grad`.

A tensor on the meta device need not require gradients where one of eager's would, as rules for single functions make their results anew. So
a tensor counts as cut off only under two conditions. Each operation that led to it is known to hand gradients on or to end them, and one of
them ends them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Set, Tuple

import torch

from ...protocol import Origin
from . import provenance
from .recorder import Recorder
from .value_summary import ORIGIN

Tensor = torch.Tensor

MOST_NODES = 400
FROZEN = "frozen"  # what is computed by parameters alone that require no gradient
NO_GRAD = "no_grad"  # what cuts off the result of an operation that is given what learns
CUTS = {
    "detach",
    "data",
    "long",
    "int",
    "bool",
    "argmax",
    "argmin",
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "__eq__",
    "__ne__",
    "__gt__",
    "__lt__",
    "__ge__",
    "__le__",
}
HANDS_ON = {
    "add", "sub", "mul", "div", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__pow__", "__neg__", "__matmul__", "true_divide", "pow", "matmul", "mm", "bmm", "exp", "log", "sqrt", "square", "abs", "neg",
    "sigmoid", "tanh", "relu", "gelu", "softmax", "log_softmax", "logsigmoid", "mean", "sum", "amax", "amin", "logsumexp", "clamp",
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "contiguous", "float", "clone", "linear",
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "dropout", "randn", "rand", "randint", "zeros", "ones", "tensor", "to", "T", "cat",
    "stack", "chunk", "split", "unbind", "select", "expand", "repeat", "silu", "leaky_relu", "elu", "softplus", "max_pool2d", "avg_pool2d",
    "max_pool1d", "avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool1d", "batch_norm", "layer_norm", "conv1d",
    "conv2d", "embedding", "rand_like", "randn_like", "zeros_like", "ones_like",
}  # fmt: skip
_PICKS = "__getitem__"
LAYERS = {
    "Linear", "Conv1d", "Conv2d", "ReLU", "GELU", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Dropout", "Flatten", "BatchNorm1d",
    "BatchNorm2d", "LayerNorm", "MaxPool2d", "AvgPool2d", "CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss",
    "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "Dropout2d", "Identity", "LeakyReLU", "ELU", "SiLU", "Softplus", "ReLU6", "Hardswish",
    "Conv3d", "ConvTranspose2d", "BatchNorm3d", "GroupNorm", "InstanceNorm2d", "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "Unflatten", "Upsample", "Embedding",
}  # fmt: skip


def cut_off(tensor: Tensor) -> Optional[Tuple[provenance.Derivation, str]]:
    """The operation that cuts a tensor off from all parameters, and the name of what does so; None where none is known to."""
    todo: List[Optional[provenance.Derivation]] = [tensor.__dict__.get(ORIGIN)]
    seen: Set[int] = set()
    found: Optional[Tuple[provenance.Derivation, str]] = None
    while todo and len(seen) < MOST_NODES:
        node = todo.pop()
        if node is None or node is provenance.INPUT or id(node) in seen:
            continue
        seen.add(id(node))
        if node.stand_in:
            return None
        if node.operation in CUTS or (node.operation == "tensor" and _is_given_learning(node)):
            found = node, node.operation
            continue
        is_pick = node.operation == _PICKS and len(node.parents) == 1
        known = is_pick or node.operation in HANDS_ON if node.module is None else type(node.module).__name__ in LAYERS
        if not known or len(node.parents) > 3 or node.learns:
            return None
        if _is_given_learning(node) or (node.module is not None and any(parameter.requires_grad for parameter in node.module.parameters())):
            found = node, NO_GRAD
            continue
        if found is None and node.module is not None and next(node.module.parameters(), None) is not None:
            found = node, FROZEN
        todo += [parent for parent, _ in node.parents]
    return found if not todo else None


def _is_given_learning(node: provenance.Derivation) -> bool:
    return any(parent is not None and parent.learns for parent, _ in node.parents)


def cut(tensor: Tensor, recorder: Recorder) -> List[Origin]:
    """Where a tensor was cut off, in a list; [] where that is not known."""
    found = cut_off(tensor)
    if found is None or found[0].site < 0:
        return []
    return [replace(provenance.origin(found[0], "", recorder), operation=found[1])]
