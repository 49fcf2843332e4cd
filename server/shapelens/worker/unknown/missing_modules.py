"""Modules of a package that could not be imported, in the containers of torch, which take nothing but modules."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from .stand_ins import is_absent


class MissingModule(torch.nn.Module):
    """A stand-in in a container for a module that could not be imported: nothing is known of its results."""

    def __init__(self, stand_in: Any) -> None:
        super().__init__()
        self.__dict__["stand_in"] = stand_in

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.stand_in(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return getattr(self.stand_in, name)


def replacements() -> List[Tuple[Any, str, Any]]:
    """The method by which `Sequential`, `ModuleList` and `ModuleDict` take a module."""
    add_module = torch.nn.Module.add_module

    def added(self: Any, name: str, module: Any) -> None:
        add_module(self, name, MissingModule(module) if is_absent(module) else module)

    return [(torch.nn.Module, "add_module", added)]
