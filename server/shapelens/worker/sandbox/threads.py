"""Threads that user code has started and left running: those that only wait harm nobody, one that computes for ever takes a processor."""

from __future__ import annotations

import _thread

from .originals import time

SPINNING = 0.2  # of a processor: one that others want as well is shared


class OtherThreads:
    """The other threads of Python's in this process. To be made by the main thread, before user code runs."""

    def __init__(self) -> None:
        self._before = _thread._count()
        self._since()

    def _since(self) -> None:
        self._wall, self._others = time.monotonic(), _time_of_others()

    def are_left(self) -> bool:
        """True if there are more of them than there were."""
        return _thread._count() > self._before

    def spin(self) -> bool:
        """True if they have been computing since this was last asked, rather than waiting."""
        wall, others = self._wall, self._others
        self._since()
        return self.are_left() and self._others - others > SPINNING * (self._wall - wall)


def _time_of_others() -> float:
    """Seconds of processor time that the other threads of this process have taken."""
    return time.process_time() - time.thread_time()
