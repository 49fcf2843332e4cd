"""What a run says first: what is wrong, and no more. Its whole trace is a hundred times that, and takes long to send and to read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Set

from ..protocol import LayerSeen, Mismatch, Trace

MOST_TOLD = 32  # mismatches: more are as well sent with the whole trace
# Their messages also say what else the trace has seen.
_NEED_OBSERVATIONS = {"exception"}


def first_words(trace: Trace, layers: Callable[[Set[int]], Dict[int, LayerSeen]]) -> Optional[Trace]:
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
    kept = sorted((layers(wanted) if wanted else {}).items())
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
