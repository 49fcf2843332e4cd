"""Docstrings that say another shape than a function gets or gives: `x: input of shape (B, T, C)` of what has four dims.

They are judged as comments are (`shape_comments`). The names of a function's dims are those of one table: what it unpacks, and what its
docstring calls them. A docstring speaks in general where a comment speaks of its line. So a number that a caller may choose is no lie, nor
is a batch that is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.findings.shape_comments import ShapeSaid, fix, lie, sizes_of_names
from shapelens.analysis.places import Places
from shapelens.analysis.shapes import dims_text
from shapelens.analysis.traces.stated_lines import is_credible, is_known
from shapelens.protocol import Value
from shapelens.source.positions import Span
from shapelens.stated.docstring_entries import described
from shapelens.stated.shape_words import Dim, is_batch, is_open_rank, stated_shapes
from shapelens.stated.syntax_trees import program_of

_HAS_SOME = re.compile(r"[\[(][^\[\]()\n]*,[^\[\]()\n]*[\])]")
# Words that say that a shape holds at times, of a part, of another tensor, or of what becomes of this one.
_RELATIVE = re.compile(
    r"\b(?:or|if|when|whether|otherwise|else|unless|except|per|each|every|list|tuple|sequence|dict|pair|e\.g|i\.e|example|either|"
    r"broadcast\w*|expand\w*|reshape[sd]?|flatten\w*|unsqueez\w*|transpose[sd]?|permut\w*|convert\w*|project\w*|becomes?|before|after|"
    r"then|same|un-?batched|can|may|could|should|must|multiple|both|respectively|contain\w*|where|index\w*|indices|range|between|"
    r"values? in|interval)\b"
    r"|[-=]+>|→|⇒|\.\.\.|…|\||/",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Stated:
    """A docstring's words for a parameter, or for what its function returns (name "")."""

    name: str
    dims: tuple[Dim, ...]
    text: str
    span: Span


def shape_docstrings(places: Places) -> Iterator[Lint]:
    """Yields a lint for each shape of a docstring that what was seen contradicts. What is guessed or doubtful does not count."""
    documented = _documented(places.module.text)
    unpacked = sizes_of_names(places) if documented else {}
    for function, stated in documented.items():
        sizes = dict(unpacked.get(function, {}))
        called: dict[str, str] = {}  # what the docstring calls a dim of the example
        for each in sorted(stated, key=lambda one: not one.name):
            said = ShapeSaid(each.name, each.dims, each.text, each.span, _values(places, function, each.name), function)
            reasons = [_reason(said, value, sizes) for value in said.values]
            if reasons and all(reasons):
                message = f"the docstring says {said.text}, but {said.name or 'the result'} is {dims_text(said.values[0])}: {reasons[0]}"
                yield Lint("shape-comment", "warning", message, said.span, fix=fix(places, said, sizes, called))
            elif not any(reasons) and len(said.values) == 1:
                _learn(said, said.values[0], sizes, called)


def _values(places: Places, function: str, name: str) -> Sequence[Value]:
    """The tensors that a parameter held, or that a function returned; none where it was something else too, or nobody can rely on it."""
    kind = "parameter" if name else "return"
    seen = [each for each in places.trace.observations if each.kind == kind and each.function == function and each.name in (name, "return")]
    values = [value for each in seen for value in each.values]
    trusted = all(each.span.file == places.trace.file and is_credible(places.trace, each) for each in seen)
    return values if trusted and all(map(is_known, values)) else []


def _learn(said: ShapeSaid, value: Value, sizes: dict[str, int], called: dict[str, str]) -> None:
    """Takes the names of a true shape into the table of its function."""
    if is_open_rank(said.dims) or len(said.dims) != len(value.shape or []):
        return
    for dim, size, symbol in zip(said.dims, value.shape or [], value.named or ["?"] * len(said.dims), strict=True):
        if isinstance(dim, str) and size is not None:
            sizes.setdefault(dim, size)
            if not symbol.isdigit() and symbol != "?":
                called.setdefault(symbol, dim)


def _reason(said: ShapeSaid, value: Value, sizes: Mapping[str, int]) -> str:
    """Why a docstring is not true of a value; "" where it may be."""
    shape, dims = value.shape or [], said.dims
    if len(shape) == len(dims) + 1 and not any(map(is_batch, dims)):
        return ""  # Of one of a batch.
    dims = dims if not said.name else tuple(None if isinstance(dim, int) and dim > 1 else dim for dim in dims)
    return lie(ShapeSaid(said.name, dims, said.text, said.span, said.values, said.function), value, sizes)


@lru_cache(maxsize=8)
def _documented(text: str) -> Mapping[str, Sequence[_Stated]]:
    """Returns the shapes in the docstrings of a file, by the qualified name of the function."""
    if _HAS_SOME.search(text) is None or ('"""' not in text and "'''" not in text):
        return {}
    tree = program_of(text)
    lines = text.splitlines()
    found: dict[str, Sequence[_Stated]] = {}

    def visit(body: Sequence[ast.stmt], prefix: str, outer: ast.ClassDef | None) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.", node)
            elif isinstance(node, ast.FunctionDef) and node.name != "__init__":
                stated = _of(node, node, lines)
                if not stated and outer is not None and node.name == "forward":
                    stated = _of(outer, node, lines)
                if stated:
                    found[f"{prefix}{node.name}"] = stated

    visit(tree.body, "", None)
    return found


def _of(documented: ast.FunctionDef | ast.ClassDef, function: ast.FunctionDef, lines: Sequence[str]) -> Sequence[_Stated]:
    """Returns the shapes in the docstring of a function, or in the part of its class's that speaks of shapes."""
    first = documented.body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant) or not isinstance(first.value.value, str):
        return []
    top, bottom = first.value.lineno, first.value.end_lineno or first.value.lineno
    opening = lines[top - 1].encode()[: first.value.col_offset].decode()
    text = re.sub(r"^[rRuU]?(?:\"\"\"|'''|\"|')", lambda match: " " * len(match[0]), lines[top - 1][len(opening) :])
    rows = [" " * len(opening) + text, *lines[top:bottom]]
    start = 0
    if isinstance(documented, ast.ClassDef):
        start = next((number for number, row in enumerate(rows) if re.match(r"\s*Shapes?:{1,2}\s*$", row)), len(rows))
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg not in ("self", "cls")]
    required = arguments[: len(arguments) - len(function.args.defaults)]
    names = arguments + [each.arg for each in function.args.kwonlyargs]
    found: dict[str, _Stated | None] = {}
    for entry in described("\n".join(rows[start:]), names, required[0] if len(required) == 1 else None):
        stated = _stated(entry.name, entry.text, rows, range(start + entry.line, start + entry.end_line + 1), top)
        is_twice = entry.name in found and (found[entry.name] is None or stated is not None)
        found[entry.name] = None if is_twice else stated
    return [each for each in found.values() if each is not None]


def _stated(name: str, text: str, rows: Sequence[str], where: range, top: int) -> _Stated | None:
    """The shape that an entry states; None where it states none, several, or one that does not hold in general."""
    shapes = stated_shapes(text)
    if len(shapes) != 1 or shapes[0].alternatives:
        return None
    plain = " ".join(re.sub(r":(?:math|obj|class|attr|code|ref):(?=`)|[`$]", "", text).split())
    shape = plain[shapes[0].start : shapes[0].end]
    without_type = re.sub(r"^\s*:?\s*\([^()]*\)\s*:", "", plain.replace(shape, "", 1))
    if shape[:1] not in "([" or shape[-1:] not in ")]" or plain.count(shape) != 1 or _RELATIVE.search(without_type):
        return None
    places = [(number, row.index(shape)) for number, row in enumerate(rows) if number in where and row.count(shape) == 1]
    if len(places) != 1:
        return None
    number, column = places[0]
    return _Stated(name, shapes[0].dims, shape, Span(top + number, column, top + number, column + len(shape)))
