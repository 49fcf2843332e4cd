"""Statements that end a run while its document is loaded, or never end themselves: they are looked for line by line, and left out."""

from __future__ import annotations

from dataclasses import replace

from shapelens.protocol import Finished, LeftOutStatement, Run

MOST = 4  # of one run
ENDLESS = "this did not come to an end while the file was loaded"


class LeftOutStatements:
    """Those of one run."""

    def __init__(self) -> None:
        self.line = 0  # of the statement that is executed, as far as that was told; 0 for none
        self._looked_for: Run | None = None  # the run that one is looked for in
        self._looks = 0
        self._is_tried_again = False

    @property
    def are_looked_for(self) -> bool:
        """Whether the run under way only loads the document."""
        return self._looked_for is not None

    def look(self, run: Run) -> Run | None:
        """A run that tells which statement ends this one; None where enough of them were found."""
        if self._looks == MOST:
            return None
        self._looks, self._looked_for, self.line = self._looks + 1, run, 0
        return replace(run, examples=[], search=None, program=0.0, named=False, findings_first=False, line_by_line=True)

    def found(self, finished: Finished) -> Run | None:
        """How the run goes on, as the look has ended: without a statement, or as it is where all could be loaded; None if at all."""
        run, self._looked_for = self._looked_for, None
        if run is None or finished.outcome == "cancelled":
            return None
        if finished.outcome == "ok" and not self._is_tried_again:
            self._is_tried_again = True
            return run
        if finished.outcome == "ok" or not self.line or any(each.line == self.line for each in run.left_out):
            self._looks = MOST
            return None
        message = ENDLESS if finished.outcome == "deadline" else finished.detail
        return replace(run, left_out=[*run.left_out, LeftOutStatement(self.line, message)])
