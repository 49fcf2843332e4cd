"""The one folder that a run may write to: named after its process, and removed with it."""

from __future__ import annotations

import glob
import tempfile

from .originals import os, shutil

_TEMPORARY = tempfile.gettempdir()  # as it is outside of a run


def scratch_of(pid: int) -> str:
    """The folder that the run of this process may write to."""
    return os.path.join(_TEMPORARY, "shapelens-scratch-%d" % pid)


def clean_up(pid: int) -> None:
    """Remove the scratch folder of a process that is gone, or of this one, which writes nothing any more and has let down its guard."""
    shutil.rmtree(scratch_of(pid), ignore_errors=True)


def clean_up_after_the_dead() -> None:
    """Remove the scratch folders of processes that were killed together with their worker."""
    for path in glob.glob(os.path.join(_TEMPORARY, "shapelens-scratch-*")):
        pid = path.rpartition("-")[2]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, OSError):
            pass  # Not ours, or somebody else's process.
