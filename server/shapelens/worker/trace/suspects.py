"""The suspects of a mismatch: the operations that gave the failed one its arguments, nearest first.

An operation is often wrong long before a shape does not fit: a `transpose` of the wrong dims shows up at the next addition. Suspects are
those that rearrange, join, split or reduce dims, and layers that set a size; elementwise ones pass their shape on.
"""

from __future__ import annotations

import sys
from collections import deque
from types import FrameType, TracebackType
from typing import Callable, Deque, Iterable, List, Optional, Set, Tuple

import torch

from ...protocol import Suspect
from .layer_inputs import size_setter
from .provenance import Derivation, known_sizes, tensors_in
from .recorder import Recorder
from .value_summary import LAYER, ORIGIN

MOST_SUSPECTS = 16
OWNED = -2  # in the place of a site: what a module of the user's own returned
MOST_NODES = 400  # looked at

# The operations whose arguments decide on shapes, by the name that torch gives them.
_NAMES = """
    view reshape permute transpose t swapaxes swapdims movedim moveaxis flatten unflatten squeeze unsqueeze expand repeat repeat_interleave
    cat concat concatenate stack hstack vstack chunk split tensor_split split_with_sizes unbind narrow select index_select gather
    sum mean amax amin max min prod std var norm logsumexp argmax argmin cumsum softmax log_softmax
    matmul mm bmm einsum tensordot outer __matmul__ __rmatmul__ fold unfold pad roll flip
    zeros ones rand randn empty full arange linspace
"""
REARRANGING = frozenset(_NAMES.split())


def suspects_of(tensors: Iterable[torch.Tensor], recorder: Recorder, ignore: Optional[int] = None) -> List[Suspect]:
    """The operations of user code on the way to these tensors, breadth first; in the end those at places where something did not fit.

    `ignore`: the index of a layer that is none.
    """
    with torch._C.DisableTorchFunction():
        nodes: List[Optional[Derivation]] = [tensor.__dict__.get(ORIGIN) for tensor in tensors]
    waiting: Deque[Tuple[Derivation, bool]] = deque((node, False) for node in nodes if node is not None)
    known: Set[int] = {id(node) for node, _ in waiting}
    places: Set[Tuple[int, Optional[int]]] = set()
    found: List[Suspect] = []
    for _ in range(MOST_NODES):
        is_full = len(found) >= MOST_SUSPECTS
        if not waiting or (is_full and not recorder.failed):
            break
        node, behind = waiting.popleft()
        place = node.site, node.layer
        is_left_out = is_full and (node.site < 0 or recorder.span_of(node.site) not in recorder.failed)
        if not is_left_out and place not in places and _decides(node) and (node.layer is None or node.layer != ignore):
            places.add(place)
            found.append(_suspect(node, recorder, behind))
        if not is_full and node.owner is not None and (OWNED, node.owner) not in places:
            places.add((OWNED, node.owner))
            found.append(Suspect("", None, [], list(node.result), node.owner, behind=behind))
        behind = behind or (node.module is not None and _decides(node))
        for parent, _ in node.parents:
            if parent is not None and id(parent) not in known:
                known.add(id(parent))
                waiting.append((parent, behind))
    return found


def _suspect(node: Derivation, recorder: Recorder, behind: bool) -> Suspect:
    shape = known_sizes(node.parents[0][1]) if node.parents else []
    span = recorder.span_of(node.site) if node.site >= 0 else None
    return Suspect(node.operation, span, shape, known_sizes(node.result), node.layer, behind=behind)


def _decides(node: Derivation) -> bool:
    """True if the arguments of an operation, or of a layer's constructor, decide on the shape of the result."""
    if node.module is None:
        return node.site >= 0 and node.operation in REARRANGING
    rank = len(node.result)
    return any(size_setter(node.module, dim, rank) for dim in range(rank))


def modules_running(traceback: Optional[TracebackType], is_user_code: Callable[[FrameType], bool]) -> List[int]:
    """The layer indices of the user's modules whose methods run, or ran when an exception was raised, innermost first."""
    frames: List[FrameType] = []
    while traceback is not None:
        frames.insert(0, traceback.tb_frame)
        traceback = traceback.tb_next
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    found: List[int] = []
    for each in filter(is_user_code, frames):
        owner = each.f_locals.get("self")
        index = owner.__dict__.get(LAYER) if isinstance(owner, torch.nn.Module) else None
        if index is not None and index not in found:
            found.append(index)
    return found


def tensors_of(traceback: Optional[TracebackType], is_user_code: Callable[[FrameType], bool]) -> List[torch.Tensor]:
    """The tensors in the variables of the innermost user frame that an exception passed: what an assertion there can have been about."""
    inner: Optional[FrameType] = None
    while traceback is not None:
        if is_user_code(traceback.tb_frame):
            inner = traceback.tb_frame
        traceback = traceback.tb_next
    return [tensor for value in inner.f_locals.values() for tensor in tensors_in(value)][::-1] if inner is not None else []
