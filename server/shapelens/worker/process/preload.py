"""Imports the libraries that a file uses before its run, so that every child has them already."""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
from typing import Any, List

SECONDS = 20.0  # for one library; one that takes longer is left to the run


class _TooLong(BaseException):
    pass


def preload(modules: List[str]) -> None:
    """Import what is installed and not yet loaded. A module that fails is left to the run, which reports it."""
    for name in modules:
        if name in sys.modules or not is_library(name):
            continue
        previous = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            importlib.import_module(name)
        except (Exception, _TooLong, SystemExit):
            for part in [part for part in sys.modules if part == name or part.startswith(name + ".")]:
                del sys.modules[part]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)


def _stop(number: int, frame: Any) -> None:
    raise _TooLong()


def is_library(name: str) -> bool:
    """Whether an absolute import finds an installed package: code of the workspace changes, and is never kept."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    origin = getattr(spec, "origin", None) or ""
    return "site-packages" in origin or "dist-packages" in origin or name in getattr(sys, "stdlib_module_names", ())
