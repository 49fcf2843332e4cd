"""Modules of the standard library as they were before user code could replace what is in them.

What has to work after user code has run (writing a message, ending the process, forking) takes its functions from here: `os.write = None`
or `os._exit = lambda code: None` in a user's file then changes nothing of ours. coverage.py shields itself in the same way.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gc as gc
    import os as os
    import select as select
    import shutil as shutil
    import signal as signal
    import time as time
else:
    import gc as _gc
    import os as _os
    import select as _select
    import shutil as _shutil
    import signal as _signal
    import time as _time

    def _copy(module: ModuleType) -> Any:
        copy = ModuleType(module.__name__)
        copy.__dict__.update(module.__dict__)
        return copy

    gc, os, select, shutil, signal, time = map(_copy, (_gc, _os, _select, _shutil, _signal, _time))
