"""A text with its hints in the margin, to be read rather than edited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from shapelens.source.positions import Lines, Position

# Longer lines push their hints to the right rather than all hints of the file.
WIDEST_COLUMN = 100


def annotated(lines: Lines, labels: Iterable[tuple[Position, str]]) -> str:
    """The text, with the labels of each line (at a position, as text) behind it in one column."""
    by_line: dict[int, list[str]] = defaultdict(list)
    for position, label in labels:
        by_line[position.line].append(label)
    texts = [lines.line(number) for number in range(1, lines.count + 1)]
    column = min(WIDEST_COLUMN, max((len(texts[number - 1]) for number in by_line), default=0)) + 2
    rows = [
        f"{text.ljust(column)}{'   '.join(by_line[number])}" if number in by_line else text for number, text in enumerate(texts, start=1)
    ]
    return "\n".join(rows)
