"""Runs of an example with other sizes, for the names of its dims (dim_names.py): which sizes to try, and what each evaluation saw."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from ...protocol import Mismatch
from ..trace.dim_names import Sizes, steps
from .evaluated import Evaluated

ROUND = 4  # Of a size that is a multiple of this, all that is tried first is one too.


def probes(evaluated: Evaluated, probe: Callable[[Sizes], Optional[Evaluated]], *, any_size: bool) -> List[Evaluated]:
    """One run for each name with that name alone changed, and one with all of them changed; [] where no size can be changed.

    All of these keep the powers of two in a size, as whoever gave it may have had reasons. any_size: nobody did, and one more run has sizes
    without them, if the model can take that: a formula has to hold for these too, where sizes may be rounded up on the way.

    `probe(sizes)` evaluates the example with these sizes; it gives None where that goes another way than the run did. A name whose size
    cannot be changed is in none of the runs' sizes: nothing is said to follow from it, and what follows from the others still is.
    """
    found: List[Evaluated] = []
    changed: Sizes = {}
    for name, size in evaluated.sizes.items():
        for other in steps(size):
            seen = probe({**evaluated.sizes, name: other})
            if seen is not None:
                # Together with the others each name gets a third size where one is left, so that one name alone is checked too.
                changed[name] = other
                found.append(seen)
                break
    together: Sizes = {}
    for name in changed:
        size = evaluated.sizes[name]
        left = [other for other in steps(size) if (other > size) == (changed[name] > size) and other != changed[name]]
        together[name] = left[0] if left else changed[name]
    last = (probe({**evaluated.sizes, **together}) or probe({**evaluated.sizes, **changed})) if changed else None
    if last is None:
        return []
    rounded = {name: evaluated.sizes[name] + 1 for name in changed if evaluated.sizes[name] % ROUND == 0}
    odd = probe({**evaluated.sizes, **rounded}) if rounded and any_size else None
    runs = [*found, last, *([odd] if odd is not None else [])]
    for seen in runs:
        seen.sizes = {name: seen.sizes[name] for name in changed}
    return runs


def apart(sizes: Sizes) -> Optional[Sizes]:
    """Other sizes for all names at once, by which one more run tells the names apart; None where there are not enough of them."""
    found: Sizes = {}
    for name, size in sizes.items():
        taken = [found[other] for other in found if sizes[other] == size]
        left = [other for other in steps(size) if other not in taken]
        if not left:
            return None
        found[name] = left[len(found) % len(left)]
    return found


def invariant_part(mismatch: Mismatch) -> Any:
    """Returns the part of a mismatch that stays the same when free sizes change."""
    return mismatch.code, mismatch.span, mismatch.argument, mismatch.need
