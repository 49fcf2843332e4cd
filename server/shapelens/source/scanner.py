"""A cheap look at Python text: logical lines, and the top-level statements that they make up.

It knows strings (prefixes, triple quotes, f-strings with fields inside fields), comments, brackets and line continuations, and nothing of
the grammar. It never fails: in broken text it finds its feet at the next keyword that cannot stand inside brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"#[^\r\n]*"
    r"|\\(?:\r\n|[\s\S])?"
    r"|[\"']"
    r"|[(\[{][^()\[\]{}#\"'\\\r\n]*[)\]}]"  # A bracket with nothing of interest inside, in one step.
    r"|[()\[\]{}]"
    r"|\r\n?|\n"
)
_BLANK_LINES = re.compile(r"(?:[ \t\x0c]*(?:#[^\r\n]*)?(?:\r\n?|\n))*([ \t\x0c]*)")
_NEVER_IN_BRACKETS = re.compile(
    r"[ \t\x0c]*(?:class|def|import|return|while|try|with|raise|assert|del|global|nonlocal|pass|break|continue)\b"
)
_CLAUSE = re.compile(r"(?:else|elif|except|finally)\b")
_TRIPLE = {
    '"': re.compile(r'[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*'),
    "'": re.compile(r"[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*"),
}
_SINGLE = {
    '"': re.compile(r'[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*'),
    "'": re.compile(r"[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*"),
}
_DEEPEST_FORMAT = 100  # CPython allows 150 levels of f-strings in f-strings
_FORMAT_PREFIX = re.compile(r"(?:[fFtT][rR]?|[rR][fFtT])\Z")
_IN_FORMAT = re.compile(r"\\(?:\r\n|[\s\S])|\{\{|\}\}|[{\"'\r\n]")
_IN_FIELD = re.compile(r"[\"'()\[\]{}:\r\n]|#[^\r\n]*")
_IN_SPEC = re.compile(r"[{}\"'\r\n]")


class LogicalLine(NamedTuple):
    """A logical line of code: a simple statement (or several with `;`), or the head of a compound one. Indices into the text."""

    line_start: int  # of the physical line that it begins on
    start: int  # of its first character that is code
    end: int  # behind its last one; a comment that follows is not part of it
    next: int  # the start of the physical line after it
    deepest: int  # brackets in brackets
    closed: bool  # all of its brackets and strings are

    @property
    def indent(self) -> int:
        """The width of its indentation, where that consists of spaces. See `indentation` for other text."""
        return self.start - self.line_start


class Chunk(NamedTuple):
    """A top-level statement: decorators and the clauses of `if`, `try` and loops included, comments and blank lines after it not."""

    start: int  # a line start
    end: int  # the line start after it
    lines: tuple[LogicalLine, ...]


def logical_lines(text: str, start: int = 0, comments: list[tuple[int, int]] | None = None) -> Iterator[LogicalLine]:
    """The logical lines from an index on, which must be the start of a line outside of brackets and strings.

    The start and end of every comment that lies inside or behind a logical line is added to `comments`.
    """
    size = len(text)
    at = start
    while at < size:
        blank = _BLANK_LINES.match(text, at)
        assert blank is not None
        line_start, first = blank.start(1), blank.end(1)
        if first >= size or text[first] == "#":
            return
        at, depth, deepest, closed, code_end = first, 0, 0, True, -1
        while True:
            token = _TOKEN.search(text, at)
            if token is None:
                end = at = size
                closed = closed and not depth
                break
            begin, at = token.span()
            character = text[begin]
            if character in "\r\n":
                if not depth:
                    end = begin
                    break
                if _NEVER_IN_BRACKETS.match(text, at):
                    end, closed = begin, False
                    break
            elif character == "#":
                code_end = begin if not depth else -1
                if comments is not None:
                    comments.append((begin, at))
            elif character in "\"'":
                at, complete = _string_end(text, begin)
                closed = closed and complete
            elif at - begin > 1 or character == "\\":
                deepest = max(deepest, depth + 1)
            elif character in "([{":
                depth += 1
                deepest = max(deepest, depth)
            elif depth:
                depth -= 1
            else:
                closed = False
        if code_end >= 0:
            end = code_end
        end = first + len(text[first:end].rstrip(" \t\x0c\r\n"))
        yield LogicalLine(line_start, first, end, at, deepest, closed)


def chunks(text: str, start: int = 0) -> Iterator[Chunk]:
    """The top-level statements from an index on, which must be the start of one or of the text (behind its byte order mark)."""
    current: list[LogicalLine] = []
    decorated = False
    for line in logical_lines(text, start):
        if current and indentation(text, line) == 0:
            if not decorated and not _CLAUSE.match(text, line.start):
                yield Chunk(current[0].line_start, current[-1].next, tuple(current))
                current = []
            decorated = text[line.start] == "@"
        elif not current:
            decorated = text[line.start] == "@"
        current.append(line)
    if current:
        yield Chunk(current[0].line_start, current[-1].next, tuple(current))


def indentation(text: str, line: LogicalLine) -> int:
    """The column of a logical line's first character, tabs at multiples of 8, a form feed back to 0, as Python counts."""
    return len(text[line.line_start : line.start].rpartition("\x0c")[2].expandtabs(8))


def depth_at_end(text: str) -> int:
    """Returns how many brackets are open at the end of a text, which is read as one expression on one line."""
    depth = at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        begin, at = token.span()
        if text[begin] in "\"'":
            at, _ = _string_end(text, begin)
        elif at - begin == 1 and text[begin] in "([{":
            depth += 1
        elif at - begin == 1 and text[begin] in ")]}":
            depth -= 1
    return depth


def _string_end(text: str, quote_at: int) -> tuple[int, bool]:
    """Returns the end of the string whose first quote is at an index, and whether it is closed. An open one ends with its line or text."""
    mark = _mark(text, quote_at)
    inside = quote_at + len(mark)
    if _is_format(text, quote_at):
        end = _format_end(text, inside, mark, 0)
        if end >= 0:
            return end, True
    return _plain_end(text, inside, mark)


def _mark(text: str, quote_at: int) -> str:
    quote = text[quote_at]
    return quote * 3 if text.startswith(quote * 3, quote_at) else quote


def _is_format(text: str, quote_at: int) -> bool:
    prefix = text[max(0, quote_at - 3) : quote_at]
    found = _FORMAT_PREFIX.search(prefix)
    return found is not None and not prefix[: found.start()][-1:].isalnum()


def _plain_end(text: str, inside: int, mark: str) -> tuple[int, bool]:
    body = (_TRIPLE if len(mark) == 3 else _SINGLE)[mark[0]].match(text, inside)
    assert body is not None
    end = body.end()
    return (end + len(mark), True) if text.startswith(mark, end) else (end, False)


def _format_end(text: str, at: int, mark: str, depth: int) -> int:
    """The end of an f-string or t-string, from behind its opening quotes; -1 if it has none."""
    while depth < _DEEPEST_FORMAT and (token := _IN_FORMAT.search(text, at)) is not None:
        begin, at = token.span()
        character = text[begin]
        if character == "{" and at - begin == 1:
            at = _field_end(text, at, mark, depth + 1)
            if at < 0:
                return -1
        elif character in "\"'" and text.startswith(mark, begin):
            return begin + len(mark)
        elif character in "\r\n" and len(mark) == 1:
            return -1
    return -1


def _field_end(text: str, at: int, mark: str, depth: int) -> int:
    """The end of a replacement field, from behind its opening brace; -1 if it has none."""
    brackets = 0
    while (token := _IN_FIELD.search(text, at)) is not None:
        begin, at = token.span()
        character = text[begin]
        if character in "\"'":
            # No second try as a plain string in here: each level would have two, and all of them together too many to count.
            inner = _mark(text, begin)
            inside = begin + len(inner)
            at, closed = (_format_end(text, inside, inner, depth), True) if _is_format(text, begin) else _plain_end(text, inside, inner)
            if at < 0 or not closed:
                return -1
        elif character in "([{":
            brackets += 1
        elif character == "}" and not brackets:
            return at
        elif character in ")]}":
            brackets -= 1
            if brackets < 0:
                return -1
        elif character in "\r\n" and _NEVER_IN_BRACKETS.match(text, at):
            return -1
        elif character == ":" and not brackets:
            return _spec_end(text, at, mark, depth)
    return -1


def _spec_end(text: str, at: int, mark: str, depth: int) -> int:
    """The end of the replacement field whose format specification begins here; -1 if it has none."""
    while (token := _IN_SPEC.search(text, at)) is not None:
        begin, at = token.span()
        character = text[begin]
        if character == "{":
            if depth >= _DEEPEST_FORMAT:
                return -1
            at = _field_end(text, at, mark, depth + 1)
            if at < 0:
                return -1
        elif character == "}":
            return at
        elif (character in "\"'" and text.startswith(mark, begin)) or (character in "\r\n" and len(mark) == 1):
            return -1
    return -1
