"""`show` for people: the source with its hints in the margin and the findings below their lines."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from shapelens.analysis.display.lenses import Lens, lenses
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.shapes import NARROW_SPACE
from shapelens.batch import Analysed
from shapelens.report.layout import PrintedLine, row
from shapelens.source.module import Module
from shapelens.source.positions import Lines

GAP = 2  # cells between the source and its hint
WIDEST_SOURCE = 100  # where hints are aligned when there is no terminal whose width says it
NARROWEST_MESSAGE = 40  # cells; with fewer beside the carets, a message starts on a line of its own

SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "information": "bold blue", "hint": "bold cyan"}
HINT_STYLE = "italic cyan"
GUTTER_STYLE = "dim"


class Listing:
    """One analysed file, printed to a console. Nothing of the source is ever cut: what does not fit goes on the next line."""

    def __init__(self, analysed: Analysed, console: Console) -> None:
        self.analysed = analysed
        self.console = console
        lines = Lines(analysed.source) if analysed.source != analysed.module.text else analysed.module.lines
        # The empty line after the last line end is no line to a reader.
        self.numbers = range(1, max(lines.count - (lines.line(lines.count) == ""), 1) + 1)
        self.gutter = len(str(max(self.numbers, default=1))) + 3  # "  9 │ "
        self.rows: dict[int, PrintedLine] = {number: row(lines.line(number)) for number in self.numbers}
        self.hints: dict[int, str] = {}
        for hint in analysed.hints:
            line = hint.position.line
            self.hints[line] = "  ".join(filter(None, [self.hints.get(line), hint.label]))
        self.width = console.width - self.gutter - 1 if console.is_terminal else None
        self.hint_cell = self._hint_cell()

    def print(self, lines: range | None = None) -> None:
        """Print the whole file, or these lines of it."""
        code = "\n".join(self.rows[number].text for number in self.numbers)
        highlighted = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(code).split("\n", allow_blank=True)
        findings: dict[int, list[Finding]] = defaultdict(list)
        for finding in self.analysed.findings:
            findings[min(finding.span.line, self.numbers[-1])].append(finding)
        above: dict[int, list[Lens]] = defaultdict(list)
        dims = self.analysed.settings.dims
        for lens in lenses(self.analysed.module, self.analysed.choice.examples, self.analysed.trace, dims=dims):
            if lens.action == "set" or (not lens.action and lens.expression):  # The others only offer something to click on.
                above[lens.span.line].append(lens)
        notebook = self.analysed.module.notebook
        for number, source in zip(self.numbers, highlighted, strict=False):
            if lines is not None and number not in lines:
                continue
            if notebook is not None and number in notebook.firsts:
                self._line("", Text(f"── cell {notebook.locate(number)[0]} ──", style="dim"))
            for lens in above[number]:
                indent = self.rows[number].text[: len(self.rows[number].text) - len(self.rows[number].text.lstrip())]
                self._line("", Text(f"{indent}▸ {digits(lens.title, self.console)}", style="dim italic"))
                if lens.expression and not lens.tells_all:
                    self._line("", Text(f"{indent}  {lens.expression}", style="dim italic"))
            source.rstrip()
            self._source(number, source)
            for finding in findings[number]:
                self._finding(finding)

    def _hint_cell(self) -> int:
        """The cell at which the hints are lined up: right of all lines that have one, as far as the hints fit there."""
        widest = max((self.rows[line].width for line in self.hints if line in self.rows), default=0)
        longest = max((cell_len(label) for label in self.hints.values()), default=0)
        limit = WIDEST_SOURCE if self.width is None else max(self.width - longest - GAP, 0)
        return min(widest, limit) + GAP

    def _source(self, number: int, source: Text) -> None:
        label = self.hints.get(number)
        notebook = self.analysed.module.notebook
        shown = str(number if notebook is None else notebook.locate(number)[1])
        if label is None:
            return self._line(shown, source)
        used = self.rows[number].width
        start = max(self.hint_cell, used + GAP)
        hint = Text(label, style=HINT_STYLE)
        if self.width is None or start + hint.cell_len <= self.width:
            return self._line(shown, Text.assemble(source, " " * (start - used), hint))
        if used + GAP + hint.cell_len <= self.width:
            return self._line(shown, Text.assemble(source, " " * (self.width - hint.cell_len - used), hint))
        self._line(shown, source)
        indent = len(self.rows[number].text) - len(self.rows[number].text.lstrip()) + GAP
        for part in _wrapped(label, self.width - indent):
            self._line("", Text(" " * indent + part, style=HINT_STYLE))
        return None

    def _finding(self, finding: Finding) -> None:
        span = finding.span
        there = self.rows[min(span.line, self.numbers[-1])]
        start = there.cell(span.column)
        end = there.cell(span.end_column) if span.end_line == span.line else there.width
        carets = "^" * max(end - start, 1) + ("…" if span.end_line != span.line else "")
        style = SEVERITY_STYLES.get(finding.severity, "bold")
        message_column = start + len(carets) + 1
        message = f"{finding.severity}: {finding.message} [{finding.code}]"
        if self.width is None or self.width - message_column >= NARROWEST_MESSAGE:
            parts = _wrapped(message, None if self.width is None else self.width - message_column)
            self._line("", Text.assemble(" " * start, (f"{carets} ", style), _severity_first(parts[0], finding, style)))
        else:
            message_column = GAP
            parts = ["", *_wrapped(message, self.width - message_column)]
            self._line("", Text.assemble(" " * start, (carets, style)))
            self._line("", Text.assemble(" " * message_column, _severity_first(parts[1], finding, style)))
            parts = parts[1:]
        for part in parts[1:]:
            self._line("", Text(" " * message_column + part))
        for note in _notes(finding, self.analysed.module):
            note_style = "green" if note.startswith("fix") else "dim"
            for number, part in enumerate(_wrapped(note, None if self.width is None else self.width - message_column - 2)):
                self._line("", Text.assemble(" " * message_column, ("= " if number == 0 else "  ", "dim"), (part, note_style)))

    def _line(self, number: str, content: Text) -> None:
        gutter = Text(f"{number:>{self.gutter - 3}} │ ", style=GUTTER_STYLE)
        line = Text.assemble(gutter, content)
        line.rstrip()
        self.console.print(line, soft_wrap=True, highlight=False)


def digits(text: str, console: Console) -> str:
    """Returns the text with plain digits where a program reads what is printed: `62006`; for people it stays `62 006`."""
    return text if console.is_terminal else text.replace(NARROW_SPACE, "")


def _severity_first(text: str, finding: Finding, style: str) -> Text:
    word = f"{finding.severity}:"
    if text.startswith(word):
        return Text.assemble((word, style), text[len(word) :])
    return Text(text)


def _notes(finding: Finding, module: Module) -> list[str]:
    """Returns what belongs to a finding besides its message: places and ways to mend it."""
    notes = []
    for related in finding.related:
        elsewhere = related.file is not None and related.file != finding.file
        where = f"{Path(str(related.file)).name}:{related.span.line}" if elsewhere else module.line_name(related.span.line)
        notes.append(f"{where}: {related.message}")
    notes += [f"fix: {finding.fix.label}"] if finding.fix is not None else []
    return notes + [f"or: {fix.label}" for fix in finding.alternatives]


def _wrapped(text: str, width: int | None) -> list[str]:
    return textwrap.wrap(text, max(width, 20)) or [""] if width is not None else [text]


def summary(severities: Sequence[str]) -> str:
    """`2 errors, 1 warning` for findings of these severities; "" where there is nothing."""
    counts = {severity: severities.count(severity) for severity in SEVERITY_STYLES}
    words = {"information": "note", "hint": "hint"}
    return ", ".join(f"{count} {words.get(severity, severity)}{'' if count == 1 else 's'}" for severity, count in counts.items() if count)
