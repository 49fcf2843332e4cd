"""Views that tear dims apart: `x.view(B, heads, T, size)` of `[B, T, heads·size]`, where a transpose was meant.

A `view` keeps the order of the numbers. It may join neighbours (`[B, T, C]` as `[B·T, C]`) and split a dim (`C` as `heads, size`).
Where a dim of the result ends inside a dim of the tensor, and neither splits nor evenly divides that, rows of one axis meet those of
another: shapes fit, the loss falls, the numbers are nonsense. Sizes are products of names and numbers, so that none divides by chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import NamedTuple

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
MOST_DIMS = 6  # of which all orders are tried
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
    if not remark.axes and (not torn or remark.given == "constants"):
        return None
    same = sorted((name for name in torn if name in given), key=str.isdigit)
    consequence = f"the {same[0]} of the result is not the {same[0]} of the tensor" if same else "it cuts across dims"
    message = f"{dims_text(tensor)} → {dims_text(result)} keeps the order of the numbers, so that {consequence}"
    return Lint("torn-view", "warning", message, place.span, fix=_fix(place, place.module.call_at(place.span), given, asked, remark.sized))


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
    """Returns the strides of a contiguous tensor, from the last dim on: 1, then the products of the sizes."""
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


def _fix(place: Place, call: Call | None, tensor: list[str], result: list[str], sized: Sequence[Sequence[int]]) -> Fix | None:
    """Puts a transpose where it was left out: before a view that joins dims, behind one that splits them.

    sized: other sizes of these dims, which hardly divide each other.
    """
    if call is None or call.span != place.span:
        return None
    lines, name = place.module.lines, call.function.rpartition(".")[2]
    opened = lines.offset(call.open_bracket)
    start = opened - 1 - len(name)
    if name not in ("view", "reshape", "flatten") or lines.text[start : opened - 1] != name or lines.text[start - 1 : start] != ".":
        return None
    if sorted(tensor) == sorted(result) and name != "flatten":
        turn, what = _turn(_order(tensor, result))
        edit = TextEdit(Span.of(lines.position(start), call.span.end), turn)
        return Fix(f"{what.capitalize()} → {_text(result)}", [edit], place.file)
    views = [(tensor, result)]
    if list(map(len, sized)) == [len(tensor), len(result)]:
        views.append((list(map(str, sized[0])), list(map(str, sized[1]))))
    sizes = [each for each in call.arguments if not each.star and each.keyword is None]
    is_written = len(sizes) == len(result) == len(call.arguments) and name != "flatten"
    behind = _best_order(len(result), [(given, asked, False) for given, asked in views]) if is_written else None
    before = _best_order(len(tensor), [(given, asked, True) for given, asked in views])
    if behind is not None and (before is None or behind.is_nested or not before.is_nested):
        order = behind.order
        turn, what = _turn([order.index(dim) for dim in range(len(order))])
        edits = [TextEdit(each.span, sizes[dim].text) for each, dim in zip(sizes, order, strict=True) if each is not sizes[dim]]
        edits.append(inserted(call.span.end, f".{turn}"))
        return Fix(f"Keep the order, then {what} → {_text(result)}", edits, place.file)
    if before is None:
        return None
    turn, what = _turn(before.order)
    edits = [inserted(lines.position(start - 1), f".{turn}")]
    if name == "view":
        edits.append(TextEdit(Span.of(lines.position(start), lines.position(opened - 1)), "reshape"))
    return Fix(f"{what.capitalize()} before it → {_text(result)}", edits, place.file)


def _order(dims: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each of the wanted dims is among the dims that there are; of those with one name, the first one first."""
    left = list(range(len(dims)))
    return [left.pop(next(place for place, dim in enumerate(left) if dims[dim] == name)) for name in wanted]


class _Order(NamedTuple):
    """An order of dims with which a view is whole. is_nested: it only joins dims, or only splits them."""

    order: list[int]
    is_nested: bool


def _best_order(rank: int, views: Sequence[tuple[Sequence[str], Sequence[str], bool]]) -> _Order | None:
    """The order with which views are whole: one that only joins or splits, that leaves the first dim in place, and moves few others.

    views: the dims of a tensor and of its view, and whether those of the tensor are put into the order.
    """
    if rank > MOST_DIMS:
        return None
    orders = [list(order) for order in permutations(range(rank))]
    orders.sort(key=lambda order: (order[0] != 0, sum(one > other for one, other in combinations(order, 2)), [-dim for dim in order]))
    right: list[_Order] = []
    for order in orders[1:]:
        turned = [
            ([given[dim] for dim in order], asked) if is_tensor else (given, [asked[dim] for dim in order])
            for given, asked, is_tensor in views
        ]
        if all(not is_torn(given, asked) for given, asked in turned):
            right.append(_Order(order, all(_is_nested(given, asked) for given, asked in turned)))
            if right[-1].is_nested:
                return right[-1]
    return right[0] if right else None


def _is_nested(given: Sequence[str], asked: Sequence[str]) -> bool:
    inside, wanted = ([_size(name) for name in names if name != "1"] for names in (given, asked))
    starts, ends = (_boundaries([size for size in sizes if size is not None]) for sizes in (inside, wanted))
    return None not in inside and None not in wanted and (all(each in ends for each in starts) or all(each in starts for each in ends))


def _turn(order: list[int]) -> tuple[str, str]:
    """The call of a method that puts dims into an order, and what it does in words."""
    moved = [dim for dim, source in enumerate(order) if dim != source]
    if len(moved) == 2:
        return f"transpose({moved[0]}, {moved[1]})", f"transpose dims {moved[0]} and {moved[1]}"
    text = ", ".join(map(str, order))
    return f"permute({text})", f"permute to ({text})"


def _text(dims: Sequence[str]) -> str:
    return "[" + ", ".join(name.replace("*", "·") for name in dims) + "]"
