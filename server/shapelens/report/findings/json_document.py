"""`check --format json`: all findings as one JSON document, described by check.schema.json beside this file."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from shapelens.checking import CheckedEdit, CheckedFinding, CheckedFix, RelatedPlace
from shapelens.report.findings.report import Report, ReportedFinding, shown_path

VERSION = 1  # of the document; it changes when a field changes its meaning or goes


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    loaded: dict[str, Any] = json.loads(resources.files(__package__).joinpath("check.schema.json").read_text(encoding="utf-8"))
    return loaded


def text(report: Report, start: Path) -> str:
    """The document. `start`: the folder that relative paths start at. Lines are 1-based, columns 0-based code points, ends exclusive."""
    files = [
        {
            "file": file.path,
            "ran": file.checked.ran,
            "example": ("found" if file.checked.found else "given") if file.checked.ran else None,
            "findings": [_finding(each, start) for each in file.findings],
        }
        for file in report.files
        if file.checked.ran or file.checked.has_classes or file.findings
    ]
    return json.dumps({"version": VERSION, "files": files}, ensure_ascii=False, indent=2) + "\n"


def _finding(each: ReportedFinding, start: Path) -> dict[str, Any]:
    finding = each.finding
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        **_place(finding),
        **({"cell": finding.cell, "cell_line": finding.cell_line} if finding.cell is not None else {}),
        "scope": finding.scope,
        "fingerprint": each.fingerprint,
        "known": each.known,
        "related": [{"file": shown_path(Path(place.file), start), **_place(place), "message": place.message} for place in finding.related],
        "fix": _fix(finding.fix, start) if finding.fix is not None else None,
    }


def _fix(fix: CheckedFix, start: Path) -> dict[str, Any]:
    edits = [{**_place(edit), "new_text": edit.new_text} for edit in fix.edits]
    return {"title": fix.title, "file": shown_path(Path(fix.file), start), "edits": edits}


def _place(place: CheckedFinding | CheckedEdit | RelatedPlace) -> dict[str, int]:
    return {"line": place.line, "column": place.column, "end_line": place.end_line, "end_column": place.end_column}
