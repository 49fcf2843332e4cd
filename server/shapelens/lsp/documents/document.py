"""An open file: its text as the editor has it, and what the newest run saw in an older version of it."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pygls import uris

from shapelens import protocol
from shapelens.analysis.display.hints import Hint, hints
from shapelens.analysis.findings.findings import Finding
from shapelens.examples.choose import Example
from shapelens.examples.importing_files import User
from shapelens.examples.settings import Settings
from shapelens.lsp.documents.importer_traces import Ran, Visits
from shapelens.source.edits import PositionMap
from shapelens.source.module import Module, parse
from shapelens.source.positions import Lines, Position, Span

# One change of the editor: (first line, character, last line, character), 0-based in the client's encoding, or None for the whole text.
Change = tuple[tuple[int, int, int, int] | None, str]


@dataclass
class Kept:
    """What an older trace saw of the examples that don't run `again`, these by number. `find` gives it at the positions of the newest text,
    or None where one of them is not known; it is called once, as it takes its time."""

    find: Callable[[], protocol.Trace | None]
    again: Sequence[int]

    @cached_property
    def trace(self) -> protocol.Trace | None:
        return self.find()

    def prepare(self) -> None:
        """Find it now."""
        _ = self.trace


@dataclass
class Analysis:
    """What is known of one version of a document. Without a trace nothing has run yet."""

    version: int
    module: Module
    settings: Settings
    examples: Sequence[Example] = ()
    trace: protocol.Trace | None = None  # what its own run saw, and the runs of other files
    own: protocol.Trace | None = None
    named: bool = False  # the trace holds the names of the dims
    unfinished: bool = False  # a run was ended before all dims had their names
    others: Mapping[str, Module] = field(default_factory=dict)  # the texts of other open files that its own run went through, by path
    ran: Ran | None = None  # its own run, once that has come to its end
    kept: Kept | None = None  # where only some of the examples run
    findings: Sequence[Finding] = field(default_factory=list)

    @property
    def runs_by_itself(self) -> bool:
        """Whether the document has examples of its own, given or found."""
        return bool(self.examples) or (self.own is not None and bool(self.own.examples))

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
        self.saved = on_disk(self.path) == text
        self.analysis: Analysis | None = None
        self.complete: Analysis | None = None  # the last one whose examples have all run
        self.published: Sequence[Finding] = ()  # what the editor shows, at positions of `published_version` and `published_text`
        self.published_version = -1
        self.published_text = ""
        self.visits = Visits(self.path)
        self.ran: Ran | None = None  # its own last run
        self.users: list[User] | None = None  # files that import this one; None: not looked for yet
        self.asked: set[tuple[Document, int]] = set()  # what was run to be seen from, with its version
        self.failure: Sequence[Finding] = ()  # how its own run ended, where that was badly
        self.outdated = True  # something else than its text may have changed since its own last run
        self.seconds_to_findings = 0.0  # from the beginning of its last run
        self.seconds_between_edits = float("inf")  # the last two
        self._edited_at = float("-inf")
        self._module: Module | None = None
        self._runnable: Module | None = None
        self._lines: Lines | None = None
        self._since = PositionMap()

    @property
    def module(self) -> Module:
        """The text parsed; only what has changed since the last call is parsed again."""
        if self._module is None or self._module.text != self.text:
            self._module = parse(self.text, self._module)
        if not self._module.errors:
            self._runnable = self._module
        return self._module

    @property
    def runnable(self) -> Module | None:
        """The newest text that could be parsed: what other files run with while this one is being typed. None if there was none."""
        return self.module if not self.module.errors else self._runnable

    @property
    def lines(self) -> Lines:
        """The lines of the newest text; unlike `module` this needs no parse."""
        if self._lines is None or self._lines.text != self.text:
            self._lines = Lines(self.text)
        return self._lines

    @property
    def surroundings(self) -> object:
        """What the search for its examples depends on besides its text. Changes when that does."""
        return [(user.path, user.state) for user in self.users or []]

    def learns_from(self, path: str) -> bool:
        """Whether how a file uses this one is evidence for the examples that were found for it."""
        own = self.analysis.own if self.analysis is not None else None
        return own is not None and any(run.evidence for run in own.examples) and any(user.path == path for user in self.users or [])

    def change(self, version: int, changes: Sequence[Change], encoding: str) -> None:
        """Apply the editor's changes in their order."""
        for where, new_text in changes:
            if where is None:
                moved, self.text = PositionMap.between(self.text, new_text), new_text
            else:
                span = Span.of(self.lines.from_lsp(where[0], where[1], encoding), self.lines.from_lsp(where[2], where[3], encoding))
                start, end = self.lines.offset(span.start), max(self.lines.offset(span.start), self.lines.offset(span.end))
                moved, self.text = PositionMap.edit(span, new_text), self.text[:start] + new_text + self.text[end:]
            self._since = self._since.then(moved)
        now = time.monotonic()
        self.seconds_between_edits, self._edited_at = now - self._edited_at, now
        self.version = version
        self.saved = False

    def adopt(self, analysis: Analysis) -> None:
        """Show this from now on. It must be of the newest version, or of the same version as the one before."""
        if self.analysis is None or analysis.module is not self.analysis.module:
            self._since = PositionMap() if analysis.module.text == self.text else PositionMap.between(analysis.module.text, self.text)
        self.analysis = analysis

    @property
    def since(self) -> PositionMap:
        """From the positions of what is shown to those of the newest text."""
        return self._since

    def before(self, position: Position) -> Position | None:
        """Where a position of the newest text was in the text that was analysed; None where that is not known."""
        if self.analysis is None:
            return None
        span = PositionMap.between(self.text, self.analysis.module.text).map(Span.of(position, position))
        return span.start if span is not None else None

    def hints(self) -> list[tuple[int, Hint, Position]]:
        """The newest hints, each with its number in the analysis and the place where it belongs in the text as it is now."""
        analysis = self.analysis
        if analysis is None:
            return []
        found = []
        for number, hint in enumerate(analysis.hints):
            place = self._since.map(Span.of(hint.position, hint.position))
            if place is None:
                continue
            column = place.column
            if hint.position.column == len(analysis.module.lines.line(hint.position.line)):
                # What is typed behind the hint of a line pushes it along.
                column = len(self.lines.line(place.line))
            found.append((number, hint, Position(place.line, column)))
        return found


def path_of(uri: str) -> str:
    """The absolute path of a document. One without (unsaved, remote, of another system) gets one that no file has."""
    path = uris.to_fs_path(uri)
    if path is not None and Path(path).is_absolute():
        return path
    name = re.sub(r"[^\w.-]+", "_", uri)[-100:]
    return str(Path(tempfile.gettempdir(), "shapelens-unsaved", name if name.endswith(".py") else name + ".py"))


def on_disk(path: str) -> str | None:
    """The text of a file; None where it has none."""
    try:
        # newline="" keeps the line ends, as the editor does.
        with Path(path).open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
