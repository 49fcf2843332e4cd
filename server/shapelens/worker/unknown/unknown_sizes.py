"""Sizes and numbers that depend on data.

How many elements a mask selects is known to real data only. Such a size is the number `SIZE`, as a meta tensor may be of any size:
operations make other sizes of it (twice as many, one less), and all of those are recognised, as no size of a model comes near it.
So unknown sizes need no bookkeeping; they are shown as `?`, and an operation that fails on one says nothing about the code.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterable, Tuple

SIZE = 16_777_259  # A prime: what is computed from it keeps its distance from sizes that are powers of two or their multiples.
LARGEST_DIVISOR = 32
NEAR = 4096  # that padding and kernels add to it or take away


class State:
    """Of one example."""

    def __init__(self) -> None:
        self.lasting = False  # whether a definition holds an unknown size, so that each example may meet it
        self.met = False  # whether there was an unknown size; until there is, no number is taken for one
        self.other_path = False
        self.cut = False  # whether a loop over an unknown number of things ended early: what it gathered is of unknown length
        self.turns: Dict[Tuple[int, int], int] = {}  # of `while` loops since then, by line and frame


state = State()


def start(other_path: bool = False) -> None:
    """Forget the last example. `other_path`: conditions on data go the other way, and loops over unknown numbers take other turns."""
    state.met, state.cut = state.lasting, False
    state.other_path = other_path
    state.turns = {}


def few() -> int:
    """How many turns a loop over an unknown number of things takes: they are alike."""
    return FEW + 2 if state.other_path else FEW


def size(lasting: bool = False) -> int:
    """A size that depends on data. `lasting`: it may be kept from one example to the next, by a name of the file."""
    state.met = True
    state.lasting = state.lasting or lasting
    return SIZE


def is_unknown(number: Any) -> bool:
    """Whether a size or number was computed from an unknown one."""
    if type(number) is UnknownInt:
        return True
    if not state.met or not isinstance(number, int) or number < SIZE // LARGEST_DIVISOR - NEAR:
        return False
    for divisor in (1, 2, 3, 4, 8, 16, 32):
        off = number * divisor % SIZE
        if min(off, SIZE - off) <= NEAR * divisor:
            return True
    return False


def any_unknown(numbers: Iterable[Any]) -> bool:
    """Whether one of these numbers, or of the lists of numbers among them, is unknown."""
    if not state.met:
        return False
    return any(any_unknown(number) if isinstance(number, (tuple, list)) else is_unknown(number) for number in numbers)


def turns(steps: Any) -> Any:
    """The range of a `for`; a few turns of it where their number is unknown."""
    if not (state.met and isinstance(steps, range) and is_unknown(len(steps))):
        return steps
    state.cut = True
    return steps[: few()]


def turn(line: int) -> bool:
    """Whether the `while` of a line may take another turn: where sizes are unknown its condition may never become false."""
    if not state.met:
        return True
    loop = line, id(sys._getframe(1))
    state.turns[loop] = state.turns.get(loop, 0) + 1
    if state.turns[loop] <= MOST_WHILE + few():
        return True
    state.cut = True
    del state.turns[loop]
    return False


FEW = 5
MOST_WHILE = 120


class _Unknown:
    """Comparing a number that depends on data is a condition on data."""

    decide: Callable[[], bool] = staticmethod(lambda: False)  # set by data_dependent.py

    def __lt__(self, other: Any) -> bool:
        return self.decide()

    __le__ = __gt__ = __ge__ = __eq__ = __lt__

    def __ne__(self, other: object) -> bool:
        return not self.decide()

    def __bool__(self) -> bool:
        return self.decide()


class UnknownInt(_Unknown, int):
    """An integer that depends on data, as `.item()` gives."""

    __hash__ = int.__hash__


class UnknownFloat(_Unknown, float):
    """A float that depends on data."""

    __hash__ = float.__hash__


def _carried_along(cls: Any, plain: Any, names: str) -> None:
    """Arithmetic with an unknown number gives an unknown number."""

    def carried(name: str) -> Any:
        compute = getattr(plain, name)

        def operator(self: Any, *others: Any) -> Any:
            result = compute(self, *[plain(other) if isinstance(other, cls) else other for other in others])
            return cls(result) if type(result) is plain else result

        return operator

    for name in names.split():
        setattr(cls, name, carried(name))


_ARITHMETIC = "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __floordiv__ __rfloordiv__ __neg__ __pos__ __abs__"
_carried_along(UnknownInt, int, _ARITHMETIC)
_carried_along(UnknownFloat, float, _ARITHMETIC + " __truediv__ __rtruediv__ __pow__")
