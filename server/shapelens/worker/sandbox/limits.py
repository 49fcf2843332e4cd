"""Limits the time and memory that user code may take; exceptions end what has taken too much. The limits are the kernel's."""

from __future__ import annotations

import contextlib
import inspect
import sys
from typing import Any, Iterator, Optional

from ...timeouts import TIMEOUTS
from .clocks import ALARM, MOST_WAITING, RunClock, awake
from .originals import signal, time

_AGAIN = 0.01  # seconds after which a limit that was reached amid something whole is looked at again
_UNHEARD = 0.5  # seconds after which TooLong is raised once more in what goes on nevertheless
_TICK = 0.05  # seconds between looks at an import that takes long
GRACE = TIMEOUTS.grace


class TooLong(BaseException):
    """Something took longer than it was given (`within`). No `Exception`, so that user code does not catch it."""


class DeadlineReached(BaseException):
    """The run's time is up. A BaseException, so that user code's `except Exception` lets it pass."""


class Interrupted(BaseException):
    """Says that what goes on is not needed any more, nor what came of it."""


class Deadline:
    """The seconds that a run may take: those that other processes took from it (`RunClock`), and a suspended machine, do not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._clock = seconds, RunClock()
        signal.signal(signal.SIGALRM, self.reached)
        signal.signal(signal.SIGCONT, ALARM.resumed)
        ALARM.set(max(seconds, _AGAIN))

    def left(self) -> float:
        """Seconds until it is reached."""
        return self._seconds - self._clock()

    def reached(self, number: int, frame: Any) -> None:
        """The timer went off: raise DeadlineReached, or set it again."""
        ALARM.went_off()
        left = self.left()
        if left < _AGAIN:
            raise DeadlineReached()
        ALARM.set(left)


def limit_time(seconds: float) -> None:
    """Raise DeadlineReached in the main thread after this many seconds, where the platform has interval timers."""
    if hasattr(signal, "setitimer"):
        Deadline(seconds)


def no_time_limit() -> None:
    """End what `limit_time` began."""
    if hasattr(signal, "setitimer"):
        ALARM.end()
        signal.signal(signal.SIGCONT, signal.SIG_DFL)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let no limit of time cut in two what is of use only as a whole, such as a message: it ends what comes after that."""
    try:
        before = signal.signal(signal.SIGALRM, _postpone) if hasattr(signal, "setitimer") else None
    except ValueError:  # Limits end what the main thread does; this is another one.
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGALRM, before)


def _postpone(number: int, frame: Any) -> None:
    ALARM.went_off()
    ALARM.set(_AGAIN)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Limit]:
    """Let something take `seconds` at most, and raise TooLong in it then. The deadline of the whole goes on, and is not put off.

    Seconds of this process's own work, as what is found must not depend on what else the machine does. Imports do not count: an import
    that is cut short leaves its package half done for whoever needs it next.
    """
    if not hasattr(signal, "setitimer"):
        yield Limit(seconds, 0.0, None, None)
        return
    start = time.perf_counter()
    left = ALARM.seconds_left()
    before: Any = signal.getsignal(signal.SIGALRM)
    handler = getattr(before, "__self__", None)
    whole = handler if isinstance(handler, Deadline) else None
    limit = Limit(seconds, left, sys._getframe(2), whole)  # Between it and this one is contextlib's.
    if 0 < left <= seconds:
        yield limit
        return
    try:
        signal.signal(signal.SIGALRM, limit.reached)
        ALARM.set(seconds)
        yield limit
    finally:
        ALARM.end()
        signal.signal(signal.SIGALRM, before)
        if left:
            ALARM.set(max(left - (time.perf_counter() - start), 0.001))


_WITHIN = inspect.unwrap(within).__code__


def half_of_what_is_left(most: float) -> float:
    """`most` seconds, or half of those that are left to whatever is under way, if that is less."""
    left = ALARM.seconds_left() if hasattr(signal, "setitimer") else 0.0
    return min(most, left / 2) if left > 0 else most


class Limit:
    """The seconds that something may take, and what imports took besides."""

    ended = 0  # how often something was ended by a limit in this process

    def __init__(self, seconds: float, left: float, outermost: Any, whole: Optional[Deadline]) -> None:
        self.importing = 0.0
        self._outermost = outermost  # the frame that set the limit
        self._raised = False  # which a library may have taken for an error of its own, or Python, in a callback, for one of no consequence
        self._seconds = seconds
        self._whole = whole
        self._end = time.perf_counter() + left if left else float("inf")  # of the whole
        self._waits = False  # for an import to end
        self._restart()

    def _restart(self) -> None:
        self._wall, self._worked, self._had = awake(), time.process_time(), RunClock()

    def reached(self, number: int, frame: Any) -> None:
        """The timer went off: raise TooLong, or set it again. `frame` is what runs."""
        ALARM.went_off()
        now = time.perf_counter()
        worked = time.process_time() - self._worked
        if now >= self._end:
            left = self._whole.left() if self._whole is not None else 0.0
            if left < _AGAIN:
                raise TooLong()
            self._end = now + left
        if self._imports(frame):
            self._waits = True
            ALARM.set(_TICK)
        elif self._waits:  # What runs gets its time once more.
            self._waits = False
            self.importing += awake() - self._wall
            self._restart()
            ALARM.set(self._seconds)
        elif worked < 0.9 * self._seconds and self._had() < MOST_WAITING * self._seconds:
            ALARM.set(self._seconds - worked)
        elif not (self._raised and self._is_over(frame)):
            self._raised = True
            Limit.ended += 1
            ALARM.set(_UNHEARD)
            raise TooLong()

    def _is_over(self, frame: Any) -> bool:
        """True if `within` is left already: the limit was heard of, and its end is under way."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code is _WITHIN:
                return True
            frame = frame.f_back
        return frame is None

    def _imports(self, frame: Any) -> bool:
        """True if an import is under way that began within the limit."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                return True
            frame = frame.f_back
        return False


def limit_memory(more: int) -> None:
    """Let this process map `more` bytes on top of what it has; past that, allocations raise MemoryError or torch's own error."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        pass  # No such limit on this platform: the deadline still holds.
