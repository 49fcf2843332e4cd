"""One run from its start to its end: which of the stages that it tells of are shown, and when.

"first" shows the first mismatch, and leaves what stood beside it. "findings" shows what is wrong; lints stay as they were. "partial"
shows hints of the classes that have run. "given" and "run" show everything, "named" the names of dims. Findings show at once; hints wait
for the names, but not long. Where classes are not called any more, as what calls them fails, their hints stay until all has run
(`OwnRun.says_less`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from shapelens import protocol
from shapelens.analysis.findings.codes import is_lint
from shapelens.analysis.findings.findings import Finding, failure
from shapelens.analysis.traces.views import reaches
from shapelens.cache.runs import was_cut_short
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import moved_findings
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.choose import Others
from shapelens.lsp.runs.show import Presenter

# Hints wait this long for the names of the dims, which are found after the run: else each edit would show numbers first.
NAMES_WITHIN = 0.3


class RunResults:
    """Holds what one run tells of, stage by stage."""

    def __init__(self, presenter: Presenter, analysis: Analysis, others: Others) -> None:
        self.analysis = analysis
        self.others = others
        self.run: RepeatableRun | None = None  # once it has been sent
        self.cancelled = False
        self.was_short_of_time = False  # it may see more with more of it
        self._presenter = presenter

    def take(self, traced: protocol.Traced) -> None:
        """The run has told of a stage."""
        raise NotImplementedError

    def finish(self, finished: protocol.Finished) -> None:
        """The run has ended, by itself or otherwise."""
        self.cancelled = finished.outcome == "cancelled"


class ImporterRun(RunResults):
    """The run of a file that is not open: what it sees is shown in the open documents that it goes through."""

    def __init__(self, presenter: Presenter, importer: Document, analysis: Analysis, others: Others) -> None:
        super().__init__(presenter, analysis, others)
        self._importer = importer
        self._newest: protocol.Trace | None = None

    def take(self, traced: protocol.Traced) -> None:
        """The run has told of a stage."""
        if traced.stage != "partial":
            self._newest = traced.trace
            if self.run is not None and self.run.run.search is not None:
                self._presenter.remember_found(self._importer, traced)
                self.run = self.run.told(traced.trace)
            self._presenter.show_elsewhere(traced.trace, self.others, self.run, hints=traced.stage == "named")

    def finish(self, finished: protocol.Finished) -> None:
        """The run has ended."""
        super().finish(finished)
        if self._newest is not None and not self.cancelled:
            self._presenter.show_elsewhere(self._newest, self.others, self.run, hints=True)

    def reaches(self, document: Document) -> bool:
        """True if the run went through a document."""
        return self._newest is not None and reaches(self._newest, document.path)


class ProgramRun(RunResults):
    """An open document followed as a program: what that saw is shown at once, and again with what its functions saw."""

    def __init__(
        self, presenter: Presenter, document: Document, analysis: Analysis, others: Others, *, at_once: bool = True, is_last: bool = True
    ) -> None:
        """at_once: else all of it is shown in the end, as there is more to see until then. is_last: else it will run with more time, where
        that is short.
        """
        super().__init__(presenter, analysis, others)
        self._document = document
        self._at_once = at_once
        self._is_last = is_last
        self._newest: protocol.Trace | None = None
        self._shown: protocol.Trace | None = None
        self.says_more = False  # whether it has said what a class is called with whose example was inferred

    def take(self, traced: protocol.Traced) -> None:
        """The run has told of a stage."""
        self._newest = traced.trace
        if traced.stage == "program" and self._at_once:
            self._show(is_whole=False)

    def finish(self, finished: protocol.Finished) -> None:
        """The end of the run. What it has seen until a limit ended it is shown as well."""
        super().finish(finished)
        self.was_short_of_time = finished.hurried
        if not self.cancelled:
            has_crashed = finished.outcome == "crash"
            if has_crashed:
                module, settings = self.analysis.module, self.analysis.settings
                self._document.fail_program(failure(module, self._document.path, finished, settings, given=False))
            self._show(is_whole=self._is_last or not self.was_short_of_time)
            self._presenter.seek_fixes(self._document)
        elif self._shown is not None:  # That was not all, and would be taken for it where an edit is undone.
            self._document.importer_traces.mark_program_outdated()

    def _show(self, *, is_whole: bool) -> None:
        self._shown = self._newest
        if self.run is not None and self._presenter.is_current(self._document, self.analysis):
            self.says_more |= self._presenter.show_program(self._document, self.analysis, self._newest, self.run, is_whole=is_whole)


class ImportingProgram(RunResults):
    """A file that imports an open document, followed as a program for what it sees of that."""

    def __init__(
        self, presenter: Presenter, document: Document, shown: Analysis, importer: Analysis, others: Others, state: object
    ) -> None:
        """shown: what is shown of the document; state: of the importer's text."""
        super().__init__(presenter, importer, others)
        self._document, self._shown, self._state = document, shown, state
        self._newest: protocol.Trace | None = None
        self.says_more = False  # whether it has said what a class is called with whose example was inferred

    def take(self, traced: protocol.Traced) -> None:
        """The run has told of a stage."""
        self._newest = traced.trace

    def finish(self, finished: protocol.Finished) -> None:
        """The run has ended. What it has seen until a limit ended it counts."""
        super().finish(finished)
        if not self.cancelled and self.run is not None:
            newest = self._newest or protocol.Trace(self.run.run.file)
            self.says_more = self._presenter.show_importing_program(self._document, self._shown, newest, self.run, self._state)


class OwnRun(RunResults):
    """The run of an open document: findings are shown at once, hints when the names of the dims are there or take too long."""

    def __init__(
        self, presenter: Presenter, document: Document, analysis: Analysis, others: Others, search: protocol.Search | None = None
    ) -> None:
        super().__init__(presenter, analysis, others)
        self._document = document
        self._search = search
        self._newest: Analysis | None = None
        self._published: Sequence[Finding] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = time.monotonic()
        shown = document.analysis.trace if document.analysis is not None else None
        self._had_hints = shown is not None
        self._shown_classes = _seen_classes(shown)
        self._own_classes = _seen_classes(document.analysis.own if document.analysis is not None else None)

    @property
    def seen(self) -> protocol.Trace | None:
        """Returns what the run has told of the document itself, with what an earlier one saw of what did not run again."""
        return self._newest.own if self._newest is not None else None

    @property
    def says_less(self) -> bool:
        """True if only some examples ran, and classes that are shown were in none of these: what calls them fails now, say. Then all has to
        run, and look for examples of their own; what is shown stays until then, and an edit is compared with that.
        """
        seen = self.seen
        return self.analysis.kept is not None and seen is not None and not _ended_early(seen) and self._leaves_out_classes()

    def take(self, traced: protocol.Traced) -> None:
        """The run has told of a stage. That is dropped if the text has changed since."""
        if not self._is_wanted():
            return
        analysis = self._presenter.with_trace(self._document, self.analysis, traced)
        if traced.stage == "first":  # What has been mended goes when the run has come to it.
            self._publish(_with_others(analysis.findings, self._document.published_now()))
        elif traced.stage == "findings":
            self._publish(_with_others(analysis.findings, self._lints_before()))
        elif traced.stage == "partial":
            self._take_partial(analysis, traced.trace)
        else:
            self._take_whole(analysis, traced)

    def finish(self, finished: protocol.Finished) -> None:
        """The run has ended, by itself or otherwise."""
        super().finish(finished)
        document = self._document
        if self.cancelled or not self._is_wanted():
            document.cancel_run()
            if self._timer is not None:
                self._timer.cancel()
            return
        self.was_short_of_time = self.seen is not None and was_cut_short(self._search, finished, self.seen)
        found = list(self._newest.findings if self._newest is not None else self.analysis.findings)
        failed: list[Finding] = []
        if finished.outcome != "ok" and not any(finding.code == finished.outcome for finding in found):
            failed = failure(self.analysis.module, document.path, finished, self.analysis.settings, given=bool(self.analysis.examples))
        if self.says_less and not failed:
            document.cancel_run()
            self._publish(found)
            return
        document.end_run(self._newest, failed, ok=finished.outcome == "ok")
        self._publish([*failed, *found])
        if self._newest is not None and not (self._had_hints and self._newest.trace is not None and _ended_early(self._newest.trace)):
            self._show_hints()
        elif document.analysis is None:
            self._presenter.show_hints(document, self.analysis)

    def _take_partial(self, analysis: Analysis, trace: protocol.Trace) -> None:
        """Some classes have run: their hints are shown, unless those of a whole run are there, which say more, of as many classes."""
        before = self._document.analysis
        seen = _seen_classes(analysis.own or trace)
        if not self._had_hints or seen > self._shown_classes:
            self._shown_classes = seen
            self._presenter.show_hints(self._document, replace(analysis, findings=before.findings if before is not None else ()))

    def _take_whole(self, analysis: Analysis, traced: protocol.Traced) -> None:
        """All examples have run that were to; names of dims, or examples that are searched for, may be still to come."""
        seen = analysis.own or traced.trace
        if self.run is not None:
            self.run = self.run.told(seen)
            self._document.run_has_told(self.run)
        analysis = self._newest = replace(analysis, run=self.run)
        if traced.stage in ("given", "run") and self.analysis.kept is None and not _ended_early(traced.trace):
            # Names and the search for examples may take long, and an edit until then need not run all of it again.
            self._document.given_examples_have_run(analysis)
        self._publish(analysis.findings)
        self._presenter.show_elsewhere(seen, self.others, self.run, hints=analysis.named)
        if self._had_hints and _ended_early(traced.trace):
            return  # The hints of the last whole run say more than those of half a run.
        if self.says_less or (traced.stage == "given" and self._leaves_out_classes()):
            return  # Examples of their own are still to be found for these.
        if analysis.named:
            self._show_hints()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NAMES_WITHIN, self._show_hints)

    def _leaves_out_classes(self) -> bool:
        """True if classes of the document that are shown were not called."""
        gone = self._own_classes - _seen_classes(self.seen)
        return any(cls.qualname.rpartition(".")[2] in gone for cls in self.analysis.module.classes)

    def _is_wanted(self) -> bool:
        """True if the text is still the one that ran; and where only some examples did, whether it is known what the others saw."""
        kept = self.analysis.kept
        return self._presenter.is_current(self._document, self.analysis) and (kept is None or kept.trace is not None)

    def _lints_before(self) -> list[Finding]:
        """Returns what was noticed in the text before. Lints need the whole trace: till then they stay as they were."""
        document = self._document
        before = document.analysis.findings if document.analysis is not None else ()
        return moved_findings([found for found in before if is_lint(found.code)], document.since)

    def _publish(self, found: Sequence[Finding]) -> None:
        if self._published is None:
            self._document.findings_took(time.monotonic() - self._began)
        if found != self._published:
            self._published = found
            self._presenter.publish(self._document, found)

    def _show_hints(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        newest = self._newest
        if newest is not None and self._document.analysis is not newest and self._presenter.is_current(self._document, self.analysis):
            self._presenter.show_hints(self._document, newest)
            if newest.own is not None:
                self._presenter.show_elsewhere(newest.own, self.others, self.run, hints=True)


def _with_others(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Findings, and those of others that are not among them, in the order of the text."""
    known = {(found.code, found.span) for found in findings}
    left = [found for found in others if (found.code, found.span) not in known]
    return sorted([*findings, *left], key=lambda found: (found.span, found.code))


def _seen_classes(trace: protocol.Trace | None) -> frozenset[str]:
    return frozenset(layer.class_name for layer in trace.layers if layer.calls) if trace is not None else frozenset()


def _ended_early(trace: protocol.Trace) -> bool:
    """True if a run was stopped, rather than coming to an end of its own."""
    return any(example.error_kind in ("deadline", "memory", "exit", "crash") for example in trace.examples)
