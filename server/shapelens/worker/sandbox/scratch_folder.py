"""The one folder that a run may write to: named after its process, removed with it, below a folder of the worker's.

The worker's folder has a name that nobody can know in advance, as somebody else could have put a link in its place.
"""

from __future__ import annotations

import glob
import tempfile

from .originals import os, shutil

_TEMPORARY = tempfile.gettempdir()  # as it is outside of a run
_PREFIX = "shapelens-scratch-"


class _Worker:
    folder = ""


def folder_of_worker() -> str:
    """The folder of this worker, which all of its processes share. To be asked for before the first one is forked."""
    if not _Worker.folder:
        _Worker.folder = tempfile.mkdtemp(prefix="%s%d-" % (_PREFIX, os.getpid()), dir=_TEMPORARY)
    return _Worker.folder


def scratch_of(pid: int) -> str:
    """The folder that the run of this process may write to."""
    return os.path.join(folder_of_worker(), str(pid))


def clean_up(pid: int) -> None:
    """Remove the scratch folder of a process that is gone, or of this one, which writes nothing any more and has let down its guard."""
    shutil.rmtree(scratch_of(pid), ignore_errors=True)


def clean_up_worker() -> None:
    """Remove the folder of this worker, none of whose processes writes anything any more."""
    shutil.rmtree(folder_of_worker(), ignore_errors=True)


def clean_up_after_the_dead() -> None:
    """Remove the folders of workers that were killed."""
    for path in glob.glob(os.path.join(_TEMPORARY, _PREFIX + "*")):
        pid = os.path.basename(path)[len(_PREFIX) :].partition("-")[0]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, OSError):
            pass  # Not ours, or somebody else's process.
