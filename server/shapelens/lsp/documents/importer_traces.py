"""What runs of other files saw in a document: kept by the file that ran, and put together with what the document's own run saw."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from shapelens import protocol
from shapelens.analysis.traces.views import constructed, merged, seen_from, without_found
from shapelens.runner import Worker
from shapelens.source.edits import PositionMap
from shapelens.source.module import Module
from shapelens.source.position_map import common_prefix, common_suffix
from shapelens.source.positions import Lines

Step = TypeVar("Step", protocol.Origin, protocol.Suspect)
Seen = TypeVar("Seen", protocol.Observation, protocol.Mismatch, protocol.Note, protocol.Remark)
Placed = TypeVar("Placed", protocol.Observation, protocol.Mismatch, protocol.Note, protocol.Remark, protocol.LayerSeen)


@dataclass(frozen=True)
class Ran:
    """A run, and the worker that did it: what it takes to do it again with another text.

    examples: what became of those that it was given and of those that it found; empty before it has told. lasting: its texts are on disk.
    """

    run: protocol.Run
    worker: Worker
    examples: tuple[protocol.ExampleRun, ...] = ()
    lasting: bool = False

    def of(self, trace: protocol.Trace) -> Ran:
        """The run to be done again: with what it found as its examples, and nothing to search for. Their numbers are those of the trace."""
        requests = [protocol.ExampleRequest(run.target, run.expression) for run in trace.examples]
        return replace(self, run=replace(self.run, examples=requests, search=None), examples=tuple(trace.examples))

    def with_text(self, text: str) -> Ran:
        """The same for another text of its file, of which nothing had to be run."""
        return replace(self, run=replace(self.run, text=text))

    def again(self, numbers: Sequence[int] | None) -> list[protocol.ExampleRequest]:
        """These of its examples, or all; without those that may be wrong, as nothing is to be judged by them."""
        wanted = range(len(self.run.examples)) if numbers is None else numbers
        doubtful = {number for number, run in enumerate(self.examples) if run.doubtful}
        return [self.run.examples[number] for number in wanted if number not in doubtful]


@dataclass(frozen=True)
class Visit:
    """The view of one file's run; its positions are those of `module`."""

    module: Module
    trace: protocol.Trace
    ran: Ran


class Visits:
    """Of one document."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._by_file: dict[str, Visit] = {}

    def add(self, trace: protocol.Trace, module: Module, ran: Ran) -> None:
        """A run of another file went through this one, whose text was that of `module`. Takes the place of that file's last run."""
        self._by_file[trace.file] = Visit(module, seen_from(trace, self._path), ran)

    def drop(self, file: str) -> bool:
        """A file does not run any more, or not through this one. Returns whether it did before."""
        return self._by_file.pop(file, None) is not None

    def by(self, files: Container[str]) -> list[protocol.Trace]:
        """What the runs of these files saw."""
        return [visit.trace for file, visit in self._by_file.items() if file in files]

    def classes(self) -> set[str]:
        """The names of the classes that were constructed in those runs."""
        return {name for visit in self._by_file.values() for name in constructed(visit.trace)}

    def runs(self) -> list[Ran]:
        """The runs of the other files."""
        return [visit.ran for visit in self._by_file.values()]

    def with_own(self, own: protocol.Trace | None, module: Module) -> protocol.Trace | None:
        """What is known of the text of `module`: what its own run saw (its positions are of that text), then what the visits saw.

        Of an older text that is left which still stands there.
        """
        views = [moved_trace(visit.trace, visit.module.lines, module.lines) for visit in self._by_file.values()]
        if not views:
            return own
        # Where a class is used in earnest, that says more of it than an example that was found.
        return merged(self._path, [*([without_found(own, self.classes())] if own is not None else []), *views])


def moved_trace(trace: protocol.Trace, old: Lines, new: Lines) -> protocol.Trace:
    """A trace of an older text of its file, with the positions of a newer one. What was edited away is left out."""
    return trace if old.text == new.text else _moved(trace, _Move(trace.file, old, new))


def moved_whole(trace: protocol.Trace, old: Lines, new: Lines) -> protocol.Trace | None:
    """The same, or None where something would be left out."""
    move = _Move(trace.file, old, new)
    moved = trace if old.text == new.text else _moved(trace, move)
    return None if move.lost else moved


def _moved(trace: protocol.Trace, move: _Move) -> protocol.Trace:
    layers = [_at(layer, span=move.span(layer.span), call_span=move.span(layer.call_span)) for layer in trace.layers]
    mismatches = [
        replace(seen, trail=move.spans(seen.trail), origins=move.steps(seen.origins), suspects=move.steps(seen.suspects))
        for seen in move.kept(trace.mismatches)
    ]
    return replace(
        trace,
        examples=[replace(run, error_span=move.span(run.error_span)) for run in trace.examples],
        layers=layers,
        observations=[_at(seen, statement=move.span(seen.statement)) for seen in move.kept(trace.observations)],
        mismatches=mismatches,
        notes=move.kept(trace.notes),
        remarks=[replace(seen, origins=move.steps(seen.origins)) for seen in move.kept(trace.remarks)],
    )


def _at(seen: Placed, **spans: Any) -> Placed:
    """What was seen, at other places: itself where they are the same, as nearly all are."""
    return seen if all(getattr(seen, name) is span for name, span in spans.items()) else replace(seen, **spans)


class _Move:
    """From an older text of a file to a newer one; the spans of other files stay."""

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

    def span(self, span: protocol.Span | None) -> protocol.Span | None:
        if span is None or span.file != self._file or span.end_line < self._first:
            return span
        if span.line > self._last:
            lower = self._lower
            return span if not lower else replace(span, line=span.line + lower, end_line=span.end_line + lower)
        place = self._since.map(self._old.span_from_bytes(span))
        if place is None:
            self.lost = True
            return None
        return protocol.Span(self._file, *self._new.to_bytes(place.start), *self._new.to_bytes(place.end))

    def spans(self, spans: Iterable[protocol.Span]) -> list[protocol.Span]:
        return [moved for span in spans if (moved := self.span(span)) is not None]

    def steps(self, origins: Iterable[Step]) -> list[Step]:
        return [replace(each, span=self.span(each.span)) for each in origins]

    def kept(self, seen: Iterable[Seen]) -> list[Seen]:
        """With their new spans, without those whose span was edited away."""
        moved = [(each, self.span(each.span)) for each in seen]
        return [_at(each, span=span) for each, span in moved if span is not None or each.span is None]
