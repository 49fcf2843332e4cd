"""The tensors that operations keep for `backward`: their result, or some of their arguments. As `derivatives.yaml` of torch has it.

The lists hold only operations whose gradients go to each argument that requires one. tests/worker/test_saved_tensors.py compares each entry
with torch's own graph.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Sequence, Set

import torch

from .layer_inputs import is_torch_layer
from .provenance import Derivation

_NOTHING: FrozenSet[int] = frozenset()
_FIRST = frozenset([0])
_BOTH = frozenset([0, 1])
Rule = Callable[[Derivation], FrozenSet[int]]


def _learns(node: Derivation, index: int) -> bool:
    parent = node.parents[index][0] if index < len(node.parents) else None
    return parent is not None and parent.learns


def _each_other(node: Derivation) -> FrozenSet[int]:
    """Of a product: each factor, for the gradient of the other one."""
    return frozenset([index for index in (0, 1) if len(node.parents) == 2 and _learns(node, 1 - index)])


def _quotient(node: Derivation) -> FrozenSet[int]:
    kept = {1} if len(node.parents) == 2 and (_learns(node, 0) or _learns(node, 1)) else set()
    return frozenset(kept | ({0} if _learns(node, 1) else set()))


def _of_weight(node: Derivation) -> FrozenSet[int]:
    """The input of a layer, for the gradient of its weight."""
    weight = getattr(node.module, "weight", None)
    return _FIRST if isinstance(weight, torch.Tensor) and weight.requires_grad else _NOTHING


def _always(kept: FrozenSet[int]) -> Rule:
    return lambda node: kept


def _named(names: str, rule: Any) -> Dict[str, Any]:
    return dict.fromkeys(names.split(), rule)


# The operations and layers that keep their result.
KEEPS_RESULT: Set[str] = {
    "exp", "expm1", "sigmoid", "tanh", "relu", "sqrt", "rsqrt", "reciprocal", "softmax", "log_softmax",
    "Sigmoid", "Tanh", "ReLU", "Softmax", "LogSoftmax",
}  # fmt: skip
# What operations keep of what they are given, by position among its tensors.
KEEPS_GIVEN: Dict[str, Rule] = {
    **_named("mul __mul__ __rmul__ multiply matmul __matmul__ mm bmm", _each_other),
    **_named("div __truediv__ true_divide", _quotient),
    **_named("pow __pow__ square abs log log1p log2 log10 sin cos erf gelu silu softplus leaky_relu clamp clamp_min", _always(_FIRST)),
    **_named("GELU SiLU Softplus LeakyReLU max_pool2d avg_pool2d MaxPool2d AvgPool2d", _always(_FIRST)),
    **_named("mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits", _always(_BOTH)),
    **_named("MSELoss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss", _always(_BOTH)),
}
# The same of layers with a weight.
_WEIGHTED = "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d BatchNorm1d BatchNorm2d LayerNorm GroupNorm"
KEEPS_GIVEN.update(_named(_WEIGHTED, _of_weight))
# Layers that keep their weights for the gradient of what they are given.
KEEPS_WEIGHT = {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "LSTM", "GRU", "RNN"}
# Others that keep something, whatever it is.
KEEPS_MORE = {
    "cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell",
    "MultiheadAttention", "Embedding",
}  # fmt: skip
# Operations that keep no numbers.
KEEPS_NONE = {
    "add", "sub", "__add__", "__radd__", "__sub__", "__rsub__", "neg", "__neg__", "sum", "mean", "view", "reshape", "flatten", "squeeze",
    "unsqueeze", "transpose", "permute", "t", "T", "contiguous", "clone", "float", "cat", "stack", "chunk", "split", "unbind", "dropout",
    "linear", "Dropout", "Dropout2d", "Flatten", "l1_loss", "L1Loss", "Identity", "expand", "repeat", "select", "narrow", "movedim",
    "swapaxes", "mT", "view_as", "unfold", "hstack", "vstack", "concat", "tile", "flip", "roll",
}  # fmt: skip
_PICKS = "__getitem__"  # keeps no numbers either where no tensor says which
# Operations whose result is a view of the first tensor that they are given: what changes that in place, or another view of it, changes it.
VIEWS = {
    "view", "transpose", "permute", "t", "T", "mT", "squeeze", "unsqueeze", "chunk", "split", "unbind", "expand", "select", "narrow",
    "movedim", "swapaxes", "view_as", _PICKS,
}  # fmt: skip
KEEPING = KEEPS_RESULT | KEEPS_GIVEN.keys() | KEEPS_MORE


def name_of(node: Derivation) -> str:
    """The name of an operation, or of a layer of torch; "" for any other module."""
    if node.module is None:
        return node.operation.rstrip("_") if not node.operation.startswith("_") else node.operation
    return type(node.module).__name__ if is_torch_layer(node.module) else ""


def is_known(node: Derivation) -> bool:
    """True if the gradients of an operation go to all of its arguments."""
    name = name_of(node)
    return not node.stand_in and (name in KEEPING or name in KEEPS_NONE or (name == _PICKS and len(node.parents) == 1))


def is_view(node: Derivation) -> bool:
    """True if a result shares its numbers with the first tensor among its operation's arguments."""
    return node.module is None and node.operation in VIEWS and len(node.parents) == 1


def keeps_any(node: Derivation) -> bool:
    """True if an operation keeps tensors, which `backward` frees."""
    name = name_of(node)
    if name in KEEPS_GIVEN and name not in KEEPS_RESULT:
        return bool(KEEPS_GIVEN[name](node))
    return name in KEEPING


def keeps_result(node: Derivation) -> bool:
    """True if an operation keeps its result."""
    return name_of(node) in KEEPS_RESULT


def kept_of_given(node: Derivation) -> FrozenSet[int]:
    """Which of the tensors that an operation was given it keeps."""
    rule = KEEPS_GIVEN.get(name_of(node))
    return _NOTHING if rule is None else rule(node)


def kept_weights(node: Derivation) -> Sequence[Any]:
    """The weights that a layer keeps for the gradient of what it was given."""
    if name_of(node) not in KEEPS_WEIGHT or not any(_learns(node, index) for index in range(len(node.parents))):
        return ()
    return [parameter for name, parameter in node.module.named_parameters(recurse=False) if name.startswith("weight")]
