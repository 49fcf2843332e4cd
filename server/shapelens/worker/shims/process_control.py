"""User code and its own process: it ends as an example only, and takes away nothing that a run needs.

`os._exit(3)` ends the example at its line, as `sys.exit(3)` does. Timers, limits, blocked signals and audit hooks are what a run is held
by: user code may set them, and nothing comes of it. The descriptors of a run are closed to it. C code can do all of that nevertheless;
then the process has to be ended from outside.
"""

from __future__ import annotations

import errno
import signal
import sys
from typing import Any, Callable, List

from ..sandbox.descriptors import OWN, STANDARD
from ..sandbox.exceptions import ProcessEnded
from ..sandbox.originals import os
from .compilers import Replacement


def replacements() -> List[Replacement]:
    """Returns what takes the place of Python's functions for the time of a run."""
    return [
        *_ends(),
        *_descriptors(),
        *((signal, name, _told(signal.__dict__[name])) for name in ("signal", "sigaction", "siginterrupt") if name in signal.__dict__),
        *((signal, name, _nothing(value)) for name, value in _SIGNAL_RESULTS.items() if hasattr(signal, name)),
        *_limits(),
        (sys, "addaudithook", _nothing(None)),
    ]


_SIGNAL_RESULTS = {"setitimer": (0.0, 0.0), "alarm": 0, "pthread_sigmask": set(), "set_wakeup_fd": -1}


def _nothing(result: Any) -> Callable[..., Any]:
    def changed(*args: Any, **kwargs: Any) -> Any:
        return result

    return changed


def _told(original: Callable[..., Any]) -> Callable[..., Any]:
    """Handlers of signals are not set; what user code is told is what was there."""

    def changed(number: Any, *args: Any, **kwargs: Any) -> Any:
        return signal.getsignal(number)

    return changed


def _limits() -> List[Replacement]:
    try:
        import resource
    except ImportError:
        return []
    return [(resource, name, _nothing(None)) for name in ("setrlimit", "prlimit") if hasattr(resource, name)]


# --- the end of the process ---


def _ends() -> List[Replacement]:
    me = os.getpid
    original = {name: getattr(os, name) for name in ("kill", "killpg") if hasattr(os, name)}

    def ended(text: str) -> Callable[..., Any]:
        def end(status: Any = None) -> Any:
            raise ProcessEnded(text % (status,) if "%" in text else text)

        return end

    def kill(pid: int, number: int) -> None:
        if number and pid in (0, -1, me()):
            raise ProcessEnded("os.kill(%s, %s)" % (pid if pid <= 0 else "os.getpid()", int(number)))
        original["kill"](pid, number)

    def killpg(group: int, number: int) -> None:
        if number and group in (0, os.getpgrp()):
            raise ProcessEnded("os.killpg(%s, %s)" % (group, int(number)))
        original["killpg"](group, number)

    import os as of_user

    found: List[Replacement] = [(of_user, "_exit", ended("os._exit(%s)")), (of_user, "abort", ended("os.abort()"))]
    if "kill" in original:
        found.append((of_user, "kill", kill))
    if "killpg" in original:
        found.append((of_user, "killpg", killpg))
    if hasattr(signal, "raise_signal"):
        found.append((signal, "raise_signal", ended("signal.raise_signal(%s)")))
    return found


# --- descriptors ---

# Functions that close a descriptor or write to it: how many of their arguments are descriptors, and whether standard output may be one.
_CHANGING = {
    "close": (1, False), "dup2": (2, False), "ftruncate": (1, False), "sendfile": (1, True),
    "write": (1, True), "writev": (1, True), "pwrite": (1, True),
}  # fmt: skip


def _descriptors() -> List[Replacement]:
    import os as of_user

    def guarded(name: str) -> Callable[..., Any]:
        original, (places, is_output) = getattr(os, name), _CHANGING[name]

        def guarded_function(*args: Any, **kwargs: Any) -> Any:
            for number in args[:places]:
                if type(number) is int and number in OWN.numbers and not (is_output and number in STANDARD):
                    raise OSError(errno.EBADF, "Bad file descriptor")
            return original(*args, **kwargs)

        return guarded_function

    def closerange(low: int, high: int) -> None:
        start = low
        for number in [*sorted(number for number in OWN.numbers if low <= number < high), high]:
            if start < number:  # An empty range would stand for all descriptors.
                os.closerange(start, number)
            start = number + 1

    found: List[Replacement] = [(of_user, name, guarded(name)) for name in _CHANGING if hasattr(os, name)]
    return [*found, (of_user, "closerange", closerange)]
