"""From the newest text of a document to what the editor shows of it: examples are chosen or searched for, run, and their traces turned
into findings."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pygls import uris

from shapelens import protocol
from shapelens.analysis.findings.findings import Finding, findings
from shapelens.analysis.traces.splicing import spliced, without_values
from shapelens.analysis.traces.views import called, reaches, see_all
from shapelens.examples.choose import Choice, choose, without_example
from shapelens.examples.found_examples import Found
from shapelens.examples.importing_files import ENOUGH
from shapelens.lsp.documents.document import Analysis, Document, Kept
from shapelens.lsp.documents.importer_traces import Ran, moved_trace
from shapelens.lsp.documents.moved_findings import moved_findings
from shapelens.lsp.runs.cached_runs import Reopened
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.fix_search import Repairs
from shapelens.lsp.runs.incremental import left_to_run, still_seen
from shapelens.lsp.runs.progress import tried, watch
from shapelens.lsp.runs.stages import Arrival, Others, Visit
from shapelens.lsp.workspace.configuration import Configuration
from shapelens.lsp.workspace.importers import Importers
from shapelens.lsp.workspace.parsed_files import OtherModules
from shapelens.lsp.workspace.workers import Workers
from shapelens.runner import Worker
from shapelens.runner.preload import third_party
from shapelens.source.edits import PositionMap
from shapelens.source.module import Module

logger = logging.getLogger(__package__)

MEANWHILE = 0.005  # seconds after which a run has been sent


class Runs:
    """Runs documents, one at a time for each call of `run`, and shows what comes of them."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        configuration: Configuration,
        workers: Workers,
        client: Client,
        reopened: Reopened,
        place: Callable[[Document], tuple[str, Worker]],
    ) -> None:
        self._documents = documents
        self._configuration = configuration
        self._workers = workers
        self._client = client
        self._reopened = reopened
        self._place = place  # the workspace folder of a document, and the worker that runs it
        self._other_modules = OtherModules(documents)
        self.importers = Importers(documents, configuration, place)
        self._found = Found(self._other_modules.state_of)
        self._run_ids = itertools.count(1)
        self.repairs = Repairs(client, reopened, self._other_modules, self._run_ids)
        self.under_way: dict[Document, tuple[Worker, int]] = {}  # by whom it is for

    async def run(self, document: Document, *, whole: bool = False) -> None:
        """Bring what the editor shows of a document up to date, by its whole run or that of what an edit has to do with. Returns when that
        is done, or the run has been cancelled."""
        if document.uri not in self._documents:
            return
        settings, module = self._configuration.of(document), document.module
        choice = choose(module, document.path, settings)
        analysis = Analysis(
            document.version,
            module,
            settings,
            choice.examples,
            findings=_of_examples(choice, document.path),
            others=self._modules(document),
        )
        document.failure = ()
        shown = document.analysis
        if module.errors and shown is not None and shown.trace is not None:
            # Nothing can run now. What was seen before stays, at the places where it has gone.
            self._client.publish(document, moved_findings(shown.findings, document.since))
            return
        lacking = [] if module.errors else without_example(module, choice)
        if not (module.errors or whole) and await self._run_rest(document, analysis, lacking):
            if document.complete is not None and document.complete.unfinished and self.is_current(document, document.complete):
                await self.run(document, whole=True)
            return
        if not choice.examples:
            if lacking and await self.importers.of(document):
                await self._run_open_users(document)
                if not self.is_current(document, analysis) or not await self._show_by_users(document, analysis):
                    return
            if not lacking or not (lacking := self._unseen(document, lacking)):
                self._show(document, self._with_visits(document, analysis))
                self._repair(document)
                return
        users = document.users or []
        if await self._run_itself(document, analysis, lacking) and lacking:
            if await self.importers.of(document, patient=True) != users and self.is_current(document, analysis):
                await self.run(document)  # They were still being looked for when it ran, and may know better.
            elif choice.examples:
                await self._run_users(document)

    async def _run_rest(self, document: Document, analysis: Analysis, lacking: Sequence[str]) -> bool:
        """Run those examples again that an edit has to do with, and move the rest. Whether that will do: else everything has to run."""
        shown = document.complete
        seen = shown.own if shown is not None else None
        if shown is None or seen is None:
            return False
        if lacking and document.users is None:
            shown.unfinished = True  # Files that import this one may know better.
        known = self._found.known(document.path, analysis.module, lacking, document.surroundings)
        left = left_to_run(document, analysis, lacking, known)
        if left is None:
            return False
        kept = Kept(lambda: still_seen(shown, analysis.module, known, left.examples), left.examples)
        if not left:
            if kept.trace is not None:
                moved = replace(analysis, own=kept.trace, named=shown.named, unfinished=shown.unfinished)
                self._carry_on(document, shown, moved)
            return kept.trace is not None
        classes = [*(run.target for run in map(seen.examples.__getitem__, left.examples) if run.evidence), *left.classes]
        search = self._search(document, analysis, classes) if classes else None
        part = replace(analysis, kept=kept, unfinished=shown.unfinished)
        arrival = Arrival(self, document, part, self._others(document))
        await self._run_examples(document, arrival.analysis, arrival, search)
        now, complete = document.analysis, document.complete
        if not arrival.cancelled and kept.trace is None:
            document.outdated = True
            await self.run(document)
        elif not arrival.cancelled and complete is not None and now is not None and now.own is not None and called(now.own) != called(seen):
            complete.unfinished = True  # Which classes need an example of their own is another question now.
        return True

    def _carry_on(self, document: Document, shown: Analysis, analysis: Analysis) -> None:
        """Show a text of which nothing has to run, with the fixes that are known."""
        seen = self._with_visits(document, analysis)
        document.ran = shown.ran
        before = self._ran(document, shown), shown.findings
        seen.ran = document.ran = shown.ran.with_text(seen.module.text) if shown.ran is not None else None
        since = PositionMap.between(shown.module.text, seen.module.text)
        self.repairs.follow(document, before, (self._ran(document, seen), list(seen.findings)), since)
        document.complete = seen
        self.publish(document, seen.findings)
        self.adopt(document, seen)
        self._repair(document)

    async def _run_open_users(self, document: Document) -> None:
        """Run open documents with examples that import this one, unless it is known what they see of it: that says more than a search."""
        for user in document.users or []:
            other = next((each for each in self._documents.values() if each.path == user.path), None)
            if other is None or not user.has_example or document.visits.by({other.path}) or (other, other.version) in document.asked:
                continue
            document.asked.add((other, other.version))
            await self.run(other)

    async def _show_by_users(self, document: Document, analysis: Analysis) -> bool:
        """Show a document without examples as files that import it use it; whether to go on and search for those that this leaves out."""
        if any(user.has_example for user in document.users or []):
            shown = document.analysis
            own = moved_trace(shown.own, shown.module.lines, analysis.module.lines) if shown is not None and shown.own is not None else None
            self._show(document, self._with_visits(document, replace(analysis, own=own)))
            return await self._run_users(document)
        return True

    def _unseen(self, document: Document, classes: Sequence[str]) -> list[str]:
        """Those of the classes that no run of another file has constructed."""
        seen = document.visits.classes()
        return [name for name in classes if name.rpartition(".")[2] not in seen]

    async def _run_itself(self, document: Document, analysis: Analysis, lacking: Sequence[str]) -> bool:
        """Run the examples of a document, and search for some of the classes that lack one; whether the run came to an end of its own."""
        classes = self._unseen(document, lacking)
        search = self._search(document, analysis, classes) if classes else None
        arrival = Arrival(self, document, analysis, self._others(document))
        await self._run_examples(document, analysis, arrival, search)
        return not arrival.cancelled

    def _search(self, document: Document, analysis: Analysis, classes: list[str]) -> protocol.Search:
        known = self._found.known(document.path, analysis.module, classes, document.surroundings)
        return protocol.Search(known, [user.path for user in document.users or []], classes)

    def forget_found(self) -> None:
        """Search anew for all examples that nobody has given or chosen."""
        self._found.forget()

    def use_example(self, document: Document, class_name: str, expression: str) -> bool:
        """Have a class run with another of the examples that were found for it. Returns whether it is one of them."""
        return self._found.choose(document.path, class_name, expression)

    async def try_example(self, document: Document, class_name: str, expression: str) -> tuple[bool, str] | None:
        """Whether an example runs, and what comes out of it or is wrong; None where there is no time to try it."""
        root, worker = self._place(document)
        if document.module.errors:
            return None
        request = protocol.ExampleRequest(class_name, expression)
        run = protocol.Run(next(self._run_ids), document.path, document.module.text, root, [request], named=False)
        run.overlays = {other.path: other.text for other in self._documents.values() if other is not document and not other.saved}
        return await tried(run, worker)

    def cancel(self, document: Document) -> None:
        """Stop the run of a document if one is under way."""
        if document in self.under_way:
            worker, run_id = self.under_way[document]
            # After the messages that are there already: the worker will fork another process, which takes processors from the server.
            asyncio.get_running_loop().call_soon(worker.cancel, run_id)

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

    def _modules(self, document: Document) -> dict[str, Module]:
        """The texts of the other documents by path."""
        return {self._documents[uri].path: module for uri, (_, module) in self._others(document).items()}

    async def _run_users(self, document: Document) -> bool:
        """Run files that import this one and have examples, where none of its own shows all its classes and no open file does.

        Returns whether there is time left for more: no run was cancelled.
        """
        open_files = {each.path for each in self._documents.values()}
        shown = [document.analysis.own] if document.analysis is not None and document.analysis.own is not None else []
        if not document.module.classes or see_all(document.module, [*shown, *document.visits.by(open_files)]):
            return True
        reached = 0
        for path in [user.path for user in document.users or [] if user.has_example and user.path not in open_files]:
            module = self._other_modules(path)
            if reached >= ENOUGH or module is None or module.errors or self._documents.get(document.uri) is not document:
                continue
            user = Document(str(uris.from_fs_path(path)), 0, module.text)
            choice = choose(module, path, self._configuration.of(user))
            if choice.examples:
                analysis = Analysis(0, module, self._configuration.of(user), choice.examples)
                arrival = Visit(self, self._others(user))
                await self._run_examples(user, analysis, arrival, on_behalf_of=document)
                if arrival.cancelled:
                    return False
                reached += arrival.reaches(document)
        return True

    async def _run_examples(
        self,
        document: Document,
        analysis: Analysis,
        arrival: Arrival | Visit,
        search: protocol.Search | None = None,
        on_behalf_of: Document | None = None,
    ) -> None:
        root, worker = self._place(document)
        worker.preload(third_party(analysis.module.imports, root, document.path))
        others = {self._documents[uri].path: (self._documents[uri], module) for uri, (_, module) in arrival.others.items()}
        run = protocol.Run(
            run_id=next(self._run_ids),
            file=document.path,
            text=analysis.module.text,
            root=root,
            examples=[
                protocol.ExampleRequest(example.target, example.expression)
                for number, example in enumerate(analysis.examples)
                if analysis.kept is None or number in analysis.kept.again
            ],
            overlays={path: module.text for path, (other, module) in others.items() if not other.saved or module.text != other.text},
            observe=list(others),
            deadline=analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
            search=search,
            findings_first=isinstance(arrival, Arrival),
        )
        wanted = [*(request.target for request in run.examples), *(search.classes if search is not None else ())]
        logger.debug("run %d: %s of %s", run.run_id, ", ".join(wanted) or "nothing", document.path)
        self._workers.new_run()
        self.under_way[asked := on_behalf_of or document] = (worker, run.run_id)
        lasting = analysis.settings.cache and all(each.saved for each in (document, *self._documents.values()))
        arrival.ran = document.ran = Ran(run, worker, lasting=lasting)
        self.repairs.expect(asked)
        if analysis.kept is not None:  # While the worker runs.
            asyncio.get_running_loop().call_later(MEANWHILE, analysis.kept.prepare)
        telling = asyncio.create_task(watch(run, worker, self._client))
        try:
            complete = partial(self._found.completed, document.path)
            some = analysis.kept is not None
            finished = await self._reopened.run(run, worker, arrival.take, lasting=lasting, partial=some, complete=complete)
        finally:
            telling.cancel()
            del self.under_way[asked]
        arrival.finish(finished)
        logger.debug("run %d ended: %s", run.run_id, finished.outcome)
        self._repair(asked)

    def is_current(self, document: Document, analysis: Analysis) -> bool:
        """Whether the document is still open, and still has the text that was analysed."""
        return self._documents.get(document.uri) is document and document.version == analysis.version

    def with_trace(self, document: Document, analysis: Analysis, traced: protocol.Traced) -> Analysis:
        """The analysis with what a run has seen."""
        settings = self._configuration.of(document)
        whole, more = traced.stage != "partial", traced.stage in protocol.WHAT_IS_WRONG
        trace = self._found.keep(document.path, analysis.module, traced.trace, document.surroundings, whole=whole, remember=not more)
        if analysis.kept is not None:
            own = analysis.kept.trace
            assert own is not None
            trace = spliced(without_values(own) if more else own, analysis.kept.again, trace)
        # What was kept is in the trace now; it knows the analysis before, which knew the one before that.
        seen = replace(analysis, settings=settings, own=trace, named=traced.stage == "named", kept=None)
        if traced.stage == "partial":  # Nothing is said to be wrong before the run has come to its end.
            return self._with_traces(document, seen)
        return self._with_visits(document, seen)

    def _with_visits(self, document: Document, analysis: Analysis) -> Analysis:
        """The analysis of a document's own run, with what the runs of other files saw in the document."""
        seen = self._with_traces(document, analysis)
        return replace(seen, findings=self._findings(document, seen))

    def _with_traces(self, document: Document, analysis: Analysis) -> Analysis:
        return replace(analysis, trace=document.visits.with_own(analysis.own, analysis.module))

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
        self.repairs.want(document, analysis, self._ran(document, analysis))

    def _ran(self, document: Document, analysis: Analysis) -> list[Ran]:
        own = [document.ran] if analysis.own is not None and document.ran is not None else []
        return [*own, *document.visits.runs()]

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
        # Now, so that they are there when they are asked for: Neovim shows none that come after it has drawn again since the refresh.
        _ = analysis.hints
        self._client.refresh()

    def _show(self, document: Document, analysis: Analysis) -> None:
        had_something = document.analysis is not None
        document.adopt(analysis)
        self.publish(document, moved_findings(analysis.findings, document.since))
        if had_something or analysis.module.classes:
            self._client.refresh()


def _of_examples(choice: Choice, path: str) -> list[Finding]:
    return [Finding("example", "error", problem.message, problem.span, path) for problem in choice.problems]
