"""Workflow commands of GitHub Actions: each finding becomes an annotation of the pull request.

Format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from shapelens.report.findings.report import Report, ReportedFinding

_COMMANDS = {"error": "error", "warning": "warning", "information": "notice"}  # Hints are no annotations.


def text(report: Report) -> str:
    """A line for each finding that is at least a note."""
    return "".join(_command(each) for each in report.findings() if each.finding.severity in _COMMANDS)


def _command(each: ReportedFinding) -> str:
    finding = each.finding
    where = {"file": each.path, "line": finding.line, "col": finding.column + 1, "endLine": finding.end_line}
    if finding.end_line == finding.line:  # The column of another line would be taken for one of the first.
        where["endColumn"] = max(finding.end_column, finding.column + 1)
    where["title"] = f"ShapeLens ({finding.code})"
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in where.items())
    fix = f" Fix: {finding.fix.title}" if finding.fix is not None else ""
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(finding.message + fix)}\n"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
