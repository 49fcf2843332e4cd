"""A process that does one run: forked ahead of time, it waits for its job with torch loaded and its pages touched."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any, BinaryIO

from ..protocol import Imported, Run, encode
from . import confine
from .framing import read_message
from .prepared import PREPARED


def serve_one(jobs: int, results: int, output: int) -> None:
    """Wait for a run on the `jobs` pipe, do it, send its messages to `results`, and end the process. User prints go to `output`."""
    code = 0
    try:
        os.setsid()
        _redirect(output)
        from .run import execute  # The parent has imported it; this only names it.

        _touch()
        with os.fdopen(jobs, "rb") as incoming, os.fdopen(results, "wb") as outgoing:
            run = read_message(incoming)
            if isinstance(run, Run):
                do(run, outgoing, execute)
    except BaseException:  # Nothing may get past this point: the parent's stack is below.
        import traceback

        traceback.print_exc()
        code = 70
    finally:
        _flush()
        os._exit(code)


def do(run: Run, outgoing: BinaryIO, execute: Any) -> None:
    """Do a run under its limits and write its messages."""

    def send(message: Any) -> None:
        outgoing.write(encode(message))
        outgoing.flush()

    sys.dont_write_bytecode = True
    confine.forbid()
    confine.limit_memory(run.memory_limit)
    confine.limit_time(run.longest)
    try:
        finished = execute(run, send)
    finally:
        confine.no_time_limit()
        _flush()
    send(finished)
    if PREPARED.unprepared:
        send(Imported(PREPARED.unprepared))


def _redirect(output: int) -> None:
    """Standard input is empty; standard output and error, also of C code, go to the pipe for the log."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for number in (nothing, output):
        if number > 2:
            os.close(number)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)


def _touch() -> None:
    """Take the page faults of a first small run now, while nobody waits."""
    import torch

    gc.disable()  # A short-lived process need not collect, and each collection would copy pages of the parent.
    with torch.device("meta"):
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 2))(
            torch.empty(1, 3, 4, 4)
        )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
