"""The handlers of requests and notifications: each translates, calls the session, and translates back."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams

from shapelens import __version__
from shapelens.analysis.display.dim_names import dim_name_at, is_dim_name
from shapelens.analysis.display.hints import Hint
from shapelens.lsp.documents.document import Change
from shapelens.lsp.documents.notebook_document import CellText, ListedCell, NotebookChange, NotebookDocument
from shapelens.lsp.server import log, to_lsp
from shapelens.lsp.server.code_actions import code_actions, example_actions, lacks_fixes, writing_actions
from shapelens.lsp.server.commands import register_commands
from shapelens.lsp.server.language_server import Server
from shapelens.lsp.startup.startup_proxy import StartupProxy
from shapelens.lsp.workspace.workers import Workers
from shapelens.source.position_map import TextEdit
from shapelens.timeouts import TIMEOUTS

logger = logging.getLogger(__name__)
WEIGHTS = "**/*.{pt,pth,ckpt,bin,safetensors}"  # what programs load, and are compared with


def make(interpreter: str | None, workers: Workers, proxy: StartupProxy | None = None, allow: Sequence[str] = ()) -> Server:
    """A server with all its handlers, not yet connected to anything. `proxy` may have answered for it already."""
    server = Server(interpreter, workers, proxy)
    server.session.workspace.configuration.allow(allow)
    _handle_life(server)
    _handle_text(server)
    _handle_notebooks(server)
    _handle_settings(server)
    _handle_features(server)
    _handle_renaming(server)
    register_commands(server, server.session, server.editor)
    return server


def _handle_life(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        folders = [folder.uri for folder in params.workspace_folders or []] or [params.root_uri or ""]
        session.workspace.folders[:] = [path for uri in folders if (path := uris.to_fs_path(uri))]
        options = params.initialization_options
        if isinstance(options, dict):
            editor.is_ours = "interpreter" in options  # No other client speaks of interpreters.
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
            watched = types.DidChangeWatchedFilesRegistrationOptions(
                [types.FileSystemWatcher(each) for each in ("**/pyproject.toml", "**/*.py", WEIGHTS)]
            )
            wanted.append(types.Registration("projects", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched))
        if wanted:
            editor.in_background(editor.register(*wanted))
        if editor.has_configuration:
            editor.in_background(_pull_configuration(server))
        else:
            session.settings_known()

    @server.feature("shapelens/idle")
    async def idle(params: Any) -> None:
        """For tests and measurements, like clangd's `sync`: answered once nothing is under way.

        params: {reopened: false} where what waits for a pause in typing may still be left; it is done at once otherwise.
        """
        given = params.get("reopened") if isinstance(params, dict) else getattr(params, "reopened", None)
        await session.idle(reopened=given is not False)

    @server.feature(types.SHUTDOWN)
    async def shutdown(params: None) -> None:
        server.said_goodbye = True
        if server.display_recorder is not None:
            server.display_recorder.write()
        await session.stop()


def _handle_text(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        session.open(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        session.change(params.text_document.uri, params.text_document.version, _changes(params.content_changes), editor.encoding)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        session.save(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)


def _handle_notebooks(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        texts = [_cell_text(each) for each in params.cell_text_documents]
        session.open_notebook(notebook.uri, notebook.version, [_listed(each) for each in notebook.cells], texts)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells or types.NotebookDocumentCellChanges()
        structure = cells.structure
        change = NotebookChange(
            listed=[_listed(each) for each in cells.data or []],
            texts=[(each.document.uri, each.document.version, _changes(each.changes)) for each in cells.text_content or []],
        )
        if structure is not None:
            change = replace(
                change,
                opened=[_cell_text(each) for each in structure.did_open or []],
                closed=[each.uri for each in structure.did_close or []],
                start=structure.array.start,
                removed=structure.array.delete_count,
                added=[_listed(each) for each in structure.array.cells or []],
            )
        session.change_notebook(params.notebook_document.uri, change, editor.encoding)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveNotebookDocumentParams) -> None:
        session.save(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        session.close(params.notebook_document.uri)


def _cell_text(item: types.TextDocumentItem) -> CellText:
    return CellText(item.uri, item.version, item.language_id, item.text)


def _listed(cell: types.NotebookCell) -> ListedCell:
    executed = cell.execution_summary.execution_order if cell.execution_summary is not None else None
    return ListedCell(cell.document, cell.kind == types.NotebookCellKind.Code, executed)


def _changes(changes: Sequence[types.TextDocumentContentChangeEvent]) -> list[Change]:
    found: list[Change] = []
    for change in changes:
        where = None
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            where = (start.line, start.character, end.line, end.character)
        found.append((where, change.text))
    return found


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
        paths = {path for change in params.changes if (path := uris.to_fs_path(change.uri))}
        if any(path.endswith(".toml") for path in paths):
            session.project_changed()
        session.files_changed(paths)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        session.workspace.folders[:] = [path for folder in server.workspace.folders.values() if (path := uris.to_fs_path(folder.uri))]
        session.run_all()

    @server.feature("shapelens/interpreter")
    def interpreter(params: Any) -> None:
        path = params.get("path") if isinstance(params, dict) else getattr(params, "path", None)
        session.use_interpreter(path if isinstance(path, str) and path else None)


def _handle_features(server: Server) -> None:
    session, editor = server.session, server.editor

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=True))
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        if not editor.asks_for_hints_again and (asked := editor.places.named(params.text_document.uri)) is not None:
            await session.runs_over(asked.document.uri, TIMEOUTS.hints)
        text = editor.places.named(params.text_document.uri)
        if text is None or text.document.analysis is None:
            return []
        first, last = (text.first + position.line + 1 for position in (params.range.start, params.range.end))
        found = session.hints(text.document.uri, first, min(last, text.first + text.count))
        analysis = text.document.analysis
        written = analysis.written_shapes if analysis.version == text.document.version else {}
        return [
            to_lsp.inlay_hint(text, analysis.version, number, hint, place, editor.encoding, _written(hint, written))
            for number, hint, place in found
        ]

    @server.feature(types.INLAY_HINT_RESOLVE)
    def inlay_hint_resolve(params: types.InlayHint) -> types.InlayHint:
        if isinstance(params.data, dict):
            text = session.hint_tooltip(params.data.get("uri", ""), params.data.get("version", -1), params.data.get("number", -1))
            params.tooltip = to_lsp.markdown(text) if text else None
        return params

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        text = editor.places.named(params.text_document.uri)
        found = session.hover(text.document.uri, text.place(params.position, editor.encoding)) if text is not None else None
        if text is None or found is None:
            return None
        markdown, span = found
        return types.Hover(contents=to_lsp.markdown(markdown), range=text.range_(span, editor.encoding))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        text = editor.places.named(params.text_document.uri)
        if text is None:
            return []
        return to_lsp.code_lenses(text, session.lenses(text.document.uri), editor.encoding, has_view=editor.is_ours)

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        text = editor.places.named(params.text_document.uri)
        only = params.context.only
        wanted = [kind for kind in kinds if not only or any(kind.value.startswith(str(getattr(each, "value", each))) for each in only)]
        if text is None:
            return []
        document = text.document
        actions: list[types.CodeAction] = []
        if types.CodeActionKind.RefactorRewrite in wanted:
            actions = example_actions(text, session.lenses(document.uri), params.range, editor)
            actions += writing_actions(text, params.range, editor)
        if types.CodeActionKind.QuickFix not in wanted:
            return actions

        def newest() -> list[types.Diagnostic]:
            now = editor.places.named(params.text_document.uri)
            return [editor.newest(now, each) for each in params.context.diagnostics] if now is not None else []

        # A cell keeps its diagnostics while another one is edited.
        diagnostics = newest() if isinstance(document, NotebookDocument) else params.context.diagnostics
        if any(lacks_fixes(document, each) for each in diagnostics):
            await session.fixes_tried(document.uri, lambda: not any(lacks_fixes(document, each) for each in newest()))
            diagnostics = newest()
        return code_actions(editor.places.named(params.text_document.uri) or text, diagnostics, editor) + actions


def _handle_renaming(server: Server) -> None:
    editor = server.editor

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
        text = editor.places.named(params.text_document.uri)
        found = dim_name_at(text.document.module, text.place(params.position, editor.encoding)) if text is not None else None
        return text.range_(found.span, editor.encoding) if text is not None and found is not None else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        text = editor.places.named(params.text_document.uri)
        found = dim_name_at(text.document.module, text.place(params.position, editor.encoding)) if text is not None else None
        if text is None or found is None:
            return None
        if not is_dim_name(params.new_name):
            raise JsonRpcInvalidParams(f"{params.new_name} is no name of a dim")
        if params.new_name in found.others:
            raise JsonRpcInvalidParams(f"{params.new_name} is another dim here")
        document = text.document
        edits = [TextEdit(span, params.new_name) for span in found.all]
        changes = to_lsp.changes_of(editor.places.edits(document.uri, edits, editor.encoding) or [], document, editor.places)
        return to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits)


def _written(hint: Hint, written: Mapping[int, TextEdit]) -> TextEdit | None:
    """The edit that writes what a hint at the end of its line says."""
    return written.get(hint.position.line) if hint.kind != "layer" and not hint.label.startswith(":") else None


async def _pull_configuration(server: Server) -> None:
    try:
        _configure(server, await server.editor.configuration())
    finally:
        server.session.settings_known()


def _configure(server: Server, section: dict[str, Any]) -> None:
    nested = section.get("log")
    level = section.get("log.level", nested.get("level") if isinstance(nested, dict) else None)
    if isinstance(level, str):
        log.set_level(level)
    server.session.configure(section)
