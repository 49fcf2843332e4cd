"""The first message of a run: its findings, and no more. Its whole trace is a hundred times that, and takes long to send and to read.

The run sends the first mismatch as it meets it: an editor can show it while the rest still runs.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Set

from ...protocol import LayerSeen, Mismatch, Run, Trace, Traced
from ..calls.module_calls import Calls
from ..trace.progress import SHOWING_SECONDS, Progress
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .evaluated import as_seen

MOST_TOLD = 32  # mismatches: more are as well sent with the whole trace
# Their messages also say what else the trace has seen.
_NEED_OBSERVATIONS = {"exception"}

Layers = Callable[[Set[int]], List[LayerSeen]]


class EarlyFindings:
    """The first messages of a run. It calls `known` some time after the findings are known: the rest takes its time."""

    def __init__(self, run: Run, send: Callable[[Any], None], progress: Progress, known: Callable[[], None]) -> None:
        self.run = run
        self.send = send
        self.progress = progress
        self.known = known
        self.said: Optional[Trace] = None  # what is wrong, where it was sent
        self._has_spoken = False  # something of that has been sent, or is not wanted

    def say(self, trace: Trace, layers: Layers, *, suspected: bool = False) -> None:
        """Send what is wrong in a trace, if that is wanted and can be said by itself; `layers` gives those with these indices.

        suspected: it may not be said in the end.
        """
        if self.run.findings_first:
            self._has_spoken = True
            found = findings_alone(trace, layers)
            if found is not None and not (self.said is not None and says_the_same(self.said, found)):
                self.send(Traced(self.run.run_id, "findings", found))
            self.said = None if suspected else found
        if not suspected:
            self.progress.after(SHOWING_SECONDS, self.known)

    def expect_first(self, calls: Calls, trace: Callable[[], Trace]) -> None:
        """Send the first mismatch of the example that starts now when it is met, unless what is wrong has been sent before.

        trace: what there is besides the mismatches of `calls`.
        """
        run = self.run
        if not run.findings_first or self._has_spoken or run.search is not None or len(run.examples) > 1:
            return

        def say_it() -> None:
            self._has_spoken = True
            if branches.asked or unknown_sizes.state.cut:  # Another path may be taken, where nothing is wrong.
                return
            with contextlib.suppress(Exception):  # A module is half built, say: the run will say it.
                before = trace()
                met = replace(before, mismatches=before.mismatches + calls.mismatches)
                found = findings_alone(met, lambda wanted: calls.layers(0, as_seen, wanted))
                if found is not None:
                    self.send(Traced(run.run_id, "first", found))

        calls.on_mismatch = say_it


def findings_alone(trace: Trace, layers: Layers) -> Optional[Trace]:
    """A trace with the mismatches of another one, and of its layers only those that they speak of, numbered anew; None where what is to be
    said of them needs more than that.

    layers: those with these indices.
    """
    mismatches = trace.mismatches
    if len(mismatches) > MOST_TOLD or any(found.code in _NEED_OBSERVATIONS for found in mismatches):
        return None
    if any(example.error_kind == "exception" for example in trace.examples):
        return None
    wanted = {index for found in mismatches for index in _layers_of(found)}
    kept = sorted(((layer.index, layer) for layer in layers(wanted)) if wanted else [], key=lambda each: each[0])
    number = {index: place for place, (index, _) in enumerate(kept)}
    return replace(
        trace,
        observations=[],
        layers=[replace(layer, index=number[index]) for index, layer in kept],
        mismatches=[_renumbered(found, number) for found in mismatches],
        remarks=[],
    )


def _layers_of(found: Mismatch) -> List[int]:
    steps = [step.layer for step in found.origins] + [step.layer for step in found.suspects]
    return [index for index in [found.layer, *steps, *found.inside] if index is not None]


def _renumbered(found: Mismatch, number: Dict[int, int]) -> Mismatch:
    def of(index: Optional[int]) -> Optional[int]:
        return None if index is None else number.get(index)

    return replace(
        found,
        layer=of(found.layer),
        origins=[replace(step, layer=of(step.layer)) for step in found.origins],
        suspects=[replace(step, layer=of(step.layer)) for step in found.suspects],
        inside=[number[index] for index in found.inside if index in number],
    )


def says_the_same(said: Trace, found: Trace) -> bool:
    """True if two traces report the same findings; their layers may have other numbers."""
    return bool(_findings_key(said) == _findings_key(found))


def _findings_key(trace: Trace) -> Any:
    paths = {layer.index: (layer.class_name, layer.path, layer.span) for layer in trace.layers}
    errors = [(example.error, example.error_kind, example.error_span) for example in trace.examples]
    mismatches = [
        (
            replace(found, layer=None, origins=[replace(step, layer=None) for step in found.origins]),
            [paths.get(index) for index in (found.layer, *[step.layer for step in found.origins]) if index is not None],
        )
        for found in trace.mismatches
    ]
    return errors, mismatches, trace.notes
