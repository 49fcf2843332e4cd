"""Annotations of jaxtyping that say another shape than a function gets or gives: `-> Float[Tensor, "b c"]` of what has three dims.

A name stands for one size in a call, as jaxtyping has it. Its own check at run time is often not installed, so that nothing else says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.shapes import dims_text
from shapelens.analysis.traces.stated_lines import is_credible, is_known
from shapelens.protocol import Value
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Lines, Span
from shapelens.stated.shape_words import Dim, Dims, is_open_rank, jaxtyping_dims
from shapelens.stated.syntax_trees import all_parameters, last_name, program_of

_HAS_SOME = re.compile(r"\w\[\s*(?:torch\.)?Tensor\s*,\s*[\"']")
_NAMES = re.compile(r"(?:Float|BFloat|Int|UInt|Complex)\d*|Inexact|Real|Num|Shaped|Integer|Bool")


@dataclass(frozen=True)
class _Annotation:
    """The annotation of a parameter, or of what a function returns (name "")."""

    name: str
    dims: Dims
    shape: str
    text: ast.Constant


def shape_annotations(places: Places) -> Iterator[Lint]:
    """Yields a lint for each annotation that what was seen contradicts. Only examples that nobody doubts count, and no guesses."""
    if _HAS_SOME.search(places.module.text) is None:
        return
    for function, said in _annotated(places.module.text).items():
        seen = {each.name: value for each in said if (value := _value(places, function, each.name)) is not None}
        sizes: dict[str, tuple[int, str]] = {}  # the size of a name, and where it is said
        for each in said:
            value = seen.get(each.name)
            reason = _lie(each.dims, value, sizes) if value is not None else ""
            if value is not None and reason:
                span = _span(places.module.lines, each.text)
                message = f'the annotation says "{each.shape}", but {each.name or "the result"} is {dims_text(value)}: {reason}'
                yield Lint("shape-comment", "warning", message, span, fix=_fix(places, span, each, value, sizes))
            elif value is not None:
                sizes.update((name, (size, each.name)) for name, size in _named(each.dims, value) if name not in sizes)


@lru_cache(maxsize=8)
def _annotated(text: str) -> Mapping[str, Sequence[_Annotation]]:
    """The annotations of a file's functions, by qualified name: parameters in their order, then what is returned."""
    tree = program_of(text)
    found: dict[str, Sequence[_Annotation]] = {}

    def visit(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                said = [_read(each.arg, each.annotation) for each in all_parameters(node)] + [_read("", node.returns)]
                found[f"{prefix}{node.name}"] = [each for each in said if each is not None]

    visit(tree.body, "")
    return found


def _read(name: str, annotation: ast.expr | None) -> _Annotation | None:
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple) or len(annotation.slice.elts) != 2:
        return None
    word = last_name(annotation.value)
    kind, text = annotation.slice.elts
    is_tensor = last_name(kind) == "Tensor"
    if not is_tensor or _NAMES.fullmatch(word) is None or not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return None
    dims = jaxtyping_dims(text.value) if "#" not in text.value and "?" not in text.value else None
    return _Annotation(name, dims, text.value, text) if dims is not None and text.lineno == text.end_lineno else None


def _value(places: Places, function: str, name: str) -> Value | None:
    """The one tensor that a parameter held, or that a function returned; None where there were several, or none that can be relied on."""
    kind = "parameter" if name else "return"
    seen = [each for each in places.trace.observations if each.kind == kind and each.function == function and each.name in (name, "return")]
    values = [value for each in seen for value in each.values]
    trusted = all(each.span.file == places.trace.file and is_credible(places.trace, each) for each in seen)
    if not trusted or not values or not all(map(is_known, values)) or len({tuple(value.shape or []) for value in values}) != 1:
        return None
    return values[0]


def _named(dims: Dims, value: Value) -> Iterator[tuple[str, int]]:
    if not is_open_rank(dims):
        for dim, size in zip(dims, value.shape or [], strict=True):
            if isinstance(dim, str) and size is not None:
                yield dim, size


def _lie(dims: Dims, value: Value, sizes: Mapping[str, tuple[int, str]]) -> str:
    """Why an annotation is not true of a value; "" where it may be."""
    shape = value.shape or []
    if is_open_rank(dims):
        return f"it has {len(shape)} dims, not {len(dims) - 1} or more" if len(shape) < len(dims) - 1 else ""
    if len(shape) != len(dims):
        return f"it has {len(shape)} dims, not {len(dims)}"
    for index, (dim, size) in enumerate(zip(dims, shape, strict=True)):
        if size is None:
            continue
        if isinstance(dim, int) and dim != size:
            return f"dim {index} is {size}, not {dim}"
        if isinstance(dim, str) and dim in sizes and sizes[dim][0] != size:
            return f"{dim} is {size} here and {sizes[dim][0]} in {sizes[dim][1]}"
    return ""


def _span(lines: Lines, text: ast.Constant) -> Span:
    """The span of what stands between the quotes."""
    start, end = lines.from_bytes(text.lineno, text.col_offset), lines.from_bytes(text.lineno, text.end_col_offset or 0)
    written = lines.text_of(Span.of(start, end))
    quotes = 3 if written[:3] in ('"""', "'''") else 1
    return Span(start.line, start.column + quotes, end.line, end.column - quotes)


def _fix(places: Places, span: Span, said: _Annotation, value: Value, sizes: Mapping[str, tuple[int, str]]) -> Fix | None:
    """Writes the shape that was seen: with the names that other annotations of the function have for its sizes."""
    if places.module.lines.text_of(span) != said.shape or None in (value.shape or [None]):
        return None
    same_rank = len(said.dims) == len(value.shape or [])
    dims = said.dims if same_rank else [None] * len(value.shape or [])
    text = " ".join(_word(size, dim, sizes) for size, dim in zip(value.shape or [], dims, strict=True) if size is not None)
    return Fix(f'Write "{text}"', [TextEdit(span, text)], places.trace.file)


def _word(size: int, said: Dim, sizes: Mapping[str, tuple[int, str]]) -> str:
    """Returns the name of a size: as the annotation does, unless that name is another size, or this one has a name in the function
    already."""
    called = [name for name, (other, _) in sizes.items() if other == size]
    if isinstance(said, str) and (said in called or (not called and said not in sizes)):
        return said
    return called[0] if called else str(size)
