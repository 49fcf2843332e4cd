"""Descriptors that are kept from user code: a process in which it has opened as many files as may be can still make pipes."""

from __future__ import annotations

from typing import Optional, Tuple

from .originals import os

RESERVED = 24


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
