"""The functions that a followed program calls for its flow: statements that fail, loops that would take long.

A loop that meets no tensor in its first turns takes the others unobserved (loading/unobserved.py), up to a budget of time. Any other takes
all of its turns as long as that costs little. A loop that trains (`backward` ran in it) takes one turn. It takes a second one where its
variables changed their shape in the first. A loop that takes long ends when its time is up. The lists of such a loop have an unknown
length, as the loop was cut short. Before the cut, a loop takes a turn aside for the branches of later turns (`if step % 100 == 0`, `if
step > warm_up`). That turn is the last one, if known, and conditions on counts take their other way there.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from types import FrameType
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

import torch

from ..calls.exception_handlers import handled_by_user, is_raised_here
from ..loading.unobserved import FIRST, Budget, Unobserved, Watch
from ..meta.training_loops import Loop
from ..rewrite.resilient import (
    BRANCH,
    COUNTS,
    ENTERED,
    ERRORS,
    FAILED,
    FURTHER_FAILED,
    GOES_FURTHER,
    GOES_ON,
    ITEMS,
    KEYWORDS,
    LISTED,
    MARK,
    MISSING,
    NEXT,
    SPREAD,
    STEPS,
    Pattern,
)
from ..sandbox.clocks import WorkClock
from ..shims.data_loaders import BatchIterator, giving
from ..unknown import data_arrays, unknown_sizes
from ..unknown.stand_ins import NoItems, absent, is_absent

UNKNOWN_KEYWORD = "what_is_not_known"
FURTHER_SECONDS = 2.0  # that a loop takes unobserved
OPEN_SECONDS = 1.0  # that it takes where nobody knows how many turns there are
CHUNK = 1024  # turns of a `while`, after which it is asked how long it has taken
MOST_FURTHER = 8  # loops under way whose end may have to be told
SURE_AFTER = 0.03  # seconds after which it is known how long a turn takes
MOST_TURNS_ASIDE = 3  # of a loop, as a branch may hold branches
LONGEST_TURN = 0.3  # seconds of a turn, for another one to be taken aside
Branch = Tuple[int, int, bool]  # its first and last lines, and whether it leaves the block
Branches = Tuple[Optional[Branch], Optional[Branch]]  # of an `if`: the one where its condition holds, and the other one
_PLAIN = (bool, int, float, str, type(None))
ENDS_STATEMENT = (Exception, SystemExit)
_ITERATORS: Tuple[Any, ...] = (map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())))


class Flow:
    """The functions that resilient code calls.

    on_failure: is told of each statement that failed; turned: the conditions that go the other way when they come for the first time;
    aside: what goes on in it is no part of what the program does. last_turn: what is wrong in it is told, but not what it shows.
    """

    def __init__(
        self,
        missing: Callable[[str], Any],
        on_failure: Callable[[BaseException, FrameType, int], None],
        unobserved: Unobserved,
        turned: Iterable[Branches] = (),
        aside: Optional[Callable[[], ContextManager[None]]] = None,
        last_turn: Optional[Callable[[str], ContextManager[None]]] = None,
    ) -> None:
        self._missing = missing
        self._on_failure = on_failure
        self._unobserved = unobserved
        self._further: Dict[Tuple[int, int], Loop] = {}  # loops that are taken unobserved, by frame and line
        self._aside = aside
        self._last_turn = last_turn
        self._is_aside = False
        self.taken: Dict[Branches, Set[bool]] = {}  # which ways conditions on settings and counts went
        self.gone: Dict[int, AttributeError] = {}  # by line: what was asked of an iterator by a method that it does not have any more
        self._turned: Dict[Branches, Optional[bool]] = dict.fromkeys(turned)  # the way that they go; None: not as they would
        self._unknown_items = 0  # comprehensions that went through something unknown
        self._loops: Dict[Tuple[int, int], Loop] = {}  # `while` loops under way, by frame and line

    def names(self) -> Dict[str, Any]:
        """The functions by the names that resilient code has for them."""
        names = {ERRORS: ENDS_STATEMENT, FAILED: self.failed, MISSING: self._missing, STEPS: self.steps, GOES_ON: self.goes_on}
        names.update({FURTHER_FAILED: self.further_failed, GOES_FURTHER: self.goes_further})
        more = {BRANCH: self.branch, ITEMS: self.items, MARK: lambda: self._unknown_items, LISTED: self.listed}
        more.update({KEYWORDS: keywords, SPREAD: spread, NEXT: self.next_item, ENTERED: self.entered, COUNTS: counted})
        return {**names, **more}

    def failed(self, error: BaseException, line: int) -> Any:
        """A statement has failed: what takes the place of its value. Raises the error where user code around it expects it to be raised."""
        return self._statement_failed(error, sys._getframe(1), line)

    def _statement_failed(self, error: BaseException, frame: FrameType, line: int) -> Any:
        is_last = isinstance(error, IndexError) and frame.f_code.co_name == "__getitem__"  # It ends a loop over what has no `__iter__`.
        if is_last or is_raised_here(error, frame) or handled_by_user(error, frame):
            raise error
        if not (self._is_aside or _lacks_item(error)):
            self._on_failure(error, frame, line)
        return absent("what failed", "definition")

    def entered(self, context: Any, line: int) -> "_Entered":
        """Enters the context of a `with`. After a failure, the value is unknown, and the body runs all the same."""
        try:
            enter, leave = type(context).__enter__, type(context).__exit__
            return _Entered(context, enter(context), leave)
        except ENDS_STATEMENT as error:
            frame = sys._getframe(1)
            if handled_by_user(error, frame):
                raise
            if not self._is_aside:
                self._on_failure(error, frame, line)
            return _Entered(None, absent("what failed", "definition"), None)

    def steps(self, iterable: Any, lines: Tuple[int, int], pattern: Pattern, may_switch: bool) -> Iterator[Any]:
        """The items that a `for` takes, each of the form that its targets have; once with stand-ins where nothing is known of the items.

        lines: the first and the last of the loop. may_switch: it may take its further turns unobserved.
        """
        frame = sys._getframe(1)
        count = 0
        loop = Loop(frame, self._unobserved.recorder, iterable)
        ended_early = unknown_sizes.state.ended_early
        is_open = is_of_unknown_number(iterable) or unknown_sizes.is_of_unknown_length(iterable)
        may_switch = may_switch and not (is_open or self._is_aside or unknown_sizes.state.text)
        watch = self._unobserved.watch() if may_switch else None
        batches: Optional[_LoaderTurns] = None
        giving.forget()
        try:
            items = iter(iterable)
            for item in items:
                count = loop.count = count + 1
                if count == 1:
                    batches = _LoaderTurns.of(giving.latest, item)
                yield _fitted(item, pattern)
                goes_on = loop.goes_on(count)
                if watch is not None and not loop.has_met() and (count == FIRST or not goes_on):
                    self._take_further(loop, lines[0], items, watch)
                    return
                is_long = loop.is_long()
                if is_long:
                    loop.end_early()
                if is_long or not goes_on:
                    last = iterable[-1] if type(iterable) is range else next(items, item)
                    yield from self._last_turns(loop, lines, _fitted(last, pattern), batches or _SlicedTurns.of(iterable), pattern)
                    return
        except ENDS_STATEMENT as error:  # Of the iterable: the body's own end there.
            if not self._is_aside:
                self._on_failure(error, frame, lines[0])
            iterable = iterable if count else absent("an item", "definition")
            batches = None
        finally:
            if watch is not None:
                watch.end()
        yield from self._turn_of_last_batch(batches, loop, pattern)
        if is_open or unknown_sizes.state.ended_early != ended_early:
            unknown_sizes.cut_short(loop.gathered())
        if count == 0 and _is_unknown(iterable):
            yield _fitted(absent("an item", "definition"), pattern)
            unknown_sizes.cut_short(loop.gathered())

    def _last_turns(
        self, loop: Loop, lines: Tuple[int, int], last: Any, batches: Union["_LoaderTurns", "_SlicedTurns", None], pattern: Pattern
    ) -> Iterator[Any]:
        """The items of the last turns of a loop that is cut: for branches that it has not taken, and of the last batch."""
        for _ in self._turns_aside(lines, loop):
            yield last
        yield from self._turn_of_last_batch(batches, loop, pattern)
        unknown_sizes.cut_short(loop.gathered())

    def _take_further(self, loop: Loop, line: int, items: Iterator[Any], watch: Watch) -> None:
        """Let a loop take its further turns unobserved, for as long as it may."""
        self._note_further(loop, line)
        self._unobserved.take(loop.frame, line, items, watch, _FurtherTurns(loop, items))

    def _note_further(self, loop: Loop, line: int) -> None:
        while len(self._further) >= MOST_FURTHER:
            del self._further[next(iter(self._further))]
        self._further[id(loop.frame), line] = loop

    def further_failed(self, error: BaseException, line: int) -> None:
        """A turn that was not observed has failed, and ended its loop."""
        frame = sys._getframe(1)
        loop = self._further.pop((id(frame), line), None)
        if loop is not None:
            unknown_sizes.cut_short(loop.gathered())
        self._statement_failed(error, frame, line)

    def _turns_aside(self, lines: Tuple[int, int], loop: Loop) -> Iterator[None]:
        """The turns that a loop which is cut takes for branches that it has not taken yet, and for those in them."""
        if self._aside is None or self._is_aside or loop.seconds_of_turn() > LONGEST_TURN:
            return
        ways: Dict[Branches, Optional[bool]] = {}
        for _ in range(MOST_TURNS_ASIDE):
            others = [branches for branches, other in self.not_taken().items() if not other[2] and _is_within(branches, lines)]
            if not others:
                return
            ways.update((branches, True not in self.taken[branches]) for branches in others)
            self._turned, self._is_aside = dict(ways), True
            try:
                with self._aside():
                    yield
            finally:
                self._turned, self._is_aside = {}, False

    def _turn_of_last_batch(self, batches: Union["_LoaderTurns", "_SlicedTurns", None], loop: Loop, pattern: Pattern) -> Iterator[Any]:
        """The item of the last batch of a loader, which is smaller than the others: what holds for a full batch may fail there."""
        if batches is None or self._last_turn is None or self._is_aside or loop.seconds_of_turn() > LONGEST_TURN:
            return
        try:
            last = batches.last()
        except ENDS_STATEMENT:
            return  # The data set has told of it already, or gives other samples there.
        if last is None:
            return
        names = dict(loop.frame.f_globals) if loop.frame.f_code.co_name == "<module>" else {}
        self._is_aside = True
        try:
            with self._last_turn(last[1]):
                yield _fitted(last[0], pattern)
        finally:
            self._is_aside = False
            loop.frame.f_globals.update(names)  # What follows is shown as after a full batch.

    def items(self, iterable: Any, pattern: Pattern) -> Any:
        """The items that a comprehension takes; a stand-in of the form that its targets have where nothing is known of the items."""
        self._unknown_items += is_of_unknown_number(iterable)
        return (_fitted(absent("an item", "definition"), pattern),) if is_absent(iterable) else iterable

    def listed(self, mark: int, made: Any) -> Any:
        """Returns the result of a comprehension: of unknown length where it went through something unknown since `mark`."""
        if self._unknown_items != mark:
            unknown_sizes.cut_short([made])
        return made

    def branch(self, branches: Branches, value: Any) -> Any:
        """The value of a condition on settings and counts, the other way round where its other branch is looked at."""
        if type(value) not in _PLAIN and type(value).__module__ != "numpy":
            return value
        taken = bool(value)
        if branches in self._turned:
            way = self._turned.pop(branches)
            value = taken = not taken if way is None else way
        self.taken.setdefault(branches, set()).add(taken)
        return value

    def turned(self, first: int, last: int, leaves: bool) -> Dict[Branches, Optional[bool]]:
        """Returns the other way for each condition between two lines that went one way only: for those that leave no block, or those that
        do."""
        ways: Dict[Branches, Optional[bool]] = {}
        for branches, taken in self.taken.items():
            own, other = branches if True in taken else branches[::-1]
            told = other or own
            is_wanted = other is not None or leaves  # Behind an `if` that leaves a block is what goes on without it.
            if is_wanted and len(taken) == 1 and told is not None and first < told[0] <= last and told[2] is leaves:
                ways[branches] = True not in taken
        return ways

    @contextlib.contextmanager
    def going(self, ways: Dict[Branches, Optional[bool]]) -> Iterator[None]:
        """Meanwhile these conditions go that way, when they come for the first time; what fails is not told."""
        self._turned, self._is_aside = dict(ways), True
        try:
            yield
        finally:
            self._turned, self._is_aside = {}, False

    def next_item(self, iterator: Any) -> Any:
        """Returns the result of `iterator.next()`; the next item of an iterator that has lost this method."""
        try:
            ask = iterator.next
        except AttributeError as error:
            if not hasattr(iterator, "__next__"):
                raise
            self.gone[sys._getframe(1).f_lineno] = error
            return next(iterator)
        return ask()

    def not_taken(self) -> Dict[Branches, Branch]:
        """The branches that no turn has taken, by their conditions."""
        others = {branches: branches[1] if True in taken else branches[0] for branches, taken in self.taken.items() if len(taken) == 1}
        return {branches: other for branches, other in others.items() if other is not None}

    def goes_on(self, line: int) -> bool:
        """True if a `while` takes another turn with reports."""
        frame = sys._getframe(1)
        place = id(frame), line
        loop = self._loops.get(place)
        if loop is None or loop.frame is not frame:
            self._loops[place] = Loop(frame, self._unobserved.recorder)
            return True
        loop.count += 1
        goes_on = loop.goes_on(loop.count)
        if not loop.has_met() and not unknown_sizes.state.met and (loop.count == FIRST or not goes_on):
            del self._loops[place]
            loop.count = 0
            self._note_further(loop, line)
            return False
        if goes_on:
            return True
        unknown_sizes.cut_short(loop.gathered())
        del self._loops[place]
        return False

    def goes_further(self, line: int) -> bool:
        """True if a `while` takes another turn without reports."""
        loop = self._further.get((id(sys._getframe(1)), line))
        if loop is None:
            return False
        loop.count += 1
        if loop.count % CHUNK or loop.seconds() < OPEN_SECONDS:
            return True
        unknown_sizes.cut_short(loop.gathered())
        return False


class _SlicedTurns:
    """The turns of a loop that takes a batch at a time out of tensors: `for start in range(0, len(x), 64)`."""

    def __init__(self, starts: range) -> None:
        self._starts = starts

    @classmethod
    def of(cls, iterable: Any) -> Optional["_SlicedTurns"]:
        """Those of a loop over this; None where its last turn is like the others."""
        is_one = type(iterable) is range and iterable.step > 1 and len(iterable) > 1
        return cls(iterable) if is_one and (iterable.stop - iterable.start) % iterable.step else None

    def last(self) -> Tuple[Any, str]:
        """The start of the last batch, and why that is smaller."""
        starts = self._starts
        count = starts.stop - starts.start
        return starts[-1], "%d = %d·%d + %d" % (count, count // starts.step, starts.step, count % starts.step)


class _LoaderTurns:
    """The turns of a loop over a loader, be it `for batch in loader` or `for step, batch in enumerate(loader)`."""

    def __init__(self, iterator: BatchIterator, item: Any) -> None:
        self._iterator = iterator
        self._first, self._item = iterator.current, item

    @classmethod
    def of(cls, iterator: Optional[BatchIterator], item: Any) -> Optional["_LoaderTurns"]:
        """Those of a loop whose first item a loader gave; None where none did."""
        return cls(iterator, item) if iterator is not None else None

    def last(self) -> Optional[Tuple[Any, str]]:
        """The item of the last batch, and why that is smaller; None where it is not, or an item is made otherwise from a batch."""
        found = self._iterator.last_batch() if self._item is self._first or type(self._item) is tuple else None
        if found is None:
            return None
        if self._item is self._first:
            return found.batch, found.said
        parts = tuple([found.batch if part is self._first else _later(part, found.number) for part in self._item])
        return (parts, found.said) if any(part is found.batch for part in parts) else None


def _later(part: Any, turns: int) -> Any:
    """Returns the count of `enumerate` so many turns later: `if step == 0` does not hold for the last batch."""
    return part + turns if type(part) is int else part


class _FurtherTurns(Budget):
    """The time of a loop that goes on unobserved. items: those that are left."""

    def __init__(self, loop: Loop, items: Iterator[Any]) -> None:
        self._loop, self._items = loop, items
        self._clock: Optional[WorkClock] = None  # since the first turns, which may wait for what is done once
        self._whole = 0
        self._rest = float("inf")  # seconds that all turns would take that are left

    def is_over(self) -> bool:
        left = operator.length_hint(self._items)
        if self._clock is None:
            self._clock, self._whole = WorkClock(), left
        seconds = self._clock()
        if self._whole and seconds > SURE_AFTER and left < self._whole:
            self._rest = seconds / (self._whole - left) * left
            seconds += self._rest
        if seconds < (FURTHER_SECONDS if self._whole else OPEN_SECONDS):
            return False
        unknown_sizes.cut_short(self._loop.gathered())
        return True

    def covers_the_rest(self) -> bool:
        return self._rest < FURTHER_SECONDS / 2


def counted(function: Any, value: Any, **kwargs: Any) -> Any:
    """Returns the result of `len`, `list` and their like for a value: the real one, or an unknown number of items where that is unknown."""
    is_open = is_of_unknown_number(value)
    made = function(value, **kwargs)
    if not is_open:
        return made
    if function is len:
        return made if unknown_sizes.is_unknown(made) else unknown_sizes.size()
    if function in (list, tuple, sorted, set, dict):
        if not made and function is not dict:
            made = type(made)([absent("an item", "definition")])
        unknown_sizes.cut_short([made])
    return made


def is_of_unknown_number(items: Any, depth: int = 3) -> bool:
    """True if the number of items is unknown: of a stand-in, of data of unknown size, of the lists of a loop that was cut short. So too for
    an iterator over one of these (`enumerate`, `map`)."""
    if isinstance(items, _ITERATORS):
        return depth > 0 and any(is_of_unknown_number(part, depth - 1) for part in items.__reduce__()[1])
    if is_absent(items) or isinstance(items, NoItems) or unknown_sizes.is_partial(items):
        return True
    if isinstance(items, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return items.dim() > 0 and unknown_sizes.is_unknown(items.shape[0])
    return data_arrays.is_data(items) and items.ndim > 0 and unknown_sizes.is_unknown(data_arrays.shape_of(items)[0])


def spread(value: Any) -> Any:
    """Returns the items that `*value` puts into a tuple or list. Raises TypeError where nothing is known of them: the value would seem to
    be empty."""
    if is_absent(value):
        raise TypeError("it is not known what is in %s" % value.__name__)
    return value


def keywords(mapping: Any) -> Any:
    """Returns the arguments that `**mapping` gives a call. For an unknown mapping, that is one stand-in, which only a module can be given
    (unknown_inputs.py)."""
    return {UNKNOWN_KEYWORD: absent("an argument", "definition")} if is_absent(mapping) else mapping


class _Entered:
    """A context that has been entered already; without `leave`, one that could not be."""

    def __init__(self, context: Any, value: Any, leave: Any) -> None:
        self._context, self._value, self._leave = context, value, leave

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *failure: Any) -> Any:
        return self._leave(self._context, *failure) if self._leave is not None else None


def _lacks_item(error: BaseException) -> bool:
    """True if code asked for an item that is missing only because the loop that gathers it was cut short."""
    if isinstance(error, KeyError):
        return bool(error.args) and unknown_sizes.is_missing_key(error.args[0])
    return isinstance(error, IndexError) and bool(unknown_sizes.state.partial) and str(error) == "list index out of range"


def _is_within(branches: Branches, lines: Tuple[int, int]) -> bool:
    """True if the branches of a condition stand between two lines."""
    return all(lines[0] <= branch[0] and branch[1] <= lines[1] for branch in branches if branch is not None)


def _is_unknown(iterable: Any) -> bool:
    """True if an iterable without items does not tell their number: a stand-in, or an iterator over one (`enumerate`, a bar)."""
    if is_absent(iterable) or is_absent(getattr(iterable, "iterable", None)) or not hasattr(iterable, "__len__"):
        return True
    return isinstance(iterable, (enumerate, zip, map, filter, reversed))


def _fitted(item: Any, pattern: Pattern) -> Any:
    """An item that can be unpacked as a pattern says; stand-ins for the parts of one that cannot."""
    if isinstance(pattern, int):
        return item
    if isinstance(item, (str, bytes)) or (is_absent(item) or not hasattr(type(item), "__iter__")):
        parts: List[Any] = [absent("an item", "definition") for _ in pattern]
        return tuple([_fitted(part, inner) for part, inner in zip(parts, pattern)])
    if isinstance(item, (tuple, list)) and len(item) == len(pattern):
        return tuple([_fitted(part, inner) for part, inner in zip(item, pattern)])
    return item
