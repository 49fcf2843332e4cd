"""Comments behind a line that say another shape than the line gives: `x = x.flatten(1)  # (B, C, H, W)`.

A comment counts where it states one shape, and nothing but the name of the variable and words such as "shape" stand before it; of
`(B, T, C) @ (B, C, T) -> (B, T, T)` what stands behind the arrow counts. It lies where it has another number of dims, a number that the
run contradicts, or two names that have changed places. How a dim is spelled, and a name that means another size here, are no lies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.shapes import dims_text
from shapelens.analysis.traces.stated_lines import is_credible, is_known, stated_lines
from shapelens.protocol import FileSpan, Value
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.shape_words import Dim, StatedShape, is_dim_word, is_open_rank, read_dims, stated_shapes

_COMMENT = re.compile(r"\s*;?\s*#+:?\s*(.*?)\s*\Z")
_ARROW = re.compile(r"[-=]+>|→|⇒|↦")
# What may stand before the shape of the variable itself; {name} is the variable.
_BEFORE = (
    r"(?:{name}(?:\.shape|\.size\(\)|'s shape)?|torch\.Size|[\s:=~∈`'\"]"
    r"|\b(?:the|new|now|out(?:put)?|result|returns?|gives|shape[sd]?|sized?|tensor|is|of|has)\b)*"
)
# Words behind it that say that it holds at times, of a part or of another tensor.
_RELATIVE = re.compile(
    r"\b(?:or|if|when|per|each|for|before|was|were|instead|not|vs|from|after|in|with|unless|mask(?:ed)?|except)\b|[/|@*+<]"
)
_NUMBER = re.compile(r"\d+\Z")


@dataclass(frozen=True)
class ShapeSaid:
    """A text that states a shape, and what the run has seen of that: a comment of its line, a docstring of a parameter or result."""

    name: str
    dims: tuple[Dim, ...]
    text: str  # as it stands there: `(B, T, C)`
    span: Span  # of that text
    values: Sequence[Value]
    function: str
    statement: FileSpan | None = None  # of a comment


def shape_comments(places: Places) -> Iterator[Lint]:
    """Yields a lint for each comment that what was seen contradicts. Only examples that nobody doubts count, and no guesses."""
    said = list(_said(places))
    sizes = sizes_of_names(places)
    for each in said:
        reasons = [lie(each, value, sizes.get(each.function, {})) for value in each.values]
        if all(reasons) and not _is_of_part(places, each, sizes.get(each.function, {})):
            shape = dims_text(each.values[0])
            message = f"the comment says {each.text}, but {each.name or 'the value'} is {shape}: {reasons[0]}"
            yield Lint("shape-comment", "warning", message, each.span, fix=fix(places, each, sizes.get(each.function, {})))


def _said(places: Places) -> Iterator[ShapeSaid]:
    for line in stated_lines(places.module, places.trace):
        comment = _COMMENT.match(line.rest) if "#" in line.rest else None
        stated = _stated(comment[1], line.name) if comment is not None else None
        if comment is not None and stated is not None:
            shape, start, text = stated
            column = line.span.end_column + comment.start(1) + start
            place = Span(line.span.end_line, column, line.span.end_line, column + len(text))
            yield ShapeSaid(line.name, shape.dims, text, place, line.values, line.function, line.statement)


def _stated(comment: str, name: str) -> tuple[StatedShape, int, str] | None:
    """The shape that a comment states of its line, where it begins in the comment, and its text; None where it states none, or several."""
    arrows = list(_ARROW.finditer(comment))
    start = arrows[-1].end() if arrows else 0
    tail = comment[start:]
    if " ".join(tail.split()) != tail.strip():
        tail = re.sub(r"\s", " ", tail)
    stripped = tail.strip()
    if "  " in stripped or "$" in stripped or "\\" in stripped or "`" in stripped:
        return None  # What is found could not be found again in the comment.
    start += len(tail) - len(tail.lstrip())
    shapes = stated_shapes(stripped) or _whole(stripped)
    if len(shapes) != 1 or shapes[0].alternatives:
        return None
    shape = shapes[0]
    before, after = stripped[: shape.start], stripped[shape.end :]
    words = _BEFORE.replace("{name}", re.escape(name)) if name else _BEFORE.replace("{name}", "output")
    if re.fullmatch(words, before, re.IGNORECASE) is None or _RELATIVE.search(after):
        return None
    return shape, start + shape.start, stripped[shape.start : shape.end]


def _whole(comment: str) -> list[StatedShape]:
    """The shape that a comment is, if some of its names are those of dims: `(B, nh, T, hs)`."""
    dims = read_dims(comment[1:-1], lenient=False) if re.fullmatch(r"\(.*\)|\[.*\]", comment) else None
    names = [dim for dim in dims or () if isinstance(dim, str)]
    if dims is None or len(dims) < 2 or sum(map(is_dim_word, names)) * 2 < len(names) or not names:
        return []
    return [StatedShape(dims, 0, len(comment))]


def _is_of_part(places: Places, said: ShapeSaid, sizes: Mapping[str, int]) -> bool:
    """True if a part of the statement has the shape: `y = (a @ b).squeeze(3)  # (B, T, N) @ (B, N, 1) -> (B, T, 1)`."""
    whole, seen = said.statement, places.trace.observations
    if whole is None:
        return False
    inside = (each for each in seen if each.kind == "expression" and not each.name and each.span.file == whole.file)
    parts = (value for each in inside if whole.line <= each.span.line and each.span.end_line <= whole.end_line for value in each.values)
    return any(value.kind == "tensor" and is_known(value) and not lie(said, value, sizes) for value in parts)


def sizes_of_names(places: Places) -> dict[str, Mapping[str, int]]:
    """The sizes that names of dims have in each function, as it unpacks them (`B, T, C = x.shape`); those of one size."""
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for seen in places.trace.observations:
        if seen.span.file == places.trace.file and seen.kind == "assign" and is_credible(places.trace, seen):
            for value in seen.values:
                size = int(value.text) if value.kind == "scalar" and _NUMBER.match(value.text) else -1
                found[seen.function][seen.name].add(size)
    return {
        function: {name: next(iter(sizes)) for name, sizes in names.items() if len(sizes) == 1 and -1 not in sizes}
        for function, names in found.items()
    }


def lie(said: ShapeSaid, value: Value, sizes: Mapping[str, int]) -> str:
    """Why what is said is not true of a value; "" where it may be."""
    shape, dims = value.shape or [], said.dims
    if is_open_rank(dims):
        least = len(dims) - 1
        return f"it has {_dims(len(shape))}, not {least} or more" if len(shape) < least else ""
    if len(shape) != len(dims):
        return f"it has {_dims(len(shape))}, not {len(dims)}"
    for index, dim in enumerate(dims):
        if isinstance(dim, int) and value.named is not None and _NUMBER.match(value.named[index]) and int(value.named[index]) != dim:
            return f"dim {index} is {value.named[index]}, not {dim}"
    swapped = _swapped(dims, shape, sizes)
    return f"{swapped[0]} and {swapped[1]} have changed places" if swapped is not None else _moved(dims, value, sizes)


def _dims(count: int) -> str:
    return "one dim" if count == 1 else f"{count} dims"


def _swapped(dims: Sequence[Dim], shape: Sequence[int | None], sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """Two names of a comment, each of which has the size that the function calls by the other one."""
    for one, first in enumerate(dims):
        for other, second in enumerate(dims[one + 1 :], one + 1):
            if isinstance(first, str) and isinstance(second, str) and first in sizes and second in sizes:
                a, b = sizes[first], sizes[second]
                if a != b and shape[one] == b and shape[other] == a:
                    return first, second
    return None


def _moved(dims: Sequence[Dim], value: Value, sizes: Mapping[str, int]) -> str:
    """Why a name stands at a wrong place: the dim of that name in the example is another one; "" where none does."""
    shape, names = value.shape or [], value.named or []
    for index, dim in enumerate(dims):
        if isinstance(dim, str) and dim in sizes and dim in names and names.count(dim) == 1 and shape[index] != sizes[dim]:
            there = names.index(dim)
            if shape[there] == sizes[dim] and dims[there] != dim and dims.count(dim) == 1:
                return f"{dim} is dim {there}, not dim {index}"
    return ""


def fix(places: Places, said: ShapeSaid, sizes: Mapping[str, int], called: Mapping[str, str] | None = None) -> Fix | None:
    """Writes the shape that was seen in its place: names of the comment where they are right, else those of the hint.

    called: what the text calls dims of the hint elsewhere.
    """
    if len(said.values) != 1 or said.text[:1] not in "([" or said.text[-1:] not in ")]":
        return None
    value = said.values[0]
    shape, seen = value.shape or [], value.named or []
    if len(seen) != len(shape) or "?" in seen:
        return None
    names = [(called or {}).get(name, name).replace("*", "·") for name in seen]
    if len(said.dims) == len(shape):
        names = [_right(dim, index, value, said, sizes) for index, dim in enumerate(said.dims)]
    inside = ", ".join(names) + ("," if len(names) == 1 and said.text[0] == "(" else "")
    text = said.text[0] + inside + said.text[-1]
    return Fix(f"Write {text}", [TextEdit(said.span, text)], places.trace.file)


def _right(dim: Dim, index: int, value: Value, said: ShapeSaid, sizes: Mapping[str, int]) -> str:
    """Returns the name of one dim of a shape that has as many dims as the comment's."""
    assert value.shape is not None and value.named is not None
    size, symbol = value.shape[index], value.named[index]
    called = [name for name in said.dims if isinstance(name, str) and sizes.get(name) == size]
    if isinstance(dim, str) and (sizes.get(dim) == size or (dim not in sizes and symbol not in called)):
        return dim
    return called[0] if called else symbol.replace("*", "·")
