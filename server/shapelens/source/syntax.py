"""libcst on pieces of text: a top-level statement on its own, or one logical line."""

from __future__ import annotations

import ast
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from shapelens.source.scanner import LogicalLine

# CPython refuses deeper nesting too. libcst's parser is native and recursive: what is nested too deeply ends the process.
DEEPEST_BRACKETS = 200
LONGEST_OPERATOR_CHAIN = 5000  # characters without a comma, strings and comments apart
MOST_CLAUSES = 3000
MOST_PIECES = 256  # logical lines whose trees are kept

_PLAIN_STRING = re.compile(r"#[^\r\n]*|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:[^\"\\\r\n]|\\.)*\"|'(?:[^'\\\r\n]|\\.)*'")
_CLAUSE = re.compile(r"[ \t\x0c]*(?:elif|except|case)\b")


class Unparsable(Exception):
    """A piece of text that does not parse. Lines are 1-based, columns are 0-based code points, both of the piece."""

    def __init__(self, message: str, line: int, column: int, end_line: int, end_column: int) -> None:
        super().__init__(message)
        self.message = message
        self.place = (line, column, end_line, end_column)


def parse(text: str, lines: tuple[LogicalLine, ...], base: int = 0) -> cst.Module:
    """The tree of a piece of text whose logical lines are `lines`, with indices that begin at `base`. Raises Unparsable."""
    refuse_what_nests_too_deeply(text, lines, base)
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError, UnicodeError, ValueError) as error:
        raise _explained(text, error) from error


def dotted(node: cst.BaseExpression | None) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    names: list[str] = []
    while isinstance(node, cst.Attribute):
        names.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return ".".join([node.value, *reversed(names)])


def code(node: cst.CSTNode) -> str:
    """The text of a node, which parentheses and comments inside belong to."""
    return cst.Module([]).code_for_node(node)


@dataclass
class Statement:
    """The tree of one logical line and the positions in it, moved to where the line is in the text."""

    tree: cst.Module
    ranges: dict[cst.CSTNode, CodeRange]
    line: int  # what to add to a line
    first_line: int  # the line of the tree whose columns are shifted
    column: int  # what to add to its columns

    def place(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """The line, column, end line and end column of a node; KeyError if it has no text of its own."""
        found = self.ranges[node]
        start, end = found.start, found.end
        shift, end_shift = (self.column if at.line == self.first_line else 0 for at in (start, end))
        return start.line + self.line, start.column + shift, end.line + self.line, end.column + end_shift


def parse_statement(text: str, line: LogicalLine, line_number: int, base: int = 0) -> Statement | None:
    """The tree of one logical line of `text`, which is on line `line_number` (1-based); None if it does not parse.

    A logical line is a small piece of text, so that positions cost little, and it parses although the class around it may not.
    """
    piece = text[line.start - base : line.end - base]
    parsed = _parsed_piece(piece, line.deepest)
    if parsed is None:
        return None
    tree, ranges, before = parsed
    added = before.count("\n")
    column = line.start - line.line_start - len(before.rpartition("\n")[2])
    return Statement(tree, ranges, line_number - added - 1, added + 1, column)


@lru_cache(maxsize=MOST_PIECES)
def _parsed_piece(piece: str, deepest: int) -> tuple[cst.Module, dict[cst.CSTNode, CodeRange], str] | None:
    """The tree of a logical line, the positions in it, and what was put before it: most lines are the same after the next edit."""
    line = LogicalLine(0, 0, len(piece), len(piece), deepest, closed=True)
    for before, after in _surroundings(piece):
        with suppress(Unparsable, RecursionError):
            tree = parse(before + piece + after, (line,))
            return tree, dict(MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)), before
    return None


def _surroundings(piece: str) -> list[tuple[str, str]]:
    """Returns what makes a statement of a logical line: a body for the head of a compound statement, a head for its later clauses."""
    word = re.match(r"@|\w*", piece)
    start = word.group() if word else ""
    body = "\n pass\n"
    if start == "@":
        return [("", "\ndef _(): pass\n")]
    if start in ("elif", "else"):
        return [("if 1: pass\n", body), ("if 1: pass\n", "\n")]
    if start in ("except", "finally"):
        return [("try: pass\n", body), ("try: pass\n", "\n")]
    if start == "try":
        return [("", "\nfinally: pass\n"), ("", f"{body}finally: pass\n")]
    if start == "case":
        return [("match 1:\n ", "\n  pass\n"), ("match 1:\n ", "\n"), ("", "\n")]
    if piece.endswith(":"):
        return [("", body), ("", "\n")]
    return [("", "\n")]


def refuse_what_nests_too_deeply(text: str, lines: tuple[LogicalLine, ...], base: int) -> None:
    """Raises Unparsable for text that would end the process, or take too long."""
    for line in lines:
        deep = line.deepest > DEEPEST_BRACKETS
        if not deep and line.end - line.start > LONGEST_OPERATOR_CHAIN:
            bare = _PLAIN_STRING.sub("", text[line.start - base : line.end - base])
            deep = any(len(stretch) > LONGEST_OPERATOR_CHAIN for stretch in re.split(r"[,;]", re.sub(r"\s+", " ", bare)))
        if deep:
            number = text.count("\n", 0, line.start - base) + 1
            raise Unparsable("the expression is nested too deeply", number, line.indent, number, line.indent + 1)
    if len(lines) > MOST_CLAUSES and sum(1 for line in lines if _CLAUSE.match(text, line.start - base)) > MOST_CLAUSES:
        raise Unparsable("the statement has too many clauses", 1, 0, 1, 1)


def _explained(text: str, error: Exception) -> Unparsable:
    """libcst's message lists the tokens that it would have liked; CPython's says what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as found:
        line, column = found.lineno or 1, max((found.offset or 1) - 1, 0)
        end_line, end_column = found.end_lineno or line, (found.end_offset or column + 2) - 1
        if (end_line, end_column) <= (line, column):
            end_line, end_column = line, column + 1
        return Unparsable(found.msg, line, column, end_line, end_column)
    except (ValueError, RecursionError, MemoryError):
        pass
    if isinstance(error, cst.ParserSyntaxError):
        return Unparsable("invalid syntax", error.raw_line, error.raw_column, error.raw_line, error.raw_column + 1)
    return Unparsable("the statement cannot be read", 1, 0, 1, 1)
