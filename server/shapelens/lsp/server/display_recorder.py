"""Keeps what the editor shows of files that are as they are on disk, for the first answers of the next server."""

from __future__ import annotations

import asyncio
from typing import Any

from cattrs import Converter

from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.notebook_document import NotebookDocument
from shapelens.lsp.server import to_lsp
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.server.places import TextDocument
from shapelens.lsp.session import Session
from shapelens.lsp.startup.display_cache import Display, DisplayCache

# After so many seconds without anything new it is written down; what is typed meanwhile is not on disk, and so is not.
QUIET_SECONDS = 1.0


class DisplayRecorder:
    """Writes to the display cache. Nothing is written while something runs, nor of what would look otherwise to a new server."""

    def __init__(self, session: Session, editor: Editor, converter: Converter, cache: DisplayCache) -> None:
        """converter: makes JSON of LSP types."""
        self._session = session
        self._editor = editor
        self._converter = converter
        self._cache = cache
        self._timer: asyncio.TimerHandle | None = None
        self._written: dict[str, tuple[object, object]] = {}  # by URI: what was shown when it was last written down

    def changed(self) -> None:
        """Something else is shown than before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self.write)

    def write(self) -> None:
        """Write down what is shown now."""
        for document in list(self._session.documents.values()):
            if isinstance(document, NotebookDocument):
                continue  # What is shown of it is spread over texts whose names the next editor chooses.
            settled = self._session.settled(document)
            analysis, findings = self._written.get(document.uri, (None, None))
            if settled is not None and (analysis is not document.analysis or findings is not document.published.findings):
                self._written[document.uri] = document.analysis, document.published.findings
                interpreter, environment, read = settled
                read.append(self._cache.settings_files(document.path))
                self._cache.keep(document.uri, document.text, self._display(document), interpreter, environment, read)

    def _display(self, document: Document) -> Display:
        editor, text = self._editor, TextDocument(document, document.uri, document.version)
        findings = document.published.findings if document.published.version == document.version else ()
        diagnostics = [to_lsp.diagnostic(each, text, editor.places, editor.encoding) for each in findings]
        hints = [to_lsp.inlay_hint(text, document.version, *each, editor.encoding) for each in document.hints()]
        lenses = to_lsp.code_lenses(text, self._session.lenses(document.uri), editor.encoding, has_view=editor.is_ours)
        return Display(*(self._plain(each) for each in (diagnostics, hints, lenses)))

    def _plain(self, shown: list[Any]) -> list[dict[str, Any]]:
        return [self._converter.unstructure(each) for each in shown]
