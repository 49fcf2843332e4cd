"""Further evaluations of an example in which conditions on data go the other way: what only runs there is shown too, and a size that is
another one there is unknown. What fails there is not reported, as it may be there to fail."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Callable, Dict, List, Tuple

from ..sandbox.limits import TooLong
from ..trace.recorder import SeenValues
from ..unknown.conditions import MOST_PATHS, ConditionPlace, branches, gave_up
from .evaluation import NONE_TURNED, Evaluation


def explore(evaluation: Evaluation, evaluate: Callable[[], None], alone: List[ConditionPlace]) -> bool:
    """Add to what was seen of an example what its other paths show: all conditions turned at once, then each of `alone` by itself.

    `evaluate` evaluates the example. A limit of time ends the exploration, not the example, which has run to its end: nothing is added
    then, and the result is False. Raises what ends the run.
    """
    calls, seen, turned = evaluation.calls, evaluation.recorder.seen, branches.turned
    is_user_file = evaluation.frames.is_user_file

    def follow(conditions: Any, *, other_path: bool) -> bool:
        """Take another path; whether that is one to take."""
        evaluation.watch_anew()
        error = evaluation.run(lambda: evaluation.start(calls.example, conditions, other_path=other_path), evaluate)
        return not gave_up(error, evaluation.calls.mismatches, is_user_file)

    paths: List[Tuple[Dict[int, SeenValues], Dict[int, SeenValues]]] = []  # what they show, by site and by layer

    def keep() -> None:
        paths.append((evaluation.recorder.seen, evaluation.calls.seen))

    with evaluation.aside():
        try:
            again = NONE_TURNED
            for _ in range(MOST_PATHS):
                goes_on = follow(again, other_path=True)
                last = branches.last(is_user_file)
                if goes_on or not last:
                    break
                again = again | last  # That condition guards what is there to fail: what comes after it is to be seen too.
            keep()
            for place in alone:
                if follow(turned ^ {place}, other_path=False):
                    keep()
        except TooLong:
            return False
    for sites, layers in paths:
        _add(seen, sites)
        _add(calls.seen, layers)
    return True


def _add(seen: Dict[int, SeenValues], elsewhere: Dict[int, SeenValues]) -> None:
    """Add what another evaluation saw, in which conditions on data went the other way: sizes that differ become unknown."""
    for number, other in elsewhere.items():
        own = seen.get(number)
        if own is None:
            seen[number] = other
        elif own.sequence[: len(other.sequence)] != other.sequence[: len(own.sequence)]:
            seen[number] = merged = SeenValues()
            for first, second in zip_longest(own.sequence, other.sequence[: len(own.sequence)]):
                merged.add(first if second is None else _common(first, second))
            merged.total = own.total


def _common(first: Any, second: Any) -> Any:
    """Returns the common part of two keys: a tensor's sizes that differ are None; the first key where they are of different kinds."""
    if first == second or not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) != len(second):
        return first
    if first[:1] == second[:1] and first[0] in ("tensor", "array"):
        if len(first[1]) != len(second[1]):
            return first
        shape = tuple([size if size == other else None for size, other in zip(first[1], second[1])])
        return first if shape == first[1] else (first[0], shape, first[2]) + (None,) * (len(first) > 3) + first[4:]
    return tuple([_common(part, other) for part, other in zip(first, second)])
