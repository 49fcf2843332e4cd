"""The base of checks of torch calls: what they find, and where a tensor came from."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ..trace import provenance
from ..trace.value_summary import ORIGIN

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
plainly = torch._C.DisableTorchFunction

MOST_NODES = 400  # of the graph of origins that are looked at for one question


class OddCall(NamedTuple):
    """A call that a check found odd: the tensors that it is about, the dim of the first one, where one matters, and what else a remark says
    of it."""

    code: str
    tensors: Sequence[Tensor]
    dim: Optional[int] = None
    given: str = ""
    largest: Optional[int] = None


Check = Callable[[Args, Kwargs, Any], Optional[OddCall]]


def node_of(tensor: Tensor) -> Optional[provenance.Derivation]:
    return tensor.__dict__.get(ORIGIN)


def is_data(tensor: Tensor) -> bool:
    """True if a tensor follows from an input of the example, rather than from constants and parameters alone."""
    todo, done = [node_of(tensor)], 0
    seen: Set[int] = set()
    while todo and done < MOST_NODES:
        node = todo.pop()
        done += 1
        if node is provenance.INPUT:
            return True
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            if not node.parents and node.operation in _RANDOM:
                return True
            todo += [parent for parent, _ in node.parents]
    return False


_RANDOM = {"rand", "randn", "randint", "empty", "normal", "rand_like", "randn_like", "randint_like", "bernoulli"}
KEEPS_SHAPE = {"contiguous", "clone", "detach", "float", "to", "clamp"}
REARRANGES = KEEPS_SHAPE | {
    "view", "reshape", "flatten", "unflatten", "permute", "transpose", "movedim", "squeeze", "unsqueeze", "__getitem__",
}  # fmt: skip
# What gives a part of a tensor, or several of them in one: the numbers in it are the same.
PICKS = (REARRANGES - {"clamp", "float"}) | {
    "index_select", "stack", "cat", "unbind", "split", "chunk", "expand", "repeat", "long", "narrow", "gather",
}  # fmt: skip


def maker_of(tensor: Tensor, keeps: Set[str] = REARRANGES) -> Optional[provenance.Derivation]:
    """The operation that gave what a tensor holds; those that only arrange it anew (`keeps`) are passed over."""
    node = node_of(tensor)
    for _ in range(MOST_NODES):
        if node is None or node.operation not in keeps or not node.parents:
            return node
        node = node.parents[0][0]
    return None
