"""Processes that user code has started and left: they come to the nearest of our processes that adopts them, which ends them.

A process that forks and lets its own process group go (`setsid`) is not ended with its group, nor with its parent. Where the kernel refuses
no system calls, or the user allows other processes, that is how something would outlive the editor. Linux alone hands over orphans.
"""

from __future__ import annotations

from typing import List, Set

from ..sandbox import system_calls
from ..sandbox.originals import os, signal


class Orphans:
    """The children of this process that it has not forked itself."""

    def __init__(self) -> None:
        self._is_adopting = False
        self._own: Set[int] = set()

    def adopt(self) -> None:
        """Get those whose parents end, from now on."""
        self._is_adopting = system_calls.adopt_orphans()

    def leave(self) -> None:
        """In a process that was forked from here."""
        self._is_adopting = False
        self._own.clear()

    def forked(self, pid: int) -> None:
        """This one is our own."""
        self._own.add(pid)

    def reaped(self, pid: int) -> None:
        """It has ended, and its number may be another one's."""
        self._own.discard(pid)

    def end(self) -> None:
        """End those that are there, with all that they have started."""
        if not self._is_adopting:
            return
        for pid in children_of(os.getpid()):
            if pid not in self._own:
                end_with_descendants(pid)


def end_with_descendants(pid: int) -> None:
    """End a process, and what it and its descendants have started."""
    found = [pid]
    for each in found:
        found += [child for child in children_of(each) if child not in found]
    for each in found:
        try:
            os.kill(each, signal.SIGKILL)
        except OSError:
            pass  # It has gone by itself.


def children_of(pid: int) -> List[int]:
    """The children of all threads of a process; none where the system does not say."""
    found: List[int] = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread)) as file:
                found += map(int, file.read().split())
    except (OSError, ValueError):
        pass
    return found
