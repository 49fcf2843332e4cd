"""The editor as the session sees it, over LSP: what it can do is read off its capabilities, and nothing here waits for its answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from shapelens.analysis.findings.findings import Finding
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.notebook_document import NotebookDocument
from shapelens.lsp.server import to_lsp
from shapelens.lsp.server.places import ClientPlaces, TextDocument

logger = logging.getLogger(__name__)
STATUS = "shapelens/status"
ANALYSED = "shapelens/analysed"  # something new is known: what the client has asked for with commands may be answered otherwise now

PROGRESS_ENDS_AFTER = 0.5  # seconds without a run: longer than a run goes on before it is told of (`runs/progress.py`)


class Editor:
    """Implements `runs.client.Client` over LSP. It may be made before the client has said hello, and used only after that."""

    def __init__(self, server: LanguageServer, documents: dict[str, Document] | None = None) -> None:
        self._server = server
        self.places = ClientPlaces(documents if documents is not None else {})
        self._in_cells: dict[str, object] = {}  # by the URI of a cell: its version and what is shown in it
        self.faint: Callable[[Document, Sequence[Finding]], Sequence[Finding]] = lambda document, findings: findings  # known ones as hints
        self.on_shown: Callable[[], None] | None = None  # called when something else is shown, or what is shown may be all of it
        self.is_ours = False  # whether it is our extension: it has a place for `shapelens/status`, popups of its own, and a view of models
        self._status: tuple[str, str, str] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._wanted_title: str | None = None
        self._progress_task: asyncio.Task[None] | None = None
        self._progress_changed = asyncio.Event()
        self._tokens = 0

    # --- capabilities ---

    @property
    def encoding(self) -> str:
        """In which units the client counts characters: "utf-8" | "utf-16" | "utf-32"."""
        encoding = self._server.workspace.position_encoding
        return str(getattr(encoding, "value", encoding) or "utf-16")

    @property
    def _workspace(self) -> types.WorkspaceClientCapabilities:
        return self._server.client_capabilities.workspace or types.WorkspaceClientCapabilities()

    @property
    def takes_versioned_edits(self) -> bool:
        """True if edits may say which version of a document they are for."""
        edit = self._workspace.workspace_edit
        return bool(edit and edit.document_changes)

    @property
    def asks_for_hints_again(self) -> bool:
        """True if it asks for hints again when it is told that there are others. Helix does so after an edit only."""
        hint = self._workspace.inlay_hint
        return bool(hint is not None and hint.refresh_support)

    @property
    def has_configuration(self) -> bool:
        """True if the editor can be asked for its settings."""
        return bool(self._workspace.configuration)

    # --- client.Client ---

    def publish(self, document: Document, findings: Sequence[Finding]) -> None:
        findings = self.faint(document, findings)
        shown = [*findings, *self.faint(document, [*document.examined, *document.without_room])]
        if isinstance(document, NotebookDocument):
            self._publish_cells(document, shown)
        else:
            text = self.places.named(document.uri) or TextDocument(document, document.uri, document.version)
            diagnostics = [to_lsp.diagnostic(each, text, self.places, self.encoding) for each in shown]
            self._publish(document.uri, document.version, diagnostics)
        document.note_published(findings)
        if self.on_shown is not None:
            self.on_shown()

    def _publish_cells(self, document: NotebookDocument, findings: Sequence[Finding]) -> None:
        """Publish what is in each cell, where that is something else than before: a notebook may have hundreds of cells."""
        texts = {text.uri: text for text in self.places.texts(document)}
        diagnostics: dict[str, list[types.Diagnostic]] = {uri: [] for uri in texts}
        for each in findings:
            text = self.places.at(document, each.span.line)
            if text is not None:
                diagnostics[text.uri].append(to_lsp.diagnostic(each, text, self.places, self.encoding))
        for uri, found in diagnostics.items():
            shown = texts[uri].version, [_as_seen(each) for each in found]
            if self._in_cells.get(uri) != shown:
                self._in_cells[uri] = shown
                self._publish(uri, texts[uri].version, found)

    def _publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=diagnostics)
        self._server.text_document_publish_diagnostics(params)

    def newest(self, text: TextDocument, diagnostic: types.Diagnostic) -> types.Diagnostic:
        """The diagnostic as it was last published, with fixes that were still being tried when the client got its own; else that one."""
        document = text.document
        for finding in document.published.findings if document.published.version == document.version else ():
            if finding.code == diagnostic.code and text.has(finding.span.line):
                known = to_lsp.diagnostic(finding, text, self.places, self.encoding)
                if known.range == diagnostic.range:
                    return known  # Only its place counts: its message may be another by now, as dims get their names after the first run.
        return diagnostic

    def clear(self, uri: str) -> None:
        self._in_cells.pop(uri, None)
        self._publish(uri, None, [])

    def refresh(self) -> None:
        if self.on_shown is not None:
            self.on_shown()
        if self.is_ours:
            self._server.protocol.notify(ANALYSED, None)
        lens = self._workspace.code_lens
        if self.asks_for_hints_again:
            self._ask(self._server.workspace_inlay_hint_refresh_async(None))
        if lens is not None and lens.refresh_support:
            self._ask(self._server.workspace_code_lens_refresh_async(None))

    def status(self, state: str, message: str = "", detail: str = "") -> None:
        if state == "idle" and self.on_shown is not None:
            self.on_shown()
        if (state, message, detail) == self._status:
            return
        self._status = (state, message, detail)
        if self.is_ours:
            self._server.protocol.notify(STATUS, {"state": state, "message": message, "detail": detail})
        elif state in ("no-torch", "error"):
            text = f"ShapeLens: {message} {detail}".strip()
            self._server.window_show_message(types.ShowMessageParams(type=types.MessageType.Warning, message=text))

    def ask(self, question: str, answers: Sequence[str], on_answer: Callable[[str | None], None]) -> None:
        async def ask() -> None:
            actions = [types.MessageActionItem(title=each) for each in answers]
            params = types.ShowMessageRequestParams(type=types.MessageType.Info, message=question, actions=actions)
            chosen = await self._server.window_show_message_request_async(params)
            on_answer(chosen.title if chosen is not None else None)

        self._ask(ask())

    def progress(self, title: str | None) -> None:
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        self._wanted_title = title
        self._progress_changed.set()
        if title is not None and (self._progress_task is None or self._progress_task.done()):
            self._progress_task = asyncio.create_task(self._show_progress())

    # --- other requests to the client ---

    async def configuration(self) -> dict[str, Any]:
        """The client's section `shapelens`; empty where it has none."""
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section="shapelens")])
        answers = await self._server.workspace_configuration_async(params)
        return answers[0] if answers and isinstance(answers[0], dict) else {}

    async def register(self, *registrations: types.Registration) -> None:
        """Ask the editor for notifications that a server has to register for."""
        await self._server.client_register_capability_async(types.RegistrationParams(list(registrations)))

    async def apply(self, edit: types.WorkspaceEdit, label: str) -> str | None:
        """Have the client change a document; why it did not, or None."""
        answer = await self._server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit=edit, label=label))
        return None if answer.applied else (answer.failure_reason or "the editor did not apply the edit")

    def in_background(self, request: Awaitable[Any]) -> None:
        """Await something without holding up the caller; what goes wrong is logged."""
        self._ask(request)

    def _ask(self, request: Awaitable[Any]) -> None:
        async def wait() -> None:
            try:
                await request
            except Exception as error:
                logger.warning("the editor refused a request: %s", error)

        task = asyncio.create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show_progress(self) -> None:
        """One progress at a time: begun when the client has agreed, renamed while it runs, ended when nothing is wanted any more."""
        self._tokens += 1
        token = f"shapelens-{self._tokens}"
        try:
            await self._server.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
        except Exception as error:
            logger.warning("the editor refused to show progress: %s", error)
            return
        shown = self._wanted_title
        if shown is None:
            return
        self._server.progress(types.ProgressParams(token, types.WorkDoneProgressBegin(title="ShapeLens", message=shown)))
        while await self._is_progress_wanted():
            if self._wanted_title not in (shown, None):
                shown = self._wanted_title
                self._server.progress(types.ProgressParams(token, types.WorkDoneProgressReport(message=shown)))
            self._progress_changed.clear()
            await self._progress_changed.wait()
        self._server.progress(types.ProgressParams(token, types.WorkDoneProgressEnd()))

    async def _is_progress_wanted(self) -> bool:
        """True if there is progress to show, or is soon: the run of a document as a program follows that of its classes."""
        end = time.monotonic() + PROGRESS_ENDS_AFTER
        while self._wanted_title is None and time.monotonic() < end:
            self._progress_changed.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._progress_changed.wait(), end - time.monotonic())
        return self._wanted_title is not None


def _as_seen(diagnostic: types.Diagnostic) -> tuple[object, ...]:
    """Returns what the user can see of a diagnostic. Its fixes are looked up when they are asked for."""
    related = [(each.location, each.message) for each in diagnostic.related_information or []]
    return repr(diagnostic.range), diagnostic.severity, diagnostic.code, diagnostic.message, repr(related)
