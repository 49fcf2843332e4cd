"""Tells how long a process has had to do its work: what counts for limits of time, whatever else the machine does meanwhile.

All clocks here are monotonic, so that nothing happens when the clock of the machine is set. Seconds in which a process waited for a
processor that others had do not count (Linux says how many these are), nor those in which it was suspended (SIGSTOP).
"""

from __future__ import annotations

from typing import Any, Union

from ...protocol import MOST_STARVED
from .originals import os, signal, time

MOST_WAITING = 3  # times the seconds that something is given to work, which it may take where it waits in between
LATE = 1.5  # seconds behind its time at which whatever was to be woken says that its process was suspended, rather than slow to be woken


class _Suspensions:
    """The seconds in which this process was suspended until now, as far as is known."""

    seconds = 0.0


def awake() -> float:
    """`time.perf_counter`, which stood still while this process was suspended."""
    now: float = time.perf_counter()
    return now - _Suspensions.seconds


class WorkClock:
    """Seconds of this process's own work since the clock was made: on a busy machine as much is found as on an idle one, if later."""

    def __init__(self) -> None:
        self._had, self._worked = RunClock(), time.process_time()

    def __call__(self) -> float:
        worked: float = max(time.process_time() - self._worked, self._had() / MOST_WAITING)
        return worked


class RunClock:
    """Seconds that a process has had since the clock was made, be it at work or waiting for something that never comes.

    Those in which others had the processor are left out, up to nine of ten. process: another one's id.
    """

    def __init__(self, process: Union[int, str] = "self") -> None:
        self._process = process
        self._begin, self._starved = awake(), _starved(process)

    def __call__(self) -> float:
        wall = awake() - self._begin
        return max(wall - max(_starved(self._process) - self._starved, 0.0), wall / MOST_STARVED)


class Alarm:
    """The timer of this process, SIGALRM, by which it is seen that the process was suspended."""

    def __init__(self) -> None:
        self._due, self._set, self._worked = float("inf"), 0.0, 0.0

    def set(self, seconds: float) -> None:
        """Have it go off after this many seconds."""
        self._set, self._worked = time.perf_counter(), time.process_time()
        self._due = self._set + seconds
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def end(self) -> None:
        """It does not go off any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._due = float("inf")

    def seconds_left(self) -> float:
        """Seconds until it goes off; 0 where it is not set."""
        left: float = signal.getitimer(signal.ITIMER_REAL)[0]
        return left

    def went_off(self) -> None:
        """To be called when it goes off. Where it is much too late, the process was suspended, or in something that hears no signals."""
        if time.perf_counter() - self._due > LATE:
            self.resumed()

    def resumed(self, *_: Any) -> None:
        """SIGCONT: what has passed since the timer was set, and was no work, is taken for the time in which the process was suspended."""
        now, worked = time.perf_counter(), time.process_time()
        _Suspensions.seconds += max(now - self._set - (worked - self._worked), 0.0)
        self._set, self._worked, self._due = now, worked, max(self._due, now)


ALARM = Alarm()


def _starved(process: Union[int, str]) -> float:
    """Seconds in which the main thread of a process could have run and had no processor; 0 where the system does not say."""
    try:
        number = os.open("/proc/%s/schedstat" % process, os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(number, 100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
    finally:
        os.close(number)
