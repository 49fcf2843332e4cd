"""Tries the fixes of published findings when nothing else is to be done, and publishes those that work.

Findings are shown at once, without fixes. The search for fixes runs the document again and again, and gives way to whatever else wants to
run. What shows a document may be much more than its own run: closed files that use it, programs. These take long, so fixes are tried with
its own run alone before they run, and with all of it after them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from shapelens import protocol
from shapelens.analysis.findings.findings import Finding, findings
from shapelens.analysis.traces.programs import with_program
from shapelens.analysis.traces.views import seen_from, with_evidence
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import moved_findings, with_known_fixes
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.client import Client
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.repair.search import Attempt, FileToMend, GivenUp, KnownByPart, Limits, RepairSearch
from shapelens.runner import Worker
from shapelens.source.position_map import PositionMap
from shapelens.source.positions import Span
from shapelens.trace_numbering import merged

LIMITS = Limits(seconds_per_finding=5.0, seconds=15.0, seconds_for_others=0.5)
LIMITS_BEFORE_OTHER_RUNS = Limits(seconds_per_finding=3.0, seconds=5.0, seconds_for_others=0.3, own_file_first=True)
# A request for code actions waits no longer than this for fixes that are being tried.
LONGEST_WAIT = 15.0


@dataclass
class _Task:
    """What there is to try for a document: an analysis, and the runs that it is made of."""

    analysis: Analysis
    runs: Sequence[RepeatableRun]
    findings: list[Finding]  # as they were before any fix was known
    under_way: tuple[Worker, int] | None = None  # with the id of the run
    interrupted: bool = False


@dataclass
class _ByOwnRun:
    """What the search by a document's own run alone has come to."""

    text: str
    search: RepairSearch
    findings: Sequence[Finding]  # that the run shows, without fixes
    fixed: list[Finding]  # the same with the fixes that work: as far as that run shows, or all where all has been tried

    def of(self, finding: Finding) -> KnownByPart | None:
        """What it has come to for a finding of all runs; None where its own run does not show that."""
        for same, fixed in zip(self.findings, self.fixed, strict=True):
            if _key(same) == _key(finding):
                return KnownByPart(self.search, same, [fix for fix in (fixed.fix, *fixed.alternatives) if fix is not None])
        return None

    def settle(self, finding: Finding) -> bool:
        """More is known of the fixes of a finding. Returns whether some were known before."""
        before = [each for each in self.fixed if _key(each) == _key(finding)]
        self.fixed = [finding if each in before else each for each in self.fixed]
        return any(each.fix is not None for each in before)


class BackgroundFixes:
    """Searches for the fixes of one document at a time, and of each document for those of its newest findings only."""

    def __init__(self, client: Client, cached_runs: CachedRuns, parsed_files: ParsedFiles, run_ids: itertools.count[int]) -> None:
        self._client = client
        self._cached_runs = cached_runs
        self._parsed_files = parsed_files
        self._run_ids = run_ids
        self._tasks: dict[Document, _Task] = {}
        self._searched: _Task | None = None  # the last one
        # The texts that were run last, their findings without fixes, and the same findings with those that work.
        self._known: WeakKeyDictionary[Document, tuple[object, list[Finding], list[Finding]]] = WeakKeyDictionary()
        self._by_own_run: WeakKeyDictionary[Document, _ByOwnRun] = WeakKeyDictionary()  # of their last own runs
        self._expected: dict[Document, asyncio.Event] = {}  # set when more is known of which fixes work

    def own_run_begins(self, document: Document) -> None:
        """What is known by its own run is about to be outdated."""
        self._by_own_run.pop(document, None)

    def expect(self, document: Document) -> None:
        """A run of the document has begun; when it has ended, `want` or `forget` is called."""
        self.forget(document)
        self._expected[document] = asyncio.Event()

    def want(self, document: Document, analysis: Analysis, runs: Sequence[RepeatableRun]) -> None:
        """The findings of this analysis, which is what these runs saw, have been published and should get fixes."""
        if not analysis.findings or not runs or document.failure:
            self.forget(document)
            return
        known = self._known.get(document)
        if known is not None and known[0] == _texts(runs) and analysis.findings in known[1:]:
            # These findings were searched before: what has run since has nothing to do with them.
            if any(finding.fix is not None for finding in known[2]):
                self._publish(document, analysis, known[2])
            self.forget(document)
            return
        self.interrupt(document)
        self._tasks[document] = _Task(analysis, runs, list(analysis.findings))
        self._expected.setdefault(document, asyncio.Event())

    def follow(self, document: Document, before: Analysis, now: Analysis) -> None:
        """The text has changed, but nothing had to run: the fixes that were known before the edit hold after it."""
        known = self._known.get(document)
        if known is not None and known[0] == _texts(document.runs_behind(before, before.run)) and before.findings in known[1:]:
            found = list(now.findings)
            moved = moved_findings(known[2], PositionMap.between(before.module.text, now.module.text))
            self._known[document] = _texts(document.runs_behind(now, now.run)), found, with_known_fixes(found, moved)

    def forget(self, document: Document) -> None:
        """The text has changed, the document was closed, or its run brought nothing that could be mended."""
        self.interrupt(document)
        self._tasks.pop(document, None)
        event = self._expected.pop(document, None)
        if event is not None:
            event.set()

    def interrupt(self, document: Document) -> None:
        """Something else wants to run, so the search ends. It begins anew when `search` is called again."""
        task = self._tasks.get(document)
        if task is not None:
            task.interrupted = True
            if task.under_way is not None:
                worker, run_id = task.under_way
                worker.cancel(run_id)

    def interrupt_all(self) -> None:
        """Something else wants to run than what was to run after a search by a document's own run."""
        for document in self._tasks:
            self.interrupt(document)

    def with_fixes_so_far(self, document: Document, found: Sequence[Finding]) -> Sequence[Finding]:
        """Findings of the newest text with the fixes that its own run has shown to work, as long as no more is known of these."""
        known = self._by_own_run.get(document)
        return with_known_fixes(found, known.fixed) if known is not None and known.text == document.text else found

    async def tried(self, document: Document, enough: Callable[[], bool]) -> None:
        """Wait until all fixes of what is published are known or `enough` of them, or for as long as a user would."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST_WAIT
        while (event := self._expected.get(document)) is not None and not enough() and loop.time() < end:
            event.clear()
            waiting = asyncio.ensure_future(event.wait())
            await asyncio.wait({waiting}, timeout=end - loop.time())
            waiting.cancel()

    def next(self) -> Document | None:
        """The document to search next: the one that was wanted last."""
        return next(reversed(self._tasks), None)

    async def search_by_own_run(self, document: Document) -> None:
        """Before other files run, or the document as a program: try fixes with its own run alone, and publish those that work there."""
        task, known = self._tasks.get(document), self._by_own_run.get(document)
        if task is None or task.analysis.own is None or known is not None:
            return
        own, ran = task.analysis.own, task.runs[0]
        if ran.run.file != document.path or ran.run.program:
            return
        module, settings = task.analysis.module, task.analysis.settings
        shown = findings(module, own, settings, self._parsed_files)
        tried = FileToMend(document.path, module, settings, len(ran.run.examples), shown, self._parsed_files)
        searching = RepairSearch(tried, self._attempt_of(document.path, [ran]), LIMITS_BEFORE_OTHER_RUNS)
        self._by_own_run[document] = known = _ByOwnRun(module.text, searching, shown, list(shown))
        published = {_key(finding) for finding in task.findings}
        sure = {number for number, run in enumerate(own.examples) if not run.doubtful}
        self._begin(task)
        with suppress(GivenUp):
            for finding in shown:
                if _key(finding) not in published or sure.isdisjoint(finding.examples):
                    continue
                fixed = await searching.mended(finding)
                if self._has_ended(document, task):
                    break
                if fixed.fix is not None:
                    known.settle(fixed)
                    self._tell(document, task.analysis, task.findings)
        if self._has_ended(document, task):  # Not all is known that its own run may show.
            self._by_own_run.pop(document, None)

    async def search(self, document: Document) -> None:
        """Try the fixes of a document and publish those that work. What was interrupted stays wanted."""
        task = self._tasks[document]
        self._begin(task)
        if len(task.runs) > 1:
            await self.search_by_own_run(document)
            if self._has_ended(document, task):
                return
        analysis, found = task.analysis, list(task.findings)
        known = self._by_own_run.get(document)
        # Examples can be run by their number only where they all are of one run.
        examples = len(task.runs[0].run.examples) if len(task.runs) == 1 and task.runs[0].run.file == document.path else 0
        tried = FileToMend(document.path, analysis.module, analysis.settings, examples, found, self._parsed_files)
        searching = RepairSearch(tried, self._attempt_of(document.path, task.runs), LIMITS)
        try:
            for number, finding in enumerate(task.findings):
                by_own_run = known.of(finding) if known is not None and len(task.runs) > 1 else None
                found[number] = await searching.mended(finding, by_own_run)
                if self._has_ended(document, task):
                    return
                was_known = known is not None and known.settle(found[number])
                if found[number].fix is not None or was_known:
                    task.analysis = self._publish(document, task.analysis, list(found))
            self._known[document] = _texts(task.runs), task.findings, found
        except GivenUp:
            if self._has_ended(document, task):
                return
        self.forget(document)

    def _begin(self, task: _Task) -> None:
        task.interrupted = False
        self._searched = task

    def _has_ended(self, document: Document, task: _Task) -> bool:
        """Whether a search has been interrupted, or something else is wanted of the document by now."""
        return task.interrupted or self._tasks.get(document) is not task

    def _publish(self, document: Document, analysis: Analysis, found: list[Finding]) -> Analysis:
        if document.version != analysis.version:
            return analysis
        fixed = document.add_fixes(analysis, found)
        self._tell(document, analysis, found)
        return fixed

    def _tell(self, document: Document, analysis: Analysis, found: Sequence[Finding]) -> None:
        """Publish the findings of an analysis with the fixes that are known."""
        if document.version == analysis.version:
            self._client.publish(document, self.with_fixes_so_far(document, found))
            if document in self._expected:
                self._expected[document].set()

    def _attempt_of(self, file: str, runs: Sequence[RepeatableRun]) -> Attempt:
        """Does these runs again, for the task that is searched."""

        async def attempt(texts: Mapping[str, str], numbers: Sequence[int] | None) -> protocol.Trace | None:
            views: list[protocol.Trace] = []
            for ran in runs:
                trace = await self._run(ran, texts, numbers)
                if trace is None:
                    return None
                if ran.run.program:
                    views = with_program(views, trace)
                else:
                    views.append(trace if trace.file == file else seen_from(trace, file))
            return merged(file, views) if len(views) > 1 else views[0]

        return attempt

    async def _run(self, ran: RepeatableRun, texts: Mapping[str, str], numbers: Sequence[int] | None) -> protocol.Trace | None:
        task = self._searched
        if task is None or task.interrupted:
            raise GivenUp
        newest: list[protocol.Trace] = []
        run, worker = ran.run, ran.worker
        examples = ran.trustworthy_examples(numbers)
        text, overlays = texts.get(run.file, run.text), {**run.overlays, **texts}
        run = replace(run, run_id=next(self._run_ids), text=text, examples=examples, overlays=overlays, named=False, background=True)
        task.under_way = worker, run.run_id
        finished = await self._cached_runs.run(run, worker, lambda traced: newest.append(traced.trace), lasting=ran.lasting)
        task.under_way = None
        if finished.outcome in ("cancelled", "unavailable"):  # A run that did not take place says nothing about the fix.
            raise GivenUp
        return with_evidence(newest[-1], ran.examples) if newest and finished.outcome == "ok" else None


def _key(finding: Finding) -> tuple[str, Span]:
    return finding.code, finding.span


def _texts(runs: Sequence[RepeatableRun]) -> object:
    """Equal for runs of the same texts with the same examples."""
    return [(ran.run.file, ran.run.text, ran.run.overlays, ran.run.examples) for ran in runs]
