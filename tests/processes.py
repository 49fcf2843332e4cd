"""Processes that end while a test looks at them: a child whose run is over is gone, no fault."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable

import psutil


def children(process: psutil.Process) -> list[psutil.Process]:
    """Those that a process has started itself; none once it has ended."""
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def family(pid: int) -> list[psutil.Process]:
    """A process that lives, and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def send(signal_: signal.Signals, processes: Iterable[psutil.Process]) -> None:
    """A signal to each that has not ended."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal_)
