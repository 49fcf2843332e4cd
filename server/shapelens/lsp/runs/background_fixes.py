"""Tries the fixes of published findings when nothing else is to be done, and publishes those that work.

Findings are shown at once, without fixes. The search for fixes runs the document again and again, and gives way to whatever else wants to
run.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from shapelens import protocol
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.traces.programs import with_program
from shapelens.analysis.traces.views import seen_from, with_evidence
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import moved_findings, with_known_fixes
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.client import Client
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.repair import search
from shapelens.runner import Worker
from shapelens.source.position_map import PositionMap
from shapelens.trace_numbering import merged

LIMITS = search.Limits(seconds_per_finding=5.0, seconds=15.0, seconds_for_others=0.5)
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


class BackgroundFixes:
    """Searches for the fixes of one document at a time, and of each document for those of its newest findings only."""

    def __init__(self, client: Client, cached_runs: CachedRuns, parsed_files: ParsedFiles, run_ids: itertools.count[int]) -> None:
        self._client = client
        self._cached_runs = cached_runs
        self._parsed_files = parsed_files
        self._run_ids = run_ids
        self._tasks: dict[Document, _Task] = {}
        # The texts that were run last, their findings without fixes, and the same findings with those that work.
        self._known: WeakKeyDictionary[Document, tuple[object, list[Finding], list[Finding]]] = WeakKeyDictionary()
        self._expected: dict[Document, asyncio.Event] = {}  # set when more is known of which fixes work

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

    async def search(self, document: Document) -> None:
        """Try the fixes of a document and publish those that work. What was interrupted stays wanted."""
        task = self._tasks[document]
        task.interrupted = False
        analysis, found = task.analysis, list(task.findings)
        # Examples can be run by their number only where they all are of one run.
        examples = len(task.runs[0].run.examples) if len(task.runs) == 1 and task.runs[0].run.file == document.path else 0
        tried = search.FileToMend(document.path, analysis.module, analysis.settings, examples, found, self._parsed_files)
        searching = search.RepairSearch(tried, lambda texts, numbers: self._attempt(document.path, task, texts, numbers), LIMITS)
        try:
            for number, finding in enumerate(task.findings):
                found[number] = await searching.mended(finding)
                if self._tasks.get(document) is not task or task.interrupted:
                    return
                if found[number].fix is not None:
                    task.analysis = self._publish(document, task.analysis, list(found))
            self._known[document] = _texts(task.runs), task.findings, found
        except search.GivenUp:
            if self._tasks.get(document) is not task or task.interrupted:
                return
        self.forget(document)

    def _publish(self, document: Document, analysis: Analysis, found: list[Finding]) -> Analysis:
        if document.version != analysis.version or all(finding.fix is None for finding in found):
            return analysis
        fixed = document.add_fixes(analysis, found)
        self._client.publish(document, found)
        if document in self._expected:
            self._expected[document].set()
        return fixed

    async def _attempt(self, file: str, task: _Task, texts: Mapping[str, str], numbers: Sequence[int] | None) -> protocol.Trace | None:
        views: list[protocol.Trace] = []
        for ran in task.runs:
            trace = await self._run(task, ran, texts, numbers)
            if trace is None:
                return None
            if ran.run.program:
                views = with_program(views, trace)
            else:
                views.append(trace if trace.file == file else seen_from(trace, file))
        return merged(file, views) if len(views) > 1 else views[0]

    async def _run(self, task: _Task, ran: RepeatableRun, texts: Mapping[str, str], numbers: Sequence[int] | None) -> protocol.Trace | None:
        if task.interrupted:
            raise search.GivenUp
        newest: list[protocol.Trace] = []
        run, worker = ran.run, ran.worker
        examples = ran.trustworthy_examples(numbers)
        text, overlays = texts.get(run.file, run.text), {**run.overlays, **texts}
        run = replace(run, run_id=next(self._run_ids), text=text, examples=examples, overlays=overlays, named=False, background=True)
        task.under_way = worker, run.run_id
        finished = await self._cached_runs.run(run, worker, lambda traced: newest.append(traced.trace), lasting=ran.lasting)
        task.under_way = None
        if finished.outcome in ("cancelled", "unavailable"):  # A run that did not take place says nothing about the fix.
            raise search.GivenUp
        return with_evidence(newest[-1], ran.examples) if newest and finished.outcome == "ok" else None


def _texts(runs: Sequence[RepeatableRun]) -> object:
    """Equal for runs of the same texts with the same examples."""
    return [(ran.run.file, ran.run.text, ran.run.overlays, ran.run.examples) for ran in runs]
