"""Runs of an example with other sizes, for the names of its dims (dim_names.py): which sizes to try, and what each evaluation saw."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Callable, Dict, FrozenSet, List, Optional

from ...protocol import Mismatch, Remark, Value
from ..trace.dim_names import Sizes, name_key, steps
from ..trace.recorder import Seen
from ..unknown.conditions import Place

ROUND = 4  # Of a size that is a multiple of this, all that is tried first is one too.


class Sight:
    """What one evaluation of an example saw: by site, and by layer."""

    def __init__(self, sites: Dict[int, Seen], layers: Dict[int, Seen], sizes: Sizes, end: Any = None) -> None:
        self.sites = sites
        self.layers = layers
        self.sizes = sizes
        self.end = end  # where an exception ended it
        self.refused: List[List[Value]] = []  # what failed operations were given
        self.remarks: List[Remark] = []
        self.turned: FrozenSet[Place] = frozenset()  # the conditions on data that were turned
        self.other_path = False  # the other path was looked at too
        self.paths: List[Place] = []  # the conditions that were turned one by one as well


def probes(sight: Sight, probe: Callable[[Sizes], Optional[Sight]], *, any_size: bool) -> List[Sight]:
    """One run for each name with that name alone changed, and one with all of them changed; [] where no size can be changed.

    All of these keep the powers of two in a size, as whoever gave it may have had reasons. any_size: nobody did, and one more run has sizes
    without them, if the model can take that: a formula has to hold for these too, where sizes may be rounded up on the way.

    `probe(sizes)` evaluates the example with these sizes; it gives None where that goes another way than the run did. A name whose size
    cannot be changed is in none of the runs' sizes: nothing is said to follow from it, and what follows from the others still is.
    """
    found: List[Sight] = []
    changed: Sizes = {}
    for name, size in sight.sizes.items():
        for other in steps(size):
            seen = probe({**sight.sizes, name: other})
            if seen is not None:
                # Together with the others each name gets a third size where one is left, so that one name alone is checked too.
                changed[name] = other
                found.append(seen)
                break
    together: Sizes = {}
    for name in changed:
        size = sight.sizes[name]
        left = [other for other in steps(size) if (other > size) == (changed[name] > size) and other != changed[name]]
        together[name] = left[0] if left else changed[name]
    last = (probe({**sight.sizes, **together}) or probe({**sight.sizes, **changed})) if changed else None
    if last is None:
        return []
    rounded = {name: sight.sizes[name] + 1 for name in changed if sight.sizes[name] % ROUND == 0}
    odd = probe({**sight.sizes, **rounded}) if rounded and any_size else None
    runs = [*found, last, *([odd] if odd is not None else [])]
    for seen in runs:
        seen.sizes = {name: seen.sizes[name] for name in changed}
    return runs


def named_calls(number: int, others: List[Sight], sizes: List[Sizes], seen: Seen) -> Any:
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


def as_seen(number: int, seen: Seen) -> Any:
    """The pairs of a layer, without names."""
    return named_calls(number, [], [], seen)


def add_other_path(seen: Dict[int, Seen], elsewhere: Dict[int, Seen]) -> None:
    """Add what another evaluation saw, in which conditions on data went the other way: sizes that differ become unknown."""
    for number, other in elsewhere.items():
        own = seen.get(number)
        if own is None:
            seen[number] = other
        elif own.sequence[: len(other.sequence)] != other.sequence[: len(own.sequence)]:
            seen[number] = merged = Seen()
            for first, second in zip_longest(own.sequence, other.sequence[: len(own.sequence)]):
                merged.add(first if second is None else common(first, second))
            merged.total = own.total


def common(first: Any, second: Any) -> Any:
    """What two keys have in common: a tensor's sizes that differ are None; the first key where they are of different kinds."""
    if first == second or not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) != len(second):
        return first
    if first[:1] == ("tensor",) and second[:1] == ("tensor",):
        if len(first[1]) != len(second[1]):
            return first
        shape = tuple([size if size == other else None for size, other in zip(first[1], second[1])])
        return first if shape == first[1] else ("tensor", shape, first[2], None) + first[4:]
    return tuple([common(part, other) for part, other in zip(first, second)])


def what(mismatch: Mismatch) -> Any:
    """What stays the same of a mismatch when free sizes change."""
    return mismatch.code, mismatch.span, mismatch.argument, mismatch.need
