"""When to send what a long run has seen so far, so that it shows while the run goes on."""

from __future__ import annotations

import contextlib
from typing import Callable, Optional, Tuple

from ..sandbox.originals import time

SOON = 0.25  # seconds after which something of a model that nobody has seen yet is sent
EVERY = 0.5  # seconds; a trace that takes long to put together is sent more rarely, so that it slows the run by a fifth at most
SHOWING_SECONDS = 0.008  # that the server takes to show what was said: what is prepared for the next run would be in its way
_NEVER = float("inf")


class Progress:
    """Asked at each call of a module, which costs next to nothing until a trace is due."""

    def __init__(self) -> None:
        self.send: Callable[[], None] = lambda: None  # of the run under way
        self.watch: Optional[Callable[[], None]] = None  # asked at each call too: it may raise
        self.first = EVERY  # seconds until the first trace of an example
        self._due = _NEVER
        self._later: Optional[Tuple[float, Callable[[], None]]] = None

    def after(self, seconds: float, function: Callable[[], None]) -> None:
        """Have a function called some time from now, if modules are still being called then."""
        self._later = time.perf_counter() + seconds, function

    def begin(self) -> None:
        """An example starts."""
        self._due = time.perf_counter() + self.first

    def end(self) -> None:
        """It is over: nothing is sent before the next one starts."""
        self._due = _NEVER

    def look(self) -> None:
        """Let `watch` end what is going on."""
        if self.watch is not None:
            self.watch()

    def tick(self) -> None:
        """Send what there is if it is time."""
        self.look()
        start = time.perf_counter()
        if self._later is not None and start >= self._later[0]:
            function, self._later = self._later[1], None
            function()
        if start < self._due:
            return
        self._due = _NEVER  # What is called on the way must not come here again.
        with contextlib.suppress(Exception):  # A module is half built, say: what is seen so far is shown the next time.
            self.send()
        end = time.perf_counter()
        self._due = end + max(EVERY, 4 * (end - start))
