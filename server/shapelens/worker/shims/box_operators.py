"""torchvision's operators on boxes: how many of them are kept depends on data, and no operator has to be compiled to know a shape."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, List

import torch

from .compilers import Replacement, nothing

_CHECK = "_assert_has_ops"  # raises where torchvision was built without its operators, whose shapes are known all the same


def replacements(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchvision.ops`."""
    parts = [part for name, part in list(sys.modules.items()) if name.startswith("torchvision.ops.") and isinstance(part, ModuleType)]
    out: List[Replacement] = [(part, _CHECK, nothing) for part in parts if _CHECK in vars(part)]
    out += [(part, name, _kept) for part in (module, *parts) for name in ("nms", "batched_nms") if name in vars(part)]
    return out


def _kept(boxes: torch.Tensor, scores: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """In the place of `nms` and `batched_nms`: the indices of the boxes that are kept, i64[?].

    boxes: f32[N, 4], scores: f32[N]. Raises ValueError where they are shaped otherwise, as the operator does.
    """
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise ValueError("boxes should be a 2d tensor with 4 elements in dimension 1, got %s" % list(boxes.shape))
    if scores.dim() != 1 or len(scores) != len(boxes):
        given = len(boxes), list(scores.shape)
        raise ValueError("boxes and scores should have same number of elements in dimension 0, got %d and %s" % given)
    return torch.nonzero(scores > 0, as_tuple=True)[0]
