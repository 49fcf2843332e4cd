"""`check` for people: a line for each finding, and one that sums up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from shapelens.checking import CheckedFile, CheckedFinding
from shapelens.report.text import SEVERITY_STYLES, summary


def print_finding(console: Console, path: Path, finding: CheckedFinding) -> None:
    """`file:line:column: severity code: message`, on one line however long it is."""
    style = SEVERITY_STYLES.get(finding.severity, "bold")
    place = f":{finding.line}:{finding.column + 1}"
    if finding.cell is not None:
        place = f": cell {finding.cell}, line {finding.cell_line}, column {finding.column + 1}"
    console.print(f"{path}{place}: ", end="", soft_wrap=True, markup=False)
    console.print(finding.severity, style=style, end=" ", markup=False)
    console.print(f"{finding.code}: {finding.message}", soft_wrap=True, markup=False)


@dataclass
class Tally:
    """What the closing line says."""

    run: int = 0
    found: int = 0
    without_example: int = 0
    known: int = 0  # findings that the baseline has
    severities: list[str] = field(default_factory=list)  # of the other findings

    def add(self, checked: CheckedFile, known: list[bool]) -> None:
        """Count a file. `known`: for each of its findings whether the baseline has it."""
        self.severities += [finding.severity for finding, is_known in zip(checked.findings, known, strict=True) if not is_known]
        self.known += sum(known)
        if checked.ran:
            self.run += 1
            self.found += checked.found
        elif checked.has_classes:
            self.without_example += 1

    @property
    def has_errors(self) -> bool:
        """Whether any finding that is not known is an error."""
        return "error" in self.severities

    def closing(self) -> str:
        """The line that sums up."""
        nothing = "nothing is wrong" if self.run else "there was nothing to run"
        if self.known and self.run:
            nothing = "nothing new is wrong"
        parts = [f"{files_text(self.run)} checked: {summary(self.severities) or nothing}"]
        if self.known:
            parts.append("1 known finding is left out" if self.known == 1 else f"{self.known} known findings are left out")
        if self.found:
            parts.append(
                f"{files_text(self.found)} {'was' if self.found == 1 else 'were'} run with examples that were found rather than given"
            )
        if self.without_example:
            verbs = ("has", "was") if self.without_example == 1 else ("have", "were")
            parts.append(f"{files_text(self.without_example)} with module classes {verbs[0]} no example and {verbs[1]} not run")
        return "; ".join(parts)


def files_text(count: int) -> str:
    """`1 file`, `2 files`."""
    return f"{count} file{'' if count == 1 else 's'}"
