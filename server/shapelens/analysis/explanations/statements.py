"""The statement that a place stands in, and where its parts are."""

from __future__ import annotations

import ast

from shapelens.analysis.places import Place
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span


def tree_of(place: Place) -> ast.Module | None:
    """The syntax tree of a place's file; None where it does not parse."""
    try:
        return ast.parse(place.module.text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def statement_at(place: Place, tree: ast.Module | None = None) -> ast.stmt | None:
    """The innermost statement around a place."""
    tree = tree_of(place) if tree is None else tree
    found: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and node_span(place, node).start <= place.span.start and place.span.end <= node_span(place, node).end:
            found = node  # Inner ones come later.
    return found


def node_span(place: Place, node: ast.stmt | ast.expr) -> Span:
    """Where a part of the file's syntax tree stands."""
    lines = place.module.lines
    end = lines.from_bytes(node.end_lineno or node.lineno, node.end_col_offset or 0)
    return Span.of(lines.from_bytes(node.lineno, node.col_offset), end)


def indentation_at(place: Place) -> str:
    """The white space that the line of a place begins with."""
    text = place.module.lines.line(place.span.line)
    return text[: len(text) - len(text.lstrip())]


def inserted(position: Position, text: str) -> TextEdit:
    """The edit that puts a text at a position."""
    return TextEdit(Span.of(position, position), text)
