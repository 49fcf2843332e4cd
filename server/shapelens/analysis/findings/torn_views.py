"""Views that tear dims apart: `x.view(B, heads, T, size)` of `[B, T, heads·size]`, where a transpose was meant.

A `view` keeps the order of the numbers. It may join neighbours (`[B, T, C]` as `[B·T, C]`) and split a dim (`C` as `heads, size`).
Where a dim of the result ends inside a dim of the tensor, and neither splits nor evenly divides that, rows of one axis meet those of
another: shapes fit, the loss falls, the numbers are nonsense. Sizes are products of names and numbers, so that none divides by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

from shapelens.analysis.explanations.statements import inserted
from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import Remark, Value
from shapelens.source.calls import Call
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

_FACTORS = re.compile(r"(?:(\d+)|([^\W\d]\w*))\Z")
_DIVIDED = re.compile(r"(.*)/(\d+)\Z")


@dataclass(frozen=True)
class _Size:
    """A size as a product: a number times names, each with its power."""

    number: Fraction
    names: tuple[tuple[str, int], ...]  # sorted, without powers of 0

    def times(self, other: _Size, power: int = 1) -> _Size:
        """Returns the product with another size, or the quotient with power=-1."""
        powers = dict(self.names)
        for name, count in other.names:
            powers[name] = powers.get(name, 0) + power * count
        kept = tuple(sorted((name, count) for name, count in powers.items() if count))
        return _Size(self.number * other.number**power, kept)

    def is_whole(self) -> bool:
        """True if it is a whole number whatever the sizes of its names."""
        return self.number.denominator == 1 and all(count > 0 for _, count in self.names)


_ONE = _Size(Fraction(1), ())


def _size(text: str) -> _Size | None:
    """The size that a dim's name says: `64`, `B`, `4·T`, `H/4`. None for what is no product: `T+1`, `?`."""
    divided = _DIVIDED.match(text)
    numerator, denominator = (divided[1], int(divided[2])) if divided is not None else (text, 1)
    found = _Size(Fraction(1, denominator), ())
    for part in re.split(r"[·*]", numerator):
        factor = _FACTORS.match(part)
        if factor is None:
            return None
        found = found.times(_Size(Fraction(int(factor[1])), ()) if factor[1] else _Size(Fraction(1), ((factor[2], 1),)))
    return found


def torn_view(places: Places, remark: Remark, place: Place) -> Lint | None:
    """Returns the lint of a view that tears dims apart; None where it does not, or nobody can tell."""
    tensor, result = remark.inputs
    if remark.layer is not None or tensor.shape is None or result.shape is None:
        return None
    given, asked = _names(tensor), _names(result)
    torn = _torn_dims(given, asked)
    if not torn and not remark.axes:
        return None
    same = sorted((name for name in torn if name in given), key=str.isdigit)
    consequence = f"the {same[0]} of the result is not the {same[0]} of the tensor" if same else "it cuts across dims"
    message = f"{dims_text(tensor)} → {dims_text(result)} keeps the order of the numbers, so that {consequence}"
    return Lint("torn-view", "warning", message, place.span, fix=_fix(place, place.module.call_at(place.span), given, asked))


def _names(value: Value) -> list[str]:
    if value.named is not None and len(value.named) == len(value.shape or []):
        return value.named
    return [str(size) for size in value.shape or []]


def _torn_dims(tensor: Sequence[str], result: Sequence[str]) -> list[str]:
    """The names of the result's dims that begin or end where a view of the tensor cuts across dims; [] for a size that is no product."""
    left = [name for name in reversed(result) if name != "1"]
    given, asked = [_size(name) for name in tensor if name != "1"], [_size(name) for name in reversed(left)]
    if None in given or None in asked:
        return []
    starts, ends = _boundaries([size for size in given if size is not None]), _boundaries([size for size in asked if size is not None])
    if starts[-1] != ends[-1]:
        return []
    cuts = [place for place, end in enumerate(ends) if not _is_clean(end, starts, ends)]
    return [left[place + side] for place in cuts for side in (-1, 0) if place + side < len(left)]


def is_torn(tensor: Sequence[str], result: Sequence[str]) -> bool:
    """True if a view of a tensor with dims of these sizes cuts across dims."""
    return bool(_torn_dims(tensor, result))


def _boundaries(sizes: Sequence[_Size]) -> list[_Size]:
    """How many numbers lie inside of each dim, from the last one on: 1, then the products of the sizes."""
    found = [_ONE]
    for size in reversed(sizes):
        found.append(found[-1].times(size))
    return found


def _is_clean(cut: _Size, given: Sequence[_Size], asked: Sequence[_Size]) -> bool:
    """True if a dim of the result ends where one of the tensor does, or splits it evenly, without taking parts of two dims."""
    if cut in given:
        return True
    place = asked.index(cut)
    for start, end in pairwise(given):
        # What is left of the dim on either side is a whole number of times there, or is asked for as what is left: `T // 4`.
        inside = cut.times(start, -1).is_whole() or start in asked[:place]
        outside = end.times(cut, -1).is_whole() or end in asked[place:]
        if inside and outside:
            return not _joins_parts(asked[place - 1], start, given, asked)
    return False


def _joins_parts(before: _Size, start: _Size, given: Sequence[_Size], asked: Sequence[_Size]) -> bool:
    """True if the dim of the result that begins at `before` takes a part of one dim of the tensor, and a part of the next, from `start`."""
    return start not in asked and before not in given


def _fix(place: Place, call: Call | None, tensor: list[str], result: list[str]) -> Fix | None:
    """Puts a transpose where it was left out: before a view that joins dims, behind one that splits them."""
    if call is None or call.span != place.span:
        return None
    lines, name = place.module.lines, call.function.rpartition(".")[2]
    opened = lines.offset(call.open_bracket)
    start = opened - 1 - len(name)
    if name not in ("view", "reshape") or lines.text[start : opened - 1] != name or lines.text[start - 1 : start] != ".":
        return None
    if sorted(tensor) == sorted(result) and (swap := _swapped(tensor, lambda dims: dims == result)) is not None:
        edit = TextEdit(Span.of(lines.position(start), call.span.end), f"transpose({swap[0]}, {swap[1]})")
        return Fix(f"Transpose dims {swap[0]} and {swap[1]} → {_text(result)}", [edit], place.file)
    sizes = [each for each in call.arguments if not each.star and each.keyword is None]
    swap = _swapped(result, lambda dims: not is_torn(tensor, dims)) if len(sizes) == len(result) == len(call.arguments) else None
    if swap is not None:
        one, other = sizes[swap[0]], sizes[swap[1]]
        edits = [TextEdit(one.span, other.text), TextEdit(other.span, one.text)]
        edits.append(inserted(call.span.end, f".transpose({swap[0]}, {swap[1]})"))
        return Fix(f"Keep the order, then transpose dims {swap[0]} and {swap[1]} → {_text(result)}", edits, place.file)
    swap = _swapped(tensor, lambda dims: not is_torn(dims, result))
    if swap is None:
        return None
    edits = [inserted(lines.position(start - 1), f".transpose({swap[0]}, {swap[1]})")]
    if name == "view":
        edits.append(TextEdit(Span.of(lines.position(start), lines.position(opened - 1)), "reshape"))
    return Fix(f"Transpose dims {swap[0]} and {swap[1]} before it → {_text(result)}", edits, place.file)


def _swapped(dims: Sequence[str], is_right: Callable[[list[str]], bool]) -> tuple[int, int] | None:
    """The dims to exchange so that it is right, neighbours first, the first dim last."""
    pairs = sorted(combinations(range(len(dims)), 2), key=lambda pair: (pair[0] == 0, pair[1] - pair[0]))
    for one, other in pairs:
        changed = list(dims)
        changed[one], changed[other] = changed[other], changed[one]
        if changed != list(dims) and is_right(changed):
            return one, other
    return None


def _text(dims: Sequence[str]) -> str:
    return "[" + ", ".join(name.replace("*", "·") for name in dims) + "]"
