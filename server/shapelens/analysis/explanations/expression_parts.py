"""The operands and arguments of an expression that failed, as they are written, with their places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from shapelens import protocol
from shapelens.analysis.places import Place
from shapelens.protocol import Value
from shapelens.source.positions import Lines, Span
from shapelens.stated.syntax_trees import expression_of, program_of

LONGEST_NAME = 40
_MODULES = ("torch", "F", "nn", "np", "einops", "math")  # what functions are called on, rather than tensors
_OPERATORS: dict[type[ast.operator], str] = {
    ast.MatMult: "@",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


@dataclass(frozen=True)
class ExpressionPart:
    """An operand or argument. number: its value, where it is written as one."""

    text: str
    span: Span
    node: ast.expr
    keyword: str = ""

    @property
    def number(self) -> int | None:
        try:
            value = ast.literal_eval(self.node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        return value if type(value) is int else None

    @property
    def name(self) -> str:
        """The text of the part, where that is short enough to be read as a name."""
        return self.text if len(self.text) <= LONGEST_NAME and "\n" not in self.text else ""


@dataclass(frozen=True)
class Parts:
    """function: "view" of `x.view(2, 3)`, "@" of `a @ b`, "[]" of `x[0]`. receiver: the `x`; None for a function."""

    function: str
    receiver: ExpressionPart | None = None
    arguments: list[ExpressionPart] = field(default_factory=list)

    def operands(self) -> list[ExpressionPart]:
        """Returns the parts that may be tensors, in order: lists and tuples taken apart, numbers and strings left out."""
        found = [self.receiver] if self.receiver is not None else []
        for argument in self.arguments:
            found += [argument] if self.function == "[]" else _flat(argument)
        return [part for part in found if not isinstance(part.node, ast.Constant | ast.UnaryOp | ast.Slice | ast.JoinedStr)]

    def argument(self, name: str, index: int) -> ExpressionPart | None:
        """The argument of this keyword or at this index."""
        positional = [argument for argument in self.arguments if not argument.keyword]
        named = next((argument for argument in self.arguments if argument.keyword == name), None)
        return named or (positional[index] if 0 <= index < len(positional) else None)

    def names(self, values: Sequence[Value]) -> list[str]:
        """Returns the names of these tensors in the text; "" where that is not known."""
        operands = self.operands()
        if len(operands) == len(values):
            return [part.name for part in operands]
        first = [self.receiver.name] if self.receiver is not None else []
        return (first + [""] * len(values))[: len(values)]


def parts_of(place: Place) -> Parts | None:
    """The parts of the expression (or augmented assignment) at a place; None where it is no call, operation or subscript."""
    text = place.module.lines.text_of(place.span)
    node = expression_of(f"({text})")
    if node is not None:
        return _PartsCollector(place, f"({text})", 1).read(node)
    body = program_of(text.strip()).body
    return _PartsCollector(place, text, 0).augmented(body[0]) if body else None


class _PartsCollector:
    """Makes the parts of one expression. ahead: how many characters were put in front of its text."""

    def __init__(self, place: Place, text: str, ahead: int) -> None:
        self._lines = Lines(text)
        self._place = place
        self._first = place.module.lines.offset(place.span.start) - ahead

    def read(self, node: ast.AST) -> Parts | None:
        if isinstance(node, ast.BinOp):
            return Parts(_OPERATORS.get(type(node.op), ""), None, [self._part(node.left), self._part(node.right)])
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            return Parts("==", None, [self._part(node.left), self._part(node.comparators[0])])
        if isinstance(node, ast.Subscript):
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return Parts("[]", self._part(node.value), [self._part(each) for each in inner])
        if not isinstance(node, ast.Call):
            return None
        arguments = [self._part(each) for each in node.args] + [self._part(each.value, each.arg or "**") for each in node.keywords]
        if not isinstance(node.func, ast.Attribute):
            return Parts(ast.unparse(node.func), None, arguments)
        is_function = ast.unparse(node.func.value).split(".")[0] in _MODULES
        return Parts(node.func.attr, None if is_function else self._part(node.func.value), arguments)

    def augmented(self, node: ast.AST) -> Parts | None:
        if not isinstance(node, ast.AugAssign):
            return None
        return Parts(_OPERATORS.get(type(node.op), ""), None, [self._part(node.target), self._part(node.value)])

    def _part(self, node: ast.expr, keyword: str = "") -> ExpressionPart:
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        inside = self._lines.span_from_bytes(protocol.FileSpan("", node.lineno, node.col_offset, *end))
        lines = self._place.module.lines
        span = lines.span(self._first + self._lines.offset(inside.start), self._first + self._lines.offset(inside.end))
        return ExpressionPart(lines.text_of(span), span, node, keyword)


def _flat(part: ExpressionPart) -> list[ExpressionPart]:
    """The elements of a list or tuple, placed as the whole of it; else the part itself."""
    if not isinstance(part.node, ast.List | ast.Tuple):
        return [part]
    return [ExpressionPart(ast.unparse(each), part.span, each) for each in part.node.elts]
