"""From the newest text of a document to what the editor shows of it: examples are chosen, run, and their traces turned into findings."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shapelens import protocol
from shapelens.analysis.findings import Finding, failure, findings
from shapelens.examples.choose import Choice, choose
from shapelens.lsp.client import Client
from shapelens.lsp.configuration import Configuration
from shapelens.lsp.document import Analysis, Document
from shapelens.lsp.mapping import moved_findings
from shapelens.lsp.modules import OtherModules
from shapelens.lsp.workers import Workers
from shapelens.runner import Worker
from shapelens.runner.preload import third_party

logger = logging.getLogger(__name__)

# A run that takes longer shows progress; for shorter ones the status would only flicker.
PROGRESS_AFTER = 0.3
LOOK_AGAIN = 0.05
# Hints wait this long for the names of the dims, which are found after the run: else each edit would show numbers first.
NAMES_WITHIN = 0.3


class Runs:
    """Runs documents, one at a time for each call of `run`, and shows what comes of them."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        configuration: Configuration,
        workers: Workers,
        client: Client,
        place: Callable[[Document], tuple[str, Worker]],
    ) -> None:
        self._documents = documents
        self._configuration = configuration
        self._workers = workers
        self._client = client
        self._place = place  # the workspace folder of a document, and the worker that runs it
        self._other_modules = OtherModules(documents)
        self._run_ids = itertools.count(1)
        self._starting: asyncio.Task[object] | None = None  # kept here, as the event loop itself keeps no reference
        self._under_way: dict[Document, tuple[Worker, int]] = {}

    async def run(self, document: Document) -> None:
        """Bring what the editor shows of a document up to date. Returns when that is done, or the run has been cancelled."""
        if document.uri not in self._documents:
            return
        settings, module = self._configuration.of(document), document.module
        choice = choose(module, document.path, settings)
        analysis = Analysis(document.version, module, settings, choice.examples, findings=_of_examples(choice, document.path))
        shown = document.analysis
        if module.errors and shown is not None and shown.trace is not None:
            # Nothing can run now. What was seen before stays, at the places where it has gone.
            self._client.publish(document, moved_findings(shown.findings, document.since))
        elif module.errors or not choice.examples:
            self._show(document, analysis)
            if module.classes:
                # An example is likely to come, and loading PyTorch takes seconds.
                self._starting = asyncio.create_task(self._place(document)[1].start())
        else:
            await self._run_examples(document, analysis)

    def cancel(self, document: Document) -> None:
        """Stop the run of a document if one is under way."""
        if document in self._under_way:
            worker, run_id = self._under_way[document]
            worker.cancel(run_id)

    def settings_changed(self, document: Document) -> None:
        """Show what was seen as the settings now want it, without running anything. Findings of an older text are left to the next run."""
        shown = document.analysis
        if shown is not None:
            changed = replace(shown, settings=self._configuration.of(document))
            if shown.trace is not None:
                changed.findings = findings(shown.module, shown.trace, changed.settings, self._other_modules)
            if self.is_current(document, changed):
                self._show(document, changed)
            else:
                self.adopt(document, changed)

    async def _run_examples(self, document: Document, analysis: Analysis) -> None:
        root, worker = self._place(document)
        worker.preload(third_party(analysis.module.imports, root, document.path))
        run = protocol.Run(
            run_id=next(self._run_ids),
            file=document.path,
            text=analysis.module.text,
            root=root,
            examples=[protocol.ExampleRequest(example.target, example.expression) for example in analysis.examples],
            overlays={other.path: other.text for other in self._documents.values() if other is not document and not other.saved},
            deadline=analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
        )
        self._workers.new_run()
        self._under_way[document] = (worker, run.run_id)
        watch = asyncio.create_task(self._watch(document, worker))
        arrival = _Arrival(self, document, analysis)
        try:
            finished = await worker.submit(run, arrival.take)
        finally:
            watch.cancel()
            del self._under_way[document]
        arrival.finish(finished)

    async def _watch(self, document: Document, worker: Worker) -> None:
        """Tell of a run that takes long. While the worker is still loading, that is what is told."""
        await asyncio.sleep(PROGRESS_AFTER)
        while worker.state.name != "running":
            await asyncio.sleep(LOOK_AGAIN)
        title = f"Running {Path(document.path).name}"
        self._client.status("running", title, worker.interpreter)
        self._client.progress(title)

    def is_current(self, document: Document, analysis: Analysis) -> bool:
        """Whether the document is still open, and still has the text that was analysed."""
        return self._documents.get(document.uri) is document and document.version == analysis.version

    def with_trace(self, document: Document, analysis: Analysis, traced: protocol.Traced) -> Analysis:
        """The analysis with what a run has seen."""
        settings = self._configuration.of(document)
        found = [*analysis.findings, *findings(analysis.module, traced.trace, settings, self._other_modules)]
        return replace(analysis, settings=settings, trace=traced.trace, named=traced.stage == "named", findings=found)

    def publish(self, document: Document, found: Sequence[Finding]) -> None:
        """Show findings whose positions are of the newest text."""
        self._client.publish(document, found)

    def adopt(self, document: Document, analysis: Analysis) -> None:
        """Take hints, hovers and lenses from this analysis from now on."""
        document.adopt(analysis)
        self._client.refresh()

    def _show(self, document: Document, analysis: Analysis) -> None:
        had_something = document.analysis is not None
        document.adopt(analysis)
        self.publish(document, moved_findings(analysis.findings, document.since))
        if had_something or analysis.module.classes:
            self._client.refresh()


class _Arrival:
    """What comes back from one run: findings are shown at once, hints when the names of the dims are there or take too long."""

    def __init__(self, runs: Runs, document: Document, analysis: Analysis) -> None:
        self._runs = runs
        self._document = document
        self._analysis = analysis
        self._newest: Analysis | None = None
        self._published: Sequence[Finding] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def take(self, traced: protocol.Traced) -> None:
        """A trace: it is dropped if the text has changed since."""
        if not self._runs.is_current(self._document, self._analysis):
            return
        before = self._document.analysis
        analysis = self._runs.with_trace(self._document, self._analysis, traced)
        if traced.stage == "partial":
            if before is None or before.trace is None or before.version == analysis.version:
                self._runs.adopt(self._document, analysis)
            return
        self._newest = analysis
        self._publish(analysis.findings)
        if self._had_hints() and _ended_early(traced.trace):
            return  # The hints of the last whole run say more than those of half a run.
        if analysis.named:
            self._adopt()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NAMES_WITHIN, self._adopt)

    def finish(self, finished: protocol.Finished) -> None:
        """The end of the run, however it came about."""
        if finished.outcome == "cancelled" or not self._runs.is_current(self._document, self._analysis):
            if self._timer is not None:
                self._timer.cancel()
            return
        self._document.seconds = finished.seconds
        found = list(self._newest.findings if self._newest is not None else self._analysis.findings)
        if finished.outcome != "ok" and not any(finding.code == finished.outcome for finding in found):
            analysis = self._analysis
            failed = failure(analysis.module, self._document.path, finished.outcome, finished.detail, analysis.settings)
            # That no worker can be started says nothing about the code.
            found[:0] = [replace(each, severity="warning") for each in failed] if finished.outcome == "unavailable" else failed
        self._publish(found)
        if self._newest is not None and not (self._had_hints() and self._newest.trace is not None and _ended_early(self._newest.trace)):
            self._adopt()
        elif self._document.analysis is None:
            self._runs.adopt(self._document, self._analysis)

    def _had_hints(self) -> bool:
        return self._document.analysis is not None and self._document.analysis.trace is not None

    def _publish(self, found: Sequence[Finding]) -> None:
        if found != self._published:
            self._published = found
            self._runs.publish(self._document, found)

    def _adopt(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if (
            self._newest is not None
            and self._document.analysis is not self._newest
            and self._runs.is_current(self._document, self._analysis)
        ):
            self._runs.adopt(self._document, self._newest)


def _ended_early(trace: protocol.Trace) -> bool:
    """Whether a run was stopped, rather than coming to an end of its own."""
    return any(example.error_kind in ("deadline", "memory", "exit", "crash") for example in trace.examples)


def _of_examples(choice: Choice, path: str) -> list[Finding]:
    return [Finding("example", "error", problem.message, problem.span, path) for problem in choice.problems]
