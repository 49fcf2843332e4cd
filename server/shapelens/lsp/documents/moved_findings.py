"""Findings and lenses of an older text, moved to where their places are in the newest one. What was edited away is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shapelens.analysis.display.lenses import Lens
from shapelens.analysis.explanations.related_places import Related
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.source.position_map import PositionMap, TextEdit


def moved_findings(found: Iterable[Finding], since: PositionMap) -> list[Finding]:
    """The findings whose place still holds the same text, with those related places and fixes of which the same is true."""
    moved = []
    for finding in found:
        span = since.map(finding.span)
        if span is None:
            continue
        related = [each for one in finding.related if (each := _moved_related(one, since)) is not None]
        fix = _moved_fix(finding.fix, finding.file, since) if finding.fix is not None else None
        alternatives = [other for one in finding.alternatives if (other := _moved_fix(one, finding.file, since)) is not None]
        moved.append(replace(finding, span=span, related=related, fix=fix, alternatives=alternatives))
    return moved


def with_known_fixes(found: Iterable[Finding], before: Iterable[Finding]) -> list[Finding]:
    """Findings with the fixes that were found for the same ones before, whose places are of the same text."""
    fixed = {(each.code, each.span, each.message): each for each in before}
    return [
        replace(each, fix=same.fix, alternatives=same.alternatives) if (same := fixed.get((each.code, each.span, each.message))) else each
        for each in found
    ]


def moved_lenses(found: Iterable[Lens], since: PositionMap) -> list[Lens]:
    """The lenses whose class still has its name."""
    return [replace(lens, span=span) for lens in found if (span := since.map(lens.span)) is not None]


def _moved_related(related: Related, since: PositionMap) -> Related | None:
    if related.file is not None:
        return related
    span = since.map(related.span)
    return replace(related, span=span) if span is not None else None


def _moved_fix(fix: Fix, file: str, since: PositionMap) -> Fix | None:
    if fix.file != file:
        return fix
    edits = [TextEdit(span, edit.new_text) for edit in fix.edits if (span := since.map(edit.span)) is not None]
    return replace(fix, edits=edits) if len(edits) == len(fix.edits) else None
