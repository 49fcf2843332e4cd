"""How much time and memory user code may take, and the exceptions that end what has taken too much. The limits are the kernel's."""

from __future__ import annotations

import contextlib
import inspect
import sys
from typing import Any, Iterator

from .originals import signal, time

MOST_WAITING = 3  # times the seconds that something may take of the machine's time, where other processes get most of that
_AGAIN = 0.01  # seconds after which a limit that was reached amid something whole is looked at again
_UNHEARD = 0.5  # seconds after which TooLong is raised once more in what goes on nevertheless
_TICK = 0.05  # seconds between looks at an import that takes long
GRACE = 1.0  # seconds that a run has to end by itself after its deadline


class TooLong(BaseException):
    """Something took longer than it was given (`within`). No `Exception`, so that user code does not catch it."""


class DeadlineReached(BaseException):
    """The run's time is up. A BaseException, so that user code's `except Exception` lets it pass."""


class Interrupted(BaseException):
    """What goes on is not needed any more, nor what came of it."""


class WorkClock:
    """Seconds of this process's own work since the clock was made: on a busy machine as much is found as on an idle one, if later."""

    def __init__(self) -> None:
        self._wall, self._worked = time.perf_counter(), time.process_time()

    def __call__(self) -> float:
        worked: float = max(time.process_time() - self._worked, (time.perf_counter() - self._wall) / MOST_WAITING)
        return worked


def limit_time(seconds: float) -> None:
    """Raise DeadlineReached in the main thread after this many seconds, where the platform has interval timers."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _deadline)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))


def no_time_limit() -> None:
    """End what `limit_time` began."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


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
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Limit]:
    """Let something take `seconds` at most, and raise TooLong in it then. The deadline of the whole goes on, and is not put off.

    Seconds of this process's own work, as what is found must not depend on what else the machine does. Imports do not count: an import
    that is cut short leaves its package half done for whoever needs it next.
    """
    if not hasattr(signal, "setitimer"):
        yield Limit(seconds, 0.0, None)
        return
    start = time.perf_counter()
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    limit = Limit(seconds, left, sys._getframe(2))  # Between it and this one is contextlib's.
    if 0 < left <= seconds:
        yield limit
        return
    before = signal.getsignal(signal.SIGALRM)
    try:
        signal.signal(signal.SIGALRM, limit.reached)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - start), 0.001))


_WITHIN = inspect.unwrap(within).__code__


def half_of_what_is_left(most: float) -> float:
    """`most` seconds, or half of those that are left to whatever is under way, if that is less."""
    left = signal.getitimer(signal.ITIMER_REAL)[0] if hasattr(signal, "setitimer") else 0.0
    return min(most, left / 2) if left > 0 else most


class Limit:
    """The seconds that something may take, and what imports took besides."""

    def __init__(self, seconds: float, left: float, outermost: Any) -> None:
        self.importing = 0.0
        self._outermost = outermost  # the frame that set the limit
        self._raised = False  # which a library may have taken for an error of its own, or Python, in a callback, for one of no consequence
        self._seconds = seconds
        self._end = time.perf_counter() + left if left else float("inf")  # of the whole
        self._waits = False  # for an import to end
        self._restart()

    def _restart(self) -> None:
        self._wall, self._worked = time.perf_counter(), time.process_time()

    def reached(self, number: int, frame: Any) -> None:
        """The timer went off: raise TooLong, or set it again. `frame` is what runs."""
        now = time.perf_counter()
        worked = time.process_time() - self._worked
        if now >= self._end:
            raise TooLong()
        if self._imports(frame):
            self._waits = True
            signal.setitimer(signal.ITIMER_REAL, _TICK)
        elif self._waits:  # What runs gets its time once more.
            self._waits = False
            self.importing += now - self._wall
            self._restart()
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        elif worked < 0.9 * self._seconds and now - self._wall < MOST_WAITING * self._seconds:
            signal.setitimer(signal.ITIMER_REAL, self._seconds - worked)
        elif not (self._raised and self._is_over(frame)):
            self._raised = True
            signal.setitimer(signal.ITIMER_REAL, _UNHEARD)
            raise TooLong()

    def _is_over(self, frame: Any) -> bool:
        """Whether `within` is left already: the limit was heard of, and its end is under way."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code is _WITHIN:
                return True
            frame = frame.f_back
        return frame is None

    def _imports(self, frame: Any) -> bool:
        """Whether an import is under way that began within the limit."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                return True
            frame = frame.f_back
        return False


def _deadline(number: int, frame: Any) -> None:
    raise DeadlineReached()


def limit_memory(more: int) -> None:
    """Let this process map `more` bytes on top of what it has; past that, allocations raise MemoryError or torch's own error."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        pass  # No such limit on this platform: the deadline still holds.
