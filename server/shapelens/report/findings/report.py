"""Holds what `check` has to report: the files that it looked at, with their findings."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shapelens.analysis.findings.baseline import FindingKey
from shapelens.checking import CheckedFile, CheckedFinding


@dataclass(frozen=True)
class ReportedFinding:
    """A finding of a file. fingerprint: the same as long as it is the same finding, though lines move. known: the baseline has it."""

    path: str
    finding: CheckedFinding
    fingerprint: str
    known: bool = False


@dataclass(frozen=True)
class ReportedFile:
    """A file that was looked at: its path as it is reported, and what was found."""

    path: str
    checked: CheckedFile
    findings: list[ReportedFinding]


@dataclass
class Report:
    """The files in the order in which they were looked at."""

    files: list[ReportedFile] = field(default_factory=list)

    def findings(self, *, known: bool = False) -> Iterator[ReportedFinding]:
        """All findings; with those that the baseline knows, if `known`."""
        return (each for file in self.files for each in file.findings if known or not each.known)


def shown_path(path: Path, start: Path) -> str:
    """A path as programs want it: from `start`, with "/"; one that lies elsewhere as it is."""
    absolute = path.absolute()
    return (absolute.relative_to(start) if absolute.is_relative_to(start) else absolute).as_posix()


def key_of(finding: CheckedFinding) -> FindingKey:
    """Returns what tells a finding from the others of its file, wherever its lines go."""
    return FindingKey.of(finding.code, finding.scope, finding.message)


def reported(path: str, checked: CheckedFile, known: list[bool]) -> ReportedFile:
    """A file's findings with their fingerprints. `known`: for each of them whether the baseline has it."""
    seen: Counter[FindingKey] = Counter()
    findings = []
    for finding, is_known in zip(checked.findings, known, strict=True):
        key = key_of(finding)
        parts = (path, key.code, key.scope, key.message, str(seen[key]))
        seen[key] += 1
        findings.append(ReportedFinding(path, finding, hashlib.sha256("\n".join(parts).encode()).hexdigest(), is_known))
    return ReportedFile(path, checked, findings)
