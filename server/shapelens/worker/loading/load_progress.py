"""Which statements of the user's modules a process executes while it loads them, for another process to see.

A statement that does not end can say nothing of itself, and one that ends its process cannot either. So each is noted, before it is
executed, in memory that both processes have: one entry for each level, as a module's import executes the statements of that module.
An entry that was left behind by a statement that has ended is told by its number: those above it are older.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from typing import Callable, List, NamedTuple, Optional, Union

from ..sandbox.originals import os, time

MOST_LEVELS = 32
_SIZE = 1024  # bytes of an entry
_ENTRY = struct.Struct("=qdii?H")  # number, since, first line, last line, whether it is an import, length of the file's name


class RunningStatement(NamedTuple):
    """A statement at module level. since: of `time.monotonic`."""

    file: str
    line: int
    end_line: int
    is_import: bool
    since: float


class LoadProgress:
    """The memory, seen from either side."""

    def __init__(self, number: int) -> None:
        self._memory = mmap.mmap(number, MOST_LEVELS * _SIZE)
        self._count = 0

    def begin(self, level: int, file: str, line: int, end_line: int, is_import: bool) -> None:
        """A statement is about to be executed. level: 0 for the document's own."""
        if level < MOST_LEVELS:
            self._count += 1
            name = file.encode("utf-8", "surrogateescape")[: _SIZE - _ENTRY.size]
            entry = _ENTRY.pack(self._count, time.monotonic(), line, end_line, is_import, len(name)) + name
            self._memory[level * _SIZE : level * _SIZE + len(entry)] = entry

    def go_on(self, level: int) -> None:
        """A statement has ended. Its number says so as soon as another one begins."""

    def end(self) -> None:
        """All that was to be loaded is."""
        self._memory[: _ENTRY.size] = bytes(_ENTRY.size)

    def stack(self) -> List[RunningStatement]:
        """Returns what is being executed, the document's statement first; nothing before the load and after it."""
        found: List[RunningStatement] = []
        last = 0
        for start in range(0, MOST_LEVELS * _SIZE, _SIZE):
            count, since, line, end_line, is_import, length = _ENTRY.unpack_from(self._memory, start)
            if count <= last:
                break
            last = count
            name = self._memory[start + _ENTRY.size : start + _ENTRY.size + length]
            found.append(RunningStatement(name.decode("utf-8", "surrogateescape"), line, end_line, is_import, since))
        return found

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


class ToldProgress:
    """Word of each statement of one file. tell: called with the one that is executed, None for none."""

    def __init__(self, file: str, tell: Callable[[Optional[RunningStatement]], None]) -> None:
        self._file = file
        self._tell = tell
        self._running: List[Optional[RunningStatement]] = []  # by level; None for those of other files

    def begin(self, level: int, file: str, line: int, end_line: int, is_import: bool) -> None:
        """A statement is about to be executed."""
        self._running[level:] = [RunningStatement(file, line, end_line, is_import, 0.0) if file == self._file else None]
        self._say()

    def go_on(self, level: int) -> None:
        """A statement has ended, and the one that it stood in goes on."""
        del self._running[level:]
        self._say()

    def _say(self) -> None:
        self._tell(next((each for each in reversed(self._running) if each is not None), None))


class _OwnProgress:
    progress: Optional[Union[LoadProgress, ToldProgress]] = None  # of this process, where somebody wants to see it


shared = _OwnProgress()


def memory() -> int:
    """A descriptor of memory for it. Raises OSError."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("shapelens-load")
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    os.truncate(number, MOST_LEVELS * _SIZE)
    return number
