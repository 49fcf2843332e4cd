"""The state of the language server: open documents, settings, workers; every request of the editor is answered from it."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from shapelens.analysis.display.hints import Hint
from shapelens.analysis.display.hovers import Hover, hover
from shapelens.analysis.display.lenses import Lens, found_for, lenses
from shapelens.analysis.display.summary import Summary, summary
from shapelens.analysis.findings.codes import is_note
from shapelens.analysis.traces.shown import shown_for
from shapelens.cache.inputs import ReadState
from shapelens.cache.store import Store, removal
from shapelens.examples import expression as expressions
from shapelens.examples.found_examples import FoundExamples
from shapelens.lsp.documents.annotated_text import annotated
from shapelens.lsp.documents.document import Change, Document
from shapelens.lsp.documents.moved_findings import moved_lenses
from shapelens.lsp.documents.notebook_document import CellText, ListedCell, NotebookChange, NotebookDocument
from shapelens.lsp.documents.paths import on_disk
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.examinations import Examination, Examinations
from shapelens.lsp.runs.memory_notes import MemoryNotes
from shapelens.lsp.runs.model_views import ModelOptions, ModelViews, ViewedModel
from shapelens.lsp.runs.pipeline import Pipeline, RunServices
from shapelens.lsp.runs.reopening import Reopening
from shapelens.lsp.runs.schedule import Schedule, debounce
from shapelens.lsp.workspace.consent import Consent
from shapelens.lsp.workspace.importers import Importers
from shapelens.lsp.workspace.parsed_files import ParsedFiles, depends_on
from shapelens.lsp.workspace.workers import Workers
from shapelens.lsp.workspace.workspace import Workspace
from shapelens.protocol import Alternative
from shapelens.runner import Worker, WorkerState
from shapelens.source.edits import set_directive
from shapelens.source.module import warm_up
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span

logger = logging.getLogger(__name__)

TRY_AGAIN = "Try again"
LONGEST_WAIT = 60.0  # seconds until a document has nothing to run, for what needs all of it
WARM_UP_AFTER = 0.5  # seconds after the client's greeting: what it asks for first is not to wait for it


class Session:
    """The state of one client. All methods are called on the event loop, and none of them holds it up for longer than a parse takes."""

    def __init__(self, client: Client, interpreter_option: str | None, workers: Workers, store: Store | None) -> None:
        self.documents: dict[str, Document] = {}
        self._consent = Consent(client.ask, self._interpreter_changed)
        self.workspace = Workspace(self.documents, workers, self._consent, interpreter_option)
        self._client = client
        self._restarting: asyncio.Task[None] | None = None  # as the user has answered
        self._store = store
        self._cached_runs = CachedRuns(store)
        parsed_files = ParsedFiles(self.documents)
        self._importers = Importers(self.documents, self.workspace)
        services = RunServices(self.workspace, self._cached_runs, parsed_files, self._importers, itertools.count(1))
        self._pipeline = Pipeline(self.documents, services, client, FoundExamples(parsed_files.state_of))
        self._examinations = Examinations(self.documents, self.workspace, client)
        self._model_views = ModelViews(self.documents, self.workspace, parsed_files, services.run_ids)
        self._memory_notes = MemoryNotes(self.documents, self._model_views, parsed_files, client)
        self._reopening = Reopening(self._pipeline, self.documents, services)
        self._is_taking_turn = False
        self._schedule = Schedule(
            self._take_turn,
            self._reopen,
            self._reopening.end_turn,
            self._pipeline.background_fixes,
            self._model_views,
            self._memory_notes,
            self._is_enabled,
        )

    def greet(self) -> None:
        """The client has said hello: tell it of what has happened until now, too."""
        self.workspace.configuration.greeted()
        self._importers.look_around(list(self.workspace.folders))
        self.workspace.workers.listen(self._tell_state)
        asyncio.get_running_loop().call_later(WARM_UP_AFTER, warm_up)

    # --- documents ---

    def open(self, uri: str, version: int, text: str) -> None:
        """A document appears. Opening one that is open already replaces it; a cell belongs to its notebook."""
        if not any(isinstance(each, NotebookDocument) and each.cell(uri) is not None for each in self.documents.values()):
            self._open(Document(uri, version, text))

    def open_notebook(self, uri: str, version: int, cells: Iterable[ListedCell], texts: Sequence[CellText]) -> None:
        """A notebook appears. cells: as they stand in it; texts: what they hold."""
        for each in texts:
            if each.uri in self.documents:
                self.close(each.uri)
        notebook = NotebookDocument(uri, version, cells, texts)
        self._order_cells(notebook)
        self._open(notebook)

    def _order_cells(self, notebook: NotebookDocument) -> None:
        notebook.put_in_order(by_execution=self.workspace.configuration.of(notebook).notebooks_order == "execution")

    def _open(self, document: Document) -> None:
        if document.uri in self.documents:
            self.close(document.uri)
        self.documents[document.uri] = document
        self._forget_importers()
        self._schedule.want(document)
        self._run_dependents(document, outdated=True)

    def change(self, uri: str, version: int, changes: Sequence[Change], encoding: str) -> None:
        """The editor's changes, in their order."""
        document = self.documents.get(uri)
        if document is None:
            logger.warning("a change of %s, which is not open, is ignored", uri)
            return
        document.change(version, changes, encoding)
        self._run_changed(document)

    def change_notebook(self, uri: str, change: NotebookChange, encoding: str) -> None:
        """The editor's changes of a notebook: of its cells, their texts, or both."""
        document = self.documents.get(uri)
        if not isinstance(document, NotebookDocument):
            logger.warning("a change of the notebook %s, which is not open, is ignored", uri)
            return
        before = document.version
        for removed in document.edit(change, encoding):
            self._client.clear(removed)
        if change.added or change.removed or document.version == before:
            # What was seen may stand in other cells now.
            self._client.publish(document, document.published_now())
            self._client.refresh()
        if document.version != before:
            self._run_changed(document)

    def _run_changed(self, document: Document) -> None:
        """Run a document that was edited, and what imports it, unless that waits until it is saved: hints stay at their lines meanwhile."""
        self._examinations.end(document)
        if document.examined or document.without_room:  # That is of the text before.
            document.note_examined(())
            document.note_without_room(())
            self._client.publish(document, document.published_now())
        if self.workspace.configuration.of(document).run_on == "save":
            self._schedule.forget(document)
            return
        self._schedule.want(document, debounce(document))
        self._run_dependents(document)

    def _is_enabled(self, document: Document) -> bool:
        return self.workspace.configuration.of(document).enable

    def save(self, uri: str) -> None:
        """The document is on disk as it is in the editor. What it imports and the settings may have changed there, too."""
        document = self.documents.get(uri)
        if document is not None:
            document.save()
            self.project_changed()
            self._want_anew(document)
            self._run_dependents(document, outdated=True)
            for other in self.documents.values():
                if other is not document and other.learns_from(document.path):
                    self._want_anew(other, urgent=False)
            self._forget_importers()

    def close(self, uri: str) -> None:
        """The document disappears, its findings with it. A run of it is cancelled."""
        document = self.documents.pop(uri, None)
        if document is not None:
            self._schedule.forget(document)
            self._model_views.forget(document)
            self._examinations.end(document)
            for text in [cell.uri for cell in document.cells] if isinstance(document, NotebookDocument) else [uri]:
                self._client.clear(text)
            self._run_dependents(document, outdated=True)
            self._forget_importers()
            for other in self.documents.values():
                if other.importer_traces.drop(document.path):
                    self._want_anew(other, urgent=False)

    def files_changed(self, paths: AbstractSet[str]) -> None:
        """These files are others on disk now, as after `git checkout`: the open documents that import one, or have read it, run anew.

        What a run that is under way has read is known once it has ended.
        """
        is_open = {document.path for document in self.documents.values()}  # What is open is what the editor says.
        changed = [path for path in paths if path not in is_open and "site-packages" not in path]
        for document in self.documents.values():
            has_read = any(depends_on(document, path) or self._cached_runs.has_read(document.path, path) for path in changed)
            if has_read or (changed and self._schedule.runs(document)):
                self._want_anew(document)

    def _want_anew(self, document: Document, *, urgent: bool = True) -> None:
        """Run a document whose last run says nothing any more, be its text the same."""
        document.mark_outdated()
        self._schedule.want(document, urgent=urgent)

    def _run_dependents(self, changed: Document, *, outdated: bool = False) -> None:
        """Run what imports a document: at once where that is all that shows anything of it, else after the document itself.

        outdated: more than its text has changed.
        """
        alone = changed.analysis is not None and not changed.analysis.runs_by_itself
        for document in self.documents.values():
            if document is not changed and depends_on(document, changed.path):
                if outdated:
                    document.mark_outdated()
                else:
                    document.importer_traces.mark_program_outdated()
                self._schedule.want(document, debounce(document) + debounce(changed), urgent=alone)

    def _forget_importers(self) -> None:
        """Which files import a document is looked up again when it next runs."""
        for document in self.documents.values():
            document.forget_importers()

    # --- what the editor asks ---

    async def fixes_tried(self, uri: str, enough: Callable[[], bool]) -> None:
        """Wait until it is known which fixes of a document's findings work, or `enough` is known, though not for long."""
        document = self.documents.get(uri)
        if document is not None:
            await self._pipeline.background_fixes.tried(document, enough)

    async def runs_over(self, uri: str, seconds: float) -> None:
        """Wait until a document has nothing to run, though not for longer than so many seconds."""
        document = self.documents.get(uri)
        if document is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._schedule.over(document), seconds)

    async def idle(self, *, reopened: bool) -> None:
        """Wait until nothing runs and no fix is tried. reopened: nor does anything wait for a pause in typing, so that all that is open is
        shown for good.
        """
        await self._schedule.idle(reopened=reopened)

    def hints(self, uri: str, first_line: int, last_line: int) -> list[tuple[int, Hint, Position]]:
        """The newest hints between two lines (1-based, both included): number, hint, and its place in the text as it is now."""
        document = self._shown(uri)
        return [each for each in document.hints() if first_line <= each[2].line <= last_line] if document is not None else []

    def _shown(self, uri: str) -> Document | None:
        """A document that is open, and of which something is to be shown."""
        document = self.documents.get(uri)
        return document if document is not None and self._is_enabled(document) else None

    def summary(self, uri: str) -> Summary | None:
        """A document in one line; None where nothing is shown of it."""
        document = self._shown(uri)
        if document is None or document.analysis is None:
            return None
        return summary(document.analysis.trace, sum(finding.severity == "error" for finding in document.published_now()))

    def hint_tooltip(self, uri: str, version: int, number: int) -> str | None:
        """The Markdown of a hint that was given out for a version; None if it has been replaced since."""
        document = self.documents.get(uri)
        analysis = document.analysis if document is not None else None
        if analysis is None or analysis.version != version or not 0 <= number < len(analysis.hints):
            return None
        return analysis.hints[number].tooltip

    def hover(self, uri: str, position: Position) -> tuple[str, Span] | None:
        """The Markdown for a place of the newest text, and the span that it speaks of."""
        document = self._shown(uri)
        analysis = document.analysis if document is not None else None
        if document is None or analysis is None or analysis.trace is None:
            return None
        place = document.before(position)
        if place is None:
            return None
        for cls in analysis.module.classes:
            if cls.name_span.start <= place <= cls.name_span.end:
                self._schedule.look_at(document, cls.qualname)
        notes = self._memory_notes.of(document)
        found: Hover | None = hover(analysis.module, analysis.trace, place, analysis.settings, notes)
        span = document.since.map(found.span) if found is not None else None
        return (found.markdown, span) if found is not None and span is not None else None

    def lenses(self, uri: str) -> list[Lens]:
        """The lenses of a document, at their places in the newest text."""
        document = self._shown(uri)
        analysis = document.analysis if document is not None else None
        if document is None or analysis is None:
            return []
        # Only where somebody wants it there: without that setting a lens would change once its class is hovered over.
        notes = self._memory_notes.of(document) if analysis.settings.device_memory else {}
        return moved_lenses(lenses(analysis.module, analysis.examples, analysis.trace, notes, analysis.settings.dims), document.since)

    def check_example(self, expression: str) -> str | None:
        """Returns what is wrong with the syntax of an example; None if nothing is."""
        return expressions.check(expression)

    async def try_example(self, uri: str, class_name: str, expression: str) -> tuple[bool, str] | None:
        """Returns whether an example that is being typed runs, and what comes out of it or is wrong; None where that cannot be told now."""
        document = self.documents.get(uri)
        if document is None or expressions.check(expression) is not None:
            return None
        return await self._pipeline.runner.try_example(document, class_name, expression)

    def example_edit(self, uri: str, class_name: str, expression: str) -> TextEdit | str:
        """The edit that makes this the example of a class, or why there is none."""
        document = self.documents.get(uri)
        if document is None:
            return f"{uri} is not open"
        problem = expressions.check(expression)
        if problem is not None:
            return problem
        try:
            return set_directive(document.module, class_name, expression)
        except ValueError as error:
            return str(error)

    def found_examples(self, uri: str, class_name: str) -> list[Alternative]:
        """The examples that were found for a class, the one that it runs with first."""
        document = self.documents.get(uri)
        analysis = document.analysis if document is not None else None
        cls = analysis.module.class_named(class_name) if analysis is not None else None
        run = found_for(cls, analysis.trace) if analysis is not None and analysis.trace is not None and cls is not None else None
        return [Alternative(run.expression, run.evidence, run.where), *run.others] if run is not None and run.expression else []

    def use_example(self, uri: str, class_name: str, expression: str) -> str | None:
        """Run a class with another of the examples that were found for it until the server ends. What stood in the way, or None."""
        document = self.documents.get(uri)
        if document is None:
            return f"{uri} is not open"
        if not self._pipeline.use_example(document, class_name, expression):
            return f"{expression} is none of the examples that were found for {class_name}"
        self._want_anew(document)
        self._run_dependents(document, outdated=True)
        return None

    async def model(self, uri: str, class_name: str, line: int, options: ModelOptions) -> ViewedModel | None:
        """A class as a whole: that of this name, else the one at a line (1-based), else the last one. None where a later request took its
        place, or the document is not open."""
        document = self.documents.get(uri)
        if document is None:
            return None
        module, trace = document.module, document.analysis.trace if document.analysis is not None else None
        # A class that derives from one of a library is a module where an example says so.
        derived = [each for each in module.maybe_modules if trace is not None and shown_for(trace, each.qualname) is not None]
        classes = sorted([*module.classes, *derived], key=lambda each: each.first_line)
        if not class_name and classes:
            around = [each for each in classes if each.first_line <= line <= each.span.end_line]
            class_name = (around[-1] if around else classes[-1]).qualname
        answer = self._model_views.want(document, class_name, options)
        self._schedule.show_model()
        return await answer

    async def examine(self, uri: str) -> Examination | None:
        """Run the examples of a document for real, once nothing of it is to be run, and show what that tells; None if it is not open."""
        await self.runs_over(uri, LONGEST_WAIT)
        document = self.documents.get(uri)
        return await self._examinations.examine(document) if document is not None else None

    def annotated(self, uri: str) -> str | None:
        """The text of a document with its hints and the notes on it in the margin; None if it is not open."""
        document = self.documents.get(uri)
        if document is None:
            return None
        labels = [(place, hint.label) for _, hint, place in document.hints()]
        notes = [(finding.span.start, finding.message) for finding in document.published_now() if is_note(finding.code)]
        return annotated(document.lines, [*labels, *notes])

    # --- settings and interpreters ---

    def configure(self, section: dict[str, Any]) -> None:
        """The editor's settings. What is shown follows at once, and everything runs again."""
        if self.workspace.configuration.set_editor(section):
            self._settings_changed()

    def settings_known(self) -> None:
        """The editor has said all that it has to say about settings for now: what they leave open may be asked."""
        self._consent.begin()
        for document in filter(self._is_enabled, self.documents.values()):
            self.workspace.worker(document)

    def project_changed(self) -> None:
        """The project's settings may have changed on disk."""
        if self.workspace.configuration.reread():
            self._settings_changed()

    def use_interpreter(self, path: str | None) -> None:
        """The interpreter that the editor has found; None: find one. A setting of the editor that names one wins."""
        if self.workspace.use_interpreter(path):
            self._interpreter_changed()

    def _interpreter_changed(self) -> None:
        self._pipeline.found.forget()
        self.run_all()

    def _settings_changed(self) -> None:
        for document in self.documents.values():
            if isinstance(document, NotebookDocument):
                self._order_cells(document)
            if self._is_enabled(document):
                self._pipeline.presenter.show_settings(document)
            else:
                self._schedule.forget(document)
                self._client.publish(document, [])
                self._client.refresh()
        self.run_all()

    def run_all(self) -> None:
        """Run every open document again."""
        self._reopening.forget()
        for document in self.documents.values():
            self._want_anew(document, urgent=False)

    # --- workers ---

    def settled(self, document: Document) -> tuple[str, str, list[ReadState]] | None:
        """Interpreter, environment and what was read behind what is shown of a document; None unless a new server would show the same."""
        analysis, worker = document.analysis, self.workspace.worker(document)
        if analysis is None or analysis.version != document.version or not document.saved or self._pipeline.runner.is_running(document):
            return None
        if (
            analysis.own is not None
            and document.last_run is not None
            and analysis.named
            and analysis.settings.cache
            and document.last_run.run.text == document.text
        ):
            requests = [example.request for example in analysis.examples]
            self._cached_runs.keep_shown(document.last_run.run, requests, analysis.own, worker.interpreter)
        runs = document.runs_behind(analysis)
        read = [self._cached_runs.read_by(ran.run) for ran in runs]
        environment = self._cached_runs.identity(worker.interpreter)
        if not runs or environment is None or not self.workspace.configuration.is_as_at_first(document):
            return None
        known = [each for each in read if each is not None]
        others = {ran.run.file: ran.run.text for ran in runs if ran.run.file != document.path}
        if len(known) < len(runs) or any(on_disk(path) != text for path, text in others.items()):
            return None
        return worker.interpreter, environment, [*known, self._cached_runs.now(others)]

    def _tell_state(self, worker: Worker, state: WorkerState) -> None:
        if state.name in ("ready", "running"):
            self._cached_runs.learn(worker)
        if state.name == "starting":
            self._client.status("starting", "Loading PyTorch", worker.interpreter)
            self._client.progress("Loading PyTorch")
        elif state.name in ("no-torch", "failed"):
            logger.error("%s %s%s", state.message, state.action, f"\n{state.detail}" if state.detail else "")
            self._client.progress(None)
            self._client.status("no-torch" if state.name == "no-torch" else "error", state.message, state.action)
            if state.has_given_up:
                self._client.ask(f"ShapeLens: {state.message}", [TRY_AGAIN], self._answered_to_failure)
        elif state.name == "stopped" or (state.name == "ready" and not self._is_taking_turn):
            self._tell_idle(worker)

    def _tell_idle(self, worker: Worker) -> None:
        self._client.progress(None)
        self._client.status("idle", "", worker.interpreter)

    async def _take_turn(self, document: Document) -> None:
        """Bring a document up to date."""
        await self._turn(document, self._reopening.take_turn)

    async def _reopen(self, document: Document) -> None:
        """Show a document as opening it would show it."""
        await self._turn(document, self._reopening.reopen)

    async def _turn(self, document: Document, turn: Callable[[Document], Awaitable[None]]) -> None:
        """That a worker has nothing to do between two runs of a turn is not told: the turn is not over."""
        self._is_taking_turn = True
        try:
            await turn(document)
        finally:
            self._is_taking_turn = False
            worker = self.workspace.worker(document)
            if worker.state.name == "ready":
                self._tell_idle(worker)

    def _answered_to_failure(self, answer: str | None) -> None:
        if answer == TRY_AGAIN:
            self._restarting = asyncio.create_task(self.restart())

    async def restart(self) -> None:
        """End all workers, start them anew and run every document again."""
        await self.workspace.workers.restart()
        self._pipeline.found.forget()
        self.run_all()

    async def clear_caches(self) -> str:
        """Forget what was kept of earlier runs, on disk and here, and run every document again. Says what was removed."""
        await self._cached_runs.written()
        size = await asyncio.to_thread(self._store.clear) if self._store is not None else 0
        await self.restart()
        return removal(size, self._store)

    async def stop(self) -> None:
        """The client says goodbye: no run and no process is left when this returns."""
        for document in self.documents.values():
            self._schedule.forget(document)
        self._model_views.give_up()
        await self._examinations.stop()
        await self.workspace.workers.stop()
        await self._cached_runs.written()
