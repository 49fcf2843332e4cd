"""A file in one line, for a status bar: how many tensors are shown, how many mistakes, how many examples rest on a guess."""

from __future__ import annotations

from dataclasses import dataclass

from shapelens.analysis.evidence import GIVEN, fits_nothing
from shapelens.analysis.shapes import has_tensor
from shapelens.protocol import Trace


@dataclass(frozen=True)
class Summary:
    """tensors: names and results of the file that were seen to hold one; mistakes: errors; guessed: examples of which something is."""

    tensors: int
    mistakes: int
    guessed: int


def summary(trace: Trace | None, mistakes: int) -> Summary:
    """Returns the summary of a file with so many mistakes. trace: None before the first run."""
    trace = trace if trace is not None else Trace("")
    own = (each for each in trace.observations if each.span.file == trace.file and each.kind != "expression")
    places = {each.span for each in own if any(map(has_tensor, each.values))}
    runs = [run for run in trace.examples if not run.file and not fits_nothing(run)]
    guessed = [run for run in runs if run.evidence == "inferred" or (run.doubtful and run.evidence not in GIVEN)]
    return Summary(len(places), mistakes, len(guessed))
