"""Statements that end a run while its document is loaded, or never end themselves: they are looked for line by line, and left out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from shapelens.protocol import Executing, Finished, LeftOutStatement, Run

MOST = 4  # of one run
ENDLESS = "this did not come to an end while the file was loaded"


class KnownStatements:
    """Statements that have ended runs before, by file: as long as they stand there as they did, they are left out from the start."""

    def __init__(self) -> None:
        self._by_file: defaultdict[str, dict[str, str]] = defaultdict(dict)  # what is said of them, by their texts

    def note(self, run: Run, executed: Executing, message: str) -> None:
        """A statement has ended a run. That of an import may be due to the machine, and is tried again."""
        if not executed.is_import:
            statement = "\n".join(run.text.split("\n")[executed.line - 1 : executed.end_line])
            if statement:  # Lines that end at a lone carriage return are others.
                self._by_file[run.file][statement] = message

    def without(self, run: Run) -> Run:
        """The run without them."""
        known = self._by_file.get(run.file, {}) if not run.left_out else {}
        left_out = []
        for statement, message in known.items():
            before, found, _ = f"\n{run.text}\n".partition(f"\n{statement}\n")
            left_out += [LeftOutStatement(before.count("\n") + 1, message)] if found else []
        return replace(run, left_out=left_out) if left_out else run

    def forget(self) -> None:
        """Try all of them again."""
        self._by_file.clear()


class LeftOutStatements:
    """Those of one run."""

    def __init__(self, known: KnownStatements) -> None:
        self.executed: Executing | None = None  # the statement that is executed, as far as that was told
        self._known = known
        self._looked_for: Run | None = None  # the run that one is looked for in
        self._looks = 0
        self._is_tried_again = False

    @property
    def are_looked_for(self) -> bool:
        """True if the run under way only loads the document."""
        return self._looked_for is not None

    def look(self, run: Run) -> Run | None:
        """A run that tells which statement ends this one; None where enough of them were found."""
        if self._looks == MOST:
            return None
        self._looks, self._looked_for, self.executed = self._looks + 1, run, None
        return replace(run, examples=[], search=None, program=0.0, named=False, findings_first=False, line_by_line=True)

    def found(self, finished: Finished) -> Run | None:
        """Returns how the run goes on after the look: without a statement, or as it is where all could be loaded; None if at all."""
        run, self._looked_for = self._looked_for, None
        if run is None or finished.outcome == "cancelled":
            return None
        if finished.outcome == "ok" and not self._is_tried_again:
            self._is_tried_again = True
            return run
        executed = self.executed
        if finished.outcome == "ok" or executed is None or not executed.line or executed.line in [each.line for each in run.left_out]:
            self._looks = MOST
            return None
        message = ENDLESS if finished.outcome == "deadline" else finished.detail
        self._known.note(run, executed, message)
        return replace(run, left_out=[*run.left_out, LeftOutStatement(executed.line, message)])
