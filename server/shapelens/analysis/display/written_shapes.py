"""Shapes written down as comments behind the lines that give them: `x = self.conv(x)  # (B, 32, H, W)`.

A line that has a comment keeps it, so that writing twice changes nothing. What a guess shows is not written: a comment states it as a fact.
`analysis/findings/shape_comments.py` holds such comments against what a run shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

from shapelens.analysis.traces.stated_lines import is_credible, is_known, stated_lines
from shapelens.protocol import Trace, Value
from shapelens.source.module import Module
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span

_ROUND, _SQUARE = re.compile(r"#.*\(\s*[A-Za-z]\w*\s*,"), re.compile(r"#.*\[\s*[A-Za-z]\w*\s*,")


def written_shapes(module: Module, trace: Trace, functions: Collection[str] | None = None) -> dict[int, TextEdit]:
    """Returns the edits that write shapes as comments, by the line at which the hint of that shape stands (1-based).

    functions: the qualified names of those whose lines are wanted; None for all. The brackets are those of the file's other comments.
    """
    square = len(_SQUARE.findall(module.text)) > len(_ROUND.findall(module.text))
    found: dict[int, TextEdit] = {}
    for line in stated_lines(module, trace):
        text = _one_shape(line.values, square=square)
        if text and not line.rest.strip() and (functions is None or line.function in functions):
            found.setdefault(line.span.line, _comment(module, line.span.end_line, text))
    for number, text in _parameters(module, trace, functions, square=square).items():
        found.setdefault(number, _comment(module, number, text))
    return found


def _parameters(module: Module, trace: Trace, functions: Collection[str] | None, *, square: bool) -> dict[int, str]:
    """Returns the comments about the parameters of a line, by line: `x: (B, T, 64), mask: (B, T)`."""
    by_line: dict[int, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    unsure = set[int]()
    for seen in trace.observations:
        if seen.span.file != trace.file or seen.kind != "parameter" or (functions is not None and seen.function not in functions):
            continue
        span = module.lines.span_from_bytes(seen.span)
        tensors = [value for value in seen.values if value.kind == "tensor"]
        if tensors and not (is_credible(trace, seen) and len(tensors) == len(seen.values) and all(map(is_known, tensors))):
            unsure.add(span.line)
        by_line[span.line][seen.name] += tensors
    found = {}
    for number, names in by_line.items():
        texts = {name: _one_shape(values, square=square) for name, values in names.items() if values}
        if texts and all(texts.values()) and number not in unsure and _ends_a_head(module, number):
            found[number] = ", ".join(f"{name}: {text}" for name, text in texts.items())
    return found


def _ends_a_head(module: Module, number: int) -> bool:
    """True if a line ends a function's head or one of its parameters, without a comment or a string that may hold `#`."""
    text = module.lines.line(number).rstrip()
    return text.endswith((":", ",")) and "#" not in text


def _one_shape(values: Collection[Value], *, square: bool) -> str:
    """The shape that all of some tensors have, as a comment says it; "" where they differ, or a size is not known."""
    shapes = {tuple(value.named or map(str, value.shape or [])) for value in values}
    names = next(iter(shapes)) if len(shapes) == 1 else ("?",)
    if any("?" in name or name == "None" for name in names):
        return ""
    inside = ", ".join(name.replace("·", "*") for name in names)
    return f"[{inside}]" if square else f"({inside},)" if len(names) == 1 else f"({inside})"


def _comment(module: Module, number: int, text: str) -> TextEdit:
    line = module.lines.line(number)
    start = Position(number, len(line.rstrip()))
    return TextEdit(Span.of(start, Position(number, len(line))), f"  # {text}")
