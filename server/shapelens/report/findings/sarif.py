"""SARIF 2.1.0, as code scanning services read it.

Specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shapelens import __version__
from shapelens.analysis.findings.codes import CODES, FindingCode
from shapelens.checking import CheckedEdit, CheckedFinding, CheckedFix, RelatedPlace
from shapelens.report.findings.report import Report, ReportedFinding, shown_path
from shapelens.report.rules import rules

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "SRCROOT"  # what relative paths start at
FINGERPRINT = "shapelens/v1"

_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_Placed = CheckedFinding | CheckedEdit | RelatedPlace


def text(report: Report, start: Path) -> str:
    """The SARIF log of one run. `start`: the folder that relative paths start at."""
    found = list(report.findings(known=True))
    codes = sorted({each.finding.code for each in found})
    run = {
        "tool": {"driver": {"name": "ShapeLens", "version": __version__, "rules": [_rule(CODES[code]) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that shapelens was started in."}}},
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(each, codes, start) for each in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2) + "\n"


def _rule(code: FindingCode) -> dict[str, Any]:
    meaning = code.meaning.replace("`", "")
    example = f"For example: {code.example}"
    return {
        "id": code.name,
        "name": "".join(part.capitalize() for part in code.name.split("-")),
        "shortDescription": {"text": meaning},
        "help": {"text": f"{meaning} {example.replace('`', '')}", "markdown": rules()[code.name].markdown()},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
        "properties": {"tags": ["lint" if code.lint else "shapes"]},
    }


def _result(each: ReportedFinding, codes: list[str], start: Path) -> dict[str, Any]:
    finding = each.finding
    location = {"physicalLocation": _location(each.path, finding)}
    if finding.scope:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.scope}]  # type: ignore[assignment]
    result = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: each.fingerprint},
    }
    if finding.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "message": {"text": related.message},
                "physicalLocation": _location(shown_path(Path(related.file), start), related),
            }
            for number, related in enumerate(finding.related)
        ]
    if finding.fix is not None:
        result["fixes"] = [_fix(finding.fix, start)]
    if each.known:
        result["suppressions"] = [{"kind": "external", "justification": "It is in the baseline."}]
    return result


def _fix(fix: CheckedFix, start: Path) -> dict[str, Any]:
    replacements = [{"deletedRegion": _region(edit), "insertedContent": {"text": edit.new_text}} for edit in fix.edits]
    artifact = _artifact(shown_path(Path(fix.file), start))
    return {"description": {"text": fix.title}, "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}]}


def _location(path: str, place: _Placed) -> dict[str, Any]:
    return {"artifactLocation": _artifact(path), "region": _region(place)}


def _artifact(path: str) -> dict[str, Any]:
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(path), "uriBaseId": BASE}


def _region(place: _Placed) -> dict[str, int]:
    return {
        "startLine": place.line,
        "startColumn": place.column + 1,
        "endLine": place.end_line,
        "endColumn": place.end_column + 1,
    }
