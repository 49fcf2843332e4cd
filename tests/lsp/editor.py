"""A client that behaves as VS Code does: versioned documents, incremental changes, hints asked for again when the server says so."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

from time_limits import timeout

T = TypeVar("T")
PATIENCE = 100.0  # seconds to wait for an event before the test fails: on a busy machine a server takes long to start
ALL_HINTS = {"hints.unchanged": True}
COMMAND = [sys.executable, "-m", "shapelens.lsp"]


class Editor:
    """One server process and what it has said. Nothing here sleeps: `until` waits for the next message of the server."""

    def __init__(self, root: Path, *encodings: str) -> None:
        self.root = root
        self.encoding = encodings[0] if encodings else "utf-16"
        self.client = LanguageClient(converter_factory=default_converter)
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.publications: list[types.PublishDiagnosticsParams] = []
        self.statuses: list[Any] = []
        self.shown: list[str] = []
        self.questions: list[str] = []
        self.answer: str | None = None  # to the next ones
        self.progress: list[Any] = []
        self.settings: dict[str, Any] = dict(ALL_HINTS)
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.registered: list[str] = []
        self.log: list[str] = []
        self.refreshes = 0
        self.folders = [root]  # of the workspace; set before `start`
        self.asks_for_hints_again = True  # when the server says that there are others; set before `start`
        self.heard = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        def published(client: LanguageClient, params: types.PublishDiagnosticsParams) -> None:
            self.published[params.uri] = params
            self.publications.append(params)
            self.heard.set()

        def refresh(client: LanguageClient, params: None) -> None:
            self.refreshes += 1
            self.heard.set()

        def status(params: Any) -> None:
            self.statuses.append(params)
            self.heard.set()

        def progress(client: LanguageClient, params: types.ProgressParams) -> None:
            self.progress.append(params.value)
            self.heard.set()

        def log(client: LanguageClient, params: types.LogMessageParams) -> None:
            self.log.append(params.message)
            client.log_messages.append(params)
            self.heard.set()

        def message(client: LanguageClient, params: types.ShowMessageParams) -> None:
            self.shown.append(params.message)
            self.heard.set()

        def question(client: LanguageClient, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.questions.append(params.message)
            self.heard.set()
            return next((each for each in params.actions or [] if each.title == self.answer), None)

        def apply(client: LanguageClient, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            self.apply(params.edit)
            return types.ApplyWorkspaceEditResult(applied=True)

        def configuration(client: LanguageClient, params: types.ConfigurationParams) -> list[Any]:
            return [self.settings for _ in params.items]

        def register(client: LanguageClient, params: types.RegistrationParams) -> None:
            self.registered += [registration.method for registration in params.registrations]

        features: dict[str, Any] = {
            **DEFAULT_CLIENT_FEATURES,
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: published,
            types.WORKSPACE_INLAY_HINT_REFRESH: refresh,
            types.WORKSPACE_CODE_LENS_REFRESH: refresh,
            types.WORKSPACE_APPLY_EDIT: apply,
            types.WORKSPACE_CONFIGURATION: configuration,
            types.PROGRESS: progress,
            types.WINDOW_SHOW_MESSAGE: message,
            types.WINDOW_SHOW_MESSAGE_REQUEST: question,
            types.WINDOW_LOG_MESSAGE: log,
            types.CLIENT_REGISTER_CAPABILITY: register,
            "shapelens/status": status,
        }
        register_lsp_features(self.client, features)

    # --- life ---

    async def start(self, *options: str, initialization_options: Any = None, env: dict[str, str] | None = None) -> types.InitializeResult:
        """Start the server and shake hands."""
        return await self.start_with([*COMMAND, *options], initialization_options=initialization_options, env=env)

    async def start_with(
        self, command: list[str], *, initialization_options: Any = None, env: dict[str, str] | None = None
    ) -> types.InitializeResult:
        """Start the server by a command of one's own."""
        await self.client.start_io(*command, env={**os.environ, **(env or {})}, cwd=self.root)
        return await self._greet(initialization_options)

    async def connect(self, port: int, initialization_options: Any) -> types.InitializeResult:
        """Speak to a server that listens on a port of this machine."""
        await self.client.start_tcp("127.0.0.1", port)
        return await self._greet(initialization_options)

    async def _greet(self, initialization_options: Any) -> types.InitializeResult:
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=self._capabilities(),
                root_uri=self.root.as_uri(),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in self.folders],
                initialization_options=initialization_options,
            )
        )

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self.client._server is not None
        return self.client._server.pid

    async def stop(self) -> int:
        """Say goodbye in the way of LSP. Returns the exit status of the server."""
        await self.client.shutdown_session()
        status = await self.ended()
        await self.client.stop()
        return status

    async def ended(self) -> int:
        """Wait for the end of the server process."""
        assert self.client._server is not None
        return await asyncio.wait_for(self.client._server.wait(), PATIENCE)

    def _capabilities(self) -> types.ClientCapabilities:
        refresh = types.InlayHintWorkspaceClientCapabilities(refresh_support=self.asks_for_hints_again)
        return types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(self.encoding)]),
            window=types.WindowClientCapabilities(work_done_progress=True),
            workspace=types.WorkspaceClientCapabilities(
                apply_edit=True,
                configuration=True,
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
                inlay_hint=refresh,
                code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
            ),
            notebook_document=types.NotebookDocumentClientCapabilities(
                synchronization=types.NotebookDocumentSyncClientCapabilities(execution_summary_support=True)
            ),
            text_document=types.TextDocumentClientCapabilities(
                publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                    related_information=True, version_support=True, data_support=True
                )
            ),
        )

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until this holds, looking again at each message of the server."""
        async with timeout(PATIENCE):
            while not done():
                self.heard.clear()
                await self.heard.wait()

    async def idle(self, *, reopened: bool = True) -> None:
        """Wait until the server has nothing under way. reopened: it does at once what waits for a pause in typing."""
        async with timeout(PATIENCE):
            await self.client.protocol.send_request_async("shapelens/idle", {"reopened": reopened})

    async def until_running(self, name: str) -> None:
        """Wait until the server shows that a file takes its time."""
        await self.until(lambda: any(value.get("message") == f"Running {name}" for value in self.progress))

    # --- documents ---

    def open(self, name: str, text: str, *, saved: bool = True) -> str:
        """Open a file of the workspace; it is written to disk first, unless it is to be unsaved. Returns its URI."""
        path = self.root / name
        if saved:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return self.open_uri(path.as_uri(), text)

    def open_uri(self, uri: str, text: str) -> str:
        """Open a document under any URI."""
        self.texts[uri], self.versions[uri] = text, 1
        self.published.pop(uri, None)
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def close(self, uri: str) -> None:
        """Close a document."""
        del self.texts[uri]
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close_all(self) -> None:
        """Close all documents."""
        for uri in list(self.texts):
            self.close(uri)

    def save(self, uri: str) -> None:
        """Write a document to disk."""
        (self.root / uri.removeprefix(self.root.as_uri() + "/")).write_bytes(self.texts[uri].encode())
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def replace(self, uri: str, old: str, new: str) -> None:
        """Type `new` over the only occurrence of `old`, as one incremental change."""
        text = self.texts[uri]
        assert text.count(old) == 1, f"{text.count(old)} times {old!r}"
        start = text.index(old)
        self._change(uri, types.Range(self.position(uri, start), self.position(uri, start + len(old))), new)

    def set_text(self, uri: str, text: str) -> None:
        """Replace the whole text."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self._notify_change(uri, types.TextDocumentContentChangeWholeDocument(text=text))

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Apply a workspace edit, as the editor does after a quick fix. It must be for the newest version of each document."""
        assert edit.document_changes is not None
        for change in edit.document_changes:
            assert isinstance(change, types.TextDocumentEdit)
            uri = change.text_document.uri
            assert change.text_document.version == self.versions[uri]
            for part in sorted(change.edits, key=lambda part: (part.range.start.line, part.range.start.character), reverse=True):
                assert isinstance(part, types.TextEdit)
                self._change(uri, part.range, part.new_text)

    def _change(self, uri: str, where: types.Range, new: str) -> None:
        text = self.texts[uri]
        start, end = self.offset(uri, where.start), self.offset(uri, where.end)
        self.texts[uri] = text[:start] + new + text[end:]
        self.versions[uri] += 1
        self._notify_change(uri, types.TextDocumentContentChangePartial(range=where, text=new))

    def _notify_change(self, uri: str, change: types.TextDocumentContentChangeEvent) -> None:
        identifier = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    # --- positions: reckoned here by encoding the text, not with the code under test ---

    def position(self, uri: str, offset: int) -> types.Position:
        """The position of an index into a document, in the encoding that was agreed on."""
        before = self.texts[uri][:offset].replace("\r\n", "\n")
        line = before.rpartition("\n")[2]
        return types.Position(before.count("\n"), len(line.encode(self._codec)) // self._unit)

    def offset(self, uri: str, position: types.Position) -> int:
        """The index into a document of a position."""
        lines = self.texts[uri].splitlines(keepends=True)
        before = sum(len(line) for line in lines[: position.line])
        line = lines[position.line] if position.line < len(lines) else ""
        return before + len(line.encode(self._codec)[: position.character * self._unit].decode(self._codec))

    def text_of(self, uri: str, where: types.Range) -> str:
        """The text inside a range."""
        return self.texts[uri][self.offset(uri, where.start) : self.offset(uri, where.end)]

    @property
    def _codec(self) -> str:
        return {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[self.encoding]

    @property
    def _unit(self) -> int:
        return {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.encoding]

    # --- questions ---

    async def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """Those that are published for the newest version."""
        await self.until(lambda: uri in self.published and self.published[uri].version == self.versions[uri])
        return list(self.published[uri].diagnostics)

    async def hints(self, uri: str) -> dict[int, str]:
        """The labels by line (0-based) as the server has them now; those of a line joined by ` | `."""
        whole = types.Range(types.Position(0, 0), types.Position(100_000, 0))
        found = await self.client.text_document_inlay_hint_async(types.InlayHintParams(types.TextDocumentIdentifier(uri), whole))
        assert found is not None, "null takes the hints off the screen"
        by_line: dict[int, list[str]] = {}
        for hint in found:
            by_line.setdefault(hint.position.line, []).append(str(hint.label))
        return {line: " | ".join(labels) for line, labels in by_line.items()}

    async def hints_when(
        self, uri: str, good: Callable[[dict[int, str]], bool] = lambda hints: "[B, " in str(hints), seconds: float = PATIENCE
    ) -> dict[int, str]:
        """The hints as soon as they are so (by default: dims have names), asked for again at each refresh, for so many seconds."""
        return await self.when(lambda: self.hints(uri), good, seconds)

    async def when(self, ask: Callable[[], Awaitable[T]], good: Callable[[T], bool], seconds: float = PATIENCE) -> T:
        """An answer as soon as it is so, asked for again at each refresh, for so many seconds."""
        async with timeout(seconds):
            while True:
                self.heard.clear()
                answer = await ask()
                if good(answer):
                    return answer
                await self.heard.wait()

    async def actions(self, uri: str, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
        """What the light bulb offers."""
        context = types.CodeActionContext(diagnostics=[diagnostic])
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), diagnostic.range, context)
        found = await self.client.text_document_code_action_async(params)
        assert all(isinstance(action, types.CodeAction) for action in found or [])
        return list(found or [])  # type: ignore[arg-type]

    async def hover(self, uri: str, word: str) -> str | None:
        """The hover in the middle of the only occurrence of a word."""
        text = self.texts[uri]
        assert text.count(word) == 1
        place = self.position(uri, text.index(word) + len(word) // 2)
        found = await self.client.text_document_hover_async(types.HoverParams(types.TextDocumentIdentifier(uri), place))
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        """The code lenses."""
        return list(await self.client.text_document_code_lens_async(types.CodeLensParams(types.TextDocumentIdentifier(uri))) or [])

    async def execute(self, command: str, *arguments: Any) -> Any:
        """Have the server carry out a command."""
        return await self.client.workspace_execute_command_async(types.ExecuteCommandParams(command, list(arguments)))

    def configure(self, settings: dict[str, Any]) -> None:
        """The user changes settings. All hints are shown, unless the test says otherwise: they are what most tests wait for."""
        self.settings = {**ALL_HINTS, **settings}
        self.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))

    def workers(self) -> list[int]:
        """The worker processes that the server has now."""
        return [pid for pid in processes() if _parent(pid) == self.pid and "worker" in _command(pid)]


def processes() -> list[int]:
    """All processes of this machine (Linux only)."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
