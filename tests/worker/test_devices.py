"""What stands for an accelerator, and what meets on different devices: the rules are those of torch's FakeTensorMode."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from shapelens.worker.rewrite.device_choices import ACCELERATOR, DEVICE, assume_accelerators
from shapelens.worker.trace.devices import PLACED, Devices, Placement, device_of, names, standing_for

# Texts that bind `device`, and what it stands for; None: no more than it says.
CHOICES = {
    'device = torch.device("cuda" if available() else "cpu")': "cuda",
    'device = "cuda:0" if available() else "cpu"': "cuda",
    'device = torch.device("cuda:0") if available() else torch.device("cpu")': "cuda",
    'device = "cpu" if not available() else "cuda"': "cuda",
    'device = "cuda" if available() else "mps" if available() else "cpu"': "mps",
    'device = available() and "cuda" or "cpu"': "cuda",
    'device = torch.accelerator.current_accelerator().type if available() else "cpu"': "accelerator",
    'if available():\n    device = torch.device("cuda")\nelse:\n    device = torch.device("cpu")': "cuda",
    'device = "cpu"\nif available():\n    device = "cuda"': "cuda",
    'a, device = 1, "cpu"\nif available():\n    device = "mps"': "mps",
    'def choose():\n    if available():\n        return "cuda"\n    return "cpu"\ndevice = torch.device(choose())': "cuda",
    'class C:\n    device: str = "cuda" if available() else "cpu"\ndevice = torch.device(str(C.device))': "cuda",
    'device = torch.device("cpu")': None,
    'device = "cpu"': None,
    'device = ["cpu", "cuda"][available()]': None,
    'other = "cuda" if available() else "cpu"\ndevice = "cpu"': None,
}


@pytest.mark.parametrize("text", CHOICES)
def test_what_a_choice_stands_for(text: str) -> None:
    tree = ast.parse(text)
    assume_accelerators(tree)
    scope: dict[str, Any] = {"torch": torch, "available": lambda: False, ACCELERATOR: standing_for, DEVICE: device_of}
    exec(compile(ast.fix_missing_locations(tree), "choice", "exec"), scope)
    assert scope["device"] in ("cpu", torch.device("cpu"))
    assert names.label(scope["device"]) == CHOICES[text]


_ROWS, _INDICES, _NUMBER = (torch.float32, (4, 4)), (torch.int64, (4, 4)), (torch.float32, ())
_INDEX, _ROW = (torch.int64, (4,)), (torch.float32, (4,))
_TWO = ("add", "sub", "mul", "div", "pow", "maximum", "eq", "lt", "ge", "matmul", "mm", "logical_and", "isclose", "cdist")
OPERATIONS: dict[str, tuple[Callable[..., Any], list[tuple[torch.dtype, tuple[int, ...]]]]] = {
    **{name: (getattr(torch, name), [_ROWS, _ROWS]) for name in _TWO},
    **{name: (getattr(torch.Tensor, name), [_ROWS, _ROWS]) for name in ("__add__", "__iadd__", "__mul__", "__matmul__", "add_")},
    "mul by a number": (torch.mul, [_ROWS, _NUMBER]),
    "number by number": (torch.mul, [_NUMBER, _NUMBER]),
    "addcmul": (torch.addcmul, [_ROWS, _ROWS, _ROWS]),
    "addmm": (torch.addmm, [_ROWS, _ROWS, _ROWS]),
    "linear": (F.linear, [_ROWS, _ROWS]),
    "embedding": (F.embedding, [_INDICES, _ROWS]),
    "gather": (lambda x, index: torch.gather(x, 1, index), [_ROWS, _INDICES]),
    "index_select": (lambda x, index: torch.index_select(x, 0, index), [_ROWS, _INDEX]),
    "masked_fill": (lambda x, mask: torch.masked_fill(x, mask, 0.0), [_ROWS, (torch.bool, (4, 4))]),
    "scatter_add": (lambda x, index, y: torch.scatter_add(x, 1, index, y), [_ROWS, _INDICES, _ROWS]),
    "cat": (lambda *given: torch.cat(given), [_ROWS, _ROWS]),
    "stack": (lambda *given: torch.stack(given), [_ROWS, _ROWS]),
    "where": (torch.where, [(torch.bool, (4, 4)), _ROWS, _ROWS]),
    "cross_entropy": (F.cross_entropy, [_ROWS, _INDEX]),
    "mse_loss": (F.mse_loss, [_ROWS, _ROWS]),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, [_ROWS, _ROWS]),
    "cosine_similarity": (F.cosine_similarity, [_ROWS, _ROWS]),
}


def _placed(count: int) -> Iterator[tuple[str, ...]]:
    """All ways to lay out so many tensors on two devices."""
    for number in range(1 << count):
        yield tuple("cuda" if number >> place & 1 else "cpu" for place in range(count))


class _Watched(torch.overrides.TorchFunctionMode):
    """Calls `meet` for the operations of a test."""

    def __init__(self, devices: Devices) -> None:
        super().__init__()
        self.devices = devices

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.devices.meet(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_refuse_what_torch_refuses(name: str) -> None:
    func, specs = OPERATIONS[name]
    for places in _placed(len(specs)):
        with FakeTensorMode():
            try:
                func(*[torch.empty(shape, dtype=dtype, device=place) for (dtype, shape), place in zip(specs, places, strict=True)])
                refused = False
            except RuntimeError as error:
                assert "same device" in str(error), error
                refused = True
        devices, told = Devices(), []
        devices._tell = told.append
        tensors = [torch.empty(shape, dtype=dtype, device="meta") for dtype, shape in specs]
        for number, (tensor, place) in enumerate(zip(tensors, places, strict=True)):
            tensor.__dict__[PLACED] = Placement(place, "empty", number)
        with _Watched(devices):
            func(*tensors)
        assert bool(told) == refused, places
