"""Lints and their words."""

from __future__ import annotations

from dataclasses import dataclass, field

from shapelens.analysis.explanations.related_places import Related
from shapelens.analysis.repairs.fixes import Fix
from shapelens.source.positions import Span


@dataclass(frozen=True)
class Lint:
    """A lint at a place in the file."""

    code: str
    severity: str
    message: str
    span: Span
    related: list[Related] = field(default_factory=list)
    fix: Fix | None = None
    guessed: bool = False  # it rests on an input that nobody gave
