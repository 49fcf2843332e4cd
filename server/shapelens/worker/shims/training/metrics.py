"""torchmetrics: metrics of classification that are made as before its version 0.11, without the task that they are of since then; and
those that refuse to be made without a package that is not installed, in whose place is one that gives what they are documented to give.

How many classes a target holds is not known, so that none of them holds too many. Texts are not compared: that takes a turn of a loop
for each pair of letters in them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any, Callable, List

import torch

from ...meta.mode import made
from ..compilers import Replacement


class _OfUnknownTask(torch.nn.Module):
    """A metric that gives one number, of whatever fits together."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The metric of a batch."""
        self.update(*args, **kwargs)
        return made([], torch.float32)

    def compute(self) -> Any:
        """The metric of all batches."""
        return made([], torch.float32)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept."""
        _compare(*args, **kwargs)

    def reset(self) -> None:
        """Nothing was kept."""

    def clone(self, *args: Any, **kwargs: Any) -> "_OfUnknownTask":
        """Another one."""
        return type(self)()


def _compare(*args: Any, **kwargs: Any) -> None:
    """Compare predictions with targets, as metrics do in the end: what fails there is told at the line that has called the metric."""
    tensors = [each for each in [*args, *kwargs.values()][:2] if isinstance(each, torch.Tensor)]
    if len(tensors) == 2 and tensors[0].dim() == tensors[1].dim():
        torch.eq(*tensors)


class _OfDetections(_OfUnknownTask):
    """In the place of `MeanAveragePrecision`.

    Source of the names: https://lightning.ai/docs/torchmetrics/stable/detection/mean_average_precision.html
    """

    def compute(self) -> Any:
        """The metrics of all batches."""
        names = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large", "mar_1", "mar_10", "mar_100", "mar_small", "mar_medium"]
        return {name: made([], torch.float32) for name in [*names, "mar_large", "map_per_class", "mar_100_per_class"]}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The metrics of a batch."""
        return self.compute()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept."""


def refusing(module: ModuleType) -> List[Replacement]:
    """The replacements in the packages of `torchmetrics` whose metrics need other packages."""
    initialisers = [(cls, cls.__dict__.get("__init__")) for cls in vars(module).values() if isinstance(cls, type)]
    refuse = [(cls, function) for cls, function in initialisers if isinstance(function, FunctionType) and _names_a_missing_one(function)]
    return [(cls, "__init__", _or_stand_in(function, cls)) for cls, function in refuse]


def _names_a_missing_one(function: FunctionType) -> bool:
    return "ModuleNotFoundError" in function.__code__.co_names


def _or_stand_in(initialiser: Callable[..., None], cls: type) -> Callable[..., None]:
    stand_in = _OfDetections if cls.__name__ == "MeanAveragePrecision" else _OfUnknownTask

    @functools.wraps(initialiser)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            initialiser(self, *args, **kwargs)
        except ModuleNotFoundError:
            self.__dict__.clear()
            self.__class__ = stand_in
            torch.nn.Module.__init__(self)

    return __init__


def classes(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchmetrics`."""
    out: List[Replacement] = []
    for cls in module.__dict__.values():
        make = cls.__dict__.get("__new__") if isinstance(cls, type) else None
        function = getattr(make, "__func__", make)
        if isinstance(function, FunctionType) and "task" in inspect.signature(function).parameters:
            out.append((cls, "__new__", staticmethod(_made_without_task(function))))
    for name, part in list(sys.modules.items()):
        if name.startswith(("torchmetrics.functional.classification.", "torchmetrics.classification.")):
            checks = [name for name, value in vars(part).items() if name.endswith(_CHECK) and isinstance(value, FunctionType)]
            out += [(part, name, _without_values(part.__dict__[name])) for name in checks]
        if name.startswith("torchmetrics.") and ".text." in name:
            out += [(part, name, replacement) for name, replacement in _OF_TEXTS.items() if name in vars(part)]
    return out


def _longer(prediction_tokens: List[str], reference_tokens: List[str]) -> int:
    """In the place of the edit distance, whose value nobody needs: what it can be at most."""
    return max(len(prediction_tokens), len(reference_tokens))


def _uncounted(
    preds: Any, target: Any, numerator: Any, denominator: Any, preds_len: Any, target_len: Any, *args: Any, **kwargs: Any
) -> Any:
    """In the place of the count of what texts have in common: the tensors that it is added to, as they are."""
    return preds_len, target_len


_OF_TEXTS = {"_edit_distance": _longer, "_bleu_score_update": _uncounted}


_CHECK = "_tensor_validation"  # what functions end with that look at predictions and targets
_OF_VALUES = "Detected"  # what their messages begin with that are about values


def _without_values(check: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(check)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return check(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            if "shape" in str(error):
                _compare(*args, **kwargs)
            if not str(error).startswith(_OF_VALUES):
                raise
        return None

    return checked


def _made_without_task(make: Callable[..., Any]) -> Callable[..., Any]:
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("compute_on_step", None)  # As before version 0.8.
        if args or "task" in kwargs:
            return make(cls, *args, **kwargs)
        return make(cls, task="multiclass", **kwargs) if kwargs.get("num_classes") else _OfUnknownTask()

    return __new__


def functions(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchmetrics.functional`."""
    return [
        (module, name, _called_without_task(function))
        for name, function in list(module.__dict__.items())
        if isinstance(function, FunctionType) and "task" in inspect.signature(function).parameters
    ]


def _called_without_task(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 or "task" in kwargs:
            return function(*args, **kwargs)
        if kwargs.get("num_classes"):
            return function(*args, task="multiclass", **kwargs)
        _compare(*args, **kwargs)
        return made([], torch.float32)

    return called
