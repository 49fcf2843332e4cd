"""Positions, and the one place where columns are converted.

Inside ShapeLens a column is a 0-based count of code points, a line is 1-based (libcst's terms). `ast` and the worker count UTF-8 bytes, LSP
counts UTF-16 code units (or UTF-8 bytes, or code points: what client and server agreed on) and 0-based lines.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Position:
    """A place between two characters."""

    line: int
    column: int


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of text, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
