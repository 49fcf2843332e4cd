"""Lines that give one tensor, each with what the run saw of it and what stands behind it: where a comment says its shape, or may."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapelens.protocol import FileSpan, Observation, Trace, Value
from shapelens.source.module import Module
from shapelens.source.positions import Span


@dataclass(frozen=True)
class StatedLine:
    """A statement that assigns one name, or returns. `rest`: what stands behind it in its last line."""

    name: str  # "" of a return
    values: Sequence[Value]  # tensors
    function: str
    statement: FileSpan
    span: Span  # of the statement
    rest: str


def stated_lines(module: Module, trace: Trace) -> Iterator[StatedLine]:
    """Yields the statements that give nothing but tensors, as examples show them that nobody doubts and that are no guesses."""
    by_statement: dict[FileSpan, list[Observation]] = defaultdict(list)
    for seen in trace.observations:
        if seen.span.file == trace.file and seen.kind in ("assign", "return"):
            by_statement[seen.statement or seen.span].append(seen)
    for statement, group in by_statement.items():
        if len({(seen.span, seen.name) for seen in group}) > 1:
            continue  # Nobody can tell which one of them is meant.
        values = [value for seen in group for value in seen.values]
        if values and all(map(is_known, values)) and all(is_credible(trace, seen) for seen in group):
            span = module.lines.span_from_bytes(statement)
            rest = module.lines.line(span.end_line)[span.end_column :]
            name = "" if group[0].kind == "return" else group[0].name
            yield StatedLine(name, values, group[0].function, statement, span, rest)


def is_known(value: Value) -> bool:
    """True for a tensor of which something is known: what a missing data set gives has a rank that nobody knows either."""
    return value.kind == "tensor" and not value.stand_in and (value.shape == [] or any(size is not None for size in value.shape or [None]))


def is_credible(trace: Trace, seen: Observation) -> bool:
    """True if what was seen is what the author's code does: the example is given, or stands in the project."""
    run = trace.examples[seen.example] if 0 <= seen.example < len(trace.examples) else None
    return run is not None and not run.doubtful and run.evidence != "inferred"
