"""Descriptors that are kept from user code: those of a run, and as many as a process needs that can still make pipes when user code has
opened as many files as may be.
"""

from __future__ import annotations

from typing import Optional, Set, Tuple

from .originals import os

RESERVED = 24


STANDARD = (0, 1, 2)
FAR_AWAY = 900  # descriptors of ours have higher numbers, out of the way of `os.closerange(3, 256)`


class OwnDescriptors:
    """The descriptors of this process that user code neither closes nor writes to."""

    def __init__(self) -> None:
        self.numbers: Set[int] = set(STANDARD)

    def take(self, number: int) -> int:
        """Make a descriptor our own; it gets another number."""
        try:
            import fcntl

            moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FAR_AWAY)
        except (ImportError, OSError):  # There are no numbers that high.
            self.numbers.add(number)
            return number
        os.close(number)
        self.numbers.add(moved)
        return moved


OWN = OwnDescriptors()


class Reserve:
    """As many descriptors as a zygote needs for its children, and the limit that held when they were taken."""

    def __init__(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        self._numbers = [nothing, *(os.dup(nothing) for _ in range(RESERVED - 1))]
        self._limit = _limit()

    def give_back(self) -> None:
        """User code has run. Raises OSError where it has taken them away all the same."""
        if self._limit is not None and _limit() != self._limit:
            import resource

            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, self._limit)
            except ValueError as error:
                raise OSError("the limit of open files was lowered for good") from error
        for number in self._numbers:
            os.close(number)
        self._numbers = [os.dup(0) for _ in range(RESERVED)]
        for number in self._numbers:
            os.close(number)


def _limit() -> Optional[Tuple[int, int]]:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)
