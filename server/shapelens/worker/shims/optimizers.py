"""Optimizers step as they do, without what tells the compiler to step aside: that would import the whole of dynamo, a second or more."""

from __future__ import annotations

import inspect
from typing import Any, Callable, List

import torch

from ..trace.tape import tape
from .compilers import Replacement


def _plain(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that only does what it says, outside of any graph."""

    def stepping(self: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            result = step(self, *args, **kwargs)
        tape.stepped(self)
        return result

    stepping.hooked = True  # type: ignore[attr-defined]  # Else each optimizer that is made would wrap it for the profiler.
    return stepping


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run."""
    out: List[Replacement] = []
    for cls in vars(torch.optim).values():
        step = vars(cls).get("step") if isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer) else None
        plain = inspect.unwrap(step) if step is not None else None
        if plain is not None and plain is not step and cls is not torch.optim.LBFGS:
            out.append((cls, "step", _plain(plain)))
    return out
