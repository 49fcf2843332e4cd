"""Starts a worker: take the pipes away from user code, say who answers, load torch, serve."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from typing import Optional, Tuple

from ... import traces
from ...dataclass_json import dataclasses_of, prepare
from ...protocol import VERSION, Finished, Hello, Ready, Traced, encode

OLDEST_TORCH = (2, 1)


def start(fork: bool) -> None:
    """Serve on what are standard input and output now; user code will find other files there."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # Prints that come from imports go to the log.
    os.close(nothing)
    started = time.perf_counter()
    gc.disable()  # Looking through all that torch loads, again and again, would take a seventh of the time.
    torch, error = load_torch()
    from ..sandbox import kernel_boundary, system_calls  # They need ctypes, which torch has loaded.

    held = (kernel_boundary.version(), system_calls.are_filtered()) if fork else (0, False)  # The process with the pipes is not confined.
    hello = Hello(VERSION, platform.python_version(), sys.executable, os.getpid(), fork, torch, error, list(sys.path), *held)
    _write(outgoing, encode(hello))
    if error is not None:
        return
    from .. import run  # noqa: F401  `run` is for the children: they fork with it loaded.
    from ..sandbox import monkeypatches
    from ..shims import compilers, initialisers
    from . import warm

    warm.leave_out_the_compiler()
    warm.load_kernels()
    initialisers.make_free()
    _write(outgoing, encode(Ready(time.perf_counter() - started)))
    monkeypatches.take_snapshot()
    monkeypatches.replaced_in_runs(compilers.replacements())
    prepare([Traced, Finished, *dataclasses_of(traces)])  # Those who are forked have it then.
    gc.freeze()
    gc.enable()
    if fork:
        from .main_process import MainProcess

        MainProcess(incoming, outgoing).serve()
    else:
        from .in_process import InProcessWorker

        InProcessWorker(incoming, outgoing).serve()
    # Python's own way out of a process with torch in it takes 0.8 s, and nothing is left to save.
    sys.stderr.flush()
    os._exit(0)


def load_torch() -> Tuple[Optional[str], Optional[str]]:
    """(version, what is wrong): one of them is None, or both are set for a torch that is too old."""
    try:
        import torch

        version = str(torch.__version__)
        numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2])
    except ImportError as error:
        if getattr(error, "name", "") == "torch":
            return None, "torch is not installed in %s" % sys.executable
        return None, "torch cannot be imported: %s" % error
    except Exception as error:  # A broken installation can raise anything.
        return None, "torch cannot be imported: %s: %s" % (type(error).__name__, error)
    if numbers < OLDEST_TORCH:
        return version, "torch %s is too old: ShapeLens needs 2.1 or newer" % version
    return version, None


def _write(number: int, frame: bytes) -> None:
    view = memoryview(frame)
    while view:
        view = view[os.write(number, view) :]
