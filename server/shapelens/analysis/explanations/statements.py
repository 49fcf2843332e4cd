"""The statement that a place stands in, and where its parts are."""

from __future__ import annotations

import ast
from typing import Any

from shapelens.analysis.places import ArgumentPlace, Place
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span
from shapelens.stated.syntax_trees import program_of


def tree_of(place: Place | ArgumentPlace) -> ast.Module:
    """The syntax tree of a place's file; one without statements where it does not parse."""
    return program_of(place.module.text)


def nodes_around(place: Place, *kinds: type[ast.stmt]) -> list[Any]:
    """What the line of a place stands in, of these kinds, outer nodes before inner ones."""
    nodes = (node for node in ast.walk(tree_of(place)) if isinstance(node, kinds))
    return [node for node in nodes if node.lineno <= place.span.line <= (node.end_lineno or node.lineno)]


def statement_at(place: Place) -> ast.stmt | None:
    """The innermost statement around a place."""
    found: ast.stmt | None = None
    for node in ast.walk(tree_of(place)):
        if isinstance(node, ast.stmt) and node_span(place, node).start <= place.span.start and place.span.end <= node_span(place, node).end:
            found = node  # Inner ones come later.
    return found


def node_span(place: Place | ArgumentPlace, node: ast.stmt | ast.expr) -> Span:
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
