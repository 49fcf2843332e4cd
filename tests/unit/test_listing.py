"""The source with its hints, as a terminal shows it."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from shapelens.analysis.display.hints import Hint
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.shapes import plural
from shapelens.batch import Analysed
from shapelens.examples.choose import choose
from shapelens.examples.settings import Settings
from shapelens.protocol import Trace
from shapelens.report.layout import row
from shapelens.report.text import Listing, digits, summary
from shapelens.source.module import parse
from shapelens.source.positions import Position, Span


def listing(text: str, hints: dict[int, str], findings: list[Finding] | None = None, width: int | None = None) -> list[str]:
    """What is printed, line by line; on a terminal of this width, or into a file."""
    module = parse(text)
    settings = Settings()
    shown = [Hint(Position(line, len(module.lines.line(line))), label, "value", "") for line, label in hints.items()]
    analysed = Analysed("/m.py", module, settings, choose(module, "/m.py", settings, []), Trace("/m.py"), shown, findings or [], text)
    out = io.StringIO()
    Listing(analysed, Console(file=out, width=width or 80, force_terminal=width is not None, color_system=None, highlight=False)).print()
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("line", "text", "cells"),
    [
        ("", "", (0,)),
        ("a\tb", "a   b", (0, 1, 4, 5)),
        ("\t\tx", "        x", (0, 4, 8, 9)),
        ("网x", "网x", (0, 2, 3)),
        ("\x1b[31m\x0c", "␛[31m␌", (0, 1, 2, 3, 4, 5, 6)),
        ("a\u202eb", "a\ufffdb", (0, 1, 2, 3)),
    ],
)
def test_rows(line: str, text: str, cells: tuple[int, ...]) -> None:
    assert (row(line).text, row(line).cells) == (text, cells)
    assert row(line).width == cell_len(text) and row(line).cell(99) == row(line).width


def test_programs_read_plain_digits() -> None:
    counted = plural(62006, "parameter")
    assert digits(counted, Console(file=io.StringIO(), force_terminal=False)) == "62006 parameters"
    assert digits(counted, Console(file=io.StringIO(), force_terminal=True)) == counted == "62\u202f006 parameters"


def test_hints_stand_in_one_column() -> None:
    assert listing("x = 1\nlonger = 22\n", {1: "→ [1]", 2: "→ [2]"}) == ["1 │ x = 1        → [1]", "2 │ longer = 22  → [2]"]


def test_a_long_line_does_not_push_the_others_hints_away() -> None:
    long = "y = " + " + ".join(["value"] * 20)
    first, second = listing(f"x = 1\n{long}\n", {1: "→ [1]", 2: "→ [2]"}, width=60)[:2]
    assert first.endswith("→ [1]") and len(first) <= 60
    assert second == f"2 │ {long}"
    assert listing(f"x = 1\n{long}\n", {2: "→ [2]"}, width=60)[2].endswith("│   → [2]")


def test_a_hint_that_is_wider_than_the_terminal_goes_on_in_the_next_line() -> None:
    label = "→ " + " · ".join(f"[B, {n}, 28, 28]" for n in range(8))
    lines = listing("x = 1\n", {1: label}, width=40)
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(line.split("│")[1].split()) for line in lines[1:]) == label


def test_carets_stand_under_the_span_behind_tabs_and_wide_characters() -> None:
    text = "if True:\n\tx = '网络', wrong\n"
    finding = Finding("cat", "warning", "this is wrong", Span(2, 11, 2, 16), "/m.py")
    lines = listing(text, {}, [finding])
    assert lines[1] == "2 │     x = '网络', wrong"
    assert lines[2] == "  │ " + " " * 16 + "^^^^^ warning: this is wrong [cat]"


def test_a_finding_over_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    finding = Finding("view", "error", "no", Span(1, 4, 2, 1), "/m.py")
    assert listing("x = f(\n)\n", {}, [finding])[1] == "  │     ^^… error: no [view]"


def test_a_long_message_is_wrapped_and_never_cut() -> None:
    message = " ".join(f"word{number}" for number in range(40))
    finding = Finding("view", "error", message, Span(1, 50, 1, 51), "/m.py")
    lines = listing("x" * 60 + "\n", {}, [finding], width=72)
    assert max(map(len, lines)) <= 72
    assert message in " ".join(" ".join(line.split("│")[1].split()) for line in lines)


@pytest.mark.parametrize("text", ["", "\n", "x = 1", "x = 1\n", "x = 1\r\ny = 2\r\n", "\n\n\nx = 1\n"])
def test_every_line_is_printed_once(text: str) -> None:
    assert [line.split("│")[1].strip() for line in listing(text, {})] == (text.splitlines() or [""])


def test_rich_markup_in_source_and_messages_is_text() -> None:
    finding = Finding("view", "error", "[bold]no[/bold] [link=x]", Span(1, 0, 1, 1), "/m.py")
    first, second = listing("x = '[red]y[/red]'\n", {}, [finding])
    assert first.endswith("x = '[red]y[/red]'") and "[bold]no[/bold] [link=x]" in second


def test_summary() -> None:
    def finding(severity: str) -> Finding:
        return Finding("view", severity, "", Span(1, 0, 1, 1), "/m.py")

    assert summary([]) == ""
    assert summary(["error"]) == "1 error"
    assert summary(["warning", "error", "error", "information"]) == "2 errors, 1 warning, 1 note"
