"""Forking, with what has to be taken care of each time."""

from __future__ import annotations

import sys
from typing import Callable, List

from ..sandbox.originals import os
from ..sandbox.output import flush
from .event_loop import EventLoop
from .messages import Fork

Begin = Callable[[Fork, List[int]], None]  # what a forked process does with the descriptors that it got; it never returns


class Forks:
    """Forks processes from this one."""

    def __init__(self, loop: EventLoop, begin: Begin) -> None:
        self._loop = loop
        self._begin = begin

    def fork(self, order: Fork, numbers: List[int]) -> int:
        """The id of a new process. These descriptors are its own from now on: they are closed here."""
        flush()
        pid = os.fork()
        if pid == 0:
            try:
                self._loop.leave()
                self._begin(order, numbers)
            finally:
                os._exit(70)
        self._loop.orphans.forked(pid)
        for number in numbers:
            os.close(number)
        return pid


def pipe_to(loop: EventLoop) -> List[int]:
    """(the reading end, for a process that is forked; the writing end, which stays here)."""
    theirs, ours = os.pipe()
    loop.own(ours)
    return [theirs, ours]


def pipe_from(loop: EventLoop) -> List[int]:
    """(the reading end, which stays here and never blocks; the writing end, for a process that is forked)."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    loop.own(ours)
    return [ours, theirs]


def loaded_packages() -> List[str]:
    """The outermost packages that this process has loaded."""
    return sorted({name.partition(".")[0] for name in list(sys.modules)})
