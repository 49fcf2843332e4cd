"""Tries the fixes of published findings when nothing else is to be done, and publishes those that work.

Findings are shown at once, without fixes. The search for fixes runs the document again and again, and gives way to whatever else wants to
run. What shows a document may be much more than its own run: closed files that use it, programs. These take long, so fixes are tried with
its own run alone before they run, and with all of it after them.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

from shapelens.analysis.findings.findings import Finding
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import moved_findings, with_known_fixes
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.fix_attempts import FixAttempts, FixTask
from shapelens.lsp.runs.own_run_fixes import OwnRunFixes
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.repair.search import FileToMend, GivenUp, Limits, RepairSearch
from shapelens.source.position_map import PositionMap

LIMITS = Limits(seconds_per_finding=5.0, seconds=15.0, seconds_for_others=0.5)
# A request for code actions waits no longer than this for fixes that are being tried.
LONGEST_WAIT = 15.0


class BackgroundFixes:
    """Searches for the fixes of one document at a time, and of each document for those of its newest findings only."""

    def __init__(self, client: Client, cached_runs: CachedRuns, parsed_files: ParsedFiles, run_ids: itertools.count[int]) -> None:
        self._client = client
        self._attempts = FixAttempts(cached_runs, run_ids)
        self._parsed_files = parsed_files
        self._tasks: dict[Document, FixTask] = {}
        # The texts that were run last, their findings without fixes, and the same findings with those that work.
        self._known: WeakKeyDictionary[Document, tuple[object, list[Finding], list[Finding]]] = WeakKeyDictionary()
        self._by_own_run: WeakKeyDictionary[Document, OwnRunFixes] = WeakKeyDictionary()  # of their last own runs
        self._expected: dict[Document, asyncio.Event] = {}  # set when more is known of which fixes work

    def own_run_begins(self, document: Document) -> None:
        """Forgets what is known by its own run, which is about to be outdated."""
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
        self._tasks[document] = FixTask(analysis, runs, list(analysis.findings))
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
            task.interrupt()

    def interrupt_all(self) -> None:
        """Something else wants to run than what was to run after a search by a document's own run."""
        for document in self._tasks:
            self.interrupt(document)

    def with_fixes_so_far(self, document: Document, found: Sequence[Finding]) -> Sequence[Finding]:
        """Findings of the newest text with the fixes that its own run has shown to work, as long as no more is known of these."""
        known = self._by_own_run.get(document)
        return known.put_into(found, document.text) if known is not None else found

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
        self._by_own_run[document] = known = OwnRunFixes(document, task, own, self._attempts, self._parsed_files)
        self._attempts.begin(task)
        with suppress(GivenUp):
            for finding in known.worth_mending(task.findings):
                fixed = await known.mended(finding)
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
        self._attempts.begin(task)
        if len(task.runs) > 1:
            await self.search_by_own_run(document)
            if self._has_ended(document, task):
                return
        analysis, found = task.analysis, list(task.findings)
        known = self._by_own_run.get(document)
        # Examples can be run by their number only where they all are of one run.
        examples = len(task.runs[0].run.examples) if len(task.runs) == 1 and task.runs[0].run.file == document.path else 0
        tried = FileToMend(document.path, analysis.module, analysis.settings, examples, found, self._parsed_files)
        searching = RepairSearch(tried, self._attempts.of(document.path, task.runs), LIMITS)
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

    def _has_ended(self, document: Document, task: FixTask) -> bool:
        """True if a search has been interrupted, or something else is wanted of the document by now."""
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


def _texts(runs: Sequence[RepeatableRun]) -> object:
    """Equal for runs of the same texts with the same examples."""
    return [(ran.run.file, ran.run.text, ran.run.overlays, ran.run.examples) for ran in runs]
