"""Judges a fix that was tried by its shapes: what the changed layer or expression gave, and whether batches are where they were."""

from __future__ import annotations

from shapelens.analysis.shapes import distinct, has_dims
from shapelens.protocol import FileSpan, Trace, Value
from shapelens.source.module import Module
from shapelens.source.positions import Position, Span


def shape_at(module: Module, trace: Trace, start: Position, written: str) -> str:
    """Returns the shape that the innermost expression around a text gave, or the layer that is constructed with it: `[4, 3, 224, 224]`.

    "" where no tensor came of it, or several shapes did.
    """
    end = module.lines.position(module.lines.offset(start) + len(written))
    seen: list[tuple[FileSpan, list[Value]]] = [(each.span, each.values) for each in trace.observations]
    seen += [(layer.span, [call.output for call in layer.calls]) for layer in trace.layers if layer.span is not None]
    around: dict[Span, list[Value]] = {}
    for where, values in seen:
        if where.file == trace.file and where.line <= start.line <= where.end_line:
            span = module.lines.span_from_bytes(where)
            if span.start <= start and end <= span.end and any(has_dims(value) for value in values):
                around.setdefault(span, []).extend(value for value in values if has_dims(value))
    if not around:
        return ""
    shapes = distinct(around[min(around, key=lambda span: module.lines.offset(span.end) - module.lines.offset(span.start))])
    return shapes[0] if len(shapes) == 1 else ""


def moved_batches(trace: Trace) -> int:
    """Returns the number of models whose result has another first dim than their input.

    A fix after which a batch of 2 comes out as one of 3 has summed over the wrong dim, though everything runs.
    """
    moved = 0
    for layer in trace.layers:
        if not layer.path and layer.calls and layer.calls[0].inputs:
            given, gave = layer.calls[0].inputs[0], layer.calls[0].output
            if has_dims(given) and has_dims(gave) and given.shape and gave.shape and not gave.stand_in:
                moved += given.shape[0] != gave.shape[0]
    return moved
