"""An open notebook: one document whose lines stand in cells."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapelens import notebooks
from shapelens.lsp.documents.document import Change, Document
from shapelens.lsp.documents.paths import on_disk
from shapelens.source.module import Module, parse
from shapelens.source.notebook_cells import read_cells
from shapelens.source.positions import Lines

logger = logging.getLogger(__name__)
CODE_LANGUAGE = "python"


@dataclass(frozen=True)
class CellText:
    """The text of a cell, as the editor gives it when the cell appears."""

    uri: str
    version: int
    language: str
    text: str


@dataclass(frozen=True)
class NotebookChange:
    """What has changed in a notebook, in this order.

    opened, closed: cells that appear and vanish. start, removed, added: of the list of cells, `removed` ones from `start` on give way to
    those with the URIs `added`. kinds: whether a cell is code, by URI. texts: what changes in a cell, with its URI and new version.
    """

    opened: Sequence[CellText] = ()
    closed: Sequence[str] = ()
    start: int = 0
    removed: int = 0
    added: Sequence[tuple[str, bool]] = ()
    kinds: Sequence[tuple[str, bool]] = ()
    texts: Sequence[tuple[str, int, Sequence[Change]]] = ()


class NotebookCell:
    """A cell: its text as the editor has it, and as Python."""

    def __init__(self, opened: CellText) -> None:
        self.uri = opened.uri
        self.version = opened.version
        self.text = opened.text
        self.is_python = opened.language == CODE_LANGUAGE
        self.is_code = True
        self._module: Module | None = None
        self._parsed = ""  # the text that the module was made of

    @property
    def module(self) -> Module:
        """The cell as Python, parsed; what has not changed since the last call is not parsed again."""
        if self._module is None or self._parsed != self.text:
            self._module, self._parsed = parse(notebooks.as_python(self.text), self._module), self.text
        return self._module

    @property
    def is_plain(self) -> bool:
        """Whether the notebook's text has the cell's text as it is."""
        return not self.module.errors and self.module.text == self.text

    def piece(self, *, typed: bool) -> str:
        """What the notebook's text has of it. typed: it is being edited, so that it soon parses again."""
        return self.module.text if typed or not self.module.errors else notebooks.left_out(self.text)


class NotebookDocument(Document):
    """The code cells of a notebook, in their order, as one text: what runs, what is seen and what is found is that of one file.

    A cell that does not parse is left out of the text, but for the one that is being typed in: as in a file, what was seen stays until it
    parses again, or another cell is edited.
    """

    def __init__(self, uri: str, version: int, cells: Iterable[tuple[str, bool]], texts: Iterable[CellText]) -> None:
        self._known = {each.uri: NotebookCell(each) for each in texts}
        self._typed: NotebookCell | None = None
        self._cells: list[NotebookCell] = []
        self._put(0, 0, cells)
        self._python: list[NotebookCell] = []
        self._layout = notebooks.joined([], [])
        super().__init__(uri, version, self._joined())
        self._saved = self._is_on_disk()

    # --- cells ---

    @property
    def cells(self) -> list[NotebookCell]:
        """Those with Python, in order."""
        return self._python

    @property
    def module(self) -> Module:
        """The text parsed; it knows of which cells it is made."""
        module = super().module
        module.notebook = self._layout
        return module

    def cell(self, uri: str) -> tuple[NotebookCell, int, int] | None:
        """A cell with Python, with its first line (0-based) and the number of its lines; None where there is none of this URI."""
        return next((self._placed(index) for index, cell in enumerate(self._python) if cell.uri == uri), None)

    def cell_at(self, line: int) -> tuple[NotebookCell, int, int] | None:
        """The cell that a line (0-based) belongs to, with its first line and the number of its lines; None in a notebook without code."""
        return self._placed(max(bisect_right(self._layout.firsts, line + 1) - 1, 0)) if self._python else None

    def _placed(self, index: int) -> tuple[NotebookCell, int, int]:
        firsts = self._layout.firsts
        end = firsts[index + 1] if index + 1 < len(firsts) else max(self.lines.count, 2)
        return self._python[index], firsts[index] - 1, end - firsts[index]

    def _as_python(self, source: str) -> str:
        return source  # Its cells are Python already.

    # --- edits ---

    def edit(self, change: NotebookChange, encoding: str) -> set[str]:
        """Apply a change. Returns the URIs of the cells that the notebook does not have any more."""
        before = {cell.uri for cell in self._cells}
        self._known.update({each.uri: NotebookCell(each) for each in change.opened})
        self._put(change.start, change.removed, change.added)
        for uri, is_code in change.kinds:
            if uri in self._known:
                self._known[uri].is_code = is_code
        if change.added or change.removed or change.kinds:
            self._typed = None
        if len(change.texts) == 1 and not change.opened and not change.added and not change.removed and not change.kinds:
            self._type(*change.texts[0], encoding)
        else:
            for uri, cell_version, changes in change.texts:
                self._change_cell(uri, cell_version, changes, encoding)
            self._rejoin()
        present = {cell.uri for cell in self._cells}
        for uri in change.closed:
            if uri not in present:
                self._known.pop(uri, None)
        return before - present

    def _put(self, start: int, removed: int, added: Iterable[tuple[str, bool]]) -> None:
        cells = []
        for uri, is_code in added:
            cell = self._known.get(uri)
            if cell is None:
                logger.warning("the cell %s has no text", uri)
                cell = self._known[uri] = NotebookCell(CellText(uri, 0, "", ""))
            cell.is_code = is_code
            cells.append(cell)
        self._cells[start : start + removed] = cells

    def _type(self, uri: str, version: int, changes: Sequence[Change], encoding: str) -> None:
        """Apply changes of one cell: where its text is Python before and after them, they are changes of the notebook's text."""
        found = self.cell(uri)
        was_typed = self._typed
        was_plain = found is not None and found[0].is_plain
        cell = self._change_cell(uri, version, changes, encoding)
        if cell is None:
            return
        self._typed = cell if cell.module.errors else None
        if found is None or not was_plain or not cell.is_plain or was_typed is not None or any(where is None for where, _ in changes):
            self._rejoin()
            return
        first = found[1]
        moved: list[Change] = [
            ((where[0] + first, where[1], where[2] + first, where[3]), text) for where, text in changes if where is not None
        ]
        super().change(self.version + 1, moved, encoding)
        if self.text != self._joined():  # The editor counts the ends of lines in another way.
            self._rejoin()

    def _change_cell(self, uri: str, version: int, changes: Sequence[Change], encoding: str) -> NotebookCell | None:
        cell = self._known.get(uri)
        if cell is None:
            logger.warning("a change of the cell %s, which is not known, is ignored", uri)
            return None
        for where, text in changes:
            if where is None:
                cell.text = text
                continue
            lines = Lines(cell.text)
            start, end = (lines.offset(lines.from_lsp(line, character, encoding)) for line, character in (where[:2], where[2:]))
            cell.text = cell.text[:start] + text + cell.text[max(start, end) :]
        cell.version = version
        return cell

    def _rejoin(self) -> None:
        text = self._joined()
        if text != self.text:
            super().change(self.version + 1, [(None, text)], "utf-32")

    def _joined(self) -> str:
        """The text of all cells with Python; notes where each of them lies."""
        numbers = [number for number, cell in enumerate(self._cells, 1) if cell.is_code and cell.is_python]
        self._python = [self._cells[number - 1] for number in numbers]
        self._layout = notebooks.joined([cell.piece(typed=cell is self._typed) for cell in self._python], numbers)
        return self._layout.text

    # --- the file ---

    def save(self) -> None:
        """The notebook is on disk now."""
        self._saved = self._is_on_disk()

    def _is_on_disk(self) -> bool:
        content = on_disk(self.path)
        found = read_cells(content) if content is not None else None
        return found is not None and found.module.text == self.text
