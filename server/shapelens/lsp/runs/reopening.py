"""Finds out, after a pause in typing, what opening the newest text would show. That takes the place of what is shown.

What is shown after edits depends on what was found for the texts between: an example that ran when half a line was there, what a closed
file was given then, what a function was called with. So the document runs once more as if nothing were known of it.

A second `Pipeline`, which knows nothing yet, brings up a second `Document` in processes of its own; the open one takes over what is known
of it. An edit ends that, and so does whatever the user asks for. It does not begin where nothing has changed, or where only given
examples show the document.

Three things stay as they were: what the user has chosen; an example or a call that ran when the file was opened last and fails now, as
the edits are to blame; the example of a class, or the call of a function, that would show nothing any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from shapelens.analysis.findings.findings import Finding
from shapelens.lsp.documents.document import Document
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.pipeline import Pipeline, RunServices
from shapelens.protocol import ExampleRequest, ExampleRun, Trace

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Opened:
    """Holds what a document was when it was shown as opening it shows it. files: the states of those that it went through, and that import
    it.
    """

    text: str  # comments included, as they may speak of shapes
    examples: Sequence[ExampleRequest]
    files: Mapping[str, object]


class Reopening:
    """Takes the turns of a pipeline, and knows which documents are shown as opening them would show them."""

    def __init__(self, pipeline: Pipeline, documents: Mapping[str, Document], services: RunServices) -> None:
        self._pipeline = pipeline
        self._documents = documents
        self._services = services
        self._opened: WeakKeyDictionary[Document, _Opened] = WeakKeyDictionary()
        self._beside: Pipeline | None = None  # in which a document is reopened

    async def take_turn(self, document: Document) -> None:
        """Bring what the editor shows of a document up to date. Returns when that is done, or the turn was ended."""
        if document in self._opened and not document.module.errors and not self._is_as_opened(document):
            del self._opened[document]
        is_new, known = document.analysis is None, self._pipeline.found.files()
        await self._pipeline.take_turn(document)
        importers = [each.path for each in document.importers or []]
        if is_new and not self._pipeline.runner.turn_has_ended and known.isdisjoint([document.path, *importers]):
            self._establish(document)
            self._note(document)

    def end_turn(self) -> None:
        """Stop what is under way, and send nothing more of what would follow it."""
        for pipeline in (self._pipeline, self._beside):
            if pipeline is not None:
                pipeline.runner.end_turn()

    def forget(self) -> None:
        """Opening a document may show something else than before, be its text the same."""
        self._opened.clear()

    async def reopen(self, document: Document) -> None:
        """Show a document as opening it would show it, unless it is so already, or that would show less. Returns when that is done, or the
        turn was ended.

        Nothing is shown before all of it is known. What ran when it was opened last, and fails now, stays: the edits since then are to
        blame, and another example might hide that.
        """
        shown, pipeline = document.analysis, self._pipeline
        if shown is None or document.module.errors or not pipeline.presenter.is_current(document, shown):
            return
        if self._is_as_opened(document) or not pipeline.depends_on_what_was_found(document):
            return
        kept = set[str]()
        for _ in range(2):
            beside, reopened = await self._open_beside(document, kept)
            is_whole = not (beside.runner.turn_has_ended or beside.runner.has_lost_runs)
            if not is_whole or document.version != reopened.version or reopened.analysis is None:
                return
            classes, functions = _classes_lost(reopened, document), _functions_lost(reopened, document)
            lost = classes | functions
            logger.debug("opened %s anew%s", document.path, f"; it would lose {', '.join(sorted(lost))}" if lost else "")
            if lost and not kept:
                kept = lost
                continue
            has_failed = (reopened.failure and not document.failure) or (reopened.program_failure and not document.program_failure)
            if not classes and not has_failed:
                self._pipeline.take_over(beside, document, reopened)
                self._establish(document)
            break
        self._note(document)

    async def _open_beside(self, document: Document, kept: Set[str]) -> tuple[Pipeline, Document]:
        """Another document with the same text, and the pipeline that has brought it up. kept: the classes and functions that are called as
        they are shown, by qualified name.
        """
        documents = {uri: each.reopened(kept if each is document else ()) for uri, each in self._documents.items()}
        found = self._pipeline.found.begun_anew(self._services.parsed_files, {(document.path, name) for name in kept})
        self._beside = beside = Pipeline(documents, self._services, _Nobody(), found, in_background=True)
        try:
            await beside.take_turn(documents[document.uri])
        finally:
            self._beside = None
        return beside, documents[document.uri]

    def _establish(self, document: Document) -> None:
        """Marks what opening the document shows as right: the user may take it so, and what fails later is due to later edits."""
        self._pipeline.found.establish({document.path, *(each.path for each in document.importers or [])})
        document.importer_traces.establish()

    def _note(self, document: Document) -> None:
        """There is nothing to be reopened before something changes."""
        analysis, importers = document.analysis, [each.path for each in document.importers or []]
        if analysis is not None:
            files = {*(analysis.trace.files if analysis.trace is not None else ()), *importers} - {document.path}
            states = {path: self._services.parsed_files.state_of(path) for path in files}
            self._opened[document] = _Opened(analysis.module.text, [each.request for each in analysis.examples], states)

    def _is_as_opened(self, document: Document) -> bool:
        """True if nothing has changed since the document was shown as opening it shows it."""
        opened, analysis = self._opened.get(document), document.analysis
        return (
            opened is not None
            and analysis is not None
            and opened.text == document.text
            and opened.examples == [each.request for each in analysis.examples]
            and all(self._services.parsed_files.state_of(path) == state for path, state in opened.files.items())
        )


class _Nobody(Client):
    """Is shown what is not shown yet."""

    def publish(self, document: Document, findings: Sequence[Finding]) -> None:
        document.note_published(findings)

    def clear(self, uri: str) -> None: ...

    def refresh(self) -> None: ...

    def status(self, state: str, message: str = "", detail: str = "") -> None: ...

    def ask(self, question: str, answers: Sequence[str], on_answer: Callable[[str | None], None]) -> None: ...

    def progress(self, title: str | None) -> None: ...


def _classes_lost(reopened: Document, document: Document) -> set[str]:
    """The classes that run in a document and do not where it was reopened, by qualified name. Where one has an example there that is
    taken to be right, or the same one, the text is to blame."""
    before, now = document.analysis, reopened.analysis
    if before is None or now is None:
        return set()
    run, runs, examples = _classes_that_run(before.trace), _classes_that_run(now.trace), _examples(before.trace)
    gone = {cls.qualname for cls in before.module.classes if (name := cls.qualname.rpartition(".")[2]) in run and name not in runs}
    return gone - {each.target for each in _examples(now.trace) if not each.doubtful or _is_one_of(each, examples)}


def _functions_lost(reopened: Document, document: Document) -> set[str]:
    """The functions that show in a document what they are called with, and nothing where it was reopened, by qualified name."""
    before, now = document.analysis, reopened.analysis
    if before is None or now is None:
        return set()
    return document.importer_traces.called() & _functions_shown(before.trace) - _functions_shown(now.trace)


def _examples(trace: Trace | None) -> list[ExampleRun]:
    """The examples of the file's own classes and functions, as far as there are any."""
    return [run for run in trace.examples if run.expression and not run.file] if trace is not None else []


def _is_one_of(run: ExampleRun, others: Sequence[ExampleRun]) -> bool:
    return any((run.target, run.expression) == (other.target, other.expression) for other in others)


def _classes_that_run(trace: Trace | None) -> set[str]:
    """The names of the classes that an example calls which does not fail."""
    if trace is None:
        return set()
    wrong = {mismatch.example for mismatch in trace.mismatches}
    wrong |= {
        number for number, run in enumerate(trace.examples) if run.doubtful or (run.error is not None and run.error_kind != "deadline")
    }
    return {layer.class_name for layer in trace.layers if layer.calls and layer.example not in wrong}


def _functions_shown(trace: Trace | None) -> set[str]:
    """The functions of the file of which some values are known, by qualified name."""
    observations, file = (trace.observations, trace.file) if trace is not None else ([], "")
    known = [seen for seen in observations if any(value.kind != "unknown" for value in seen.values)]
    return {seen.function for seen in known if seen.span.file == file}
