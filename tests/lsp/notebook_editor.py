"""The notebook editor of a client as VS Code has it: cells that are texts of their own, and changes of the list of cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from lsp.editor import Editor

CODE, MARKUP = types.NotebookCellKind.Code, types.NotebookCellKind.Markup


@dataclass
class Notebook:
    """An open notebook. Its cells of Python are what the server is told of, as its filter says; their URIs, in order."""

    editor: Editor
    uri: str
    cells: list[str] = field(default_factory=list)
    version: int = 1
    made: int = 0

    # --- life ---

    @staticmethod
    def open(
        editor: Editor, name: str, *texts: str, saved: bool = True, uri: str | None = None, kind: str = "jupyter-notebook"
    ) -> Notebook:
        """Open a notebook of the workspace with these cells; it is written to disk first, unless it is to be unsaved, or has a URI."""
        path = editor.root / name
        if saved and uri is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content(texts))
        notebook = Notebook(editor, uri or (path.as_uri() if saved else f"untitled:{name}"))
        items = [notebook._new_cell(text) for text in texts]
        notebook.cells = [item.uri for item in items]
        document = types.NotebookDocument(notebook.uri, kind, 1, [_cell(uri) for uri in notebook.cells])
        editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, items))
        return notebook

    def close(self) -> None:
        """Close it."""
        identifiers = [types.TextDocumentIdentifier(uri) for uri in self.cells]
        params = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri), identifiers)
        self.editor.client.notebook_document_did_close(params)
        for uri in self.cells:
            self.editor.texts.pop(uri)

    def save(self) -> None:
        """Write it to disk."""
        (self.editor.root / self.uri.removeprefix(self.editor.root.as_uri() + "/")).write_text(content(self.texts))
        params = types.DidSaveNotebookDocumentParams(types.NotebookDocumentIdentifier(self.uri))
        self.editor.client.notebook_document_did_save(params)

    def rename(self, name: str) -> Notebook:
        """Rename its file, as VS Code does: the notebook of the old name is closed, one of the new name opened."""
        texts = self.texts
        (self.editor.root / self.uri.removeprefix(self.editor.root.as_uri() + "/")).unlink()
        self.close()
        return Notebook.open(self.editor, name, *texts)

    @property
    def texts(self) -> list[str]:
        """What stands in the cells."""
        return [self.editor.texts[uri] for uri in self.cells]

    def _new_cell(self, text: str) -> types.TextDocumentItem:
        self.made += 1
        uri = f"vscode-notebook-cell:{self.uri.partition(':')[2]}#W{self.made:x}sZmlsZQ%3D%3D"
        self.editor.texts[uri], self.editor.versions[uri] = text, 1
        self.editor.published.pop(uri, None)
        return types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)

    # --- edits ---

    def insert(self, index: int, text: str) -> str:
        """Add a cell. Returns its URI."""
        item = self._new_cell(text)
        self._splice(index, 0, [item.uri], opened=[item])
        return item.uri

    def delete(self, index: int) -> str:
        """Delete a cell. Returns what its URI was."""
        uri = self.cells[index]
        self._splice(index, 1, [], closed=[uri])
        self.editor.texts.pop(uri)
        return uri

    def move(self, index: int, to: int) -> None:
        """Move a cell: in one change, from the first place that is another one to the last."""
        cells = list(self.cells)
        cells.insert(to, cells.pop(index))
        first, last = min(index, to), max(index, to)
        self._splice(first, last - first + 1, cells[first : last + 1])

    def split(self, index: int, line: int) -> None:
        """Split a cell before a line (from 0): the text below goes into a new cell."""
        lines = self.editor.texts[self.cells[index]].split("\n")
        self.set_text(index, "\n".join(lines[:line]))
        self.insert(index + 1, "\n".join(lines[line:]))

    def join(self, index: int) -> None:
        """Join a cell with the one below it, as VS Code does: two changes in one."""
        below = self.cells[index + 1]
        text = self.texts[index] + "\n" + self.texts[index + 1]
        self._splice(index + 1, 1, [], closed=[below], texts=[self._whole(self.cells[index], text)])
        self.editor.texts.pop(below)

    def to_markdown_and_back(self, index: int, text: str | None = None) -> None:
        """Make a cell Markdown, which the server is not to be told of, and Python again."""
        kept = self.texts[index]
        self.delete(index)
        self.insert(index, kept if text is None else text)

    def replace(self, index: int, old: str, new: str) -> None:
        """Type `new` over the only occurrence of `old` in a cell."""
        text = self.texts[index]
        assert text.count(old) == 1, f"{text.count(old)} times {old!r}"
        self.replace_at(index, text.index(old), text.index(old) + len(old), new)

    def replace_at(self, index: int, start: int, end: int, new: str) -> None:
        """Type `new` over the characters of a cell from `start` to `end`."""
        uri = self.cells[index]
        text = self.editor.texts[uri]
        where = types.Range(self.editor.position(uri, start), self.editor.position(uri, end))
        self._type(uri, where, new, text[:start] + new + text[end:])

    def set_text(self, index: int, text: str) -> None:
        """Replace the whole text of a cell."""
        self._notify(types.NotebookDocumentCellChanges(text_content=[self._whole(self.cells[index], text)]))

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Apply a workspace edit of its cells, as the editor does after a quick fix."""
        for change in edit.document_changes or []:
            assert isinstance(change, types.TextDocumentEdit)
            uri = change.text_document.uri
            assert change.text_document.version == self.editor.versions[uri] and uri in self.cells
            for part in sorted(change.edits, key=lambda part: (part.range.start.line, part.range.start.character), reverse=True):
                assert isinstance(part, types.TextEdit)
                text = self.editor.texts[uri]
                start, end = self.editor.offset(uri, part.range.start), self.editor.offset(uri, part.range.end)
                self._type(uri, part.range, part.new_text, text[:start] + part.new_text + text[end:])

    def ran(self, index: int, order: int) -> None:
        """A kernel has run a cell."""
        cell = _cell(self.cells[index])
        cell.execution_summary = types.ExecutionSummary(execution_order=order, success=True)
        self._notify(types.NotebookDocumentCellChanges(data=[cell]))

    def set_metadata(self, metadata: dict[str, Any]) -> None:
        """Change something of the notebook that no cell shows: its kernel, say."""
        self.version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(version=self.version, uri=self.uri)
        event = types.NotebookDocumentChangeEvent(metadata=metadata)
        self.editor.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, event))

    def _type(self, uri: str, where: types.Range, new: str, text: str) -> None:
        self.editor.texts[uri] = text
        self.editor.versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(uri=uri, version=self.editor.versions[uri])
        change = types.TextDocumentContentChangePartial(range=where, text=new)
        self._notify(types.NotebookDocumentCellChanges(text_content=[types.NotebookDocumentCellContentChanges(identifier, [change])]))

    def _whole(self, uri: str, text: str) -> types.NotebookDocumentCellContentChanges:
        self.editor.texts[uri] = text
        self.editor.versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(uri=uri, version=self.editor.versions[uri])
        return types.NotebookDocumentCellContentChanges(identifier, [types.TextDocumentContentChangeWholeDocument(text=text)])

    def _splice(
        self,
        start: int,
        deleted: int,
        cells: Sequence[str],
        *,
        opened: Sequence[types.TextDocumentItem] = (),
        closed: Sequence[str] = (),
        texts: Sequence[types.NotebookDocumentCellContentChanges] = (),
    ) -> None:
        self.cells[start : start + deleted] = cells
        array = types.NotebookCellArrayChange(start=start, delete_count=deleted, cells=[_cell(uri) for uri in cells])
        structure = types.NotebookDocumentCellChangeStructure(
            array=array, did_open=list(opened), did_close=[types.TextDocumentIdentifier(uri) for uri in closed]
        )
        self._notify(types.NotebookDocumentCellChanges(structure=structure, text_content=list(texts)))

    def _notify(self, cells: types.NotebookDocumentCellChanges) -> None:
        self.version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(version=self.version, uri=self.uri)
        params = types.DidChangeNotebookDocumentParams(identifier, types.NotebookDocumentChangeEvent(cells=cells))
        self.editor.client.notebook_document_did_change(params)

    # --- what is shown ---

    async def hints(self) -> list[dict[int, str]]:
        """The labels of each cell by line (from 0), as the server has them now."""
        return [await self.editor.hints(uri) for uri in self.cells]

    async def hints_when(self, index: int, *labels: str) -> list[dict[int, str]]:
        """The hints of all cells as soon as one of them has these labels, in their order."""
        await self.editor.hints_when(self.cells[index], lambda hints: list(hints.values()) == list(labels))
        return await self.hints()

    async def wrong(self, index: int, *words: str) -> list[types.Diagnostic]:
        """The diagnostics of a cell as soon as they are at these words."""
        uri = self.cells[index]

        def said() -> list[types.Diagnostic]:
            shown = self.editor.published.get(uri)
            return list(shown.diagnostics) if shown is not None and shown.version == self.editor.versions[uri] else []

        await self.editor.until(lambda: [self.editor.text_of(uri, each.range) for each in said()] == list(words))
        return said()


def content(texts: Sequence[str]) -> str:
    """A notebook file with these cells, below a heading."""
    heading: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": ["# A notebook\n"]}
    code = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text.splitlines(True)} for text in texts
    ]
    return json.dumps({"cells": [heading, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cell(uri: str) -> types.NotebookCell:
    return types.NotebookCell(kind=CODE, document=uri)
