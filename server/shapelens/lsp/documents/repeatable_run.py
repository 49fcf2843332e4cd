"""A run, with all that it takes to do it again: with another text, or with some of its examples only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shapelens import protocol
from shapelens.runner import Worker


@dataclass(frozen=True)
class RepeatableRun:
    """A run that was sent to a worker.

    examples: what became of the examples that the run was given and of those that it found; empty before it has told.
    lasting: whether the texts that it ran with are on disk.
    """

    run: protocol.Run
    worker: Worker
    examples: tuple[protocol.ExampleRun, ...] = ()
    lasting: bool = False

    def told(self, trace: protocol.Trace) -> RepeatableRun:
        """The run with the examples of its trace, those that it found included, and nothing to search for any more."""
        requests = [protocol.ExampleRequest(run.target, run.expression) for run in trace.examples]
        return replace(self, run=replace(self.run, examples=requests, search=None), examples=tuple(trace.examples))

    def with_text(self, text: str) -> RepeatableRun:
        """The run with another text of its file, for a text of which nothing had to be run."""
        return replace(self, run=replace(self.run, text=text))

    def trustworthy_examples(self, numbers: Sequence[int] | None) -> list[protocol.ExampleRequest]:
        """The examples with these numbers (None: all), without the doubtful ones, as nothing is to be judged by those."""
        wanted = range(len(self.run.examples)) if numbers is None else numbers
        doubtful = {number for number, run in enumerate(self.examples) if run.doubtful}
        return [self.run.examples[number] for number in wanted if number not in doubtful]
