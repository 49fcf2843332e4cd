"""The pygls server: its protocol, where that differs from pygls' own, and serving one client until it goes away."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, BinaryIO

from cattrs import Converter, transform_error
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcMethodNotFound
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from shapelens import __version__
from shapelens.cache import location
from shapelens.lsp.server import tcp
from shapelens.lsp.server.display_recorder import DisplayRecorder
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.server.places import ClientPlaces
from shapelens.lsp.session import Session
from shapelens.lsp.workspace.baselines import Baselines

if TYPE_CHECKING:
    from pygls.io_ import AsyncWriter, Writer

    from shapelens.lsp.startup.messages import Incoming
    from shapelens.lsp.startup.startup_proxy import StartupProxy
    from shapelens.lsp.workspace.workers import Workers

logger = logging.getLogger(__name__)
Handled = Generator[Any, Any, None]
# Notebooks, and what is typed into an interactive window.
NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook=kind) for kind in ("jupyter-notebook", "interactive")],
    save=True,
)
CLIENT_MISTAKES = (JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcMethodNotFound)


class PlainJson(dict[str, Any]):
    """Holds what JSON has and nothing else: in an answer it is written as it is, instead of being looked through for LSP types."""


def _converter() -> Converter:
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    converter.register_unstructure_hook(PlainJson, lambda plain: plain)
    return converter


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
        self._forget_answered()
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> Handled:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> Handled:
        self._forget_answered()
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> Handled:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE], (params,), None

    def _forget_answered(self) -> None:
        for msg_id in [msg_id for msg_id, future in self._request_futures.items() if future.done()]:
            self._request_futures.pop(msg_id, None)

    def _send_response(self, msg_id: Any, result: Any | None = None, error: Any = None) -> None:
        assert isinstance(self._server, Server)
        proxy = self._server.proxy
        if proxy is not None and isinstance(result, types.InitializeResult) and proxy.display_cache is not None:
            proxy.display_cache.keep_greeting(self._converter.unstructure(result, types.InitializeResult))
        if proxy is not None and msg_id in proxy.answered:
            proxy.answered.discard(msg_id)
            self._result_types.pop(msg_id, None)
            return
        super()._send_response(msg_id, result, error)


class Server(LanguageServer):
    """One server, one client, one session."""

    def __init__(self, interpreter: str | None, workers: Workers, proxy: StartupProxy | None) -> None:
        super().__init__("shapelens", __version__, protocol_cls=Protocol, converter_factory=_converter, notebook_document_sync=NOTEBOOKS)
        self.proxy = proxy
        self.editor = Editor(self)
        self.session = Session(self.editor, interpreter, workers, location.opened())
        self.editor.places = ClientPlaces(self.session.documents)
        self.editor.faint = Baselines(self.session.workspace.configuration).faint
        self.display_recorder: DisplayRecorder | None = None
        if proxy is not None and proxy.display_cache is not None:
            self.display_recorder = DisplayRecorder(self.session, self.editor, self.protocol._converter, proxy.display_cache)
            self.editor.on_shown = self.display_recorder.changed
        self.said_goodbye = False

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A mistake of ours is for the log; a popup would help nobody. One of the client's has been answered."""
        if isinstance(error, CLIENT_MISTAKES):
            logger.warning("%s", error)
        else:
            logger.error("%s", error, exc_info=error)


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
