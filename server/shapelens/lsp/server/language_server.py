"""The language server itself: each handler translates, calls the session, and translates back."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, BinaryIO

from cattrs import transform_error
from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcMethodNotFound
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from shapelens import __version__
from shapelens.cache import location
from shapelens.lsp.server import log, tcp, to_lsp
from shapelens.lsp.server.code_actions import code_actions, example_actions, lacks_fixes
from shapelens.lsp.server.commands import register_commands
from shapelens.lsp.server.display_recorder import DisplayRecorder
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.session import Session

if TYPE_CHECKING:
    from pygls.io_ import AsyncWriter, Writer

    from shapelens.lsp.startup.messages import Incoming
    from shapelens.lsp.startup.startup_proxy import StartupProxy
    from shapelens.lsp.workspace.workers import Workers

logger = logging.getLogger(__name__)
Handled = Generator[Any, Any, None]
CLIENT_MISTAKES = (JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcMethodNotFound)


class Protocol(LanguageServerProtocol):
    """Leaves the text of documents to the session: pygls would split lines at \\x0c and \\u2028 as well, where LSP and Python do not.

    It also lets go of the futures of notifications, which pygls keeps: two kilobytes for each edit. And it answers every request: pygls is
    silent on one that is not as LSP has it.
    """

    def receive(self, body: bytes) -> None:
        """Handle a message, whatever it is. Raises SystemExit for `exit`."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            logger.warning("a message of %d bytes is left out: it is no JSON (%s)", len(body), error)
            return
        if not isinstance(message, dict):
            logger.warning("a message of %d bytes is left out: it is no object", len(body))
            return
        try:
            if message.get("jsonrpc") != self.VERSION:
                raise JsonRpcInvalidRequest(f'a message needs "jsonrpc": "{self.VERSION}"')
            if self._shutdown and message.get("method", types.EXIT) != types.EXIT:
                raise JsonRpcInvalidRequest("the server has been shut down")
            structured = self.structure_message(message)
        except Exception as error:
            self._refuse(message, error)
            return
        try:
            self.handle_message(structured)
        except Exception as error:
            self._server.report_server_error(error, JsonRpcException)

    def _refuse(self, message: dict[str, Any], error: Exception) -> None:
        """Answer a request that is not as LSP has it; who waits for a response that is not need not wait longer."""
        problem = error if isinstance(error, JsonRpcException) else JsonRpcInvalidRequest(str(error))
        if error.__cause__ is not None:
            problem.message = f"{problem.message}: {'; '.join(transform_error(error.__cause__, path='message'))}"
        number, method = message.get("id"), message.get("method")
        logger.warning("%s is not as LSP has it: %s", method or "a response", problem.message)
        if isinstance(number, str | int):
            if method is not None:
                self._send_response(number, error=problem.to_response_error())
            elif (future := self._request_futures.pop(number, None)) is not None and not future.done():
                future.set_exception(problem)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Handled:
        for msg_id in [msg_id for msg_id, future in self._request_futures.items() if future.done()]:
            self._request_futures.pop(msg_id, None)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    def _send_response(self, msg_id: Any, result: Any | None = None, error: Any = None) -> None:
        assert isinstance(self._server, Server)
        front = self._server.front
        if front is not None and isinstance(result, types.InitializeResult) and front.displays is not None:
            front.displays.keep_greeting(self._converter.unstructure(result, types.InitializeResult))
        if front is not None and msg_id in front.answered:
            front.answered.discard(msg_id)
            self._result_types.pop(msg_id, None)
            return
        super()._send_response(msg_id, result, error)


class Server(LanguageServer):
    """One server, one client, one session."""

    def __init__(self, interpreter: str | None, workers: Workers, front: StartupProxy | None) -> None:
        super().__init__("shapelens", __version__, protocol_cls=Protocol, converter_factory=default_converter)
        self.front = front
        self.editor = Editor(self)
        self.session = Session(self.editor, interpreter, workers, location.opened())
        self.editor.documents = self.session.documents
        self.shown = DisplayRecorder(self, front.displays) if front is not None and front.displays is not None else None
        self.editor.on_shown = self.shown.changed if self.shown is not None else None
        self.said_goodbye = False

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A mistake of ours is for the log; a popup would help nobody. One of the client's has been answered."""
        if isinstance(error, CLIENT_MISTAKES):
            logger.warning("%s", error)
        else:
            logger.error("%s", error, exc_info=error)


def make(interpreter: str | None, workers: Workers, front: StartupProxy | None = None) -> Server:
    """A server with all its handlers, not yet connected to anything. `front` may have answered for it already."""
    server = Server(interpreter, workers, front)
    _handle_life(server)
    _handle_text(server)
    _handle_settings(server)
    _handle_features(server)
    register_commands(server, server.session, server.editor)
    return server


def _handle_life(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        folders = [folder.uri for folder in params.workspace_folders or []] or [params.root_uri or ""]
        session.folders[:] = [path for uri in folders if (path := uris.to_fs_path(uri))]
        options = params.initialization_options
        if isinstance(options, dict):
            # A client that speaks of interpreters is one of ours: it has a place for the status, and popups of its own.
            editor.wants_status = "interpreter" in options
            if isinstance(options.get("interpreter"), str):
                session.use_interpreter(options["interpreter"])
            if isinstance(options.get("settings"), dict):
                _configure(server, options["settings"])

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        log.log_to_client(server.window_log_message)
        session.greet()
        logger.info("ShapeLens %s on Python %s", __version__, sys.version.split()[0])
        workspace = server.client_capabilities.workspace or types.WorkspaceClientCapabilities()
        wanted = []
        if workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
            options = types.DidChangeConfigurationRegistrationOptions(section="shapelens")
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
        if workspace.did_change_watched_files and workspace.did_change_watched_files.dynamic_registration:
            watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/pyproject.toml")])
            wanted.append(types.Registration("projects", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched))
        if wanted:
            editor.in_background(editor.register(*wanted))
        if editor.has_configuration:
            editor.in_background(_pull_configuration(server))

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        server.said_goodbye = True
        if server.shown is not None:
            server.shown.write()
        await session.stop()


def _handle_text(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        session.open(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        changes = []
        for change in params.content_changes:
            where = None
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                where = (start.line, start.character, end.line, end.character)
            changes.append((where, change.text))
        session.change(params.text_document.uri, params.text_document.version, changes, editor.encoding)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        session.save(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)


def _handle_settings(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        pushed = params.settings.get("shapelens") if isinstance(params.settings, dict) else None
        if isinstance(pushed, dict):
            _configure(server, pushed)
        elif editor.has_configuration:
            editor.in_background(_pull_configuration(server))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        session.project_changed()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        session.folders[:] = [path for folder in server.workspace.folders.values() if (path := uris.to_fs_path(folder.uri))]
        session.run_all()

    @server.feature("shapelens/interpreter")
    def interpreter(params: Any) -> None:
        path = params.get("path") if isinstance(params, dict) else getattr(params, "path", None)
        session.use_interpreter(path if isinstance(path, str) and path else None)


def _handle_features(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=True))
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri = params.text_document.uri
        document = session.documents.get(uri)
        if document is None or document.analysis is None:
            return []
        found = session.hints(uri, params.range.start.line + 1, params.range.end.line + 1)
        version = document.analysis.version
        return [to_lsp.inlay_hint(uri, version, *each, document.lines, editor.encoding) for each in found]

    @server.feature(types.INLAY_HINT_RESOLVE)
    def inlay_hint_resolve(params: types.InlayHint) -> types.InlayHint:
        if isinstance(params.data, dict):
            text = session.hint_tooltip(params.data.get("uri", ""), params.data.get("version", -1), params.data.get("number", -1))
            params.tooltip = to_lsp.markdown(text) if text else None
        return params

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return None
        place = document.lines.from_lsp(params.position.line, params.position.character, editor.encoding)
        found = session.hover(document.uri, place)
        if found is None:
            return None
        text, span = found
        return types.Hover(contents=to_lsp.markdown(text), range=to_lsp.range_(document.lines, span, editor.encoding))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return []
        return [to_lsp.code_lens(document.uri, each, document.lines, editor.encoding) for each in session.lenses(document.uri)]

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = session.documents.get(params.text_document.uri)
        only = params.context.only
        wanted = [kind for kind in kinds if not only or any(kind.value.startswith(str(getattr(each, "value", each))) for each in only)]
        if document is None:
            return []
        actions: list[types.CodeAction] = []
        if types.CodeActionKind.RefactorRewrite in wanted:
            actions = example_actions(
                document, session.lenses(document.uri), params.range, versioned=editor.takes_versioned_edits, encoding=editor.encoding
            )
        if types.CodeActionKind.QuickFix not in wanted:
            return actions
        diagnostics = params.context.diagnostics
        if any(lacks_fixes(document, each) for each in diagnostics):

            def newest() -> list[types.Diagnostic]:
                return [editor.newest(document, each) for each in params.context.diagnostics]

            await session.fixes_tried(document.uri, lambda: not any(lacks_fixes(document, each) for each in newest()))
            diagnostics = newest()
        return code_actions(document, diagnostics, versioned=editor.takes_versioned_edits, encoding=editor.encoding) + actions


async def _pull_configuration(server: Server) -> None:
    _configure(server, await server.editor.configuration())


def _configure(server: Server, section: dict[str, Any]) -> None:
    nested = section.get("log")
    level = section.get("log.level", nested.get("level") if isinstance(nested, dict) else None)
    if isinstance(level, str):
        log.set_level(level)
    server.session.configure(section)


async def serve(server: Server, messages: Incoming, writer: Writer | AsyncWriter) -> None:
    """Handle messages until the client says `exit` or goes away, then leave no process behind."""
    protocol = server.protocol
    assert isinstance(protocol, Protocol)
    protocol.set_writer(writer)
    try:
        while body := await messages.next_body():
            protocol.receive(body)
    finally:
        await server.session.stop()


async def serve_stdio(server: Server, messages: Incoming, stdout: BinaryIO) -> None:
    """Serve the client at the other end of standard input and output, until it says `exit` or goes away."""
    await serve(server, messages, StdoutWriter(stdout))


async def serve_tcp(server: Server, port: int) -> None:
    """Serve the first client with the token that connects to a port of this machine (0: any that is free)."""
    await tcp.listen(port, lambda messages, writer: serve(server, messages, writer))
