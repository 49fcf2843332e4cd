"""Notes what a run read besides its texts: the modules that it imported and the files that it opened, where they are no library's."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any, List

from ..locations import OURS
from .audit_hook import opened
from .scratch_folder import scratch_of

_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_SYSTEM = tuple(os.sep + name + os.sep for name in ("proc", "sys", "dev"))
_LOADED = frozenset(sys.modules)  # torch and what it needs


def files() -> List[str]:
    """By absolute path, in no order of importance. Of a file that was not there it is known that it was asked for."""
    paths = {os.path.abspath(name) for name in opened if not name.endswith(".pyc")}
    for name in list(sys.modules):
        if name not in _LOADED:
            file = _file_of(sys.modules[name])
            if isinstance(file, str) and os.path.isabs(file):
                paths.add(file)
    elsewhere = (OURS, *_LIBRARIES, *_SYSTEM, scratch_of(os.getpid()) + os.sep)
    return sorted(path for path in paths if not path.startswith(elsewhere) and not _is_installed(path))


def _file_of(module: Any) -> Any:
    try:
        return object.__getattribute__(module, "__dict__").get("__file__")  # A lazy module is not to be loaded by this.
    except AttributeError:
        return None


def _is_installed(path: str) -> bool:
    parts = path.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts
