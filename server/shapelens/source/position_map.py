"""Edits of a text, and positions moved through them."""

from __future__ import annotations

import difflib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shapelens.source.positions import LINE_END, Lines, Position, Span


@dataclass(frozen=True)
class TextEdit:
    """Replaces the text of a span. Several edits of one text all speak of positions before any of them."""

    span: Span
    new_text: str


@dataclass(frozen=True)
class _Replacement:
    """The text between `old_start` and `old_end` gave way to the text between `new_start` and `new_end`."""

    old_start: Position
    old_end: Position
    new_start: Position
    new_end: Position


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """The text after all edits. Raises ValueError where two of them overlap."""
    lines = Lines(text)
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: edit.span):
        start, end = lines.offset(edit.span.start), lines.offset(edit.span.end)
        if start < done:
            raise ValueError(f"edits overlap at line {edit.span.line}")
        parts += [text[done:start], edit.new_text]
        done = end
    return "".join([*parts, text[done:]])


class PositionMap:
    """Maps positions of an older text to those of a newer one.

    It holds the changed stretches only, sorted, disjoint and merged where they touch, so that many edits in one place stay one stretch.
    """

    def __init__(self, changes: Sequence[_Replacement] = ()) -> None:
        # Text that was inserted and deleted again changes no position.
        self._changes = [change for change in changes if change.old_start != change.old_end or change.new_start != change.new_end]
        self._old_starts = [change.old_start for change in self._changes]

    @staticmethod
    def edit(span: Span, new_text: str) -> PositionMap:
        """Returns the map of one edit, as `didChange` reports it: the text of `span` is replaced."""
        return PositionMap([_Replacement(span.start, span.end, span.start, _after(span.start, new_text))])

    @staticmethod
    def of(edits: Iterable[TextEdit]) -> PositionMap:
        """Returns the map of several edits of one text."""
        found = PositionMap()
        # From the last one backwards, an edit does not move those that come after it in this loop.
        for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
            found = found.then(PositionMap.edit(edit.span, edit.new_text))
        return found

    @staticmethod
    def between(old: str, new: str) -> PositionMap:
        """Returns the map between two texts whose edits are unknown. It compares lines, then both ends of the lines that changed."""
        if old == new:
            return PositionMap()
        old_lines, new_lines = Lines(old), Lines(new)
        above, below = _same_lines(old_lines, new_lines)
        changes = []
        for numbers in _changed_lines(_with_ends(old_lines, above, below), _with_ends(new_lines, above, below)):
            old_from, old_to, new_from, new_to = (number + above for number in numbers)
            a, b = _line_start(old_lines, old_from), _line_start(old_lines, old_to)
            c, d = _line_start(new_lines, new_from), _line_start(new_lines, new_to)
            head = common_prefix(old[a:b], new[c:d])
            tail = common_suffix(old[a + head : b], new[c + head : d])
            spans = old_lines.span(a + head, b - tail), new_lines.span(c + head, d - tail)
            changes.append(_Replacement(spans[0].start, spans[0].end, spans[1].start, spans[1].end))
        return PositionMap(_merged(changes))

    def map(self, span: Span) -> Span | None:
        """Returns the span in the newer text; None if an edit removed its text or changed it inside.

        An insertion right before the span moves it, one right after leaves it as it is.
        """
        first = bisect_left(self._old_starts, span.start)
        if first and self._changes[first - 1].old_end > span.start:
            return None
        for change in self._changes[first:]:
            if change.old_start >= span.end:
                break
            if change.old_end > span.start:
                return None
        start, end = self._forward(span.start, after=True), self._forward(span.end, after=span.start == span.end)
        return Span.of(start, end)

    def then(self, other: PositionMap) -> PositionMap:
        """The map through this one's edits and then those of `other`, whose old text is this one's new text."""
        if not self._changes:
            return other
        if not other._changes:
            return self
        merged: list[_Replacement] = []
        mine, theirs = list(self._changes), list(other._changes)
        i = j = 0
        while i < len(mine) or j < len(theirs):
            # A cluster is what touches in the text between the two maps.
            if j >= len(theirs) or (i < len(mine) and mine[i].new_start <= theirs[j].old_start):
                low, high = mine[i].new_start, mine[i].new_end
            else:
                low, high = theirs[j].old_start, theirs[j].old_end
            first_i, first_j = i, j
            while True:
                if i < len(mine) and mine[i].new_start <= high:
                    high = max(high, mine[i].new_end)
                    i += 1
                elif j < len(theirs) and theirs[j].old_start <= high:
                    high = max(high, theirs[j].old_end)
                    j += 1
                else:
                    break
            old = _span_before(mine[first_i:i], mine[first_i - 1] if first_i else None, low, high)
            new = _span_after(theirs[first_j:j], theirs[first_j - 1] if first_j else None, low, high)
            merged.append(_Replacement(*old, *new))
        return PositionMap(merged)

    def _forward(self, position: Position, after: bool) -> Position:
        """A position outside all changes; `after` says on which side of text inserted right there it stays."""
        index = bisect_right(self._old_starts, position) if after else bisect_left(self._old_starts, position)
        return _moved(position, self._changes[index - 1] if index else None)


def _span_before(changes: Sequence[_Replacement], before: _Replacement | None, low: Position, high: Position) -> tuple[Position, Position]:
    """Where a span of the text behind some changes was in the one in front of them. before: the change before these."""
    start = changes[0].old_start if changes and changes[0].new_start == low else _moved_back(low, before)
    last = changes[-1] if changes else before
    return start, changes[-1].old_end if changes and changes[-1].new_end == high else _moved_back(high, last)


def _span_after(changes: Sequence[_Replacement], before: _Replacement | None, low: Position, high: Position) -> tuple[Position, Position]:
    """Where a span of the text in front of some changes is in the one behind them. before: the change before these."""
    start = changes[0].new_start if changes and changes[0].old_start == low else _moved(low, before)
    last = changes[-1] if changes else before
    return start, changes[-1].new_end if changes and changes[-1].old_end == high else _moved(high, last)


def _moved(position: Position, change: _Replacement | None) -> Position:
    """A position that follows a change of the old text."""
    return position if change is None else _shift(position, change.old_end, change.new_end)


def _moved_back(position: Position, change: _Replacement | None) -> Position:
    return position if change is None else _shift(position, change.new_end, change.old_end)


def _shift(position: Position, origin: Position, target: Position) -> Position:
    if position.line == origin.line:
        return Position(target.line, position.column - origin.column + target.column)
    return Position(position.line - origin.line + target.line, position.column)


def _after(start: Position, text: str) -> Position:
    ends = [match.end() for match in LINE_END.finditer(text)]
    return Position(start.line + len(ends), len(text) - ends[-1]) if ends else Position(start.line, start.column + len(text))


def _merged(changes: list[_Replacement]) -> list[_Replacement]:
    merged: list[_Replacement] = []
    for change in changes:
        if merged and merged[-1].old_end >= change.old_start:
            last = merged.pop()
            change = _Replacement(last.old_start, change.old_end, last.new_start, change.new_end)
        merged.append(change)
    return merged


def _same_lines(old: Lines, new: Lines) -> tuple[int, int]:
    """Returns how many lines at the start and at the end of two texts are the same, at least."""
    head = common_prefix(old.text, new.text)
    tail = common_suffix(old.text[head:], new.text[head:])
    # Not the line before, nor the one after: `\r` and `\n` side by side may be one line end or two.
    above = max(0, min(bisect_right(each.starts, head) for each in (old, new)) - 2)
    below = min(len(each.starts) - bisect_left(each.starts, len(each.text) - tail) for each in (old, new)) - 2
    return above, max(0, below)


def _with_ends(lines: Lines, above: int, below: int) -> list[str]:
    bounds = [*lines.starts[above : len(lines.starts) - below + 1], *([] if below else [len(lines.text)])]
    return [lines.text[start:end] for start, end in pairwise(bounds)]


def _line_start(lines: Lines, index: int) -> int:
    return lines.starts[index] if index < len(lines.starts) else len(lines.text)


def _changed_lines(old: list[str], new: list[str]) -> Iterable[tuple[int, int, int, int]]:
    # difflib is quadratic at its worst; what is the same at both ends need not go through it.
    head = common_prefix(old, new)
    tail = common_suffix(old[head:], new[head:])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=len(middle_old) > 2000).get_opcodes():
        if tag != "equal":
            yield head + a, head + b, head + c, head + d


def common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """Returns the number of items that two texts (or lists of lines) share at their start."""
    low, high = 0, min(len(a), len(b))
    # Comparing slices is a memcmp, so that bisecting beats a loop over characters.
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: Sequence[str], b: Sequence[str]) -> int:
    """Returns the number of items that two texts (or lists of lines) share at their end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low
