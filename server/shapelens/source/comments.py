"""`# shapelens:` comments: example directives, and the lines on which findings are silenced."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shapelens.source.positions import Lines, Position, Span
from shapelens.source.scanner import LogicalLine, depth_at_end, logical_lines

_MARK = re.compile(r"#[ \t]*shapelens:[ \t]*")
_IGNORE = re.compile(r"ignore[ \t]*(?:\[(?P<codes>[^\]\r\n]*)\]|(?=#|$|[ \t]+[\w-]+[ \t]+[\w-]))", re.ASCII)
_COMMENT_LINE = re.compile(r"[ \t\x0c]*#[ \t]*")


@dataclass(frozen=True)
class Directive:
    """An example in a comment: `# shapelens: Net()(f32[B:2, 3])`. Several lines of comment make one line.

    target is the qualified name of the class that it stands directly above or inside of; None elsewhere.
    """

    span: Span  # from the first `#` to the end of the expression
    expression_span: Span
    expression: str
    target: str | None
    pieces: tuple[tuple[int, Position], ...] = ()  # (index into the expression, where it is in the text), one a line

    def position(self, index: int) -> Position:
        """The position in the text of an index into the expression."""
        start, at = max((piece for piece in self.pieces if piece[0] <= index), default=(0, self.expression_span.start))
        return Position(at.line, at.column + index - start)


@dataclass
class _Comment:
    offset: int  # of the `#`
    body: int  # of what follows the mark
    end: int


def read_comments(
    lines: Lines,
    line_at: Callable[[int], LogicalLine | None],
    next_line: Callable[[int], LogicalLine | None],
    target_of: Callable[[int], str | None],
) -> tuple[list[Directive], dict[int, set[str] | None]]:
    """The directives of a text, and for each line number the codes that are silenced on it (None: all).

    line_at gives the logical line that an index lies in or trails behind, next_line the first one at or after an index, target_of the class
    for a directive that ends at an index. All indices are those of the text.
    """
    directives: list[Directive] = []
    ignores: dict[int, set[str] | None] = {}
    text = lines.text
    if "shapelens:" not in text:
        return directives, ignores
    joined_until = -1
    for match in _MARK.finditer(text):
        if match.start() < joined_until:
            continue
        line = line_at(match.start())
        if line is not None and not _is_comment(text, line, match.start()):
            continue
        number = lines.position(match.start()).line
        found = _Comment(match.start(), match.end(), lines.offset(Position(number, 1 << 30)))
        body = text[found.body : found.end]
        own_line = not text[lines.starts[number - 1] : found.offset].strip(" \t\x0c\ufeff")
        if ignore := _IGNORE.match(body.rstrip()):
            codes = None if ignore["codes"] is None else {code.strip() for code in ignore["codes"].split(",") if code.strip()}
            for silenced in _silenced_lines(lines, line, next_line(found.end), found, own_line):
                _add(ignores, silenced, codes)
            continue
        directive, joined_until = _directive(lines, found, own_line)
        target = target_of(joined_until) if own_line else None
        directives.append(Directive(directive.span, directive.expression_span, directive.expression, target, directive.pieces))
    return directives, ignores


def _is_comment(text: str, line: LogicalLine, offset: int) -> bool:
    """True if a `#` in or behind a logical line begins a comment; it may be part of a string, or of an earlier comment."""
    comments: list[tuple[int, int]] = []
    stop = text[: line.next]
    next(logical_lines(stop, line.line_start, comments), None)
    return any(start == offset for start, _ in comments)


def _silenced_lines(lines: Lines, inside: LogicalLine | None, following: LogicalLine | None, found: _Comment, own_line: bool) -> range:
    here = lines.position(found.offset).line
    if inside is not None and found.offset < inside.end:
        # Between the brackets of a long call it stands for its own line, or for the next one if it has a line of its own.
        return range(here + 1, here + 2) if own_line else range(here, here + 1)
    line = following if own_line else inside
    if line is None:
        return range(here, here)
    return range(lines.position(line.start).line, lines.position(line.end).line + 1)


def _add(ignores: dict[int, set[str] | None], number: int, codes: set[str] | None) -> None:
    known = ignores.get(number, set())
    ignores[number] = None if known is None or codes is None else known | codes


def between(before: str, after: str) -> str:
    """Returns what joins two lines of an expression into one: a blank, and nothing inside a bracket."""
    return "" if not before or before[-1] in "([{" or after[:1] in tuple(")]}") else " "


def _directive(lines: Lines, found: _Comment, own_line: bool) -> tuple[Directive, int]:
    """The directive that begins at a mark, and the index at which its last comment ends."""
    text = lines.text
    first = text[found.body : found.end].rstrip()
    expression = first
    start = lines.position(found.body)
    pieces = [(0, start)]
    end, last = found.body + len(first), found.end
    number = start.line
    while own_line and depth_at_end(expression) > 0:
        number += 1
        following = lines.line(number)
        comment = _COMMENT_LINE.match(following)
        if comment is None or _MARK.search(following):
            break
        piece = following[comment.end() :].rstrip()
        line_start = lines.starts[number - 1]
        if piece:
            expression += between(expression, piece)
            pieces.append((len(expression), Position(number, comment.end())))
            expression += piece
            end = line_start + comment.end() + len(piece)
        last = line_start + len(following)
    return Directive(lines.span(found.offset, end), lines.span(found.body, end), expression, None, tuple(pieces)), last
