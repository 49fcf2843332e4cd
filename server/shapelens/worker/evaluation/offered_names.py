"""Names that an example may use where the file itself has none of that name: `torch`, `nn`, `partial`, `unknown`, `batches(…)`, ….

train(Net(), batches((f32[B:2, 1, 28, 28], i64[B])), unknown, "cpu")
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Dict, Iterator

import torch

from ..unknown.stand_ins import absent
from ..unknown.unknown_sizes import size


class Batches:
    """A loader that gives these batches. How many there are of them, and of samples, is not known."""

    def __init__(self, *batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)

    def __len__(self) -> int:
        return size(lasting=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent("batches.%s" % name, "definition")


def offered() -> Dict[str, Any]:
    """The values of these names, but for `unknown`."""
    return {"torch": torch, "nn": torch.nn, "SimpleNamespace": SimpleNamespace, "partial": partial, "batches": Batches}


def unknown() -> Any:
    """A value of which nothing is known: what is computed from it is unknown, and nothing is wrong with it."""
    return absent("unknown", "definition")
