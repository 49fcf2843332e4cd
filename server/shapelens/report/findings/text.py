"""`check` for people: a line for each finding, their counts by code, and a line that sums up."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

from shapelens.analysis.findings.codes import is_note
from shapelens.checking import CheckedFile, CheckedFinding
from shapelens.report.text import SEVERITY_STYLES, summary

MANY_FILES = 5  # with findings, from which on these are counted by file
MOST_FILES = 10  # that are listed with their counts


def has_links(console: Console) -> bool:
    """True if places are links to their files (OSC 8). VS Code makes links of places itself, which go to the line."""
    return console.file.isatty() and not console.is_dumb_terminal and os.environ.get("TERM_PROGRAM") != "vscode"


def print_finding(console: Console, path: Path, finding: CheckedFinding, *, has_link: bool = False) -> None:
    """`file:line:column: severity code: message`, on one line however long it is. has_link: its place is a link to the file."""
    style = SEVERITY_STYLES.get(finding.severity, "bold")
    place = f":{finding.line}:{finding.column + 1}"
    if finding.cell is not None:
        place = f": cell {finding.cell}, line {finding.cell_line}, column {finding.column + 1}"
    link = Style(link=path.absolute().as_uri()) if has_link else ""
    console.print(Text(f"{path}{place}", link), end=": ", soft_wrap=True)
    console.print(finding.severity, style=style, end=" ", markup=False)
    console.print(f"{finding.code}: {finding.message}", soft_wrap=True, markup=False)


@dataclass
class Tally:
    """Counts what was checked, and says it."""

    run: int = 0
    found: int = 0
    not_run: int = 0  # files with findings all the same: they do not parse, or their definitions fail
    without_example: int = 0
    excluded: int = 0
    known: int = 0  # findings that the baseline has
    findings: list[CheckedFinding] = field(default_factory=list)  # the others
    files: Counter[str] = field(default_factory=Counter)  # how many of them each file has, where it has some

    def add(self, checked: CheckedFile, known: list[bool], path: str) -> None:
        """Count a file. `known`: for each of its findings whether the baseline has it."""
        new = [finding for finding, is_known in zip(checked.findings, known, strict=True) if not is_known]
        self.findings += new
        self.files.update([path] * len(new))
        self.known += sum(known)
        if checked.ran:
            self.run += 1
            self.found += checked.found
        elif any(not is_note(finding.code) for finding in checked.findings):
            self.not_run += 1
        elif checked.has_classes:
            self.without_example += 1

    def fails(self, least: str) -> bool:
        """True if any finding that is not known is at least as severe as `least`, which is a severity or "" for none."""
        severities = list(SEVERITY_STYLES)
        failures = severities[: severities.index(least) + 1] if least else []
        return any(finding.severity in failures for finding in self.findings)

    def by_code(self) -> list[str]:
        """A line for each code with how many findings it has, the most frequent first; nothing for fewer than two findings."""
        counts = Counter(finding.code for finding in self.findings)
        width = max(map(len, counts), default=0)
        lines = [f"  {code:<{width}}  {count}" for code, count in counts.most_common()]
        return ["", "by code (`shapelens rule CODE` explains one):", *lines, ""] if len(self.findings) > 1 else []

    def by_file(self) -> list[str]:
        """A line for each file with how many findings it has, those with the most first; nothing where few files have some."""
        if len(self.files) < MANY_FILES:
            return []
        width = max(len(path) for path, _ in self.files.most_common(MOST_FILES))
        lines = [f"  {path:<{width}}  {count}" for path, count in self.files.most_common(MOST_FILES)]
        more = len(self.files) - MOST_FILES
        return ["by file:", *lines, *([f"  … and {files_text(more)} more"] if more > 0 else []), ""]

    def closing(self) -> str:
        """The line that sums up."""
        checked = self.run + self.not_run
        nothing = "nothing is wrong" if checked else "there was nothing to run"
        if self.known and checked:
            nothing = "nothing new is wrong"
        found = summary([finding.severity for finding in self.findings])
        parts = [f"{files_text(checked)} checked: {found or nothing}" if checked or not found else f"no file could be run: {found}"]
        if self.known:
            parts.append("1 known finding is left out" if self.known == 1 else f"{self.known} known findings are left out")
        if self.found:
            parts.append(f"in {files_text(self.found)} ShapeLens chose the input of a model itself")
        if self.without_example:
            parts.append(f"{files_text(self.without_example)} not checked, as no input was found for {_whose(self.without_example)} models")
        if self.excluded:
            parts.append(f"{files_text(self.excluded)} excluded")
        return "; ".join(parts)


def _whose(count: int) -> str:
    return "its" if count == 1 else "their"


def files_text(count: int) -> str:
    """`1 file`, `2 files`."""
    return f"{count} file{'' if count == 1 else 's'}"
