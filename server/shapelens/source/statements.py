"""The top-level statements of a text: which of them changed, and what the others still say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shapelens.source import syntax
from shapelens.source.classes import ClassStatement, StatementNames, heads, last_line, relocated
from shapelens.source.classes_by_ast import read_by_ast
from shapelens.source.classes_by_libcst import read_by_libcst
from shapelens.source.position_map import common_prefix, common_suffix
from shapelens.source.positions import BYTE_ORDER_MARK
from shapelens.source.scanner import Chunk, LogicalLine, chunks


@dataclass
class TopLevelStatement:
    """One top-level statement, parsed once for as long as its text does not change. Indices of `lines` begin at `base`."""

    text: str
    base: int
    lines: tuple[LogicalLine, ...]
    classes: list[ClassStatement]
    names: StatementNames
    error: syntax.Unparsable | None = None  # if set, classes and names are those of the last good version, as far as there is one

    def function_around(self, number: int) -> str | None:
        """The outermost function in whose body a logical line is, by qualified name; None where it is in none."""
        return next((name for first, last, name in self._functions if first < number <= last), None)

    def class_around(self, number: int) -> str | None:
        """The innermost class in which a logical line is, its head included, by qualified name; None where it is in none."""
        around = [cls for cls in self.classes if cls.head.line <= number <= cls.last_line]
        return max(around, key=lambda cls: cls.head.line).qualname if around else None

    @cached_property
    def _functions(self) -> list[tuple[int, int, str]]:
        """The functions that are in no other one: their first and last logical lines, and their qualified names."""
        found: list[tuple[int, int, str]] = []
        around: list[tuple[int, str]] = []  # the classes that a line is in: their last lines, and their names
        behind = 0  # the last function
        for head in heads(self.text, self.lines, self.base):
            if head.line < behind:
                continue
            last = last_line(self.text, self.lines, self.base, head)
            around = [each for each in around if head.line <= each[0]]
            if head.is_class:
                around.append((last, head.name))
            else:
                found.append((head.line, last, ".".join([*(name for _, name in around), head.name])))
                behind = last + 1
        return found


@dataclass(frozen=True)
class Placed:
    """A statement and the index in the text at which it starts."""

    start: int
    statement: TopLevelStatement

    @property
    def end(self) -> int:
        return self.start + len(self.statement.text)


@dataclass(frozen=True)
class Statements:
    """All top-level statements of a text, in order.

    held_back: a statement that does not end (an open bracket or string) would swallow those after it; they keep their old bounds.
    """

    text: str
    placed: tuple[Placed, ...]
    held_back: bool = False


def split(text: str, previous: Statements | None) -> Statements:
    """The top-level statements of a text; those that `previous` has with the same text are not parsed again."""
    if previous is None:
        return Statements(text, tuple(_placed(text, chunk, {}) for chunk in chunks(text, _first(text))))
    known = {item.statement.text: item.statement for item in previous.placed if item.statement.error is None}
    if previous.held_back:
        # What was held apart may make sense again as a whole, with the bounds that Python sees.
        found = list(chunks(text, _first(text)))
        if all(line.closed for chunk in found for line in chunk.lines):
            whole = Statements(text, tuple(_placed(text, chunk, known) for chunk in found))
            if not _broken(whole.placed):
                return whole
    return _after_edit(text, previous, known)


def _after_edit(text: str, previous: Statements, known: dict[str, TopLevelStatement]) -> Statements:
    old = previous.placed
    head = common_prefix(previous.text, text)
    tail = common_suffix(previous.text[head:], text[head:])
    delta = len(text) - len(previous.text)
    unchanged_from = len(text) - tail  # in the new text
    # The first words of a statement decide whether it belongs to the one before it (`else`), so that one is looked at again as well.
    touched = max(0, bisect_right([item.start for item in old], head) - 1)
    before = max(0, touched - 1)
    first = before if not previous.held_back or old[before].statement.error is None else touched
    begin = old[first].start if first else _first(text)
    old_at = {item.start + delta: index for index, item in enumerate(old)}
    fresh: list[Placed] = []
    last = len(old)
    for chunk in chunks(text, begin):
        index = old_at.get(chunk.start)
        if index is not None and index > first and chunk.start >= unchanged_from and chunk.start > begin:
            last = index
            break
        fresh.append(_placed(text, chunk, known))
    rest = tuple(Placed(item.start + delta, item.statement) for item in old[last:])
    held_back = previous.held_back
    if _broken(fresh):
        # The old statements that the edit did not touch, but that the new bounds swallowed. What it has indented is another statement now.
        starts = {index: old[index].start + delta for index in range(first + 1, last)}
        untouched = next((index for index, start in starts.items() if start >= unchanged_from and text[start - 1] in "\r\n"), last)
        if untouched < last:
            bound = old[untouched].start + delta
            fresh = [_placed(text[:bound], chunk, known) for chunk in chunks(text[:bound], begin)]
            rest = tuple(Placed(item.start + delta, item.statement) for item in old[untouched:])
            last, held_back = untouched, True
        _keep_last_good(fresh, old[first:last])
    return Statements(text, (*old[:first], *fresh, *rest), held_back and _broken([*old[:first], *fresh, *rest]))


def _first(text: str) -> int:
    return 1 if text.startswith(BYTE_ORDER_MARK) else 0


def _broken(placed: Sequence[Placed]) -> bool:
    return any(item.statement.error is not None for item in placed)


def _placed(text: str, chunk: Chunk, known: dict[str, TopLevelStatement]) -> Placed:
    piece = text[chunk.start : chunk.end]
    found = known.get(piece)
    if found is None:
        found = _parsed(piece, chunk)
        if found.error is None:
            known[piece] = found
    return Placed(chunk.start, found)


def _parsed(piece: str, chunk: Chunk) -> TopLevelStatement:
    try:
        syntax.refuse_what_nests_too_deeply(piece, chunk.lines, chunk.start)
        known = read_by_ast(piece, chunk.lines, chunk.start)
        if known is None:  # The statement is wrong, or of a newer Python than this one.
            known = read_by_libcst(syntax.parse(piece, chunk.lines, chunk.start), piece, chunk.lines, chunk.start)
        classes, names = known
    except syntax.Unparsable as error:
        return TopLevelStatement(piece, chunk.start, chunk.lines, [], StatementNames(), error)
    except RecursionError:
        return TopLevelStatement(
            piece, chunk.start, chunk.lines, [], StatementNames(), syntax.Unparsable("the statement is nested too deeply", 1, 0, 1, 1)
        )
    return TopLevelStatement(piece, chunk.start, chunk.lines, classes, names)


def _keep_last_good(fresh: list[Placed], old: Sequence[Placed]) -> None:
    """Gives statements that do not parse the classes and names of the old ones whose place they took."""
    alive = {item.statement.text for item in fresh if item.statement.error is None}
    gone = [item.statement for item in old if item.statement.text not in alive]
    classes = [cls for statement in gone for cls in statement.classes]
    for item in fresh:
        statement = item.statement
        if statement.error is None:
            continue
        statement.classes = relocated(classes, statement.text, statement.lines, statement.base)
        kept = {cls.qualname for cls in statement.classes}
        classes = [cls for cls in classes if cls.qualname not in kept]
        for lost in gone:
            statement.names.imported.update(lost.names.imported)
            statement.names.inner.update(lost.names.inner)
            statement.names.assigned.update(lost.names.assigned)
            statement.names.stars += [star for star in lost.names.stars if star not in statement.names.stars]
            statement.names.modules += [name for name in lost.names.modules if name not in statement.names.modules]
