"""Repeats a run without the examples that ended it, and puts what was seen of them back into what the others see."""

from __future__ import annotations

from dataclasses import replace

from shapelens.protocol import WHAT_IS_WRONG, ExampleRun, Finished, Run, Trace, Traced
from shapelens.trace_numbering import renumbered, without_examples

LOOKING_SECONDS = 2.0  # for an example that has ended its process, once more


class EndedExamples:
    """Holds those of one run, which is `run` at first and the one without them later.

    What ends the process without a word, C code say, has not told where, nor what was seen until then: such an example is evaluated once
    more by itself, with word of each line.
    """

    def __init__(self, run: Run) -> None:
        self._whole = run
        self._left = list(range(len(run.examples)))  # the numbers of the examples that are still to run
        self._parts: dict[int, Trace] = {}  # what was seen of an example, by its number
        self._silent: list[int] = []  # the numbers of those that have not said where they ended
        self._looked_at: int | None = None  # the one that is evaluated once more
        self._newest: Traced | None = None  # of the run as it is now

    @property
    def are_looked_at(self) -> bool:
        """True if the run is one of those by themselves."""
        return self._looked_at is not None

    def told(self, traced: Traced) -> Traced | None:
        """Returns what the run tells of, with what was seen of the examples that have ended it; None for what is to be told in the end."""
        if self._looked_at is not None:
            self._look(self._looked_at, traced.trace)
            return None
        if traced.stage not in WHAT_IS_WRONG:
            self._newest = traced
        return self._put_back(traced)

    def leave_out(self, run: Run, number: int, finished: Finished) -> Run:
        """The run without the example of this number, which has ended it."""
        request, whole = run.examples[number], self._left.pop(number)
        part = self._seen_of(number) or Trace(run.file, examples=[ExampleRun(request.target, request.expression)])
        example = part.examples[0]
        if example.error_span is None:
            self._silent.append(whole)
        if example.error_kind != finished.outcome:
            part.examples = [replace(example, error=finished.detail, error_kind=finished.outcome)]
        self._parts[whole] = part
        self._newest = None
        return replace(run, examples=[each for each in run.examples if each is not request])

    def next_to_look_at(self, run: Run) -> Run | None:
        """A run of one of those that have not said where they ended; None where there are no more."""
        self._looked_at = self._silent.pop(0) if self._silent else None
        if self._looked_at is None:
            return None
        request = self._whole.examples[self._looked_at]
        deadline = min(run.deadline, LOOKING_SECONDS)
        return replace(run, examples=[request], search=None, deadline=deadline, findings_first=False, named=False, line_by_line=True)

    def last_word(self) -> Traced | None:
        """All that was seen; None where no example has ended the run."""
        newest = self._newest or Traced(self._whole.run_id, "run", Trace(self._whole.file))
        return self._put_back(newest) if self._parts else None

    def _put_back(self, traced: Traced) -> Traced:
        trace, is_whole = traced.trace, traced.stage not in WHAT_IS_WRONG
        for number, part in sorted(self._parts.items()):
            trace = _with_example(trace, number, part if is_whole else Trace(trace.file, examples=part.examples))
        return replace(traced, trace=trace)

    def _seen_of(self, number: int) -> Trace | None:
        """Returns what the newest trace has of one example."""
        examples = self._newest.trace.examples if self._newest is not None else []
        if self._newest is None or number >= len(examples):
            return None
        return without_examples(self._newest.trace, set(range(len(examples))) - {number})

    def _look(self, number: int, trace: Trace) -> None:
        """An example that is evaluated once more has come to another line. That is where it ends, unless there is another one."""
        if trace.examples and trace.examples[0].error_span is not None:
            before = self._parts[number]
            example = replace(before.examples[0], error_span=trace.examples[0].error_span)
            more = trace if len(trace.observations) >= len(before.observations) else before
            self._parts[number] = replace(more, examples=[example], mismatches=[], remarks=[])


def _with_example(trace: Trace, number: int, part: Trace) -> Trace:
    """A trace with the one example of another one, as its example of this number, or as the last one where it has fewer."""
    number = min(number, len(trace.examples))
    layers = max((layer.index + 1 for layer in trace.layers), default=0)
    moved = renumbered(trace, lambda other: other + (other >= number), lambda layer: layer)
    own = renumbered(part, lambda other: number, lambda layer: layer + layers)
    return replace(
        moved,
        examples=[*trace.examples[:number], *part.examples, *trace.examples[number:]],
        observations=[*moved.observations, *own.observations],
        layers=[*moved.layers, *own.layers],
        mismatches=[*moved.mismatches, *own.mismatches],
        remarks=[*moved.remarks, *own.remarks],
        notes=[*moved.notes, *(note for note in own.notes if note not in moved.notes)],
        files=[*moved.files, *(file for file in own.files if file not in moved.files)],
    )
