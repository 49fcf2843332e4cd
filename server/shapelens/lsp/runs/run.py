"""The third step: a run is sent to a worker, and what comes back is handed on while it comes."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from shapelens import protocol
from shapelens.examples.found_examples import FoundExamples
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.background_fixes import BackgroundFixes
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.progress import tell_when_slow
from shapelens.lsp.runs.stages import ImporterRun, ImportingProgram, OwnRun, ProgramRun, RunResults
from shapelens.lsp.runs.trial import try_run
from shapelens.lsp.workspace.workspace import Workspace
from shapelens.runner import Worker
from shapelens.runner.preload import ahead_of

logger = logging.getLogger(__package__)

KEEP_AFTER = 0.005  # seconds after which a run has been sent: then there is time to compute what is kept of the last one


class Runner:
    """Sends runs to workers, and knows which run is under way for which document.

    One document has its turn at a time. Where `end_turn` is called, waiting for its run ends early, and nothing more is sent until the next
    turn begins.
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        workspace: Workspace,
        client: Client,
        cached_runs: CachedRuns,
        found: FoundExamples,
        background_fixes: BackgroundFixes,
        run_ids: itertools.count[int],
        *,
        in_background: bool = False,
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._client = client
        self._cached_runs = cached_runs
        self._found = found
        self._fix_search = background_fixes
        self._run_ids = run_ids
        self._in_background = in_background
        self._under_way: dict[Document, tuple[Worker, int]] = {}  # by whom it is for
        self.turn_has_ended = False  # before all was done
        self._turn_end = asyncio.Event()
        self.has_lost_runs = False  # in this turn, to others that the same worker had to do

    def is_running(self, document: Document) -> bool:
        """True if a run is under way for a document."""
        return document in self._under_way

    def begin_turn(self) -> None:
        """From now on runs are sent for another document."""
        self.turn_has_ended = self.has_lost_runs = False
        self._turn_end = asyncio.Event()

    def end_turn(self) -> None:
        """Stop what is under way, and send nothing more of what would follow it."""
        self.turn_has_ended = True
        self._turn_end.set()
        self._fix_search.interrupt_all()
        for worker, run_id in self._under_way.values():
            # After the messages that are there already: the worker will fork another process, which takes processors from the server.
            asyncio.get_running_loop().call_soon(worker.cancel, run_id)

    async def wait(self, seconds: float) -> None:
        """Wait for so long, or until the turn is ended."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._turn_end.wait(), seconds)

    async def run(self, document: Document, results: OwnRun, search: protocol.Search | None) -> None:
        """Run an open document: the examples of `results.analysis`, but for those that are kept, and those that the search finds."""
        run = self._to_send(document, results, search)
        document.begin_run(run)
        self._fix_search.own_run_begins(document)
        if results.analysis.kept is not None:
            asyncio.get_running_loop().call_later(KEEP_AFTER, results.analysis.kept.prepare)
        await self._send(document, results, run, on_behalf_of=document)

    async def run_importer(self, importer: Document, results: ImporterRun, search: protocol.Search | None, document: Document) -> None:
        """Run a file that is not open, for a document that it imports: the examples of `results.analysis`, and those that are found."""
        await self._send(importer, results, self._to_send(importer, results, search), on_behalf_of=document)

    async def run_program(self, document: Document, results: ProgramRun, seconds: float) -> None:
        """Follow an open document as a program for so many seconds, beside the process that is ready for its next run."""
        repeatable = self._to_send(document, results, None)
        newest = document.analysis if document.analysis is not None else results.analysis
        own = newest.own if newest.version == results.analysis.version else None  # `results.analysis` is of before its examples ran.
        ran = [*(own.examples if own is not None else []), *document.importer_traces.functions_called(results.analysis.module)]
        known = [protocol.ExampleRequest(each.target, each.expression, bool(each.evidence)) for each in ran if each.error is None]
        await self._send(document, results, _as_program(repeatable, known, seconds), on_behalf_of=document)

    async def run_importing_program(
        self, importer: Document, results: ImportingProgram, known: Sequence[protocol.Known], document: Document
    ) -> None:
        """Follow a file as a program for a document that it imports, with the examples that are known of the file's classes."""
        requests = [protocol.ExampleRequest(each.target, each.expression, bool(each.evidence)) for each in known if each.proven]
        repeatable = _as_program(self._to_send(importer, results, None), requests, protocol.PROGRAM_SECONDS)
        repeatable = replace(repeatable, run=replace(repeatable.run, followed_for=document.path))
        await self._send(importer, results, repeatable, on_behalf_of=document)

    async def try_example(self, document: Document, class_name: str, expression: str) -> tuple[bool, str] | None:
        """Returns whether an example runs, and what comes out of it or is wrong; None where there is no time to try it."""
        worker, root = self._workspace.only_worker(document), self._workspace.root(document)
        if document.module.errors:
            return None
        request = protocol.ExampleRequest(class_name, expression)
        run = protocol.Run(next(self._run_ids), document.path, document.module.text, root, [request], named=False)
        run.allow = self._workspace.configuration.of(document).allow
        run.overlays = {other.path: other.text for other in self._documents.values() if other is not document and not other.saved}
        return await try_run(run, worker)

    def _to_send(self, document: Document, results: RunResults, search: protocol.Search | None) -> RepeatableRun:
        worker, root = self._workspace.only_worker(document), self._workspace.root(document)
        analysis = results.analysis
        worker.preload(ahead_of(analysis.module, root, document.path), analysis.settings.allow)
        again = analysis.kept.again if analysis.kept is not None else None
        others = {self._documents[uri].path: (self._documents[uri], module) for uri, (_, module) in results.others.items()}
        run = protocol.Run(
            run_id=next(self._run_ids),
            file=document.path,
            text=analysis.module.text,
            root=root,
            examples=[example.request for number, example in enumerate(analysis.examples) if again is None or number in again],
            overlays={path: module.text for path, (other, module) in others.items() if not other.saved or module.text != other.text},
            observe=list(others),
            deadline=analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
            allow=analysis.settings.allow,
            search=search,
            findings_first=isinstance(results, OwnRun),
        )
        lasting = analysis.settings.cache and all(each.saved for each in (document, *self._documents.values()))
        return RepeatableRun(run, worker, lasting=lasting)

    async def _send(self, document: Document, results: RunResults, repeatable: RepeatableRun, on_behalf_of: Document) -> None:
        run, worker = repeatable.run, repeatable.worker
        if self.turn_has_ended:
            results.finish(protocol.Finished(run.run_id, "cancelled"))
            return
        wanted = [*(request.target for request in run.examples), *(run.search.classes if run.search is not None else ())]
        if run.program:
            logger.debug("program %d: %s", run.run_id, document.path)
        else:
            logger.debug("run %d: %s of %s", run.run_id, ", ".join(wanted) or "nothing", document.path)
        self._workspace.workers.new_run()
        self._under_way[on_behalf_of] = (worker, run.run_id)
        results.run = repeatable
        self._fix_search.expect(on_behalf_of)
        telling = asyncio.create_task(tell_when_slow(run, worker, self._client))
        try:
            finished = await self._cached_runs.run(
                replace(run, background=True) if self._in_background else run,
                worker,
                results.take,
                lasting=repeatable.lasting,
                partial=results.analysis.kept is not None,
                complete=partial(self._found.completed, document.path),
            )
        finally:
            telling.cancel()
            del self._under_way[on_behalf_of]
        self.has_lost_runs |= finished.outcome == "cancelled"
        results.finish(finished)
        logger.debug("%s %d ended: %s", "program" if run.program else "run", run.run_id, finished.outcome)


def _as_program(repeatable: RepeatableRun, known: list[protocol.ExampleRequest], seconds: float) -> RepeatableRun:
    run = replace(repeatable.run, examples=[], known=known, program=seconds, background=True, findings_first=False)
    return replace(repeatable, run=run)
