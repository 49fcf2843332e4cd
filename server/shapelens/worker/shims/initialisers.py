"""`torch.nn.init` for free: parameters are data, so that filling them changes nothing. What eager would refuse is refused."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.nn import init
from torch.nn.modules import batchnorm

from ..meta.mode import become_meta
from ..unknown.stand_ins import is_absent

# Initialiser -> (fewest, most) dims, as its documentation and its error message say.
DIMS = {
    "xavier_uniform_": (2, 99), "xavier_normal_": (2, 99), "kaiming_uniform_": (2, 99), "kaiming_normal_": (2, 99), "orthogonal_": (2, 99),
    "eye_": (2, 2), "dirac_": (3, 5), "sparse_": (2, 2),
}  # fmt: skip
MESSAGES = {
    "orthogonal_": "Only tensors with 2 or more dimensions are supported",
    "eye_": "Only tensors with 2 dimensions are supported",
    "dirac_": "Only tensors with 3, 4, or 5 dimensions are supported",
    "sparse_": "Only tensors with 2 dimensions are supported",
}
NO_FAN = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"


def _free(name: str) -> Callable[..., Any]:
    def initialiser(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if is_absent(tensor):
            return tensor
        fewest, most = DIMS.get(name, (0, 99))
        with torch._C.DisableTorchFunction():
            if not fewest <= tensor.dim() <= most:
                raise ValueError(MESSAGES.get(name, NO_FAN))
            if not tensor.is_meta:
                become_meta(tensor)
        return tensor

    initialiser.__name__ = initialiser.__qualname__ = name
    return initialiser


def _stay(layer: torch.nn.Module) -> None:
    """Leaves the counters of a normalisation as they begin, and values are never added to it."""


def make_free() -> None:
    """Replace the initialisers, for good and before any user code is imported: many files import them by name."""
    batchnorm._NormBase.reset_running_stats = _stay  # type: ignore[method-assign, assignment]
    for name in dir(init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(init, name, _free(name))
    # Old names without the underscore, kept by torch for old code.
    for name in (
        "uniform",
        "normal",
        "constant",
        "eye",
        "dirac",
        "xavier_uniform",
        "xavier_normal",
        "kaiming_uniform",
        "kaiming_normal",
        "orthogonal",
    ):
        if hasattr(init, name) and callable(getattr(init, name)):
            setattr(init, name, _free(name + "_"))
