"""The record of one evaluation of an example, and its end."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional

from ...protocol import Remark, Value
from ..calls.module_calls import Calls
from ..trace.dim_names import Sizes, name_key
from ..trace.recorder import SeenValues
from ..unknown.conditions import ConditionPlace


class Evaluated:
    """The record of one evaluation of an example: by site, and by layer of `calls`."""

    def __init__(self, sites: Dict[int, SeenValues], calls: Calls, sizes: Optional[Sizes] = None, end: Any = None) -> None:
        self.sites = sites
        self.calls = calls
        self.layers: Dict[int, SeenValues] = calls.seen
        self.sizes: Sizes = sizes or {}  # of the dims that have names
        self.end = end  # where an exception ended it
        self.code: Any = None  # of the example, to evaluate it again with other sizes
        self.example = calls.example  # its number in the trace
        self.first_layer = 0  # the index in the trace of the first of its layers
        self.refused: List[List[Value]] = []  # what failed operations were given
        self.unknown: FrozenSet[int] = frozenset()  # sites of tensors of which nothing is known, as a package is missing
        self.remarks: List[Remark] = []
        self.may_mix = False  # whether operations ran that may mix the samples of a batch
        self.turned: FrozenSet[ConditionPlace] = frozenset()  # the conditions on data that were turned
        self.is_explored = False  # whether its other paths were looked at
        self.turned_alone: List[ConditionPlace] = []  # the conditions that were turned one by one for that


def named_calls(number: int, others: List[Evaluated], sizes: List[Sizes], seen: SeenValues) -> Any:
    """Distinct (inputs, output) pairs of a layer with their names, and how often each came."""
    probed = [other.layers.get(number) for other in others]
    comparable = bool(probed) and all(other is not None and other.total == seen.total for other in probed)
    named: Dict[Any, Any] = {}
    if comparable:
        for keys in zip(seen.sequence, *[other.sequence for other in probed if other is not None]):
            if keys[0] not in named and len({len(key[0]) for key in keys}) == 1:
                inputs = tuple([name_key(parts, sizes) for parts in zip(*[key[0] for key in keys])])
                named[keys[0]] = (inputs, name_key([key[1] for key in keys], sizes))
    return [((key, named.get(key)), count) for key, count in seen.counts.items()]


def as_seen(number: int, seen: SeenValues) -> Any:
    """The pairs of a layer, without names."""
    return named_calls(number, [], [], seen)
