"""Expressions for a size where a layer is constructed: names, attributes, arguments of other layers, their products and sums.

A number that is right for this configuration alone is not what an author means where the constructor speaks in names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from shapelens.analysis.explanations.names_in_scope import Scope, SizeName, argument_size, has_name, holds, is_size, known_sizes, scope_of
from shapelens.analysis.places import ArgumentPlace, Places
from shapelens.protocol import LayerSeen
from shapelens.stated.syntax_trees import expression_of

_NAME = re.compile(r"[A-Za-z_]\w*")
_COUNTS = re.compile(r"layers|depth|epochs?|batch|blocks|class(es)?\b", re.IGNORECASE)  # of what no width is multiplied with
MOST_EXPRESSIONS = 3  # that are tried for one argument
FACTORS = (2, 3, 4)  # what a name is multiplied with, as of the two directions of an LSTM, or of queries, keys and values


def size_expressions(places: Places, place: ArgumentPlace, wanted: Iterable[int], partner: tuple[LayerSeen, str] | None) -> list[str]:
    """Returns expressions that make an argument one of these sizes: likely expressions first, none a bare number.

    partner: the layer that the argument has to agree with, and its argument: it comes first, where it is written in names of the same
    function. What keeps the text that is there now comes next, then single names, and products of two.
    """
    sizes = frozenset(wanted)
    scope = scope_of(place)
    written = place.argument.text.strip() if place.argument is not None else ""
    if scope is None or not sizes or "\n" in written:
        return []
    if partner is not None and has_name(written) and _is_literal(places, place, scope, sizes, *partner):
        return [str(min(sizes))]
    known = list(known_sizes(places, place, scope))
    found = [*_of_partner(places, place, scope, sizes, *partner)] if partner is not None else []
    if has_name(written):
        now = next((each.values for each in known if each.text == written), frozenset())
        found += _around(SizeName(written, now), known, sizes)
        found += [each.text for each in known if each.values == sizes]
        found += _products(known, sizes)
    return [text for text in dict.fromkeys(found) if text != written][:MOST_EXPRESSIONS]


def of_other_layers(places: Places, place: ArgumentPlace, wanted: Iterable[int]) -> list[str]:
    """Returns the arguments of other layers of the same function that are one of these sizes in an expression of all names that are written
    here: `3 * patch**2` where `3 * patch` is written."""
    written = place.argument.text.strip() if place.argument is not None else ""
    names, scope = set(_NAME.findall(written)), scope_of(place)
    if scope is None or not names:
        return []
    known = [each for each in known_sizes(places, place, scope) if each.is_argument and each.values == frozenset(wanted)]
    return [each.text for each in known if each.text != written and names <= set(_NAME.findall(each.text))][:1]


# --- what may be written ---


def _of_partner(
    places: Places, place: ArgumentPlace, scope: Scope, sizes: frozenset[int], layer: LayerSeen, argument: str
) -> Iterator[str]:
    """Yields the arguments of the other layer, where the same function constructs that layer."""
    made = places.argument(layer, argument)
    if made is None or made.argument is None or made.file != place.file or not holds(scope.span, made.span):
        return
    text, size = made.argument.text.strip(), argument_size(layer, argument)
    if not is_size(text) or size is None:
        return
    if size in sizes:
        yield text
    for factor in FACTORS:
        if {size * factor} == sizes:
            yield f"{_factor(text)} * {factor}"


def _is_literal(places: Places, place: ArgumentPlace, scope: Scope, sizes: frozenset[int], layer: LayerSeen, argument: str) -> bool:
    """True if the other layer is given the size as a number in the same function: what agrees with it is that number."""
    made = places.argument(layer, argument)
    text = made.argument.text.strip() if made is not None and made.argument is not None else ""
    return made is not None and made.file == place.file and holds(scope.span, made.span) and text.isdecimal() and {int(text)} == sizes


def _around(written: SizeName, known: Sequence[SizeName], sizes: frozenset[int]) -> Iterator[str]:
    """The text that is there, with a factor or a summand more."""
    now = written.values
    for other in known:
        if other.text != written.text and len(other.values) == 1 and not other.is_argument and not _COUNTS.search(other.text):
            (value,) = other.values
            if value > 1 and {size * value for size in now} == sizes:
                yield f"{_factor(written.text)} * {_factor(other.text)}"
    for other in known:
        if other.text != written.text and len(other.values) == 1 and {size + min(other.values) for size in now} == sizes:
            yield f"{written.text} + {other.text}"
    for factor in FACTORS:
        if {size * factor for size in now} == sizes:
            yield f"{_factor(written.text)} * {factor}"
        if now and now == {size * factor for size in sizes}:
            yield f"{_factor(written.text)} // {factor}"


def _products(known: Sequence[SizeName], sizes: frozenset[int]) -> Iterator[str]:
    """Twice a size, sums of what two layers were given, as of those that a `cat` joins, then other multiples and products."""
    known = [each for each in known if each.is_argument or not _COUNTS.search(each.text)]
    single = [each for each in known if len(each.values) == 1 and min(each.values) > 1]
    plain = [each for each in known if all(part.isidentifier() for part in each.text.split("."))]
    yield from _times(plain, FACTORS[:1], sizes)
    for one, other in combinations([each for each in single if each.is_argument], 2):
        if {min(one.values) + min(other.values)} == sizes:
            yield f"{one.text} + {other.text}"
    for one, other in combinations([each for each in single if each in plain], 2):
        if {min(one.values) * min(other.values)} == sizes:
            yield f"{one.text} * {other.text}"
    yield from _times(plain, FACTORS[1:], sizes)


def _times(known: Sequence[SizeName], factors: Sequence[int], sizes: frozenset[int]) -> Iterator[str]:
    for one, factor in [(each, factor) for each in known for factor in factors]:
        if {value * factor for value in one.values} == sizes:
            yield f"{one.text} * {factor}"


def _factor(text: str) -> str:
    node = expression_of(text)
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return text if is_product or isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant) else f"({text})"
