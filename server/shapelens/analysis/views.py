"""What the runs of several files saw, from the point of view of one file: its own run, and the runs of files that import it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ..protocol import Mismatch, Remark, Trace, Value
from ..source.module import Module

Told = TypeVar("Told", Mismatch, Remark)


def seen_from(trace: Trace, file: str) -> Trace:
    """A run of another file as this file sees it: what the run saw in it, and the mismatches whose place is here. The examples stay the
    other file's, and say so."""
    observations = [seen for seen in trace.observations if seen.span.file == file]
    examples = [replace(example, file=trace.file) for example in trace.examples]
    mismatches = [mismatch for mismatch in trace.mismatches if _lies_in(trace, mismatch, file)]
    wanted = {span.file for mismatch in mismatches for span in mismatch.trail} - {file}
    # What is said of a mismatch may need the values of the files that it was called through.
    observations += [seen for seen in trace.observations if seen.span.file in wanted]
    remarks = [remark for remark in trace.remarks if remark.span is not None and remark.span.file == file]
    return replace(trace, file=file, examples=examples, observations=observations, mismatches=mismatches, remarks=remarks)


def reaches(trace: Trace, file: str) -> bool:
    """Whether a run went through a file: imported it, or saw something of it."""
    return file in trace.files or any(seen.span.file == file for seen in trace.observations)


def see_all(module: Module, traces: Iterable[Trace]) -> bool:
    """Whether each module class of a file was constructed in some run. Where there is none, whether anything was."""
    seen = {layer.class_name for trace in traces for layer in trace.layers}
    return bool(seen) and all(cls.name in seen for cls in module.classes)


def _lies_in(trace: Trace, mismatch: Mismatch, file: str) -> bool:
    innermost = mismatch.span or (mismatch.trail[-1] if mismatch.trail else None)
    constructed = trace.layers[mismatch.layer].span if mismatch.layer is not None else None
    return any(span is not None and span.file == file for span in (innermost, constructed if mismatch.argument else None))


def merged(file: str, traces: Sequence[Trace]) -> Trace:
    """Several traces of one file as one. Examples and layers are numbered on from those of the trace before."""
    whole = Trace(file)
    for trace in traces:
        examples, layers = len(whole.examples), len(whole.layers)
        moved = trace if not examples and not layers else _renumbered(trace, examples, layers)
        whole.examples += moved.examples
        whole.observations += moved.observations
        whole.layers += moved.layers
        whole.mismatches += moved.mismatches
        whole.remarks += moved.remarks
        whole.notes += [note for note in moved.notes if note not in whole.notes]
        whole.files += [other for other in moved.files if other not in whole.files]
    return whole


def _renumbered(trace: Trace, examples: int, layers: int) -> Trace:
    return replace(
        trace,
        observations=[
            replace(seen, example=seen.example + examples, values=[_of_layers(value, layers) for value in seen.values])
            for seen in trace.observations
        ],
        layers=[replace(layer, index=layer.index + layers, example=layer.example + examples) for layer in trace.layers],
        mismatches=[_renumbered_one(mismatch, examples, layers) for mismatch in trace.mismatches],
        remarks=[_renumbered_one(remark, examples, layers) for remark in trace.remarks],
    )


def _renumbered_one(seen: Told, examples: int, layers: int) -> Told:
    origins = [replace(origin, layer=None if origin.layer is None else origin.layer + layers) for origin in seen.origins]
    layer = None if seen.layer is None else seen.layer + layers
    example = seen.example + examples if seen.example >= 0 else seen.example
    moved = replace(seen, layer=layer, example=example, origins=origins)
    if isinstance(moved, Mismatch):
        moved.inside = [index + layers for index in moved.inside]
        moved.suspects = [replace(each, layer=None if each.layer is None else each.layer + layers) for each in moved.suspects]
    return moved


def _of_layers(value: Value, layers: int) -> Value:
    if value.layer is None and not value.items:
        return value
    items = None if value.items is None else [_of_layers(item, layers) for item in value.items]
    return replace(value, layer=None if value.layer is None else value.layer + layers, items=items)
