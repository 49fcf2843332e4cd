"""A trace of an older text of a file, with its positions moved to where they are in a newer text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from shapelens import protocol
from shapelens.source.position_map import PositionMap, common_prefix, common_suffix
from shapelens.source.positions import Lines
from shapelens.trace_numbering import with_fields

Step = TypeVar("Step", protocol.Origin, protocol.Suspect)
Seen = TypeVar("Seen", protocol.Observation, protocol.Mismatch, protocol.Note, protocol.Remark)
Placed = TypeVar("Placed", protocol.Observation, protocol.Mismatch, protocol.Note, protocol.Remark, protocol.LayerSeen)


def moved_trace(trace: protocol.Trace, old: Lines, new: Lines) -> protocol.Trace:
    """Returns the trace at the positions of the newer text, without what was edited away or concerns a layer that is built anew."""
    return trace if old.text == new.text else _moved(trace, _Move(trace.file, old, new))


def moved_whole(trace: protocol.Trace, old: Lines, new: Lines) -> protocol.Trace | None:
    """The trace at the positions of the newer text; None where something of it was edited away."""
    move = _Move(trace.file, old, new)
    moved = trace if old.text == new.text else _moved(trace, move)
    return None if move.lost else moved


def _moved(trace: protocol.Trace, move: _Move) -> protocol.Trace:
    layers = [_at(layer, span=move.span(layer.span), call_span=move.span(layer.call_span)) for layer in trace.layers]
    # A layer that is constructed otherwise now needs other sizes than those that did not fit.
    built_anew = {layer.index for layer, moved in zip(trace.layers, layers, strict=True) if layer.span is not None and moved.span is None}
    mismatches = [
        replace(seen, trail=move.spans(seen.trail), origins=move.steps(seen.origins), suspects=move.steps(seen.suspects))
        for seen in move.kept(trace.mismatches)
        if seen.layer not in built_anew
    ]
    return replace(
        trace,
        examples=[replace(run, error_span=move.span(run.error_span), call=move.span(run.call)) for run in trace.examples],
        layers=layers,
        observations=[_at(seen, statement=move.span(seen.statement)) for seen in move.kept(trace.observations)],
        mismatches=mismatches,
        notes=move.kept(trace.notes),
        remarks=[replace(seen, origins=move.steps(seen.origins)) for seen in move.kept(trace.remarks)],
        held=move.left_of(trace.held),
    )


def _at(seen: Placed, **spans: Any) -> Placed:
    """Returns what was seen, with other spans. The object itself is returned where the spans are the same, as nearly all are."""
    return seen if all(getattr(seen, name) is span for name, span in spans.items()) else with_fields(seen, **spans)


class _Move:
    """Moves the spans of one file from an older text to a newer one; the spans of other files stay."""

    def __init__(self, file: str, old: Lines, new: Lines) -> None:
        self._file = file
        self._old = old
        self._new = new
        self._since = PositionMap.between(old.text, new.text)
        # Most spans are in lines that did not change: of those only the number may be another one.
        above = common_prefix(old.text, new.text)
        below = len(old.text) - common_suffix(old.text[above:], new.text[above:])
        self._first = old.position(above).line
        self._last = old.position(below).line
        self._lower = new.count - old.count
        self.lost = False  # something was edited away

    def span(self, span: protocol.FileSpan | None) -> protocol.FileSpan | None:
        if span is None or span.file != self._file or span.end_line < self._first:
            return span
        if span.line > self._last:
            lower = self._lower
            return span if not lower else with_fields(span, line=span.line + lower, end_line=span.end_line + lower)
        place = self._since.map(self._old.span_from_bytes(span))
        if place is None:
            self.lost = True
            return None
        return protocol.FileSpan(self._file, *self._new.to_bytes(place.start), *self._new.to_bytes(place.end))

    def spans(self, spans: Iterable[protocol.FileSpan]) -> list[protocol.FileSpan]:
        return [moved for span in spans if (moved := self.span(span)) is not None]

    def left_of(self, spans: Iterable[protocol.FileSpan]) -> list[protocol.FileSpan]:
        """Those that were not edited away; the others are no loss."""
        lost = self.lost
        moved = self.spans(spans)
        self.lost = lost
        return moved

    def steps(self, origins: Iterable[Step]) -> list[Step]:
        return [replace(each, span=self.span(each.span)) for each in origins]

    def kept(self, seen: Iterable[Seen]) -> list[Seen]:
        """Returns what was seen, at its new spans; without what was edited away."""
        moved = [(each, self.span(each.span)) for each in seen]
        return [_at(each, span=span) for each, span in moved if span is not None or each.span is None]
