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
class ListedCell:
    """A cell in the list of a notebook. executed: the number that the kernel gave its last execution; None where it has not run."""

    uri: str
    is_code: bool
    executed: int | None = None


@dataclass(frozen=True)
class NotebookChange:
    """Holds what has changed in a notebook, in this order.

    opened, closed: cells that appear and vanish. start, removed, added: of the list of cells, `removed` ones from `start` on give way to
    those that are `added`. listed: cells of which something else than their text has changed. texts: what changes in a cell, with its URI
    and new version.
    """

    opened: Sequence[CellText] = ()
    closed: Sequence[str] = ()
    start: int = 0
    removed: int = 0
    added: Sequence[ListedCell] = ()
    listed: Sequence[ListedCell] = ()
    texts: Sequence[tuple[str, int, Sequence[Change]]] = ()


class NotebookCell:
    """A cell: its text as the editor has it, and as Python."""

    def __init__(self, opened: CellText) -> None:
        self.uri = opened.uri
        self.version = opened.version
        self.text = opened.text
        self.is_python = opened.language == CODE_LANGUAGE
        self.is_code = True
        self.executed: int | None = None
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
        """True if the notebook's text has the cell's text as it is."""
        return not self.module.errors and self.module.text == self.text

    def piece(self, *, typed: bool) -> str:
        """Returns what the notebook's text has of it. typed: it is being edited, so that it soon parses again."""
        return self.module.text if typed or not self.module.errors else notebooks.left_out(self.text)


class NotebookDocument(Document):
    """Holds the code cells of a notebook, in their order, as one text, which runs as one file.

    A cell that does not parse is left out of the text, but for the one that is being typed in: as in a file, what was seen stays until it
    parses again, or another cell is edited.
    """

    def __init__(self, uri: str, version: int, cells: Iterable[ListedCell], texts: Iterable[CellText]) -> None:
        self._by_execution = False
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
        for listed in change.listed:
            if listed.uri in self._known:
                self._known[listed.uri].is_code, self._known[listed.uri].executed = listed.is_code, listed.executed
        if change.added or change.removed or change.listed:
            self._typed = None
        if len(change.texts) == 1 and not change.opened and not change.added and not change.removed and not change.listed:
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

    def put_in_order(self, *, by_execution: bool) -> None:
        """Let the cells that have run follow each other as the kernel ran them, or all of them as they stand."""
        if by_execution is not self._by_execution:
            self._by_execution = by_execution
            self._rejoin()

    def _put(self, start: int, removed: int, added: Iterable[ListedCell]) -> None:
        cells = []
        for listed in added:
            cell = self._known.get(listed.uri)
            if cell is None:
                logger.warning("the cell %s has no text", listed.uri)
                cell = self._known[listed.uri] = NotebookCell(CellText(listed.uri, 0, "", ""))
            cell.is_code, cell.executed = listed.is_code, listed.executed
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
        if self._by_execution:
            numbers = self._as_executed(numbers)
        self._python = [self._cells[number - 1] for number in numbers]
        self._layout = notebooks.joined([cell.piece(typed=cell is self._typed) for cell in self._python], numbers)
        return self._layout.text

    def _as_executed(self, numbers: Sequence[int]) -> list[int]:
        """The numbers of cells, those that have run in the order of that: they change places with each other only."""
        executed = {number: order for number in numbers if (order := self._cells[number - 1].executed) is not None}
        in_order = iter(sorted(executed, key=executed.__getitem__))
        return [next(in_order) if number in executed else number for number in numbers]

    # --- the file ---

    def save(self) -> None:
        """The notebook is on disk now."""
        self._saved = self._is_on_disk()

    def _is_on_disk(self) -> bool:
        content = on_disk(self.path)
        try:
            return content is not None and read_cells(content).module.text == self.text
        except notebooks.NoNotebook:
            return False
