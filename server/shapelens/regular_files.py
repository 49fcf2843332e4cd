"""Reads files without ever waiting and without end: a device, a pipe, a folder or a huge file is refused. For server and worker: standard
library only, Python 3.9.

Any name in a workspace may belong to something else than a file: a symbolic link `model.py` to `/dev/zero` has no end, and whoever opens a
named pipe waits for somebody to write into it.
"""

from __future__ import annotations

import errno
import os
import stat

LARGEST = 32 << 20  # bytes: no text that anybody writes is larger

# A pipe that takes a file's place after it was looked at is opened without waiting for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 20


def read_regular(path: str | os.PathLike[str], largest: int = LARGEST) -> bytes:
    """The content of a regular file. Raises OSError for anything else, and for a file of more than `largest` bytes."""
    try:
        _refuse(os.stat(path), path, largest)
        descriptor = os.open(path, _FLAGS)
    except ValueError as error:  # A name with a NUL in it, or with a lone surrogate.
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from None
    try:
        _refuse(os.fstat(descriptor), path, largest)
        chunks, size = [], 0
        # What the system says of a size need not be true: files below /proc have size 0.
        while chunk := os.read(descriptor, _CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > largest:
                raise _too_large(path, largest)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _refuse(found: os.stat_result, path: str | os.PathLike[str], largest: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if found.st_size > largest:
        raise _too_large(path, largest)


def _too_large(path: str | os.PathLike[str], largest: int) -> OSError:
    return OSError(errno.EFBIG, "larger than %d MB" % (largest >> 20), os.fspath(path))
