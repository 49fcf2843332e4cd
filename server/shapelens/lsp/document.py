"""An open file: its text as the editor has it, and what the newest run saw in an older version of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pygls import uris

from shapelens import protocol
from shapelens.analysis.findings import Finding
from shapelens.analysis.hints import Hint, hints
from shapelens.examples.choose import Example
from shapelens.examples.settings import Settings
from shapelens.source import edits
from shapelens.source.edits import PositionMap, TextEdit
from shapelens.source.module import Module, parse
from shapelens.source.positions import Lines, Position, Span

# One change of the editor: (first line, character, last line, character), 0-based in the client's encoding, or None for the whole text.
Change = tuple[tuple[int, int, int, int] | None, str]


@dataclass
class Analysis:
    """What is known of one version of a document. Without a trace nothing has run yet."""

    version: int
    module: Module
    settings: Settings
    examples: Sequence[Example] = ()
    trace: protocol.Trace | None = None
    named: bool = False  # the trace holds the names of the dims
    findings: Sequence[Finding] = field(default_factory=list)

    @cached_property
    def hints(self) -> list[Hint]:
        return hints(self.module, self.trace, self.settings) if self.trace is not None else []


class Document:
    """The text follows the editor's changes; `analysis` stays behind until the next run has ended, and positions in it are mapped."""

    def __init__(self, uri: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = path_of(uri)
        self.version = version
        self.text = text
        self.saved = _on_disk(self.path) == text
        self.analysis: Analysis | None = None
        self.seconds = 0.0  # that the last run took
        self._module: Module | None = None
        self._lines: Lines | None = None
        self._maps: dict[tuple[int, int], PositionMap] = {}

    @property
    def module(self) -> Module:
        """The text parsed; only what has changed since the last call is parsed again."""
        if self._module is None or self._module.text != self.text:
            self._module = parse(self.text, self._module)
        return self._module

    @property
    def lines(self) -> Lines:
        """The lines of the newest text; unlike `module` this needs no parse."""
        if self._lines is None or self._lines.text != self.text:
            self._lines = Lines(self.text)
        return self._lines

    def change(self, version: int, changes: Sequence[Change], encoding: str) -> None:
        """Apply the editor's changes in their order."""
        for where, new_text in changes:
            if where is None:
                self.text = new_text
                continue
            start, end = self.lines.from_lsp(where[0], where[1], encoding), self.lines.from_lsp(where[2], where[3], encoding)
            self.text = edits.apply(self.text, [TextEdit(Span(start.line, start.column, end.line, end.column), new_text)])
        self.version = version
        self.saved = False

    def since(self, analysis: Analysis) -> PositionMap:
        """From the positions of the analysed version to those of the newest."""
        return self._map(analysis, forward=True)

    def before(self, analysis: Analysis) -> PositionMap:
        """From the positions of the newest version to those of the analysed one."""
        return self._map(analysis, forward=False)

    def _map(self, analysis: Analysis, *, forward: bool) -> PositionMap:
        key = (analysis.version, self.version) if forward else (self.version, analysis.version)
        if key not in self._maps:
            self._maps = {known: map_ for known, map_ in self._maps.items() if self.version in known}
            texts = (analysis.module.text, self.text) if forward else (self.text, analysis.module.text)
            self._maps[key] = PositionMap.between(*texts)
        return self._maps[key]

    def hints(self) -> list[tuple[int, Hint, Position]]:
        """The newest hints, each with its number in the analysis and the place where it belongs in the text as it is now."""
        analysis = self.analysis
        if analysis is None:
            return []
        since, found = self.since(analysis), []
        for number, hint in enumerate(analysis.hints):
            place = since.map(Span(hint.position.line, hint.position.column, hint.position.line, hint.position.column))
            if place is None:
                continue
            column = place.column
            if hint.position.column == len(analysis.module.lines.line(hint.position.line)):
                # What is typed behind the hint of a line pushes it along.
                column = len(self.lines.line(place.line))
            found.append((number, hint, Position(place.line, column)))
        return found


def path_of(uri: str) -> str:
    """The absolute path of a document. One that has none on this machine (unsaved, remote, from another system) gets one that no file has."""
    path = uris.to_fs_path(uri)
    if path is not None and Path(path).is_absolute():
        return path
    name = re.sub(r"[^\w.-]+", "_", uri)[-100:]
    return str(Path(tempfile.gettempdir(), "shapelens-unsaved", name if name.endswith(".py") else name + ".py"))


def _on_disk(path: str) -> str | None:
    try:
        # newline="" keeps the line ends, as the editor does.
        with Path(path).open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
