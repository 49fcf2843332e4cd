"""Marks in a trace before an example runs, so that its results can be taken away again."""

from __future__ import annotations

from ....protocol import Trace


class Marks:
    """The state of a trace, to go back to."""

    def __init__(self, trace: Trace) -> None:
        self.counts = {name: len(getattr(trace, name)) for name in ("examples", "observations", "layers", "mismatches", "notes")}

    def restore(self, trace: Trace) -> None:
        """Take away what came since."""
        for name, count in self.counts.items():
            del getattr(trace, name)[count:]
