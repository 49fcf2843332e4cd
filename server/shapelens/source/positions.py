"""Positions, and the one place where columns are converted.

Inside ShapeLens a column is a 0-based count of code points, a line is 1-based. `ast` and the worker count UTF-8 bytes, LSP counts
UTF-16 code units (or UTF-8 bytes, or code points: what client and server agreed on) and 0-based lines.

A byte order mark at the start of the text counts as a character here and in LSP, and does not count in `ast`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from shapelens import protocol

LINE_END = re.compile(r"\r\n?|\n")
BYTE_ORDER_MARK = "\ufeff"


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

    @property
    def start(self) -> Position:
        return Position(self.line, self.column)

    @property
    def end(self) -> Position:
        return Position(self.end_line, self.end_column)

    @staticmethod
    def of(start: Position, end: Position) -> Span:
        """The span between two positions."""
        return Span(start.line, start.column, end.line, end.column)

    def contains(self, position: Position) -> bool:
        """True if a position lies inside or at one of the ends."""
        return self.start <= position <= self.end


@lru_cache(maxsize=8)
def _starts(text: str) -> tuple[int, ...]:
    """The indices at which the lines of a text start. The same few texts are asked about again and again."""
    if "\r" in text:
        return (0, *(match.end() for match in LINE_END.finditer(text)))
    lengths = map(len, text.split("\n")[:-1])  # Nearly all lines are ASCII, and this is six times as fast.
    return tuple(accumulate(map((1).__add__, lengths), initial=0))


class Lines:
    """The text of one snapshot, split into lines as LSP and `ast` split it: at `\\n`, `\\r\\n` and `\\r`, at nothing else."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = _starts(text)

    @property
    def count(self) -> int:
        """The number of lines; an empty text has one, and so does the stretch after the last line end."""
        return len(self.starts)

    def line(self, number: int) -> str:
        """A line (1-based) without its line end; empty past either end of the text."""
        if not 1 <= number <= len(self.starts):
            return ""
        return self.text[self.starts[number - 1] : self._end(number)]

    def offset(self, position: Position) -> int:
        """The index into the text of a position, moved to the nearest place that exists."""
        if position.line < 1:
            return 0
        if position.line > len(self.starts):
            return len(self.text)
        start = self.starts[position.line - 1]
        return min(start + max(position.column, 0), self._end(position.line))

    def position(self, offset: int) -> Position:
        """The position of an index into the text."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1])

    def span(self, start: int, end: int) -> Span:
        """The span between two indices into the text."""
        return Span.of(self.position(start), self.position(end))

    def text_of(self, span: Span) -> str:
        """The text inside a span."""
        return self.text[self.offset(span.start) : self.offset(span.end)]

    def from_bytes(self, line: int, byte_column: int) -> Position:
        """A position in the terms of `ast` (1-based line, UTF-8 byte column), moved to the nearest place that exists."""
        if line < 1:
            return Position(1, 0)
        if line > len(self.starts):
            return self.position(len(self.text))
        text = self.line(line)
        mark = _mark(line, text)
        rest = text[mark:]
        if rest.isascii():
            return Position(line, mark + min(max(byte_column, 0), len(rest)))
        return Position(line, mark + _units_to_column(rest, byte_column, "utf-8"))

    def to_bytes(self, position: Position) -> tuple[int, int]:
        """The 1-based line and UTF-8 byte column that `ast` has for a position."""
        text = self.line(position.line)
        mark = _mark(position.line, text)
        return position.line, _width(text[mark : max(position.column, mark)], "utf-8")

    def span_from_bytes(self, span: protocol.FileSpan) -> Span:
        """The span of a message of the worker, in code points."""
        return Span.of(self.from_bytes(span.line, span.column), self.from_bytes(span.end_line, span.end_column))

    def from_lsp(self, line: int, character: int, encoding: str) -> Position:
        """A position of LSP (0-based line, character in units of `encoding`: "utf-8", "utf-16" or "utf-32").

        A character past the end of its line stands for the end of the line, as LSP says; a line past the last one for the end of the text.
        """
        if line < 0:
            return Position(1, 0)
        if line >= len(self.starts):
            return self.position(len(self.text))
        text = self.line(line + 1)
        if text.isascii() or encoding == "utf-32":
            return Position(line + 1, min(max(character, 0), len(text)))
        return Position(line + 1, _units_to_column(text, character, encoding))

    def to_lsp(self, position: Position, encoding: str) -> tuple[int, int]:
        """The 0-based line and the character, in units of `encoding`, that LSP has for a position."""
        return position.line - 1, _width(self.line(position.line)[: position.column], encoding)

    def _end(self, number: int) -> int:
        """The index of the end of a line, before its line end."""
        if number == len(self.starts):
            return len(self.text)
        end = self.starts[number] - 1
        return end - 1 if self.text[end] == "\n" and end > self.starts[number - 1] and self.text[end - 1] == "\r" else end


def _mark(line: int, text: str) -> int:
    return 1 if line == 1 and text.startswith(BYTE_ORDER_MARK) else 0


def _unit_width(character: str, encoding: str) -> int:
    code = ord(character)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    if encoding == "utf-8":
        return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return 1


def _width(text: str, encoding: str) -> int:
    # Counted, not encoded: an editor may send lone surrogates, which have no encoding.
    return len(text) if text.isascii() else sum(_unit_width(character, encoding) for character in text)


def _units_to_column(text: str, units: int, encoding: str) -> int:
    for column, character in enumerate(text):
        if units <= 0:
            return column
        units -= _unit_width(character, encoding)
        if units < 0:  # The middle of a character stands for its start.
            return column
    return len(text)
