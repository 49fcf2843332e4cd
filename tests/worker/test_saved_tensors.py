"""What is said of the tensors that operations keep for their gradients, compared with torch's own graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from shapelens.worker.trace import saved_tensors
from shapelens.worker.trace.provenance import Derivation, mark_result
from shapelens.worker.trace.value_summary import ORIGIN

CHANGED = "modified by an inplace operation"
SECOND_TIME = "a second time"
Operation = Callable[..., torch.Tensor]

_PICTURE, _ROWS, _SERIES = (2, 4, 8, 8), (6, 4), (2, 4, 8)
# Names in the tables, with how they are called and the shapes of what they are given.
FUNCTIONS: dict[str, tuple[Operation, list[tuple[int, ...]]]] = {
    **{name: (getattr(torch, name), [_ROWS]) for name in ("exp", "expm1", "sigmoid", "tanh", "relu", "sqrt", "rsqrt", "reciprocal")},
    **{name: (getattr(torch, name), [_ROWS]) for name in ("square", "abs", "log", "log1p", "log2", "log10", "sin", "cos", "erf", "neg")},
    **{name: (getattr(F, name), [_ROWS]) for name in ("gelu", "silu", "softplus", "leaky_relu")},
    "softmax": (lambda x: F.softmax(x, 1), [_ROWS]),
    "log_softmax": (lambda x: F.log_softmax(x, 1), [_ROWS]),
    "pow": (lambda x: x.pow(3), [_ROWS]),
    "__pow__": (lambda x: x**2, [_ROWS]),
    "clamp": (lambda x: x.clamp(0, 1), [_ROWS]),
    "clamp_min": (lambda x: x.clamp_min(0), [_ROWS]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [_PICTURE]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [_PICTURE]),
    **{name: (getattr(torch, name), [_ROWS, _ROWS]) for name in ("mul", "multiply", "div", "true_divide", "add", "sub")},
    **{name: (getattr(torch.Tensor, name), [_ROWS, _ROWS]) for name in ("__mul__", "__rmul__", "__truediv__", "__add__", "__sub__")},
    **{name: (getattr(torch, name), [(6, 4), (4, 3)]) for name in ("matmul", "mm")},
    "__matmul__": (torch.Tensor.__matmul__, [(6, 4), (4, 3)]),
    "bmm": (torch.bmm, [(2, 6, 4), (2, 4, 3)]),
    **{name: (getattr(F, name), [_ROWS, _ROWS]) for name in ("mse_loss", "smooth_l1_loss", "huber_loss")},
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, [_ROWS, _ROWS]),
    "cat": (lambda x, y: torch.cat([x, y]), [_ROWS, _ROWS]),
    "sum": (torch.sum, [_ROWS]),
    "mean": (torch.mean, [_ROWS]),
    "view": (lambda x: x.view(-1), [_ROWS]),
    "transpose": (lambda x: x.transpose(0, 1), [_ROWS]),
    "clone": (torch.clone, [_ROWS]),
}  # fmt: skip
LAYERS: dict[str, tuple[nn.Module, list[tuple[int, ...]]]] = {
    **{name: (getattr(nn, name)(), [_ROWS]) for name in ("Sigmoid", "Tanh", "ReLU", "GELU", "SiLU", "Softplus", "LeakyReLU", "Flatten")},
    "Softmax": (nn.Softmax(1), [_ROWS]),
    "LogSoftmax": (nn.LogSoftmax(1), [_ROWS]),
    "Linear": (nn.Linear(4, 3), [_ROWS]),
    "Conv1d": (nn.Conv1d(4, 3, 3), [_SERIES]),
    "Conv2d": (nn.Conv2d(4, 3, 3), [_PICTURE]),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 3, 3), [_PICTURE]),
    "BatchNorm1d": (nn.BatchNorm1d(4), [_ROWS]),
    "BatchNorm2d": (nn.BatchNorm2d(4), [_PICTURE]),
    "LayerNorm": (nn.LayerNorm(4), [_ROWS]),
    "GroupNorm": (nn.GroupNorm(2, 4), [_PICTURE]),
    "MaxPool2d": (nn.MaxPool2d(2), [_PICTURE]),
    "AvgPool2d": (nn.AvgPool2d(2), [_PICTURE]),
    "MSELoss": (nn.MSELoss(), [_ROWS, _ROWS]),
    "SmoothL1Loss": (nn.SmoothL1Loss(), [_ROWS, _ROWS]),
    "HuberLoss": (nn.HuberLoss(), [_ROWS, _ROWS]),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(), [_ROWS, _ROWS]),
}  # fmt: skip
EVERY = [
    *[(name, None, function, shapes) for name, (function, shapes) in FUNCTIONS.items()],
    *[(name, layer, layer, shapes) for name, (layer, shapes) in LAYERS.items()],
]


def _called(name: str, layer: nn.Module | None, function: Operation, shapes: list[tuple[int, ...]]) -> tuple[list[Any], Any, Derivation]:
    """What an operation is given, what it gives, and the node of that."""
    given = []
    for shape in shapes:
        leaf = torch.rand(shape, requires_grad=True)
        tensor = leaf * 1
        mark_result("mul", tensor, ((leaf,), {}))
        given.append(tensor)
    result = function(*given)
    mark_result(name, result, (tuple(given), {}), layer)
    return given, result, result.__dict__[ORIGIN]


def _fails(result: torch.Tensor, words: str) -> bool:
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert words in str(error)
        return True
    return False


@pytest.mark.parametrize(("name", "layer", "function", "shapes"), EVERY, ids=[each[0] for each in EVERY])
def test_what_is_kept_is_what_torch_keeps(name: str, layer: Any, function: Any, shapes: Any) -> None:
    """Changed in place, what is kept fails in `backward`, and what is not does not."""
    for index in range(len(shapes)):
        given, result, node = _called(name, layer, function, shapes)
        assert saved_tensors.is_known(node)
        given[index].add_(1)
        assert _fails(result, CHANGED) is (index in saved_tensors.kept_of_given(node)), f"argument {index}"
    _, result, node = _called(name, layer, function, shapes)
    if result._base is None and result.dim():  # One that is changed in place is another node, where nothing is kept of a view.
        result.add_(1)
        assert _fails(result, CHANGED) is saved_tensors.keeps_result(node)


def test_a_second_backward_fails_where_anything_is_kept() -> None:
    leaf = torch.rand(6, 4, requires_grad=True)
    for name, function in (("sigmoid", torch.sigmoid), ("exp", torch.exp), ("__pow__", lambda x: x**2)):
        result = function(leaf)
        mark_result(name, result, ((leaf,), {}))
        assert saved_tensors.keeps_any(result.__dict__[ORIGIN])
        assert not _fails(result, "")
        assert _fails(result, SECOND_TIME)
    total = leaf + leaf
    mark_result("__add__", total, ((leaf, leaf), {}))
    assert not saved_tensors.keeps_any(total.__dict__[ORIGIN])
    assert not _fails(total, "") and not _fails(total, "")
