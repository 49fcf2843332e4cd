"""Columns of `ast`, LSP and ShapeLens, and the lines that all three agree on."""

from __future__ import annotations

import ast

import pytest

from shapelens import protocol
from shapelens.source.positions import Lines, Position, Span


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a", ""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("\r\n\r\r\n", ["", "", "", ""]),
        ("\n\r", ["", "", ""]),
        ("a\x0cb\u2028c\x85d\x1ce", ["a\x0cb\u2028c\x85d\x1ce"]),
    ],
)
def test_lines_end_where_lsp_and_ast_end_them(text: str, lines: list[str]) -> None:
    split = Lines(text)
    assert [split.line(number) for number in range(1, split.count + 1)] == lines
    assert split.line(0) == split.line(split.count + 1) == ""


@pytest.mark.parametrize(
    ("column", "utf8", "utf16"),
    [(0, 0, 0), (1, 1, 1), (2, 3, 2), (3, 6, 3), (4, 10, 5), (5, 11, 6)],
)
def test_columns_of_a_line_with_wide_characters(column: int, utf8: int, utf16: int) -> None:
    lines = Lines("first\n" + "aé→😀b")
    position = Position(2, column)
    assert lines.to_lsp(position, "utf-8") == (1, utf8)
    assert lines.to_lsp(position, "utf-16") == (1, utf16)
    assert lines.to_lsp(position, "utf-32") == (1, column)
    assert lines.to_bytes(position) == (2, utf8)
    assert lines.from_lsp(1, utf8, "utf-8") == lines.from_lsp(1, utf16, "utf-16") == lines.from_lsp(1, column, "utf-32") == position
    assert lines.from_bytes(2, utf8) == position


def test_what_does_not_exist_stands_for_the_nearest_place() -> None:
    lines = Lines("a😀\nbc")
    assert lines.from_lsp(0, 2, "utf-16") == Position(1, 1)  # between the halves of a surrogate pair
    assert lines.from_lsp(0, 99, "utf-16") == Position(1, 2)
    assert lines.from_lsp(9, 9, "utf-16") == Position(2, 2)
    assert lines.from_bytes(1, 3) == Position(1, 1)
    assert lines.from_bytes(7, 0) == Position(2, 2)
    assert lines.offset(Position(1, 99)) == 2
    assert lines.offset(Position(9, 0)) == len(lines.text)


def test_a_byte_order_mark_counts_in_lsp_and_not_in_ast() -> None:
    lines = Lines("\ufeffx = 1\ny = 2")
    assert lines.from_bytes(1, 0) == Position(1, 1)
    assert lines.to_lsp(Position(1, 1), "utf-16") == (0, 1)
    assert lines.to_bytes(Position(1, 5)) == (1, 4)
    assert lines.from_bytes(2, 4) == Position(2, 4)


def test_a_lone_surrogate_of_an_editor_has_a_width() -> None:
    lines = Lines("\ud800x")
    assert lines.to_lsp(Position(1, 2), "utf-16") == (0, 2)
    assert lines.to_bytes(Position(1, 2)) == (1, 4)


def test_spans_of_ast_cover_the_text_of_their_nodes() -> None:
    text = "é = '😀'; 𝐱 = f(é,\t'ß')\r\nif 𝐱:\r\n\tprint('→', 𝐱)\r\n"
    lines = Lines(text)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    spans = [protocol.FileSpan("f", node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0) for node in calls]
    assert sorted(lines.text_of(lines.span_from_bytes(span)) for span in spans) == ["f(é,\t'ß')", "print('→', 𝐱)"]


def test_offsets_and_positions_are_each_others_inverse() -> None:
    lines = Lines("ab\r\n\tc\rd\n\ne")
    inside = [offset for offset in range(len(lines.text) + 1) if lines.text[offset - 1 : offset + 1] != "\r\n"]
    for offset in inside:
        assert lines.offset(lines.position(offset)) == offset
    assert lines.text_of(Span(1, 1, 2, 2)) == "b\r\n\tc"
