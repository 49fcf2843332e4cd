"""Standard output and error of a process that runs user code."""

from __future__ import annotations

import contextlib
import sys
from typing import Iterator

from .originals import os


def flush() -> None:
    """Write what was printed so far."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Silences what is printed, also that of C code."""
    flush()
    held = [(number, os.dup(number)) for number in (1, 2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number, _ in held:
        os.dup2(nothing, number)
    os.close(nothing)
    try:
        yield
    finally:
        flush()
        for number, copy in held:
            os.dup2(copy, number)
            os.close(copy)
