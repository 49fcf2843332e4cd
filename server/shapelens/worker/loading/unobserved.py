"""Code that goes on unobserved: what has met no tensor in its first turns runs as it is written, as fast as Python does.

The first turns of a comprehension or of a `for` have reports. Where none of these told of a tensor, a layer, an array or something unknown,
the others have none, and the functions that the first turns called have none meanwhile either: they get the code that Python itself
would have given them. So does a function that is called again and again by a library (`map`, say), until its evaluation is over.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import itertools
import linecache
import sys
import warnings
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ..meta import op_cache
from ..meta.training_loops import Loop, turns_followed
from ..rewrite.sites import COMPREHENDED, FIRST_TURNS, FURTHER_TURNS, GENERATED, MODEL_TURNS
from ..sandbox.originals import time
from ..trace.recorder import Recorder
from .code_objects import codes_in, function_of_frame
from .statements import future_flags

FIRST = 64  # turns with reports
LARGEST_CHUNK = 1 << 16  # turns without, after which it is asked whether there are to be more
SECONDS_OF_CHUNK = 0.02  # that these take, about
MOST_FILES = 16  # whose code is kept as it is written

Made = Callable[[Iterable[Any]], Any]


class Budget:
    """For how long a loop takes turns without reports: for ever, unless a derived class knows better."""

    def is_over(self) -> bool:
        """True if it is to take no more turns. Asked now and then."""
        return False

    def covers_the_rest(self) -> bool:
        """True if it may take all turns that are left."""
        return True


class Unobserved:
    """Takes the turns of loops and comprehensions, those with reports first."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._entered: Dict[CodeType, int] = {}  # the code of functions that began while something was watched, and when they did last
        self._entries = 0
        self._functions: Dict[CodeType, Optional[FunctionType]] = {}
        self._plain: Dict[CodeType, Optional[CodeType]] = {}  # by the code with reports
        self._changed: Dict[FunctionType, CodeType] = {}  # functions that have no reports now, and the code that they have otherwise
        self._further: Dict[Tuple[int, int], Iterator[Any]] = {}  # by frame and line: the turns that a `for` takes next
        recorder.on_often = self._called_often
        recorder.on_end = self.restore

    def reporters(self) -> Dict[str, Any]:
        """The functions that rewritten code calls, by name."""
        comprehended = {COMPREHENDED: self.comprehended, GENERATED: self.generated}
        loops = {FIRST_TURNS: self.first_turns, FURTHER_TURNS: self.further_turns, MODEL_TURNS: self.model_turns}
        return {**loops, **comprehended}

    # --- comprehensions ---

    def comprehended(self, items: Iterable[Any], observed: Made, plain: Made) -> Any:
        """Returns what a comprehension makes of items, by its version with reports and the one without."""
        turns = FirstTurns(self, items)
        made = observed(turns)
        if turns.rest is None:
            return made
        with self.without_reports(turns.watch):
            more = plain(turns.rest)
        if type(made) is list:
            made += more
        else:
            made.update(more)
        return made

    def generated(self, items: Iterable[Any], observed: Made, plain: Made) -> Iterator[Any]:
        """The same of a generator expression."""
        items = iter(items)  # As Python does at once.
        return self._generated(items, observed, plain)

    def _generated(self, items: Iterator[Any], observed: Made, plain: Made) -> Iterator[Any]:
        turns = FirstTurns(self, items)
        yield from observed(turns)
        if turns.rest is not None:
            with self.without_reports(turns.watch):
                yield from plain(turns.rest)

    # --- loops ---

    def first_turns(self, iterable: Iterable[Any], line: int) -> Iterable[Any]:
        """The items that the `for` of a line takes with reports; all where the line is 0."""
        if not line and not op_cache.state.assumes_gradients:
            return iterable
        return self._first_turns(iterable, sys._getframe(1), line)

    def _first_turns(self, iterable: Iterable[Any], frame: FrameType, line: int) -> Iterator[Any]:
        turns = FirstTurns(self, iterable, all_of_them=not line)
        if op_cache.state.assumes_gradients:
            yield from turns_followed(turns, Loop(frame, self.recorder, iterable))
        else:
            yield from turns
        if turns.rest is not None:
            self.take(frame, line, turns.rest, turns.watch, Budget())

    def model_turns(self, iterable: Iterable[Any]) -> Iterable[Any]:
        """Returns what a `for` in a method of a model goes through: all of it, but for a loop that is cut short (`turns_followed`)."""
        if not op_cache.state.assumes_gradients:
            return iterable
        return turns_followed(iterable, Loop(sys._getframe(1), self.recorder, iterable))

    def take(self, frame: FrameType, line: int, items: Iterator[Any], watch: "Watch", budget: Budget) -> None:
        """Let the `for` of a line take these items next, without reports."""
        self._further[id(frame), line] = itertools.chain.from_iterable(self._chunks(items, watch, budget))

    def further_turns(self, line: int) -> Iterable[Any]:
        """The items that the `for` of a line takes without reports, once it has taken those with."""
        return self._further.pop((id(sys._getframe(1)), line), ())

    def _chunks(self, items: Iterator[Any], watch: "Watch", budget: Budget) -> Iterator[Iterable[Any]]:
        size = 1
        with self.without_reports(watch):
            start = time.perf_counter()
            for item in items:
                yield (item,)
                if budget.covers_the_rest():
                    yield items
                    return
                yield itertools.islice(items, size)
                if budget.is_over():
                    return
                now = time.perf_counter()
                size = min(2 * size, LARGEST_CHUNK) if now - start < SECONDS_OF_CHUNK else max(size // 2, 1)
                start = now

    # --- functions ---

    def watch(self) -> "Watch":
        """Code is under way that may go on unobserved: see what it meets, and which functions it calls."""
        self.recorder.watches += 1
        self.recorder.on_entry = self._enter
        return Watch(self, self._entries)

    def end_watch(self) -> None:
        """The end of what `watch` began."""
        recorder = self.recorder
        recorder.watches -= 1
        if not recorder.watches:
            recorder.on_entry = None

    @contextlib.contextmanager
    def without_reports(self, watch: "Watch") -> Iterator[None]:
        """Meanwhile the functions have no reports that code under this watch has called."""
        changed = [function for code, when in self._entered.items() if when > watch.began for function in self._change(code)]
        try:
            yield
        finally:
            for function in changed:
                self._restore(function)

    def restore(self) -> None:
        """All functions have reports again."""
        for function in list(self._changed):
            self._restore(function)

    def _enter(self, frame: FrameType) -> None:
        self._entries += 1
        code = frame.f_code
        self._entered[code] = self._entries
        if code not in self._functions:
            self._functions[code] = function_of_frame(frame)

    def _called_often(self, frame: FrameType) -> None:
        self._enter(frame)
        self._change(frame.f_code)

    def _change(self, code: CodeType) -> List[FunctionType]:
        """Let the functions of this code be as they are written, if that can be had. Returns those that have changed."""
        if code not in self._plain:
            self._plain[code] = _as_written(code)
        plain = self._plain[code]
        if plain is None:
            return []
        functions = [self._functions.get(code)]
        if functions[0] is None:  # It has no name where one would look for it, as one that is made inside of another one.
            functions = [each for each in gc.get_referrers(code) if isinstance(each, FunctionType)]
        changed = [function for function in functions if function is not None and function.__code__ is code]
        for function in changed:
            self._changed[function] = code
            function.__code__ = plain
        return changed

    def _restore(self, function: FunctionType) -> None:
        code = self._changed.pop(function, None)
        if code is not None and function.__code__ is self._plain[code]:
            function.__code__ = code


class Watch:
    """Holds what code meets until it is ended. began: how many functions had begun before."""

    def __init__(self, unobserved: Unobserved, began: int) -> None:
        self.began = began
        self._unobserved, self._met = unobserved, unobserved.recorder.met

    def has_met(self) -> bool:
        """True if there was a tensor, or anything else that is to be reported."""
        return self._unobserved.recorder.met != self._met

    def end(self) -> None:
        """See no more."""
        self._unobserved.end_watch()


class FirstTurns:
    """Goes through items as long as they are to be taken with reports.

    rest: the iterator over those that are left, once none of the first ones has led to anything to report; None otherwise.
    """

    watch: Watch

    def __init__(self, unobserved: Unobserved, items: Iterable[Any], all_of_them: bool = False) -> None:
        self.rest: Optional[Iterator[Any]] = None
        self._all_of_them = all_of_them
        self._unobserved, self._items = unobserved, items

    def __iter__(self) -> Iterator[Any]:
        unobserved = self._unobserved
        items, count = iter(self._items), 0
        self.watch = watch = unobserved.watch()
        try:
            for item in itertools.islice(items, FIRST):
                yield item
                count += 1
        finally:
            watch.end()
        if self._all_of_them or watch.has_met():
            yield from items
        elif count == FIRST:
            self.rest = items


_written: Dict[Tuple[str, str], List[CodeType]] = {}  # by file and text: the code of its functions


def _as_written(code: CodeType) -> Optional[CodeType]:
    """The code that Python gives the function of a file which has this code with reports; None where it is not sure which one that is."""
    text = "".join(linecache.getlines(code.co_filename))
    known = _written.get((code.co_filename, text))
    if known is None:
        if len(_written) >= MOST_FILES:
            _written.clear()
        known = _written[code.co_filename, text] = _functions_of(text, code.co_filename)
    found = [each for each in known if _is_called_like(each, code)]
    return found[0] if len(found) == 1 else None


def _functions_of(text: str, file: str) -> List[CodeType]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = future_flags(ast.parse(text)) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            return list(codes_in(compile(text, file, "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError):
        return []


def _is_called_like(code: CodeType, other: CodeType) -> bool:
    """True if two pieces of code are those of one function, as far as can be seen from outside."""
    return bool(_from_outside(code) == _from_outside(other))


def _from_outside(code: CodeType) -> Any:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_name, code.co_firstlineno, code.co_flags, code.co_freevars, code.co_argcount, code.co_varnames[:count]
