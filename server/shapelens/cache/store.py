"""JSON values by key, in files of one folder: bounded in size, shared by any number of processes.

Each value is a file of its own that is written beside its place and moved there at once, so that a reader finds all of it or nothing, and
no lock is ever held. (diskcache and other stores with a database or pickle in them would have to trust what lies in the folder.)
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shapelens.regular_files import read_regular

logger = logging.getLogger(__name__)

LIMIT = 200 << 20  # bytes
# After so many of its bytes a process looks whether the folder has grown too large; others may write to it as well.
LOOK_EVERY = 10 << 20
KEPT_SHARE = 0.8  # of the limit is left when something has to go
ABANDONED_SECONDS = 3600.0  # after which a file that somebody began to write will not be finished any more
# Tools for backups leave such a folder out (https://bford.info/cachedir/).
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# What ShapeLens saw in your files; it may be removed at any time.\n"
UNFINISHED = ".new"


class Store:
    """`folder` is made when first written to. Nothing is raised for what is in it, nor where it cannot be written: then nothing is kept."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self._limit = limit
        self._written = LOOK_EVERY  # The first write looks whether there is room.

    def get(self, key: str) -> Any:
        """The value of a key (a digest in hex), or None. It counts as used now; one that is damaged is removed."""
        path = self._path(key)
        try:
            content = read_regular(path, LIMIT)
        except OSError:
            return None
        try:
            value = json.loads(zlib.decompress(content))
        except (zlib.error, ValueError, RecursionError):
            self.remove(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return value

    def put(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold in the place of what the key had."""
        content = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)
        path = self._path(key)
        try:
            self._make(path.parent)
            number, name = tempfile.mkstemp(UNFINISHED, dir=path.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(content)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            logger.debug("nothing is kept in %s: %s", self.folder, error)
            return
        self._written += len(content)
        if self._written > min(LOOK_EVERY, self._limit // 4):
            self._written = 0
            self._trim()

    def remove(self, key: str) -> None:
        """Forget a key."""
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def clear(self) -> int:
        """Forget all of it. Returns the number of bytes that this gave back."""
        size = sum(stat.st_size for _, stat in self._entries())
        shutil.rmtree(self.folder, ignore_errors=True)
        return size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            # What is kept quotes the user's code, which is nobody else's business.
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            tag = self.folder / "CACHEDIR.TAG"
            if not tag.exists():
                tag.write_text(TAG, "utf-8")
            folder.mkdir(exist_ok=True)

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """The files of all values, and those that are being written."""
        try:
            folders = [entry.path for entry in os.scandir(self.folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for folder in folders:
            with contextlib.suppress(OSError):  # Another process may be at work here as well.
                for entry in os.scandir(folder):
                    yield entry.path, entry.stat(follow_symlinks=False)

    def _trim(self) -> None:
        """Remove what was not used for longest until there is room again."""
        entries = sorted(self._entries(), key=lambda each: each[1].st_mtime)
        size = sum(stat.st_size for _, stat in entries)
        wanted = self._limit * KEPT_SHARE if size > self._limit else size
        for path, stat in entries:
            unfinished = path.endswith(UNFINISHED)
            if size <= wanted and not unfinished:
                continue
            if unfinished and time.time() - stat.st_mtime < ABANDONED_SECONDS:
                continue
            with contextlib.suppress(OSError):
                Path(path).unlink()
                size -= stat.st_size


def removal(size: int, store: Store | None) -> str:
    """Returns what to tell a user whose cache was emptied."""
    where = f" from {store.folder}" if store is not None else ""
    return f"{size / 1e6:.1f} MB removed{where}"
