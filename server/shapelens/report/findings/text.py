"""`check` for people: a line for each finding, their counts by code, and a line that sums up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from shapelens.analysis.findings.codes import is_note
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
    """Counts what was checked, and says it."""

    run: int = 0
    found: int = 0
    not_run: int = 0  # files with findings all the same: they do not parse, or their definitions fail
    without_example: int = 0
    excluded: int = 0
    known: int = 0  # findings that the baseline has
    findings: list[CheckedFinding] = field(default_factory=list)  # the others

    def add(self, checked: CheckedFile, known: list[bool]) -> None:
        """Count a file. `known`: for each of its findings whether the baseline has it."""
        self.findings += [finding for finding, is_known in zip(checked.findings, known, strict=True) if not is_known]
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

    def closing(self) -> str:
        """The line that sums up."""
        checked = self.run + self.not_run
        nothing = "nothing is wrong" if checked else "there was nothing to run"
        if self.known and checked:
            nothing = "nothing new is wrong"
        parts = [f"{files_text(checked)} checked: {summary([finding.severity for finding in self.findings]) or nothing}"]
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
