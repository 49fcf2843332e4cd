"""Which classes come into question for a parameter, by what the code does with it."""

from __future__ import annotations

import inspect
import sys

import torch

from ..code.sources import index_of, initialiser, methods
from ..code.uses import Uses
from .name_priors import TEXTUAL, prior_of


def can_be_called_as(cls: type, uses: Uses) -> bool:
    """True if a class can be called as the code calls the parameter."""
    position = initialiser(cls)
    if position is None or (position[0] is torch.nn.Module and any(count or keywords for count, keywords in uses.calls)):
        return False  # Its signature takes anything, but it takes nothing.
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        return False
    for count, keywords in uses.calls[:3]:
        try:
            signature.bind(*[None] * count, **{keyword: None for keyword in keywords if keyword != "**"})
        except TypeError:
            return False
    return True


def is_simple(cls: type) -> bool:
    """True if a class is one of somebody's own that is built from numbers and texts."""
    if cls.__module__.partition(".")[0] in {"torch", "numpy", *getattr(sys, "stdlib_module_names", ("builtins",))}:
        return False
    try:
        required = [item for item in inspect.signature(cls).parameters.values() if item.default is item.empty]
    except (TypeError, ValueError):
        return False
    return len(required) <= 3 and all(
        item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        and (prior_of(item.name) is not None or TEXTUAL.search(item.name) or item.annotation in (int, float, bool, str))
        for item in required
    )


def has_attributes_of(cls: type, uses: Uses) -> bool:
    """True if a class's objects have the attributes that the code asks for."""
    own = {name for _, node in methods(cls) for name in index_of(node).stored}
    return all("self." + part in own or hasattr(cls, part) for part in uses.parts if part not in uses.optional)
