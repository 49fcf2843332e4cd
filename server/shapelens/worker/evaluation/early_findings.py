"""What a run says first: what is wrong, and no more. Its whole trace is a hundred times that, and takes long to send and to read.

The first mismatch is said when it is met: an editor can show it while the rest still runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set

from ...protocol import LayerSeen, Mismatch, Trace, Traced
from ..trace.progress import uncut
from ..unknown import unknown_sizes
from ..unknown.conditions import branches
from .probing import as_seen

if TYPE_CHECKING:
    from ..run import Job

MOST_TOLD = 32  # mismatches: more are as well sent with the whole trace
# Their messages also say what else the trace has seen.
_NEED_OBSERVATIONS = {"exception"}

Layers = Callable[[Set[int]], List[LayerSeen]]


def say_what_is_wrong(job: Job, trace: Trace, layers: Layers) -> None:
    """Send what is wrong in a trace, if that is wanted and can be said by itself; `layers` gives those with these indices."""
    if job.run.findings_first:
        job.has_spoken = True
        found = first_words(trace, layers)
        if found is not None and not (job.said is not None and says_the_same(job.said, found)):
            job.send(Traced(job.run.run_id, "findings", found))
        job.said = found


def expect_mismatch(job: Job) -> None:
    """Send the first mismatch of the example that starts now when it is met, unless what is wrong has been sent before."""
    run = job.run
    if not run.findings_first or job.has_spoken or run.search is not None or len(run.examples) > 1:
        return

    def say_it() -> None:
        job.has_spoken = True
        if branches.asked or unknown_sizes.state.cut:  # Another path may be taken, where nothing is wrong.
            return
        with uncut():
            trace = replace(job.trace, mismatches=job.trace.mismatches + job.calls.mismatches)
            found = first_words(trace, lambda wanted: job.calls.layers(0, as_seen, wanted))
            if found is not None:
                job.send(Traced(run.run_id, "first", found))

    job.calls.on_mismatch = say_it


def first_words(trace: Trace, layers: Layers) -> Optional[Trace]:
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
    """Whether two traces say the same of what is wrong; their layers may have other numbers."""
    return bool(_what(said) == _what(found))


def _what(trace: Trace) -> Any:
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
