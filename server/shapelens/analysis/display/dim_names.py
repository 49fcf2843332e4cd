"""Where a dim's name stands in the text: in directives (`f32[B:2, T:8]`), comments that state shapes, and strings of jaxtyping.

A class has one table of names, and so has a function outside of classes; directives belong to what they are written for.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from shapelens.source.comments import Directive
from shapelens.source.module import Module
from shapelens.source.positions import Position, Span
from shapelens.stated.shape_words import jaxtyping_dims, read_dims
from shapelens.stated.syntax_trees import last_name, program_of

_BRACKETS = re.compile(r"(?<!\w)[(\[]([^()\[\]]*)[)\]]")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class DimName:
    """A name at a place, and all the places in its class or function that speak of the same dim."""

    name: str
    span: Span
    all: tuple[Span, ...]
    others: frozenset[str]  # names of other dims there


def dim_name_at(module: Module, place: Position) -> DimName | None:
    """The dim's name that stands at a place; None where there is none."""
    directive = next((each for each in module.directives if each.span.contains(place)), None)
    target = directive.target.partition(".")[0] if directive is not None and directive.target else ""
    if directive is not None and not target:
        found = list(_in_directive(directive))
    else:
        found = list(_in_definition(module, target, place.line))
    at = next(((name, span) for name, span in found if span.contains(place) or span.end == place), None)
    if at is None:
        return None
    spans = {span for name, span in found if name == at[0]}
    ordered = tuple(sorted(spans, key=lambda span: (span.line, span.column)))
    return DimName(at[0], at[1], ordered, frozenset(name for name, _ in found if name != at[0]))


def is_dim_name(text: str) -> bool:
    """True if a dim can be called so."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _in_definition(module: Module, name: str, line: int) -> Iterator[tuple[str, Span]]:
    """The names in the class or function of that name, or that a line is in, and in its directives."""
    tree = program_of(module.text)
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if node.name == name if name else node.lineno <= line <= (node.end_lineno or node.lineno):
            # The last line may have a comment behind the statement.
            yield from _in_comments(module, node.lineno, node.end_lineno or node.lineno)
            yield from _in_annotations(module, node)
            for directive in module.directives:
                if directive.target is not None and directive.target.partition(".")[0] == node.name:
                    yield from _in_directive(directive)


def _in_directive(directive: Directive) -> Iterator[tuple[str, Span]]:
    """The names of dims in an example, and where else it uses them: `Net(T)(f32[B:2, T:8])`."""
    tree = program_of(directive.expression)
    subscripts = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)]
    elements = [each for one in subscripts for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
    lowers = [each.lower if isinstance(each, ast.Slice) else each for each in elements]
    dims = {each.id for each in lowers if isinstance(each, ast.Name)}
    encoded = directive.expression.encode()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in dims:
            lines = directive.expression.split("\n")[: node.lineno - 1]
            start = sum(len(each) + 1 for each in lines) + len(encoded.split(b"\n")[node.lineno - 1][: node.col_offset].decode())
            place = directive.position(start)
            yield node.id, Span(place.line, place.column, place.line, place.column + len(node.id))


def _in_comments(module: Module, first: int, last: int) -> Iterator[tuple[str, Span]]:
    """The names in the shapes that comments state."""
    text = "\n".join(module.lines.line(number) for number in range(first, last + 1)) + "\n"
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and "shapelens:" not in token.string:
                number, column = first + token.start[0] - 1, token.start[1]
                for group in _BRACKETS.finditer(token.string):
                    dims = read_dims(group[1], lenient=False)
                    if dims is not None and ("," in group[1] or len(dims) > 1):
                        yield from _names(group[1], number, column + group.start(1))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # What was read until then holds.


def _in_annotations(module: Module, node: ast.AST) -> Iterator[tuple[str, Span]]:
    """The names in the strings of jaxtyping."""
    for each in ast.walk(node):
        if not isinstance(each, ast.Subscript) or not isinstance(each.slice, ast.Tuple) or len(each.slice.elts) != 2:
            continue
        kind, text = each.slice.elts
        is_tensor = last_name(kind) == "Tensor"
        if is_tensor and isinstance(text, ast.Constant) and isinstance(text.value, str) and jaxtyping_dims(text.value) is not None:
            start = module.lines.from_bytes(text.lineno, text.col_offset)
            written = module.lines.line(start.line)[start.column + 1 :]
            if text.lineno == text.end_lineno and written.startswith(text.value):
                yield from _names(text.value, start.line, start.column + 1)


def _names(text: str, line: int, column: int) -> Iterator[tuple[str, Span]]:
    for match in _NAME.finditer(text):
        yield match[0], Span(line, column + match.start(), line, column + match.end())
