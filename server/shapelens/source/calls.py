"""The calls and names of one logical line, with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from shapelens.source.names import NameTable
from shapelens.source.positions import Lines, Position, Span
from shapelens.source.scanner import LogicalLine
from shapelens.source.syntax import Statement, code, dotted, parse_statement


@dataclass(frozen=True)
class Argument:
    """An argument of a call."""

    span: Span  # of its value, parentheses around it not included
    text: str  # of its value, inside that span
    keyword: str | None
    index: int | None  # among the positional ones; None for a keyword, and behind a `*`
    star: str  # "", "*" or "**"


@dataclass(frozen=True)
class Call:
    """A call as it is written."""

    span: Span
    function: str  # "nn.Conv2d"
    arguments: list[Argument]
    qualified: str | None  # "torch.nn.Conv2d"; None for what the file does not import
    open_bracket: Position  # behind its `(`
    last_argument_end: Position | None  # parentheses around its value included
    trailing_comma: Position | None  # behind it


@dataclass(frozen=True)
class Expression:
    """A name, an attribute or a call."""

    span: Span
    text: str
    kind: str  # "name", "attribute" or "call"


class StatementReader:
    """One logical line of a text."""

    def __init__(self, lines: Lines, statement: Statement, names: NameTable) -> None:
        self._lines = lines
        self._statement = statement
        self._names = names
        visitor = _Collector()
        statement.tree.visit(visitor)
        self._calls = visitor.calls
        self._expressions = visitor.expressions

    @staticmethod
    def read(lines: Lines, line: LogicalLine, names: NameTable) -> StatementReader | None:
        """Reads a logical line, whose indices are those of the text; None if it does not parse on its own."""
        statement = parse_statement(lines.text, line, lines.position(line.start).line)
        if statement is None:
            return None
        try:
            return StatementReader(lines, statement, names)
        except RecursionError:
            return None

    def calls(self) -> Iterator[Call]:
        """All calls, outer ones before those inside."""
        return (self._call(node) for node in self._calls)

    def expression_at(self, position: Position) -> Expression | None:
        """The innermost name, attribute or call around a position; one that ends right there counts if there is no other."""
        found: list[tuple[bool, bool, int, Span, str]] = []
        for node, kind in self._expressions:
            span = self._span(node)
            if span is None or not span.contains(position):
                continue
            at_end = position == span.end
            if kind == "call" and at_end:
                continue
            if isinstance(node, cst.Attribute) and position < Span(*self._statement.place(node.attr)).start:
                continue  # It is on what the attribute is looked up on.
            found.append((kind == "call", at_end, self._lines.offset(span.end) - self._lines.offset(span.start), span, kind))
        if not found:
            return None
        *_, span, kind = min(found)
        return Expression(span, self._lines.text_of(span), kind)

    def _span(self, node: cst.CSTNode) -> Span | None:
        try:
            return Span(*self._statement.place(node))
        except KeyError:
            return None

    def _call(self, node: cst.Call) -> Call:
        arguments: list[Argument] = []
        index: int | None = 0
        end: Position | None = None
        for item in node.args:
            span = self._value_span(item.value)
            keyword = item.keyword.value if item.keyword else None
            plain = not keyword and not item.star
            arguments.append(Argument(span, self._lines.text_of(span), keyword, index if plain else None, item.star))
            if item.star == "*":
                index = None
            elif plain and index is not None:
                index += 1
            brackets = item.value.rpar
            end = Span(*self._statement.place(brackets[-1])).end if brackets else span.end
        comma = node.args[-1].comma if node.args else None
        function = dotted(node.func) or code(node.func)
        return Call(
            span=Span(*self._statement.place(node)),
            function=function,
            arguments=arguments,
            qualified=self._names.qualified(function) if dotted(node.func) else None,
            open_bracket=self._open_bracket(node),
            last_argument_end=end,
            trailing_comma=self._behind_comma(comma) if isinstance(comma, cst.Comma) else None,
        )

    def _value_span(self, node: cst.BaseExpression) -> Span:
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar:
            # Its innermost parentheses belong to a tuple; `ast` sees it so, libcst does not.
            return Span.of(Span(*self._statement.place(node.lpar[-1])).start, Span(*self._statement.place(node.rpar[0])).end)
        return Span(*self._statement.place(node))

    def _open_bracket(self, node: cst.Call) -> Position:
        brackets = node.func.rpar
        start = Span(*self._statement.place(brackets[-1] if brackets else node.func)).end
        offset = self._lines.text.index("(", self._lines.offset(start))
        return self._lines.position(offset + 1)

    def _behind_comma(self, comma: cst.Comma) -> Position:
        # The position of a comma includes the blanks before it, and those after it.
        offset = self._lines.offset(Span(*self._statement.place(comma)).start)
        return self._lines.position(offset + len(code(comma.whitespace_before)) + 1)


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self.expressions: list[tuple[cst.CSTNode, str]] = []

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)
        self.expressions.append((node, "call"))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self.expressions.append((node, "attribute"))
        # The attribute's own name stands for the whole of it.
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.expressions.append((node, "name"))

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False
