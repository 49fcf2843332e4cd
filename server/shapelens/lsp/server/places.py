"""Translates the spans of our documents for the client: into a file, or into a cell of a notebook, which is a text of its own there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls import uris

from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.notebook_document import NotebookDocument
from shapelens.lsp.documents.paths import on_disk, path_of, same_path, uri_of
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Lines, Position, Span

ALL_LINES = 1 << 30


@dataclass(frozen=True)
class TextDocument:
    """Holds what a client calls a text document: a file or the `count` lines of a notebook from `first` (0-based) on, which are a cell."""

    document: Document
    uri: str
    version: int
    first: int = 0
    count: int = ALL_LINES

    def position(self, place: Position, encoding: str) -> types.Position:
        """A position of the document in the client's terms."""
        line, character = self.document.lines.to_lsp(place, encoding)
        return types.Position(max(line - self.first, 0), character)

    def range_(self, span: Span, encoding: str) -> types.Range:
        """A span of the document in the client's terms, as far as it lies in the cell."""
        last = self.first + self.count
        end = span.end if span.end_line <= last else Position(last, len(self.document.lines.line(last)))
        return types.Range(self.position(span.start, encoding), self.position(end, encoding))

    def place(self, position: types.Position, encoding: str) -> Position:
        """A position of the client's in the document."""
        return self.document.lines.from_lsp(position.line + self.first, position.character, encoding)

    def has(self, line: int) -> bool:
        """True if a line of the document (1-based) is one of these."""
        return self.first < line <= self.first + self.count


class ClientPlaces:
    """Finds the text documents of the client among our documents, which are by URI."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def named(self, uri: str) -> TextDocument | None:
        """The text document with this URI; None where it is not open, or is no code."""
        document = self._documents.get(uri)
        if document is not None:
            return None if isinstance(document, NotebookDocument) else _whole(document)
        for notebook in self._documents.values():
            found = notebook.cell(uri) if isinstance(notebook, NotebookDocument) else None
            if found is not None:
                return TextDocument(notebook, uri, found[0].version, *found[1:])
        return None

    def document(self, uri: str) -> Document | None:
        """The document with this URI, or with a cell of this URI."""
        found = self.named(uri)
        return found.document if found is not None else self._documents.get(uri)

    def at(self, document: Document, line: int) -> TextDocument | None:
        """Where a line of a document (1-based) is; None in a notebook without code."""
        if not isinstance(document, NotebookDocument):
            return _whole(document)
        found = document.cell_at(line - 1)
        return TextDocument(document, found[0].uri, found[0].version, *found[1:]) if found is not None else None

    def texts(self, document: NotebookDocument) -> list[TextDocument]:
        """The cells of a notebook."""
        found = (document.cell(cell.uri) for cell in document.cells)
        return [TextDocument(document, each[0].uri, each[0].version, *each[1:]) for each in found if each is not None]

    def location(self, uri: str, span: Span, encoding: str) -> types.Location | None:
        """A span of a file or notebook in the client's terms; None where the text cannot be had."""
        document = self._of_file(uri)
        if document is None:
            text = on_disk(uris.to_fs_path(uri) or "")
            return types.Location(uri, range_(Lines(text), span, encoding)) if text is not None else None
        text_document = self.at(document, span.line)
        return types.Location(text_document.uri, text_document.range_(span, encoding)) if text_document is not None else None

    def edits(self, uri: str, edits: Iterable[TextEdit], encoding: str) -> list[dict[str, Any]] | None:
        """Edits of a file or notebook as JSON, by text document: uri and edits (range as four numbers, text).

        None where a text cannot be had.
        """
        changes: dict[str, list[Any]] = {}
        for edit in edits:
            location = self.location(uri, edit.span, encoding)
            if location is None:
                return None
            start, end = location.range.start, location.range.end
            changes.setdefault(location.uri, []).append([start.line, start.character, end.line, end.character, edit.new_text])
        return [{"uri": where, "edits": each} for where, each in changes.items()]

    def place(self, place: dict[str, Any]) -> dict[str, Any]:
        """Returns a place of a report (file, line, end_line, ...) in the client's terms. In a notebook the file is the URI of the cell."""
        document = self._of_file(uri_of(place["file"]))
        text_document = self.at(document, place["line"]) if isinstance(document, NotebookDocument) else None
        if text_document is None:
            return place
        first = text_document.first
        return {**place, "file": text_document.uri, "line": place["line"] - first, "end_line": place["end_line"] - first}

    def _of_file(self, uri: str) -> Document | None:
        if uri in self._documents:
            return self._documents[uri]
        return next((document for document in self._documents.values() if same_path(document.path, path_of(uri))), None)


def range_(lines: Lines, span: Span, encoding: str) -> types.Range:
    """A span of a file in the client's terms."""
    return types.Range(*(types.Position(*lines.to_lsp(place, encoding)) for place in (span.start, span.end)))


def same_file(path: str, uri: str) -> bool:
    """True if a path is that of a document. One without a file of its own has a made-up path, which must not leave the server."""
    return same_path(path, path_of(uri))


def _whole(document: Document) -> TextDocument:
    return TextDocument(document, document.uri, document.version)
