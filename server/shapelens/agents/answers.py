"""Holds what tools answer: a short text, and the same as data. Lines and columns count from 1 in both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelens.agents.session import AgentSession
from shapelens.checking import CheckedFinding, CheckedFix

LONGEST_EXPRESSION = 160  # characters


@dataclass(frozen=True)
class Answer:
    """Holds what a tool answers."""

    text: str
    data: dict[str, Any]


def fixes_of(finding: CheckedFinding) -> list[CheckedFix]:
    """The fixes of a finding, the likeliest first; all of them were run."""
    return [finding.fix, *finding.alternatives] if finding.fix is not None else []


def finding_line(session: AgentSession, path: Path, finding: CheckedFinding) -> str:
    """`net.py:15:30: error linear-in-features: fc1 gets …`, with its fixes below."""
    place = f":{finding.line}:{finding.column + 1}"
    if finding.cell is not None:
        place = f": cell {finding.cell}, line {finding.cell_line}, column {finding.column + 1}"
    guessed = " (may be due to a guessed input)" if finding.guessed and "guessed" not in finding.message else ""
    head = f"{session.shown(path)}{place}: {finding.severity} {finding.code}: {finding.message}{guessed}"
    return "\n".join([head, *(f"    {word}: {fix.title}" for word, fix in zip(_words(), fixes_of(finding), strict=False))])


def _words() -> Iterable[str]:
    yield "fix"
    while True:
        yield "or"


def finding_data(session: AgentSession, path: Path, finding: CheckedFinding) -> dict[str, Any]:
    """A finding as data. certain: it does not rest on a guess of ShapeLens."""
    return {
        "file": session.shown(path),
        "line": finding.line,
        "column": finding.column + 1,
        "end_line": finding.end_line,
        "end_column": finding.end_column + 1,
        **({"cell": finding.cell, "cell_line": finding.cell_line} if finding.cell is not None else {}),
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "certain": not finding.guessed,
        "fixes": [fix.title for fix in fixes_of(finding)],
        "related": [{"file": session.shown(each.file), "line": each.line, "message": each.message} for each in finding.related],
    }


def short(expression: str) -> str:
    """An expression for a text; the data has all of it."""
    return expression if len(expression) <= LONGEST_EXPRESSION else f"{expression[: LONGEST_EXPRESSION - 1]}…"


def with_notices(text: str, notices: Sequence[str]) -> str:
    """The text, below what stands in the way of the settings."""
    return "\n".join([*(f"note: {notice}" for notice in notices), text])
