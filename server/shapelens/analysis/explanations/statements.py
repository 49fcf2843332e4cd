"""The statement that a place stands in, and where its parts are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from shapelens.analysis.places import ArgumentPlace, Place
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span
from shapelens.stated.syntax_trees import program_of


def tree_of(place: Place | ArgumentPlace) -> ast.Module:
    """The syntax tree of a place's file; one without statements where it does not parse."""
    return program_of(place.module.text)


def nodes_around(place: Place, *kinds: type[ast.stmt]) -> list[Any]:
    """Returns the nodes of these kinds around the line of a place, outer nodes before inner ones."""
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


def calls_named(place: Place, *names: str) -> Iterator[tuple[ast.Call, Span]]:
    """The calls in a file of what has one of these names, each with the span of what it calls."""
    for node in ast.walk(tree_of(place)):
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else name
        if isinstance(node, ast.Call) and name in names:
            end = node_span(place, node.func).end
            start = place.module.lines.position(place.module.lines.offset(end) - len(name))
            yield node, Span.of(start, end)
