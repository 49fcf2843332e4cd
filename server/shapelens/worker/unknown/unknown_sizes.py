"""Sizes and numbers that depend on data.

How many elements a mask selects is known to real data only. Such a size is the number `SIZE`, as a meta tensor may be of any size:
operations make other sizes of it (twice as many, one less), and all of those are recognised, as no size of a model comes near it.
So unknown sizes need no bookkeeping; they are shown as `?`, and an operation that fails on one says nothing about the code.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

SIZE = 16_777_259  # A prime: what is computed from it keeps its distance from sizes that are powers of two or their multiples.
LARGEST_DIVISOR = 32
PRODUCT = 1 << 34  # No size of a model is as large: it is a product of unknown ones.
COUNT = 1_129  # of what is listed in the place of an unknown number of things: a prime that no model has among its sizes
A_FEW_MORE = 6  # that a vocabulary has for padding, unknown words and the like
LETTERS = 6 * COUNT - 1  # of a text of that many words, each of five letters
# Letters of a text of so many lines that is made up (shims/file_access.py), and of what is customarily split off for training and tests.
LETTERS_OF_TEXT = 7 * COUNT - 6
OF_TEXT = frozenset(
    whole + extra
    for share in (10, 9, 8, 2, 1)
    for whole in (share * LETTERS_OF_TEXT // 10, share * COUNT // 10 * 6, share * COUNT // 10 * 6 + COUNT - 5)
    for extra in range(-3, 5)
)
STAND_INS: Set[type] = set()  # the types of what stands in for a value of which nothing is known; as a size it is unknown
OWN_SIZES = "_shapelens_unsure"  # an attribute of classes whose models have sizes that nobody knows
SHARES = (10, 100)  # that data is split into, in percent: a number of samples for training, say
ROUNDED = 4  # that such a share is off at most
NEAR = 4096  # that padding and kernels add to it or take away
# Samples from one frame of a spectrogram to the next; how many frames they make of an unknown number of samples.
HOPS = (64, 80, 100, 110, 128, 160, 200, 220, 240, 256, 275, 300, 320, 400, 441, 480, 512, 600, 800, 1024)
FRAMES = frozenset(SIZE // hop + 1 for hop in HOPS)  # The prime is just above a power of two: these are none.


class UnknownsOfExample:
    """Of one example."""

    def __init__(self) -> None:
        self.lasting = False  # whether it may have left an unknown size with something that a later one uses
        self.met = False  # whether there was an unknown size; until there is, no number is taken for one
        self.text = False  # whether a text was made up
        self.other_path = False
        self.cut = False  # whether a loop over an unknown number of things ended early: what it gathered is of unknown length
        self.ended_early = 0  # how many iterators have ended before their last item, as all of their items are alike
        self.partial: Dict[int, Any] = {}  # by id: what is only a part of what a loop would have gathered, or gone through
        self.turns: Dict[Tuple[CodeType, int], List[_WhileLoop]] = {}  # of `while` loops since then, by function and line
        self.in_library = False  # whether a library's module runs on sizes that nobody knows
        self.silent = 0  # mismatches of which nothing was said for that reason


class UnknownsOfDefinitions:
    """Of what is loaded."""

    def __init__(self) -> None:
        self.held = False  # whether a name of it may hold an unknown size, so that each example may meet it
        self.made = 0  # how many unknown sizes, and stand-ins for what may be one, were made so far


state = UnknownsOfExample()
of_definitions = UnknownsOfDefinitions()


def start(other_path: bool = False) -> None:
    """Forget the last example. `other_path`: conditions on data go the other way, and loops over unknown numbers take other turns."""
    state.met, state.cut = may_be_held(), False
    state.partial = {}
    state.other_path = other_path
    state.turns = {}
    state.in_library = False
    state.silent = 0


def few() -> int:
    """Returns the number of turns of a loop over an unknown number of things: they are alike."""
    return FEW + 2 if state.other_path else FEW


def start_run(held: bool) -> None:
    """Forget what the examples of the last run left behind. `held`: a name of what is loaded may hold an unknown size."""
    of_definitions.held = state.met = held
    state.lasting = False


def start_definition() -> Tuple[bool, int]:
    """A definition is executed, maybe as an example asks for it: to be handed to `end_definition`."""
    before = state.met, of_definitions.made
    state.met = may_be_held()
    return before


def end_definition(before: Tuple[bool, int]) -> bool:
    """True if the code made unknown sizes since a definition was started: the names that it binds may hold one."""
    met, made = before
    state.met = state.met or met
    if of_definitions.made == made:
        return False
    of_definitions.held = True
    return True


def may_be_held() -> bool:
    """True if something that examples share may hold an unknown size: a loaded name, or a value that an example has left."""
    return of_definitions.held or state.lasting


def size(lasting: bool = False) -> int:
    """A size that depends on data. `lasting`: it may be kept from one example to the next, by a name of the file."""
    note_made(lasting)
    return SIZE


def note_made(lasting: bool) -> None:
    """There is an unknown size from now on, or what may be one. `lasting`: as above."""
    state.met = True
    state.lasting = state.lasting or lasting
    of_definitions.made += 1


def count() -> int:
    """An unknown size beside other ones in a tensor that may not be too large for torch."""
    size(lasting=True)
    return COUNT


def filled_in(shape: Sequence[Optional[int]]) -> List[int]:
    """A shape with unknown sizes in the place of None. Torch counts the bytes of a tensor in 64 bits: only the last two may be large."""
    last = [position for position, known in enumerate(shape) if known is None][-2:]
    return [known if known is not None else size(lasting=True) if position in last else count() for position, known in enumerate(shape)]


def is_unknown(number: Any) -> bool:
    """True if a size or number was computed from an unknown one."""
    if type(number) is UnknownInt:
        return True
    if state.met and isinstance(number, int) and (COUNT <= number <= COUNT + A_FEW_MORE or number == LETTERS):
        return True
    if state.text and isinstance(number, int) and number in OF_TEXT:
        return True
    if state.met and isinstance(number, int) and number in FRAMES:
        return True
    return state.met and isinstance(number, int) and is_like_unknown(number)


def is_like_unknown(number: int) -> bool:
    """True if a number would pass for one computed from an unknown size, where there is such a size."""
    if number < SIZE // LARGEST_DIVISOR - NEAR:
        return False
    if number >= PRODUCT:
        return True
    for divisor in (1, 2, 3, 4, 8, 16, 32):
        off = number * divisor % SIZE
        if min(off, SIZE - off) <= NEAR * divisor:
            return True
    for divisor in SHARES:
        off = number * divisor % SIZE
        if min(off, SIZE - off) <= divisor * ROUNDED:
            return True
    return False


def counts_text(number: int) -> bool:
    """True if a list of so many items was gathered from a made-up text: of its letters, of its lines, of some words of each."""
    return state.text and (
        number in OF_TEXT or (number >= COUNT - A_FEW_MORE and -A_FEW_MORE <= (number + COUNT // 2) % COUNT - COUNT // 2 <= A_FEW_MORE)
    )


def within_length(part: slice, length: int) -> slice:
    """Returns a slice that ends past an unknown length from the beginning on: the data is as long as the code counts on.

    Any other slice, and one that is as long as the data or longer, stays as it is.
    """
    start, stop = part.start, part.stop
    if type(start) is not int or type(stop) is not int or part.step is not None or not 0 <= start < stop:
        return part
    return slice(0, stop - start) if stop > length > stop - start and is_unknown(length) else part


def any_unknown(numbers: Iterable[Any]) -> bool:
    """True if one of these numbers, or of the lists of numbers among them, is unknown."""
    if not state.met:
        return False
    return any(any_unknown(number) if isinstance(number, (tuple, list)) else is_unknown(number) for number in numbers)


def as_plain(values: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Arguments with ordinary numbers in the place of unknown ones, in lists and tuples too; is_unknown tells those as well."""
    for value in values:
        kind = type(value)
        if kind is UnknownInt or kind is UnknownFloat or ((kind is tuple or kind is list) and _has_unknown_type(value)):
            return tuple([_as_plain(part) for part in values])
    return values


def _has_unknown_type(values: Any) -> bool:
    return any(type(value) is UnknownInt or type(value) is UnknownFloat or type(value) in STAND_INS for value in values)


def _as_plain(value: Any) -> Any:
    if type(value) is UnknownInt:
        return int(value)
    if type(value) is UnknownFloat:
        return float(value)
    if type(value) in (tuple, list):
        return type(value)([SIZE if type(part) in STAND_INS else _as_plain(part) for part in value])
    return value


def turns(steps: Any) -> Any:
    """The range of a `for`; a few turns of it where their number is unknown."""
    if not (state.met and isinstance(steps, range) and is_unknown(len(steps))):
        return steps
    short = steps[: few()]
    cut_short([short])
    return short


def turn(line: int, holds: bool = True) -> bool:
    """True if the `while` of a line may take another turn: where sizes are unknown its condition may never become false.

    holds: False once the condition has ended the loop, which may begin anew.
    """
    if not state.met:
        return True
    frame = sys._getframe(1)
    loops = state.turns.setdefault((frame.f_code, line), [])
    if not holds:
        del loops[len(loops) - 1 if loops and loops[-1].frame is frame else len(loops) :]
        return False
    if not loops or loops[-1].frame is not frame:
        running = _frames_around(frame) if loops else []
        loops[:] = [loop for loop in loops if any(loop.frame is each for each in running)]  # The others have ended, and their calls.
        loops.append(_WhileLoop(frame))
    loops[-1].count += 1
    if loops[-1].count <= MOST_WHILE + few():
        return True
    state.cut = True
    loops.pop()
    return False


class _WhileLoop:
    """The turns of a `while` in one call of a function."""

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.count = 0


def _frames_around(frame: Optional[FrameType]) -> List[FrameType]:
    """Returns the frames of the calls that a frame is in, itself not among them."""
    found: List[FrameType] = []
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
        found.append(frame)
    return found


def cut_short(containers: Iterable[Any]) -> None:
    """A loop ended before its last turn: these hold a part of what it would have gathered, or gone through."""
    note_made(lasting=False)
    state.cut = True
    state.partial.update((id(gathered), gathered) for gathered in containers)


def is_partial(gathered: Any) -> bool:
    """True if a value holds only a part of what a whole loop would gather, or go through, so that its length is unknown."""
    return id(gathered) in state.partial


def is_of_unknown_length(values: Any) -> bool:
    """True if a list holds a few items in the place of an unknown number: from a loop, or from data."""
    return type(values) is list and (is_partial(values) or (state.cut and len(values) == few()))


def is_missing_key(key: Any) -> bool:
    """True if a dict may lack a key only because a loop that would have added it was cut short."""
    try:
        return any(type(gathered) is dict and key not in gathered and _is_like(key, gathered) for gathered in state.partial.values())
    except TypeError:  # It has no hash.
        return False


def _is_like(key: Any, gathered: Dict[Any, Any]) -> bool:
    return any(type(other) is type(key) for other in gathered)


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


class _Scalar(_Unknown):
    """The further attributes of a scalar of numpy's."""

    dtype: Any = None
    shape = ()
    ndim = 0
    size = 1

    def item(self) -> Any:
        return self

    tolist = squeeze = copy = item

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        return whole(self) if "int" in str(dtype) else UnknownFloat(0.5)

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is not None else whole(self)

    def __trunc__(self) -> Any:
        return whole(self)

    __floor__ = __ceil__ = __trunc__


class UnknownInt(_Scalar, int):
    """An integer that depends on data, as `.item()` gives."""

    __hash__ = int.__hash__


class UnknownFloat(_Scalar, float):
    """A float that depends on data."""

    __hash__ = float.__hash__


UNKNOWN_NUMBERS = (UnknownInt, UnknownFloat)


def whole(number: Any) -> UnknownInt:
    """An unknown number as an integer, whatever it was computed from."""
    note_made(lasting=False)
    return number if type(number) is UnknownInt else UnknownInt(SIZE)


def _carried_along(cls: Any, plain: Any, names: str) -> None:
    """Arithmetic with an unknown number gives an unknown number."""

    def carried(name: str) -> Any:
        compute = getattr(plain, name)

        def operator(self: Any, *others: Any) -> Any:
            try:
                result = compute(self, *[plain(other) if isinstance(other, cls) else other for other in others])
            except (ArithmeticError, ValueError):  # A divisor or exponent that nobody knows.
                result = plain(SIZE)
            if type(result) is int:  # Where the number itself is handed on, to a function in C, it has to say that it is not known.
                return UnknownInt(result if is_unknown(result) else SIZE)
            if type(result) is tuple:
                return tuple([cls(part) for part in result])
            return UnknownFloat(result) if type(result) is float else result

        return operator

    for name in names.split():
        setattr(cls, name, carried(name))


_ARITHMETIC = (
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __floordiv__ __rfloordiv__ __neg__ __pos__ __abs__ __truediv__ __rtruediv__ "
    "__pow__ __rpow__ __mod__ __rmod__ __divmod__ __rdivmod__"
)
_carried_along(
    UnknownInt, int, _ARITHMETIC + " __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rshift__ __rlshift__ __rrshift__"
)
_carried_along(UnknownFloat, float, _ARITHMETIC)


def _as_int(*args: Any, **kwargs: Any) -> Any:
    """int(…)"""
    if len(args) == 1 and type(args[0]) in (UnknownInt, UnknownFloat):
        return whole(args[0])
    found = int(*args, **kwargs)
    return UnknownInt(found) if state.met and is_unknown(found) else found


def _chosen(choose: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and not kwargs:
            unknown = [number for number in args if type(number) in (UnknownInt, UnknownFloat)]
            if unknown:
                return unknown[0]
        return choose(*args, **kwargs)

    return chosen


# By name: what takes the place of Python's own functions in the user's code.
of_numbers: Dict[str, Callable[..., Any]] = {"int": _as_int, "max": _chosen(max), "min": _chosen(min)}
