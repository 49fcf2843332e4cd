"""Holds what is known of one version of a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shapelens import protocol
from shapelens.analysis.display.hints import Hint, hints
from shapelens.analysis.display.written_shapes import written_shapes
from shapelens.analysis.findings.findings import Finding
from shapelens.examples.choose import Example
from shapelens.examples.settings import Settings
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.source.module import Module
from shapelens.source.position_map import TextEdit


class KeptObservations:
    """Holds what the last run saw of the examples that an edit has nothing to do with, at the positions of the newest text.

    It is computed when it is first asked for, as that takes its time: while the worker runs.
    """

    def __init__(self, compute: Callable[[], protocol.Trace | None], again: Sequence[int]) -> None:
        """again: the numbers of the examples that run again; the kept trace has nothing of those but that they are there."""
        self.again = again
        self._compute = compute

    @cached_property
    def trace(self) -> protocol.Trace | None:
        """The kept trace; None where one of its positions is not known in the newest text."""
        return self._compute()

    def prepare(self) -> None:
        """Compute the trace now."""
        _ = self.trace


@dataclass(frozen=True)
class Analysis:
    """Holds what is known of one version of a document. It has no trace before something has run."""

    version: int
    module: Module
    settings: Settings
    examples: Sequence[Example] = ()
    trace: protocol.Trace | None = None  # what the document's own run saw, merged with what runs of other files saw
    own: protocol.Trace | None = None  # what its own run saw
    named: bool = False  # the trace holds the names of the dims
    unfinished: bool = False  # the run was ended before all dims had their names
    others: Mapping[str, Module] = field(default_factory=dict)  # the texts of other open files that its own run went through, by path
    run: RepeatableRun | None = None  # its own run, once that has told of all its examples
    kept: KeptObservations | None = None  # where only some of the examples run
    findings: Sequence[Finding] = ()

    @property
    def runs_by_itself(self) -> bool:
        """True if the document has examples of its own, given or found."""
        return bool(self.examples) or (self.own is not None and bool(self.own.examples))

    @cached_property
    def hints(self) -> list[Hint]:
        """The inlay hints, at positions of `module`."""
        return hints(self.module, self.trace, self.settings) if self.trace is not None else []

    @cached_property
    def written_shapes(self) -> dict[int, TextEdit]:
        """The edits that write the shapes of hints as comments, by the line of the hint."""
        return written_shapes(self.module, self.trace) if self.trace is not None else {}

    def with_findings(self, findings: Sequence[Finding]) -> Analysis:
        """The same analysis with other findings; hints that were computed are not computed again."""
        other = replace(self, findings=findings)
        if "hints" in self.__dict__:
            other.__dict__["hints"] = self.hints
        return other

    def shows_the_same(self, other: Analysis) -> bool:
        """True if the two differ in their findings at most, as where fixes were found for these."""
        return self.module is other.module and self.trace is other.trace and self.settings == other.settings
