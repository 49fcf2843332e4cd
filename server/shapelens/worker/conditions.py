"""Conditions on data: their truth is not known, and a path is taken that goes on."""

from __future__ import annotations

import linecache
import os
import sys
from typing import Any, Dict, Tuple

import torch

from . import unknown

Tensor = torch.Tensor
MOST_TURNS = 64  # that a loop takes while its condition depends on data
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep

branches: Dict[Tuple[str, int], int] = {}  # (file, line) of a condition on data -> how often it was asked since this was cleared


def decide() -> bool:
    """The truth of data is not known: a path is taken that goes on.

    What code asserts is taken to hold (in libraries too, which are not rewritten), any other condition to be false; one that is asked for
    again and again, as by `while not done.all()`, becomes true in the end.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith((_HERE, _TORCH)) and frame.f_back is not None:
        frame = frame.f_back
    place = frame.f_code.co_filename, frame.f_lineno
    if linecache.getline(*place).lstrip().startswith("assert"):
        return True
    branches[place] = branches.get(place, 0) + 1
    return (branches[place] > MOST_TURNS) is not unknown.state.other_path


def assumed(value: Any) -> Any:
    """An asserted value; True where it is data, so that its truth is not known."""
    with torch._C.DisableTorchFunction():
        return True if isinstance(value, Tensor) and value.is_meta else value
