"""The network: there is none, and nothing waits for it. A question to a hub or a server is answered with its client's own error, at once.

The audit hook of the process (sandbox/audit_hook.py) refuses each connection. Clients take a refusal for a passing failure and try again
after a pause, so that pauses end at once, and the hubs' clients are told that they are offline: they look into their caches and no
further.
"""

from __future__ import annotations

import threading
import time
from types import ModuleType
from typing import Any, List

from .compilers import Replacement

_sleep = time.sleep


def _no_pause(seconds: Any) -> None:
    """time.sleep: what code waits for does not come; only threads that share the processor with the code give way to it."""
    if threading.current_thread() is not threading.main_thread():
        _sleep(seconds)


def replacements() -> List[Replacement]:
    """Returns what takes the place of Python's functions for the time of a run."""
    return [(time, "sleep", _no_pause)]


def offline(module: ModuleType) -> List[Replacement]:
    """The constants of `huggingface_hub` and `datasets`, which their clients look at before they ask."""
    names = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")
    return [(module, name, True) for name in names if name in module.__dict__]
