"""What comes back from one run, and when the editor gets to see it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from shapelens import protocol
from shapelens.analysis.findings.codes import is_lint
from shapelens.analysis.findings.findings import Finding, failure
from shapelens.analysis.traces.views import reaches
from shapelens.lsp.documents.document import Analysis, Document
from shapelens.lsp.documents.importer_traces import Ran
from shapelens.lsp.documents.moved_findings import moved_findings
from shapelens.source.edits import PositionMap
from shapelens.source.module import Module

# Other documents by URI: the version and the text that a run goes through.
Others = Mapping[str, tuple[int, Module]]

# Hints wait this long for the names of the dims, which are found after the run: else each edit would show numbers first.
NAMES_WITHIN = 0.3


class Display(Protocol):
    """What an arrival needs of that which shows things; `runs.Runs` is it."""

    def is_current(self, document: Document, analysis: Analysis) -> bool:
        """Whether the document is still open, and still has the text that was analysed."""

    def with_trace(self, document: Document, analysis: Analysis, traced: protocol.Traced) -> Analysis:
        """The analysis with what a run has seen."""

    def visit(self, trace: protocol.Trace, others: Others, ran: Ran | None, *, hints: bool) -> None:
        """Show what a run saw in the other documents that it went through."""

    def publish(self, document: Document, found: Sequence[Finding]) -> None:
        """Show findings whose positions are of the newest text."""

    def adopt(self, document: Document, analysis: Analysis) -> None:
        """Take hints, hovers and lenses from this analysis from now on."""


class Visit:
    """What comes back from the run of a file that is not open: it is shown in the open documents that it goes through."""

    def __init__(self, display: Display, others: Others) -> None:
        self.others = others
        self.ran: Ran | None = None
        self.cancelled = False
        self._display = display
        self._newest: protocol.Trace | None = None

    def take(self, traced: protocol.Traced) -> None:
        """A trace."""
        if traced.stage != "partial":
            self._newest = traced.trace
            self._display.visit(traced.trace, self.others, self.ran, hints=traced.stage == "named")

    def finish(self, finished: protocol.Finished) -> None:
        """The end of the run."""
        self.cancelled = finished.outcome == "cancelled"
        if self._newest is not None and not self.cancelled:
            self._display.visit(self._newest, self.others, self.ran, hints=True)

    def reaches(self, document: Document) -> bool:
        """Whether the run went through a document."""
        return self._newest is not None and reaches(self._newest, document.path)


class Arrival:
    """What comes back from one run: findings are shown at once, hints when the names of the dims are there or take too long."""

    def __init__(self, display: Display, document: Document, analysis: Analysis, others: Others) -> None:
        self.others = others
        self.ran: Ran | None = None
        self.cancelled = False
        self._display = display
        self._document = document
        self.analysis = analysis
        self._newest: Analysis | None = None
        self._published: Sequence[Finding] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = time.monotonic()
        # What changes from now on, a later run has to see.
        self._was_outdated, document.outdated = document.outdated, False
        shown = document.analysis.trace if document.analysis is not None else None
        self._had_hints = shown is not None
        self._shown = _seen_classes(shown)

    def take(self, traced: protocol.Traced) -> None:
        """A trace: it is dropped if the text has changed since."""
        if not self._is_wanted():
            return
        before = self._document.analysis
        analysis = self._display.with_trace(self._document, self.analysis, traced)
        seen = analysis.own or traced.trace
        if traced.stage == "first":
            self._publish(_with_others(analysis.findings, self._shown_now()))
            return
        if traced.stage == "findings":
            self._publish(_with_others(analysis.findings, self._lints_before()))
            return
        if traced.stage == "partial":
            # Those of a whole run say more, unless they are of fewer classes.
            if not self._had_hints or _seen_classes(seen) > self._shown:
                self._shown = _seen_classes(seen)
                self._display.adopt(self._document, replace(analysis, findings=before.findings if before is not None else ()))
            return
        if self.ran is not None:
            self.ran = self._document.ran = self.ran.of(seen)
        self._newest = analysis
        if traced.stage in ("given", "run") and self.analysis.kept is None and not _ended_early(traced.trace):
            # Names and the search for examples may take long, and an edit until then need not run all of it again.
            self._document.complete = replace(analysis, ran=self.ran, unfinished=True)
            self._was_outdated = False
        self._publish(analysis.findings)
        self._display.visit(seen, self.others, self.ran, hints=analysis.named)
        if self._had_hints and _ended_early(traced.trace):
            return  # The hints of the last whole run say more than those of half a run.
        if analysis.named:
            self._adopt()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NAMES_WITHIN, self._adopt)

    def finish(self, finished: protocol.Finished) -> None:
        """The end of the run, however it came about."""
        self.cancelled = finished.outcome == "cancelled"
        if self.cancelled or not self._is_wanted():
            self._document.outdated |= self._was_outdated
            if self._timer is not None:
                self._timer.cancel()
            return
        self._document.outdated |= finished.outcome != "ok"
        if self._newest is not None:
            self._newest.ran = self.ran
            self._document.complete = self._newest
        found = list(self._newest.findings if self._newest is not None else self.analysis.findings)
        if finished.outcome != "ok" and not any(finding.code == finished.outcome for finding in found):
            self._document.failure = self._failure(finished)
            found[:0] = self._document.failure
        self._publish(found)
        if self._newest is not None and not (self._had_hints and self._newest.trace is not None and _ended_early(self._newest.trace)):
            self._adopt()
        elif self._document.analysis is None:
            self._display.adopt(self._document, self.analysis)

    def _is_wanted(self) -> bool:
        """Whether the text is still the one that ran; and where only some examples did, whether the rest is known."""
        kept = self.analysis.kept
        return self._display.is_current(self._document, self.analysis) and (kept is None or kept.trace is not None)

    def _failure(self, finished: protocol.Finished) -> list[Finding]:
        analysis = self.analysis
        failed = failure(analysis.module, self._document.path, finished.outcome, finished.detail, analysis.settings)
        if finished.outcome == "unavailable":  # That no worker can be started says nothing about the code.
            return [replace(each, severity="warning") for each in failed]
        if not analysis.examples:  # Nobody has said that the code can be run like this.
            return [replace(each, severity="information") for each in failed]
        return failed

    def _lints_before(self) -> list[Finding]:
        """What was noticed in the text before. Lints need the whole trace: till then they stay as they were."""
        document = self._document
        before = document.analysis.findings if document.analysis is not None else ()
        return moved_findings([found for found in before if is_lint(found.code)], document.since)

    def _shown_now(self) -> list[Finding]:
        """What the editor shows, at its places in the newest text: what has been mended goes when the run has come to it."""
        document = self._document
        return moved_findings(document.published, PositionMap.between(document.published_text, document.text))

    def _publish(self, found: Sequence[Finding]) -> None:
        if self._published is None:
            self._document.seconds_to_findings = time.monotonic() - self._began
        if found != self._published:
            self._published = found
            self._display.publish(self._document, found)

    def _adopt(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if (
            self._newest is not None
            and self._document.analysis is not self._newest
            and self._display.is_current(self._document, self.analysis)
        ):
            self._display.adopt(self._document, self._newest)
            if self._newest.own is not None:
                self._display.visit(self._newest.own, self.others, self.ran, hints=True)


def _with_others(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Findings, and those of others that are not among them, in the order of the text."""
    known = {(found.code, found.span) for found in findings}
    left = [found for found in others if (found.code, found.span) not in known]
    return sorted([*findings, *left], key=lambda found: (found.span, found.code))


def _seen_classes(trace: protocol.Trace | None) -> frozenset[str]:
    return frozenset(layer.class_name for layer in trace.layers if layer.calls) if trace is not None else frozenset()


def _ended_early(trace: protocol.Trace) -> bool:
    """Whether a run was stopped, rather than coming to an end of its own."""
    return any(example.error_kind in ("deadline", "memory", "exit", "crash") for example in trace.examples)
