"""Text of user code in Markdown (analysis/markdown.py): a reader of Markdown gets the text back, and no link, picture or HTML."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from shapelens.analysis.markdown import cell, code, plain

NASTY = [
    "[click](command:workbench.action.terminal.new)",
    "![picture](https://example.com/x.png)",
    "<img src=https://example.com/x.png> <b>bold</b> &amp; &lt;",
    "a `code` ``and`` more` of it",
    "`",
    "**bold** _it_ ~~gone~~ \\[x\\]",
    "a | b || c",
    "[x]: https://example.com",
    "$x$ {y} <!-- z -->",
    "weight_ih_l0 __init__ a__b _x y_ _ é_é",
]


def read(markdown: str) -> tuple[str, str]:
    """The HTML that comes of it, and the text that a person sees of that."""
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)
    return rendered, html.unescape(re.sub(r"<[^<>]+>", "", rendered)).strip()


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("write", [code, plain])
def test_text_stays_text(text: str, write: object) -> None:
    assert callable(write)
    rendered, seen = read("x " + write(text) + " y")
    assert seen == f"x {text} y"
    assert set(re.findall(r"<(\w+)", rendered)) <= {"p", "code"}


@pytest.mark.parametrize("text", NASTY)
def test_a_cell_stays_one_cell(text: str) -> None:
    rendered, _ = read(f"| a | b |\n|---|---|\n| {cell(code(text))} | {cell(plain(text))} |")
    assert rendered.count("<td>") == 2
    assert set(re.findall(r"<(\w+)", rendered)) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


def test_underscores_inside_of_names_need_no_escape() -> None:
    assert plain("weight_ih_l0_reverse") == "weight_ih_l0_reverse"


def test_lines_are_one_line() -> None:
    assert code("a\nb") == "`a b`"
    assert plain("a\n\n# b") == "a # b"
