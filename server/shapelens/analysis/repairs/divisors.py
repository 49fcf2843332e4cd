"""Fixes of sizes that have to divide each other, as the heads of an attention divide its width: another number where one is written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapelens.analysis.explanations.names_in_scope import value_of
from shapelens.analysis.explanations.size_settings import settings_named
from shapelens.analysis.explanations.statements import nodes_around, tree_of
from shapelens.analysis.layer_arguments import constructor_words
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.analysis.repairs.size_expressions import operands
from shapelens.protocol import Mismatch
from shapelens.source.edits import replace_argument
from shapelens.stated.syntax_trees import expression_of, last_name

_SAID = re.compile(r"\b(\w+)(?: \(\d+\))? must be divisible by (\w+)")
_ASKED = re.compile(r"shape '\[([-\d, ]+)\]' is invalid")
MOST_DIVISORS = 3  # that are tried, nearest first
MOST_MULTIPLES = 2


@dataclass(frozen=True)
class _WrittenSize:
    """A size as it is written somewhere, and what it was. name: of the argument that it is."""

    where: Place
    name: str
    text: str
    value: int


def divisor_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for a size that another one does not divide: first the nearest divisors, then the nearest multiples."""
    found = list(_parts_of_layer(places, mismatch))
    for whole, part in [*_of_layer(places, mismatch), *_of_view(places, mismatch), *_of_demand(places, mismatch)]:
        divisors = [size for size in range(2, whole.value) if whole.value % size == 0]
        for size in sorted(divisors, key=lambda size: max(size / part.value, part.value / size))[:MOST_DIVISORS]:
            found += _changed(places, part, size, Likelihood.EXPRESSION)
        below = whole.value // part.value * part.value
        multiples = [size for size in (below, below + part.value) if size]
        for size in sorted(multiples, key=lambda size: (abs(size - whole.value), -(size & -size)))[:MOST_MULTIPLES]:
            found += _changed(places, whole, size, Likelihood.EXPRESSION_BEFORE)
    return found


def _parts_of_layer(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """A part of what is written for one of two sizes that a constructor of torch's names: `dim` for `dim + 1`."""
    layer = places.layer_of(mismatch)
    said = _SAID.search(constructor_words(layer, mismatch.message)) if layer is not None else None
    for name in said.groups() if said is not None else ():
        place = places.argument(layer, name) if layer is not None else None
        if place is not None and place.argument is not None and not place.argument.star:
            for part in operands(place.argument.text):
                edit = replace_argument(place.module, place.call, place.argument, name, part)
                yield Fix(f"Change {name} to {part}", [edit], place.file, Likelihood.PART)


def _changed(places: Places, size: _WrittenSize, wanted: int, likelihood: Likelihood) -> Iterator[Fix]:
    for setting in settings_named(places, size.where, size.text, size.value, wanted):
        if setting.edit is not None:
            name = size.name if setting.name.isdecimal() else setting.name
            yield Fix(f"Change {name} to {wanted}", [setting.edit], setting.place.file, likelihood)


def _of_layer(places: Places, mismatch: Mismatch) -> Iterator[tuple[_WrittenSize, _WrittenSize]]:
    """Yields pairs of sizes that have to divide each other in a constructor of torch's."""
    layer = places.layer_of(mismatch)
    said = _SAID.search(constructor_words(layer, mismatch.message)) if layer is not None else None
    if layer is None or said is None:
        return
    sizes = []
    for name in said.groups():
        place = places.argument(layer, name)
        text = place.argument.text.strip() if place is not None and place.argument is not None and not place.argument.star else ""
        value = int(text) if text.isdecimal() else value_of(places, place, text) if place is not None and text else None
        if place is not None and value:
            sizes.append(_WrittenSize(Place(place.file, place.module, place.span), name, text, value))
    if len(sizes) == 2:
        yield sizes[0], sizes[1]


def _of_demand(places: Places, mismatch: Mismatch) -> Iterator[tuple[_WrittenSize, _WrittenSize]]:
    """Yields pairs of sizes that the code itself compares: `assert width % heads == 0`."""
    place = places.locate(mismatch.span)
    if place is None or mismatch.code != "layer-arguments" or mismatch.got is None or mismatch.need is None:
        return
    for node in nodes_around(place, ast.Assert, ast.If):
        for part in ast.walk(node.test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                left, right = ast.unparse(part.left), ast.unparse(part.right)
                yield _WrittenSize(place, left, left, mismatch.got), _WrittenSize(place, right, right, mismatch.need)


def _of_view(places: Places, mismatch: Mismatch) -> Iterator[tuple[_WrittenSize, _WrittenSize]]:
    """A view into heads, which asks for `width // heads` features of each: what is left over belongs to no head."""
    place = places.locate(mismatch.span)
    call = place.module.call_at(place.span) if place is not None and mismatch.code == "view" else None
    asked = _ASKED.search(mismatch.message)
    if place is None or call is None or asked is None:
        return
    wanted = [int(size) for size in asked[1].split(",") if size.strip()]
    nodes = [expression_of(argument.text) for argument in call.arguments if argument.keyword is None]
    nodes = list(nodes[-1].elts) if len(nodes) in (1, 2) and isinstance(nodes[-1], ast.Tuple | ast.List) else nodes[-len(wanted) :]
    by_name = {last_name(node): size for node, size in zip(nodes, wanted, strict=False)}
    shapes = [*(value.shape or [] for value in mismatch.inputs), *(origin.shape for origin in mismatch.origins)]
    arrived = [each for shape in shapes for each in shape if each is not None]
    for node, size in zip(nodes, wanted, strict=False):
        quotient = _quotient(place, node)
        part = by_name.get(last_name(quotient.right), 0) if quotient is not None and last_name(quotient.right) else 0
        whole = _with_rest(arrived, part, size)
        if quotient is not None and whole:
            left, right = ast.unparse(quotient.left), ast.unparse(quotient.right)
            yield _WrittenSize(place, left, left, whole), _WrittenSize(place, right, right, part)


def _with_rest(arrived: Sequence[int], part: int, quotient: int) -> int:
    """The first size that leaves a rest where it is divided, with that quotient; 0 for none."""
    return next((each for each in arrived if part and each % part and each // part == quotient), 0)


def _quotient(place: Place, node: ast.expr | None) -> ast.BinOp | None:
    """The division that an expression is, or that its name is assigned: `width // heads`, `int(width / heads)`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "int" and node.args:
        node = node.args[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Div):
        return node
    name = last_name(node)
    for each in ast.walk(tree_of(place)) if name else ():
        if isinstance(each, ast.Assign) and last_name(each.targets[0]) == name and last_name(each.value) != name:
            found = _quotient(place, each.value) if not isinstance(each.value, ast.Name | ast.Attribute) else None
            if found is not None:
                return found
    return None
