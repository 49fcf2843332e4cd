"""One thread that waits for everything at once: descriptors that can be read, processes that end, times that come."""

from __future__ import annotations

import selectors
from typing import Any, Callable, Dict, List, Optional, Set

from ..sandbox.clocks import LATE
from ..sandbox.originals import os, signal, time
from .orphans import Orphans

READ_SIZE = 1 << 18


class Timer:
    """An action that is due at a time of `time.monotonic`. A timer that was cancelled is never due.

    Where the process was suspended meanwhile, the time begins anew: who had to do something until then was suspended as well.
    """

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action = action
        self._seconds = max(when - time.monotonic(), 0.0)

    def cancel(self) -> None:
        """Nothing is done any more."""
        self.when = float("inf")

    def begin_anew(self, now: float) -> None:
        """The process was suspended until now."""
        if self.when < float("inf"):
            self.when = now + self._seconds


class EventLoop:
    """Calls handlers until `stopping`. It also knows which descriptors are this process's own: those that it forks close them."""

    def __init__(self) -> None:
        self.stopping = False
        self.suspensions = 0  # how often this process was suspended
        self.before_waiting: Callable[[], None] = lambda: None
        self._selector = selectors.DefaultSelector()
        self._owned: Set[int] = set()
        self._timers: List[Timer] = []
        self._ends: Dict[int, Callable[[int], None]] = {}
        self._idle_seconds: Optional[float] = None
        self._idle: Callable[[], bool] = lambda: False
        self._is_resumed = False  # SIGCONT has come
        self.orphans = Orphans()
        wake, self._wake_in = os.pipe()
        for number in (wake, self._wake_in):
            os.set_blocking(number, False)
            self.own(number)
        self.watch(wake, lambda: read(wake))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGCONT, self._resumed)
        signal.set_wakeup_fd(self._wake_in, warn_on_full_buffer=False)

    # --- descriptors ---

    def own(self, *numbers: int) -> None:
        """These descriptors are not for the processes that this one forks."""
        self._owned.update(numbers)

    def watch(self, number: int, handler: Callable[[], Any]) -> None:
        """Call this whenever there is something to read, or the end of it."""
        self.own(number)
        self._selector.register(number, selectors.EVENT_READ, handler)

    def unwatch(self, number: int) -> None:
        """Look at this descriptor no more; nothing happens if nobody does."""
        if self.watches(number):
            self._selector.unregister(number)

    def watches(self, number: int) -> bool:
        """True if somebody looks at this descriptor."""
        return number >= 0 and number in self._selector.get_map()

    def drain(self, number: int) -> None:
        """Have all handled that a pipe holds now."""
        while self.watches(number) and any(key.fd == number for key, _ in self._selector.select(0)):
            self._selector.get_key(number).data()

    def close(self, *numbers: int) -> None:
        """Close descriptors of this process; those that are closed already are passed over."""
        for number in numbers:
            if number in self._owned:
                self.unwatch(number)
                self._owned.discard(number)
                os.close(number)

    def leave(self) -> None:
        """In a process that was forked from here: close what is not meant for it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        self.orphans.leave()
        self._selector.close()
        for number in self._owned:
            os.close(number)

    # --- processes, times ---

    def when_ended(self, pid: int, action: Callable[[int], None]) -> None:
        """Call this with its status when a process has ended."""
        self._ends[pid] = action

    def ended(self, pid: int, status: int) -> None:
        """A process has ended: tell whoever waits for that."""
        action = self._ends.pop(pid, None)
        if action is not None:
            action(status)

    def waits_for_ends(self) -> bool:
        """True if a process is still to end."""
        return bool(self._ends)

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Do something when this time has come."""
        timer = Timer(when, action)
        self._timers.append(timer)
        return timer

    def when_idle(self, seconds: float, action: Callable[[], bool]) -> None:
        """Do something whenever nothing has happened for as long as this, until it returns False."""
        self._idle_seconds, self._idle = seconds, action

    # --- the loop ---

    def run(self) -> None:
        """Wait and call until `stopping`."""
        while not self.stopping:
            self.before_waiting()
            self._turn(float("inf"))

    def run_until(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Wait and call until something is so, for some seconds at most, whether `stopping` or not."""
        end = time.monotonic() + seconds
        while not is_over() and time.monotonic() < end:
            self._turn(end)

    def _turn(self, end: float) -> None:
        now = time.monotonic()
        due = min([end, *[timer.when for timer in self._timers]])
        idle = self._idle_seconds if self._idle_seconds is not None and now + self._idle_seconds <= due else None
        timeout = idle if idle is not None else None if due == float("inf") else max(0.0, due - now)
        ready = self._selector.select(timeout)
        self._look_for_suspension(now, timeout)
        if not ready and idle is not None and not self._idle():
            self._idle_seconds = None
        for key, _ in ready:
            if self.watches(key.fd) and self._selector.get_key(key.fd) is key:  # An earlier handler of this turn may have closed it.
                key.data()
        self._reap()
        now = time.monotonic()
        late = [timer for timer in self._timers if timer.when <= now]
        self._timers = [timer for timer in self._timers if now < timer.when < float("inf")]
        for timer in late:
            if timer.when <= now:  # An earlier one may have cancelled it.
                timer.action()

    def _resumed(self, *_: Any) -> None:
        self._is_resumed = True

    def _look_for_suspension(self, before: float, timeout: Optional[float]) -> None:
        now = time.monotonic()
        late = now - before - timeout if timeout is not None else 0.0
        if not self._is_resumed and late < LATE:
            return
        self._is_resumed = False
        self.suspensions += 1
        for timer in self._timers:
            timer.begin_anew(now)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.orphans.reaped(pid)
            self.ended(pid, status)
            self.orphans.end()


def read(number: int) -> Optional[bytes]:
    """Returns what a pipe holds now; b"" at its end, None where there is nothing at the moment."""
    try:
        return os.read(number, READ_SIZE)
    except BlockingIOError:
        return None


def write_all(number: int, frame: bytes) -> bool:
    """Write a frame to a pipe; False where nobody reads it any more."""
    view = memoryview(frame)
    try:
        while view:
            view = view[os.write(number, view) :]
    except BrokenPipeError:
        return False
    return True


def kill(pid: int) -> None:
    """End a process and whatever is left of its group."""
    for send, target in ((os.killpg, pid), (os.kill, pid)):
        try:
            send(target, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
