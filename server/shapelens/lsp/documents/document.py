"""An open file: its text as the editor has it, what its runs have told, and what the editor shows of it."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from copy import copy
from dataclasses import dataclass, replace

from shapelens.analysis.display.hints import Hint
from shapelens.analysis.findings.findings import Finding
from shapelens.examples.importing_files import ImportingFile
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.importer_traces import ImporterTraces
from shapelens.lsp.documents.moved_findings import moved_findings
from shapelens.lsp.documents.paths import on_disk, path_of
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.notebooks import script_as_python
from shapelens.source.module import Module, parse
from shapelens.source.position_map import PositionMap
from shapelens.source.positions import Lines, Position, Span

# One change of the editor: (first line, character, last line, character), 0-based in the client's encoding, or None for the whole text.
Change = tuple[tuple[int, int, int, int] | None, str]


@dataclass(frozen=True)
class Published:
    """The findings that the editor shows, and the version and text that their positions are of."""

    findings: Sequence[Finding] = ()
    version: int = -1
    text: str = ""


class Document:
    """All state of one open file. From outside it is read; it changes by these methods only, each of which is one event in its life:

    - the editor speaks: `change`, `save`;
    - a run of the document goes its way: `begin_run`, `findings_took`, `run_has_told`, `given_examples_have_run`, then `end_run` or
      `cancel_run`; it is followed as a program: `end_program`, `fail_program`;
    - a text of which nothing has to run follows its edit: `follow_edit`;
    - something is shown: `show`, `add_fixes`, `note_published`, `note_examined`, `note_without_room`;
    - all of that is done once more beside it, and takes its place: `reopened`, `take_over`;
    - something else has changed: `mark_outdated`, `leave_unfinished`, `forget_failure`, `found_importers`, `forget_importers`, `consult`,
      `forget_consulted`.

    The text is always the newest. `analysis` stays behind until the next run has ended, and its positions are mapped.
    """

    def __init__(self, uri: str, version: int, text: str) -> None:
        self.uri = uri
        self.path = path_of(uri)
        # The text.
        self._version = version
        self._source = text
        self._text = self._as_python(text)
        self._saved = on_disk(self.path) == text
        self._edited_at = float("-inf")
        self._seconds_between_edits = float("inf")
        self._module: Module | None = None
        self._parsable: Module | None = None
        self._lines: Lines | None = None
        # The files that import it.
        self._importers: list[ImportingFile] | None = None
        self._know_nothing()

    def _know_nothing(self) -> None:
        """It has been opened, and nothing has run yet."""
        self.importer_traces = ImporterTraces(self.path)
        self._consulted: set[tuple[Document | str, object]] = set()
        # What is shown.
        self._analysis: Analysis | None = None
        self._since = PositionMap()
        self._published = Published()
        self._examined: Sequence[Finding] = ()
        self._without_room: Sequence[Finding] = ()
        # Its runs.
        self._complete: Analysis | None = None
        self._last_run: RepeatableRun | None = None
        self._failure: Sequence[Finding] = ()
        self._program_failure: Sequence[Finding] = ()
        self._outdated = True
        self._was_outdated = True
        self._seconds_to_findings = 0.0

    def reopened(self, functions: Container[str] = ()) -> Document:
        """Another document with the same text, of which nothing is known yet, as if it were opened now, but for what edits have broken.

        functions: those of which it is known what they are called with, by qualified name.
        """
        document = copy(self)
        document._know_nothing()
        document.importer_traces = self.importer_traces.reopened(self.module, functions)
        return document

    def take_over(self, reopened: Document) -> None:
        """From now on nothing is known but what is known of a document that was `reopened`, and still has the same text."""
        self._analysis, self._since, self._complete = reopened._analysis, reopened._since, reopened._complete
        self._last_run, self._failure, self._program_failure = reopened._last_run, reopened._failure, reopened._program_failure
        self._outdated, self._was_outdated = reopened._outdated, reopened._was_outdated
        self.importer_traces = reopened.importer_traces
        # Other open documents stay what they are.
        self._consulted = {key for key in self._consulted if not isinstance(key[0], str)}
        self._consulted |= {key for key in reopened._consulted if isinstance(key[0], str)}

    # --- the text ---

    @property
    def version(self) -> int:
        """The editor's number of the newest text."""
        return self._version

    @property
    def text(self) -> str:
        """The newest text; of a script in cells (`# %%`) without the lines that only IPython understands, which are empty here."""
        return self._text

    def _as_python(self, source: str) -> str:
        python = script_as_python(source)
        return source if python == source else python  # The same object: there is nothing to compare then.

    @property
    def saved(self) -> bool:
        """True if the text is on disk."""
        return self._saved

    @property
    def seconds_between_edits(self) -> float:
        """The time between the last two edits."""
        return self._seconds_between_edits

    @property
    def seconds_since_edit(self) -> float:
        """The time since the last edit."""
        return time.monotonic() - self._edited_at

    @property
    def module(self) -> Module:
        """The text parsed; only what has changed since the last call is parsed again."""
        if self._module is None or self._module.text != self._text:
            self._module = parse(self._text, self._module)
        if not self._module.errors:
            self._parsable = self._module
        return self._module

    @property
    def parsable(self) -> Module | None:
        """The newest text that could be parsed: what other files run with while this one is being typed. None if there was none."""
        return self.module if not self.module.errors else self._parsable

    @property
    def lines(self) -> Lines:
        """The lines of the newest text; unlike `module` this needs no parse."""
        if self._lines is None or self._lines.text != self._text:
            self._lines = Lines(self._text)
        return self._lines

    def change(self, version: int, changes: Sequence[Change], encoding: str) -> None:
        """Apply the editor's changes in their order."""
        for where, new_text in changes:
            before, moved = self._text, None
            if where is None:
                self._source = new_text
            else:
                lines = self.lines if self._source is before else Lines(self._source)
                span = Span.of(lines.from_lsp(where[0], where[1], encoding), lines.from_lsp(where[2], where[3], encoding))
                start, end = lines.offset(span.start), max(lines.offset(span.start), lines.offset(span.end))
                moved = PositionMap.edit(span, new_text) if self._source is before else None
                self._source = self._source[:start] + new_text + self._source[end:]
            self._text = self._as_python(self._source)
            if moved is None or self._source is not self._text:
                moved = PositionMap.between(before, self._text)
            self._since = self._since.then(moved)
        now = time.monotonic()
        self._seconds_between_edits, self._edited_at = now - self._edited_at, now
        self._version = version
        self._saved = False

    def save(self) -> None:
        """The text is on disk now."""
        self._saved = True

    # --- what is shown ---

    @property
    def analysis(self) -> Analysis | None:
        """Returns what hints, hovers and lenses are taken from; its positions are those of its own module."""
        return self._analysis

    @property
    def since(self) -> PositionMap:
        """From the positions of `analysis` to those of the newest text."""
        return self._since

    @property
    def published(self) -> Published:
        """The findings that the editor shows."""
        return self._published

    def show(self, analysis: Analysis) -> None:
        """Take hints, hovers and lenses from this analysis from now on.

        It must be of the newest version, or of the same version as the analysis before.
        """
        if analysis.module.text == self._text:
            self._since = PositionMap()  # Also where what was taken away has come back, and the text was not parsed in between.
        elif self._analysis is None or analysis.module is not self._analysis.module:
            self._since = PositionMap.between(analysis.module.text, self._text)
        self._analysis = analysis

    def add_fixes(self, analysis: Analysis, findings: Sequence[Finding]) -> Analysis:
        """Fixes were found for the findings of an analysis: these are the same findings with them. Returns the analysis with these."""
        fixed = analysis.with_findings(findings)
        if self._complete is analysis:
            self._complete = fixed
        if self._analysis is analysis:
            self._analysis = fixed
        return fixed

    def note_published(self, findings: Sequence[Finding]) -> None:
        """The editor was told to show these findings, whose positions are of the newest text."""
        self._published = Published(findings, self._version, self._text)

    @property
    def examined(self) -> Sequence[Finding]:
        """Returns what running it for real has told of its text; it is shown beside what is published."""
        return self._examined

    def note_examined(self, findings: Sequence[Finding]) -> None:
        """The document was run for real, and this was found; or its text is another now, and nothing is."""
        self._examined = findings

    @property
    def without_room(self) -> Sequence[Finding]:
        """The training steps of its text that do not fit the device; they are shown beside what is published."""
        return self._without_room

    def note_without_room(self, findings: Sequence[Finding]) -> None:
        """These training steps do not fit the device; or the text is another now, and nothing is known."""
        self._without_room = findings

    def published_now(self) -> list[Finding]:
        """The findings that the editor shows, at their places in the newest text."""
        return moved_findings(self._published.findings, PositionMap.between(self._published.text, self._text))

    def before(self, position: Position) -> Position | None:
        """Where a position of the newest text was in the text of `analysis`; None where that is not known."""
        if self._analysis is None:
            return None
        span = PositionMap.between(self._text, self._analysis.module.text).map(Span.of(position, position))
        return span.start if span is not None else None

    def hints(self) -> list[tuple[int, Hint, Position]]:
        """The newest hints, each with its number in the analysis and the place where it belongs in the text as it is now."""
        analysis = self._analysis
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

    # --- its runs ---

    @property
    def complete(self) -> Analysis | None:
        """The last analysis whose examples have all run: what an incremental run starts from."""
        return self._complete

    @property
    def last_run(self) -> RepeatableRun | None:
        """The last run of its own that was sent to a worker."""
        return self._last_run

    @property
    def failure(self) -> Sequence[Finding]:
        """Returns how its last run ended, where that was badly (a time limit, a crash)."""
        return self._failure

    @property
    def program_failure(self) -> Sequence[Finding]:
        """Returns how its run as a program ended, where that ended the process."""
        return self._program_failure

    @property
    def outdated(self) -> bool:
        """True if something else than its text may have changed since its last run began: then all of it has to run."""
        return self._outdated

    @property
    def seconds_to_findings(self) -> float:
        """The time from the beginning of its last run to the first findings."""
        return self._seconds_to_findings

    def runs_behind(self, analysis: Analysis, own: RepeatableRun | None = None) -> list[RepeatableRun]:
        """The runs that an analysis of the document is made of. own: its own one; None: the last."""
        run = own or self._last_run
        program = self.importer_traces.program_run
        runs = [*([run] if analysis.own is not None and run is not None else []), *self.importer_traces.runs()]
        return [*runs, *([program] if program is not None else []), *self.importer_traces.runs_with_mistakes()]

    def mark_outdated(self) -> None:
        """Marks what was seen as outdated, be the text the same."""
        self._outdated = True
        self.importer_traces.mark_program_outdated()

    def leave_unfinished(self) -> None:
        """Marks what was seen as unfinished: it holds, but all of it should run again when there is time for that."""
        if self._complete is not None:
            self._complete = replace(self._complete, unfinished=True)

    def forget_failure(self) -> None:
        """The document is about to run again, or cannot."""
        self._failure = self._program_failure = ()

    def begin_run(self, run: RepeatableRun) -> None:
        """A run of the document was sent. What changes from now on, a later run has to see."""
        self._last_run = run
        self._was_outdated, self._outdated = self._outdated, False

    def findings_took(self, seconds: float) -> None:
        """The run that is under way has shown its first findings after this time."""
        self._seconds_to_findings = seconds

    def run_has_told(self, run: RepeatableRun) -> None:
        """The run that is under way has told of its examples."""
        self._last_run = run

    def given_examples_have_run(self, analysis: Analysis) -> None:
        """Notes that all examples that were given or known have run. What the run still does may be made up for after the next edit."""
        self._complete = replace(analysis, unfinished=True)
        self._was_outdated = False

    def end_run(self, analysis: Analysis | None, failure: Sequence[Finding], *, ok: bool) -> None:
        """The run has come to its end with this analysis; None where it has told nothing."""
        self._outdated |= not ok
        if analysis is not None:
            self._complete = analysis
        if failure:
            self._failure = failure

    def fail_program(self, failure: Sequence[Finding]) -> None:
        """Its run as a program has ended the process: nothing is known of the program."""
        self._program_failure = failure

    def end_program(self, analysis: Analysis) -> None:
        """The document has been followed as a program: this is what was known before, with that."""
        if self._complete is not None and self._complete.version == analysis.version:
            self._complete = replace(self._complete, trace=analysis.trace, findings=analysis.findings)

    def cancel_run(self) -> None:
        """The run was cancelled, or its text has changed meanwhile."""
        self._outdated |= self._was_outdated

    def follow_edit(self, analysis: Analysis) -> Analysis:
        """Nothing had to run for the newest text: this is what was seen, moved to it. Returns it with the run that it stands for."""
        run = self._complete.run if self._complete is not None else None
        self._last_run = run.with_text(analysis.module.text) if run is not None else None
        self._complete = replace(analysis, run=self._last_run)
        return self._complete

    # --- the files that import it ---

    @property
    def importers(self) -> list[ImportingFile] | None:
        """The files that import this one; None: not looked for yet."""
        return self._importers

    def found_importers(self, importers: list[ImportingFile]) -> None:
        """These files import this one."""
        self._importers = importers

    def forget_importers(self) -> None:
        """A file was opened, closed or saved: which files import this one is looked up again when it next runs."""
        self._importers = None

    def consult(self, importer: Document | str, state: object) -> bool:
        """A file that imports this one could be run to see this one from there. Returns False if it was before in this state."""
        key = importer, state
        known = key in self._consulted
        self._consulted.add(key)
        return not known

    def forget_consulted(self, importer: Document | str, state: object) -> None:
        """The run of a file that imports this one was ended before it was over."""
        self._consulted.discard((importer, state))

    @property
    def evidence_around(self) -> object:
        """Returns what the search for its examples depends on besides its text. Changes when that does."""
        return [(each.path, each.state) for each in self._importers or []]

    def learns_from(self, path: str) -> bool:
        """True if how a file uses this one is evidence for the examples that were found for this one."""
        own = self._analysis.own if self._analysis is not None else None
        found = own is not None and any(run.evidence for run in own.examples)
        return (found or self.importer_traces.learns_from(path)) and any(each.path == path for each in self._importers or [])
