"""The calls and names of one logical line, with their positions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from shapelens.source.names import NameTable
from shapelens.source.positions import Lines, Position, Span
from shapelens.source.scanner import LogicalLine
from shapelens.source.syntax import MOST_PIECES, Statement, code, dotted, parse_statement


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
    """A name, an attribute, a call or an operation."""

    span: Span
    text: str
    kind: str  # "name", "attribute", "call" or "operation" (`a @ b`, `x[0]`, `a if b else c`)
    call: Span | None = None  # the call of which it is the function


class StatementReader:
    """One logical line of a text."""

    def __init__(self, lines: Lines, statement: Statement, names: NameTable) -> None:
        self._lines = lines
        self._statement = statement
        self._names = names
        visitor = _collected(statement.tree)
        self._calls = visitor.calls
        self._expressions = visitor.expressions
        self._called = visitor.called

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

    @cached_property
    def calls(self) -> list[Call]:
        """All calls, outer ones before those inside."""
        return [self._call(node) for node in self._calls]

    def expression_at(self, position: Position) -> Expression | None:
        """The innermost name, attribute or call around a position, or the operation whose operator or bracket is there.

        A name that ends right there counts if there is no operator.
        """
        inside: list[tuple[int, int]] = []  # (length, index) of expressions
        around: list[tuple[int, int]] = []
        ending: list[tuple[int, int]] = []
        for index, (node, kind) in enumerate(self._expressions):
            span = self._span(node)
            if span is None or not span.contains(position):
                continue
            at_end = position == span.end
            found = (self._lines.offset(span.end) - self._lines.offset(span.start), index)
            if kind in ("call", "operation"):
                # What is in an operand is no part of the operator.
                if not at_end and not (kind == "operation" and self._in_operand(node, position)):
                    around.append(found)
            elif isinstance(node, cst.Attribute) and position < Span(*self._statement.place(node.attr)).start:
                continue  # The position is on what the attribute is looked up on.
            else:
                (ending if at_end else inside).append(found)
        operators = [min(around)] if around and self._expressions[min(around)[1]][1] == "operation" else []
        innermost = next((min(some)[1] for some in (inside, operators, ending, around) if some), None)
        if innermost is None:
            return None
        node, kind = self._expressions[innermost]
        span, call = Span(*self._statement.place(node)), self._called.get(node)
        return Expression(span, self._lines.text_of(span), kind, self._span(call) if call is not None else None)

    def _in_operand(self, node: cst.CSTNode, position: Position) -> bool:
        spans = (self._span(operand) for operand in _operands(node))
        return any(span is not None and span.start <= position < span.end for span in spans)

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


_OPERATIONS = (
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.Comparison,
    cst.Subscript,
    cst.IfExp,
    cst.Await,
)


def _operands(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Returns what an operation is done on. The index of a subscript belongs to its brackets."""
    if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
        return [node.left, node.right]
    if isinstance(node, cst.Comparison):
        return [node.left, *(part.comparator for part in node.comparisons)]
    if isinstance(node, cst.IfExp):
        return [node.body, node.test, node.orelse]
    if isinstance(node, cst.UnaryOperation | cst.Await):
        return [node.expression]
    return [node.value] if isinstance(node, cst.Subscript) else []


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self.expressions: list[tuple[cst.CSTNode, str]] = []
        self.called: dict[cst.CSTNode, cst.Call] = {}

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)
        self.called[node.func] = node
        self.expressions.append((node, "call"))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self.expressions.append((node, "attribute"))
        # The attribute's own name stands for the whole of it.
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.expressions.append((node, "name"))

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Collect the node, then visit its children as libcst does. An operation is an expression of its own."""
        if isinstance(node, _OPERATIONS):
            self.expressions.append((node, "operation"))
        return super().on_visit(node)

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False


@lru_cache(maxsize=MOST_PIECES)
def _collected(tree: cst.Module) -> _Collector:
    """Returns what is in the tree of a logical line, which is the same one for the same text."""
    visitor = _Collector()
    tree.visit(visitor)
    return visitor
