"""The bounds of a process that imports libraries ahead of the runs: those of a run, but that it forks others.

A library may write a cache of its own as it is imported, most often below the home folder. Where there is no such cache yet, the library is
told to keep it in the process' scratch folder. One that is there already is read, and stays as it is.
"""

from __future__ import annotations

import sys
from typing import Dict, List

from . import kernel_boundary, system_calls
from .allowed_acts import allow
from .audit_hook import forbid, opened, trust
from .originals import os
from .scratch_folder import folder_of_worker, scratch_of

# The variable that says where a library keeps its cache, and the folder below the home folder without it ("": beside its modules).
_CACHES: Dict[str, str] = {
    "MPLCONFIGDIR": ".config/matplotlib" if sys.platform.startswith("linux") else ".matplotlib",
    "NUMBA_CACHE_DIR": "", "YOLO_CONFIG_DIR": ".config/Ultralytics", "KERAS_HOME": ".keras",
    "IPYTHONDIR": ".ipython", "JUPYTER_CONFIG_DIR": ".jupyter", "WANDB_CACHE_DIR": ".cache/wandb", "WANDB_CONFIG_DIR": ".config/wandb",
}  # fmt: skip
_SETTINGS = {"GIT_PYTHON_REFRESH": "quiet"}  # GitPython starts a program as it is imported, and is not imported without an answer.


def confine(acts: List[str]) -> None:
    """Hold this process, and those that it forks, to what a run may do and to what the user allows, once and for all."""
    allow(acts)
    forbid()
    trust()
    redirect_caches()
    if not kernel_boundary.was_confined():  # The process that has forked this one was held to the same.
        kernel_boundary.confine_to(folder_of_worker())
        system_calls.refuse(forks=True)


def foreign_code_begins() -> None:
    """From now on the code of a library runs."""
    forbid()


def foreign_code_ended() -> None:
    """From now on our own code runs. What libraries have read as they were imported is no run's."""
    trust()
    opened.clear()


def redirect_caches() -> None:
    """Where there is no cache of a library's yet, have it kept in the scratch folder of this process, which is there."""
    home = os.path.expanduser("~")
    for name, folder in _CACHES.items():
        is_free = name not in os.environ and not (folder and os.path.isdir(os.path.join(home, *folder.split("/"))))
        if is_free or os.environ.get(name, "").startswith(folder_of_worker()):
            os.environ[name] = os.path.join(scratch_of(os.getpid()), "caches", name.lower())
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
