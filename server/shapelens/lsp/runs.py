"""From the newest text of a document to what the editor shows of it: examples are chosen, run, and their traces turned into findings."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pygls import uris

from shapelens import protocol
from shapelens.analysis.findings import Finding, failure, findings
from shapelens.analysis.views import reaches, see_all
from shapelens.examples.choose import Choice, choose
from shapelens.examples.settings import Settings
from shapelens.examples.users import ENOUGH, Users
from shapelens.lsp.client import Client
from shapelens.lsp.configuration import Configuration
from shapelens.lsp.document import Analysis, Document
from shapelens.lsp.mapping import moved_findings
from shapelens.lsp.modules import OtherModules
from shapelens.lsp.repairs import Repairs
from shapelens.lsp.visits import Ran, moved_trace
from shapelens.lsp.workers import Workers
from shapelens.runner import Worker
from shapelens.runner.preload import third_party
from shapelens.source.module import Module

# Other documents by URI: the version and the text that a run goes through.
Others = Mapping[str, tuple[int, Module]]

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
        self._users = Users()
        self._run_ids = itertools.count(1)
        self.repairs = Repairs(client, self._other_modules, self._run_ids)
        self._starting: asyncio.Task[object] | None = None  # kept here, as the event loop itself keeps no reference
        self._under_way: dict[Document, tuple[Worker, int]] = {}

    async def run(self, document: Document) -> None:
        """Bring what the editor shows of a document up to date. Returns when that is done, or the run has been cancelled."""
        if document.uri not in self._documents:
            return
        settings, module = self._configuration.of(document), document.module
        choice = choose(module, document.path, settings)
        analysis = Analysis(document.version, module, settings, choice.examples, findings=_of_examples(choice, document.path))
        document.failure = ()
        shown = document.analysis
        if module.errors and shown is not None and shown.trace is not None:
            # Nothing can run now. What was seen before stays, at the places where it has gone.
            self._client.publish(document, moved_findings(shown.findings, document.since))
        elif module.errors or not choice.examples:
            self._show(document, self._with_visits(document, analysis))
            self._repair(document)
            if module.classes:
                # An example is likely to come, and loading PyTorch takes seconds.
                self._starting = asyncio.create_task(self._place(document)[1].start())
        else:
            await self._run_examples(document, analysis, _Arrival(self, document, analysis, self._others(document)))
        if not module.errors:
            await self._run_users(document, settings)

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
                changed.findings = self._findings(document, changed)
            if self.is_current(document, changed):
                self._show(document, changed)
            else:
                self.adopt(document, changed)

    def _others(self, document: Document) -> Others:
        """The documents that a run may go through, each with the text that it runs with."""
        others = [each for each in self._documents.values() if each is not document]
        return {each.uri: (each.version, module) for each in others if (module := each.runnable) is not None}

    async def _run_users(self, document: Document, settings: Settings) -> None:
        """Run files that import this one and have examples, where it has none of its own for its classes and no open file shows them."""
        texts = {each.path: each.text for each in self._documents.values()}
        shown = [document.analysis.own] if document.analysis is not None and document.analysis.own is not None else []
        if not document.module.classes or see_all(document.module, [*shown, *document.visits.by(texts)]):
            return
        if document.users is None:
            root = self._place(document)[0] or str(Path(document.path).parent)
            found = await asyncio.to_thread(self._users.of, document.path, root, settings, texts)
            document.users = [path for path in found if path not in texts]
        reached = 0
        for path in document.users:
            module = self._other_modules(path)
            if reached >= ENOUGH or module is None or module.errors or self._documents.get(document.uri) is not document:
                continue
            user = Document(str(uris.from_fs_path(path)), 0, module.text)
            choice = choose(module, path, self._configuration.of(user))
            if choice.examples:
                analysis = Analysis(0, module, self._configuration.of(user), choice.examples)
                arrival = _Visit(self, user, self._others(user))
                await self._run_examples(user, analysis, arrival, on_behalf_of=document)
                if arrival.cancelled:
                    return
                reached += arrival.reaches(document)

    async def _run_examples(
        self, document: Document, analysis: Analysis, arrival: _Arrival | _Visit, on_behalf_of: Document | None = None
    ) -> None:
        root, worker = self._place(document)
        worker.preload(third_party(analysis.module.imports, root, document.path))
        others = {self._documents[uri].path: (self._documents[uri], module) for uri, (_, module) in arrival.others.items()}
        run = protocol.Run(
            run_id=next(self._run_ids),
            file=document.path,
            text=analysis.module.text,
            root=root,
            examples=[protocol.ExampleRequest(example.target, example.expression) for example in analysis.examples],
            overlays={path: module.text for path, (other, module) in others.items() if not other.saved or module.text != other.text},
            observe=list(others),
            deadline=analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
        )
        self._workers.new_run()
        asked = on_behalf_of or document
        self._under_way[asked] = (worker, run.run_id)
        arrival.ran = document.ran = Ran(run, worker)
        self.repairs.expect(asked)
        watch = asyncio.create_task(self._watch(document, worker))
        try:
            finished = await worker.submit(run, arrival.take)
        finally:
            watch.cancel()
            del self._under_way[asked]
        arrival.finish(finished)
        self._repair(asked)

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
        seen = replace(analysis, settings=settings, own=traced.trace, named=traced.stage == "named")
        return self._with_visits(document, seen)

    def _with_visits(self, document: Document, analysis: Analysis) -> Analysis:
        """The analysis of a document's own run, with what the runs of other files saw in the document."""
        seen = replace(analysis, trace=document.visits.with_own(analysis.own, analysis.module))
        return replace(seen, findings=self._findings(document, seen))

    def _findings(self, document: Document, analysis: Analysis) -> list[Finding]:
        choice = choose(analysis.module, document.path, analysis.settings)
        found = [*document.failure, *_of_examples(choice, document.path)]
        if analysis.trace is not None:
            found += findings(analysis.module, analysis.trace, analysis.settings, self._other_modules)
        return found

    def _repair(self, document: Document) -> None:
        """Look for fixes of what is shown of a document now that a run of it has ended."""
        analysis = document.analysis
        if analysis is None or not self.is_current(document, analysis):
            self.repairs.forget(document)
            return
        own = [document.ran] if analysis.own is not None and document.ran is not None else []
        self.repairs.want(document, analysis, [*own, *document.visits.runs()])

    def visit(self, trace: protocol.Trace, others: Others, ran: Ran | None, *, hints: bool) -> None:
        """Show what a run saw in the other documents that it went through: findings at once, `hints` when dims have names."""
        for uri, (version, module) in others.items():
            document = self._documents.get(uri)
            if document is None or document.version != version:
                continue  # It has changed since, and what imports it runs again.
            if ran is not None and reaches(trace, document.path):
                document.visits.add(trace, module, ran)
            elif not document.visits.drop(trace.file):
                continue
            if not document.module.errors and (document.analysis is None or document.analysis.version != version):
                continue  # Its own run is still to come, and will show this as well: until then nothing is known of the newest text.
            shown = document.analysis or Analysis(version, module, self._configuration.of(document))
            own = moved_trace(shown.own, shown.module.lines, module.lines) if shown.own is not None else None
            analysis = self._with_visits(document, replace(shown, version=version, module=module, own=own))
            if not document.module.errors:
                self.publish(document, analysis.findings)
            if hints:
                self.adopt(document, analysis)
                self._repair(document)
            else:
                self.repairs.expect(document)

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


class _Visit:
    """What comes back from the run of a file that is not open: it is shown in the open documents that it goes through."""

    def __init__(self, runs: Runs, user: Document, others: Others) -> None:
        self.others = others
        self.ran: Ran | None = None
        self.cancelled = False
        self._runs = runs
        self._user = user
        self._newest: protocol.Trace | None = None

    def take(self, traced: protocol.Traced) -> None:
        """A trace."""
        if traced.stage != "partial":
            self._newest = traced.trace
            self._runs.visit(traced.trace, self.others, self.ran, hints=traced.stage == "named")

    def finish(self, finished: protocol.Finished) -> None:
        """The end of the run."""
        self.cancelled = finished.outcome == "cancelled"
        if self._newest is not None and not self.cancelled:
            self._runs.visit(self._newest, self.others, self.ran, hints=True)

    def reaches(self, document: Document) -> bool:
        """Whether the run went through a document."""
        return self._newest is not None and reaches(self._newest, document.path)


class _Arrival:
    """What comes back from one run: findings are shown at once, hints when the names of the dims are there or take too long."""

    def __init__(self, runs: Runs, document: Document, analysis: Analysis, others: Others) -> None:
        self.others = others
        self.ran: Ran | None = None
        self._runs = runs
        self._document = document
        self._analysis = analysis
        self._newest: Analysis | None = None
        self._published: Sequence[Finding] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._had_hints = document.analysis is not None and document.analysis.trace is not None

    def take(self, traced: protocol.Traced) -> None:
        """A trace: it is dropped if the text has changed since."""
        if not self._runs.is_current(self._document, self._analysis):
            return
        before = self._document.analysis
        analysis = self._runs.with_trace(self._document, self._analysis, traced)
        if traced.stage == "partial":
            if not self._had_hints:  # Those of a whole run say more.
                self._runs.adopt(self._document, replace(analysis, findings=before.findings if before is not None else ()))
            return
        self._newest = analysis
        self._publish(analysis.findings)
        self._runs.visit(traced.trace, self.others, self.ran, hints=analysis.named)
        if self._had_hints and _ended_early(traced.trace):
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
            self._document.failure = [replace(each, severity="warning") for each in failed] if finished.outcome == "unavailable" else failed
            found[:0] = self._document.failure
        self._publish(found)
        if self._newest is not None and not (self._had_hints and self._newest.trace is not None and _ended_early(self._newest.trace)):
            self._adopt()
        elif self._document.analysis is None:
            self._runs.adopt(self._document, self._analysis)

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
            if self._newest.own is not None:
                self._runs.visit(self._newest.own, self.others, self.ran, hints=True)


def _ended_early(trace: protocol.Trace) -> bool:
    """Whether a run was stopped, rather than coming to an end of its own."""
    return any(example.error_kind in ("deadline", "memory", "exit", "crash") for example in trace.examples)


def _of_examples(choice: Choice, path: str) -> list[Finding]:
    return [Finding("example", "error", problem.message, problem.span, path) for problem in choice.problems]
