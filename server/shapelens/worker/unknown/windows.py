"""Windows of data of which nobody knows where they begin (rewrite/windows.py)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import unknown_sizes


def window(lower: Any, upper: Any, length: Any) -> slice:
    """`slice(lower, upper)`; where only data has its bounds, the first window of that length, as all of them are shaped alike."""
    if (_is_unknown(lower) or _is_unknown(upper)) and isinstance(length, int) and length > 0 and not unknown_sizes.is_unknown(length):
        return slice(0, length)
    return slice(lower, upper)


def _is_unknown(bound: Any) -> bool:
    if isinstance(bound, Tensor):
        with torch._C.DisableTorchFunction():
            return bound.is_meta and not bound.dim()
    return isinstance(bound, int) and unknown_sizes.is_unknown(bound)
