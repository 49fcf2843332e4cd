"""Notes what a run read, and whether it still is the same: texts by their digest, folders by the names in them."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import shapelens
from shapelens.regular_files import read_regular

# A larger file (data that the code reads) counts as the same while its size and time of change are.
LARGEST_TEXT = 4 << 20  # bytes

# The states of files by path, and of folders by path, as JSON has them.
ReadState = list[dict[str, str]]


def digest(*parts: Any) -> str:
    """A digest, in hex, of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def version() -> str:
    """Returns what all that is kept depends on besides its inputs: our own code, of whatever version."""
    found = []
    root = str(Path(shapelens.__file__).parent)
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):  # Text is enough here: hundreds of paths would take longer, and the first answer waits for this.
                stat = os.stat(f"{place}{os.sep}{name}")  # noqa: PTH116
                found.append((f"{place[len(root) + 1 :]}{os.sep}{name}", stat.st_size, stat.st_mtime_ns))
    return digest(shapelens.__version__, found)


class ResultInputs:
    """The files and folders that results depend on. A file that has the size and time of its last look is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], str]] = {}

    def state(self, path: str) -> str:
        """Returns what changes whenever the content of a file does; "" where there is none."""
        try:
            stat = os.stat(path)  # noqa: PTH116  Thousands of these are asked for at once.
            key = (stat.st_mtime_ns, stat.st_size)
            known = self._known.get(path)
            if known is None or known[0] != key:
                known = self._known[path] = (key, _digest_of(path, key))
            return known[1]
        except (OSError, ValueError):
            return ""

    def now(self, files: Iterable[str], folders: Iterable[str] = ()) -> ReadState:
        """The states of files, and the names in folders."""
        return [{path: self.state(path) for path in sorted(files)}, {path: self.names(path) for path in sorted(folders)}]

    def same(self, read: ReadState) -> bool:
        """True if files and folders still are as they were. Raises TypeError, ValueError or AttributeError for what is no ReadState."""
        files, folders = read
        return all(self.state(path) == state for path, state in files.items()) and all(
            self.names(path) == names for path, names in folders.items()
        )

    def names(self, folder: str) -> str:
        """Returns what changes whenever a module or package appears in a folder or vanishes from it."""
        try:
            with os.scandir(folder) as entries:
                return digest(sorted(each.name for each in entries if _may_be_module(each)))
        except OSError:
            return ""


def _may_be_module(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") or (entry.is_dir() and entry.name[0] not in "._")


def _digest_of(path: str, key: tuple[int, int]) -> str:
    if key[1] > LARGEST_TEXT or not os.path.isfile(path):  # noqa: PTH113
        return repr(key)
    return hashlib.sha256(read_regular(path, LARGEST_TEXT)).hexdigest()
