"""Computes what a model takes where each of its repeated blocks is under `torch.utils.checkpoint`, though its code does not say so.

Blocks are modules with layers inside of which their parent has several of one class: those of a `ModuleList` or `Sequential`, mostly.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Set, Tuple

import torch

from ..shims.checkpointing import checkpoint

_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)


class BlockCheckpoints:
    """Calls modules; those that are repeated blocks of a model in a checkpoint. counts: how many there are, by class."""

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self._blocks: Set[int] = set()
        self._is_inside = False

    def find(self, model: Any) -> None:
        """Take in the blocks of a model, outer ones alone."""
        children = [child for child in model.children() if child is not None]
        for child in children:
            cls = type(child)
            is_repeated = sum(type(other) is cls for other in children) > 1 and cls not in _CONTAINERS
            if not is_repeated or next(child.children(), None) is None:
                self.find(child)
            elif id(child) not in self._blocks:
                self._blocks.add(id(child))
                self.counts[cls.__name__] = self.counts.get(cls.__name__, 0) + 1

    def call(self, original: Callable[..., Any], module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Call a module by `original`."""
        if self._is_inside or id(module) not in self._blocks:
            return original(module, *args, **kwargs)
        self._is_inside = True
        try:
            return checkpoint(original, module, *args, **kwargs)
        finally:
            self._is_inside = False
