"""The values at hand when an exception was raised: those of the names in the frames that it passed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Iterator, List, Optional

from ..sandbox.exceptions import traceback_of
from . import unknown_sizes

MOST_FRAMES = 8  # the innermost ones
MOST_ITEMS = 8  # of a list, tuple or dict among the values
# What Python and numpy raise where a value that only data has is taken for a key, an index, a size or a divisor.
ON_DATA = (LookupError, ValueError, ArithmeticError, RuntimeError, AssertionError, StopIteration, UnboundLocalError)


def values_at_hand(error: BaseException) -> Iterator[Any]:
    """The values of the names in the innermost frames of an exception, with the items of their lists, tuples and dicts.

    At module level those of the statement alone.
    """
    frames: List[TracebackType] = []
    traceback: Optional[TracebackType] = traceback_of(error)
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(frames[-MOST_FRAMES:]):
        frame = entry.tb_frame
        if frame.f_code.co_name == "<module>":
            values = [frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals]
        else:
            values = list(frame.f_locals.values())
        for value in values:
            yield value
            if type(value) in (list, tuple):
                yield from value[:MOST_ITEMS]
            elif type(value) is dict:
                yield from list(value.values())[:MOST_ITEMS]


def rests_on_data(error: BaseException) -> bool:
    """True if an exception of Python's or numpy's may come from a number or array that only data has."""
    if not isinstance(error, ON_DATA):
        return False
    return any(_is_data(value) for value in (*error.args, *values_at_hand(error)))


def _is_data(value: Any) -> bool:
    kind = type(value)
    if kind in (unknown_sizes.UnknownInt, unknown_sizes.UnknownFloat) or (kind is int and unknown_sizes.is_unknown(value)):
        return True
    return bool(kind.__dict__.get("_shapelens_data"))
