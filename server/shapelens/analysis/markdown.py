"""Text of user code in Markdown: it stays text, whatever stands in it. No link, picture or HTML comes of it.

Rules: https://spec.commonmark.org/0.31.2/#code-spans and #backslash-escapes; `|` ends the cells of a table even inside of code.
"""

from __future__ import annotations

import re

_LINE_ENDS = re.compile(r"\s*[\r\n]\s*")
# An underscore between letters or digits means nothing in Markdown, so that `weight_ih_l0` is written as it stands.
_SIGNS = re.compile(r"([\\`*{}\[\]<>!|~&$]|(?<![^\W_])_|_(?![^\W_]))")


def code(text: str) -> str:
    """The text as code on one line."""
    text = _LINE_ENDS.sub(" ", text)
    if "`" not in text:
        return f"`{text}`" if text.strip() else "` `"
    fence = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{fence} {text} {fence}"


def plain(text: str) -> str:
    """The text as it is written: signs that mean something in Markdown are escaped, line ends are blanks."""
    return _SIGNS.sub(r"\\\1", _LINE_ENDS.sub(" ", text))


def cell(markdown: str) -> str:
    """Markdown, for a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)
