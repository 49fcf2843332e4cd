"""How far a trace was before an example ran, so that what it saw can be taken away again."""

from __future__ import annotations

from ....protocol import Trace


class Marks:
    """How far a trace was, to go back there."""

    def __init__(self, trace: Trace) -> None:
        self.counts = {name: len(getattr(trace, name)) for name in ("examples", "observations", "layers", "mismatches", "notes")}

    def restore(self, trace: Trace) -> None:
        """Take away what came since."""
        for name, count in self.counts.items():
            del getattr(trace, name)[count:]
