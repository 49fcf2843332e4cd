"""GitLab's code quality report. Format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format"""

from __future__ import annotations

import json

from shapelens.report.findings.report import Report

_SEVERITIES = {"error": "major", "warning": "minor", "information": "info", "hint": "info"}


def text(report: Report) -> str:
    """A JSON list with an issue for each finding."""
    issues = [
        {
            "description": f"{each.finding.code}: {each.finding.message}",
            "check_name": each.finding.code,
            "fingerprint": each.fingerprint,
            "severity": _SEVERITIES[each.finding.severity],
            "location": {
                "path": each.path,
                "positions": {
                    "begin": {"line": each.finding.line, "column": each.finding.column + 1},
                    "end": {"line": each.finding.end_line, "column": each.finding.end_column + 1},
                },
            },
        }
        for each in report.findings()
    ]
    return json.dumps(issues, ensure_ascii=False, indent=2) + "\n"
