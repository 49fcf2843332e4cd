"""Documents that no zygote could load, and when it is worth trying again.

What a load was at when it failed is known (`loading/load_progress.py`): once the text of that is another one, the next run is done like any
other. Where it is not known, or the zygote has failed later, runs are done by processes that do not stay. Then another zygote is tried
after one of these has gone well, after two more if that fails too, after four, …
"""

from __future__ import annotations

import stat
from typing import Dict, List, Optional

from ...protocol import Run
from ..loading.load_progress import RunningStatement
from ..sandbox.originals import os

LARGEST_FILE = 1 << 22  # bytes


class Cause:
    """A statement that was being executed. An import is to blame as long as it stands there, other code until its file is changed."""

    def __init__(self, executing: RunningStatement, run: Run) -> None:
        self._file = executing.file
        self._text = text_of(executing.file, run)
        lines = self._text.splitlines()[executing.line - 1 : executing.end_line]
        self._import = {line.strip() for line in lines} if executing.is_import else None

    def is_removed_by(self, run: Run) -> bool:
        """True if a later run does not come to it any more."""
        text = text_of(self._file, run)
        if self._import is None:
            return text != self._text
        return not self._import <= {line.strip() for line in text.splitlines()}


class _FailedLoad:
    def __init__(self, causes: List[Cause], failures: int) -> None:
        self.causes = causes
        self.failures = failures  # in a row
        self.successes = 0  # of runs since


class FailedLoads:
    """By file, how its load failed."""

    def __init__(self) -> None:
        self._failures: Dict[str, _FailedLoad] = {}

    def note(self, run: Run, stack: List[RunningStatement]) -> None:
        """A zygote for this run has failed. stack: what it was at, as far as that is known."""
        before = self._failures.get(run.file)
        causes = [Cause(each, run) for each in stack]
        self._failures[run.file] = _FailedLoad(causes, before.failures + 1 if before is not None else 1)

    def forget(self, file: str) -> None:
        """A zygote has loaded the document, and has proven itself."""
        self._failures.pop(file, None)

    def hold(self, run: Run) -> bool:
        """True if a zygote would fail once more."""
        failure = self._failures.get(run.file)
        if failure is None:
            return False
        return not any(cause.is_removed_by(run) for cause in failure.causes)

    def may_be_tried(self, run: Run) -> bool:
        """A run has gone well without a zygote; whether one is to be tried again."""
        failure = self._failures.get(run.file)
        if failure is None:
            return True
        failure.successes += 1
        return failure.successes >= 1 << (failure.failures - 1)


def text_of(file: str, run: Run) -> str:
    """The text that a run has of a file; "" where it has none."""
    text: Optional[str] = run.text if file == run.file else run.overlays.get(file)
    if text is not None:
        return text
    try:
        found = os.stat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
            return ""
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
