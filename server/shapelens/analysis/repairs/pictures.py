"""Fixes of pictures that are joined or added, one of them smaller as a side was odd: it is resized, or the model gets an even one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapelens.analysis.explanations.size_settings import settings_named
from shapelens.analysis.explanations.statements import node_span, nodes_around, tree_of
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import Mismatch
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import integer, last_name

_UPSAMPLES = re.compile(r"interpolate|[Uu]psampl|ConvTranspose|conv_transpose")
_MAKERS = ("randn", "rand", "zeros", "ones", "empty", "full", "normal")
_SIZES = re.compile(r"\w+\[[^\[\]]*\]")  # of a tensor in an example
HALVINGS = (1, 2, 3, 4, 5)  # that a side has to survive
MOST_SIDES = 3  # that are tried for a picture


def picture_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates where two pictures or signals differ in their sides alone, by less than a halving."""
    place = places.locate(mismatch.span)
    shapes = [value.shape or [] for value in mismatch.inputs if value.kind == "tensor"]
    if place is None or mismatch.code not in ("cat", "broadcast") or len(shapes) != 2 or not _differ_in_sides(*shapes):
        return []
    upsampled = any(_UPSAMPLES.search(each.operation) for each in mismatch.suspects)
    if len(shapes[0]) == 3 and not upsampled:
        return []  # A sequence is seldom resized.
    operands = _operands(place)
    found: list[Fix] = []
    for one, other in ((0, 1), (1, 0)) if len(operands) == 2 else ():
        skip, sides = operands[other], shapes[one][2:]
        made = [each.operation for each in mismatch.suspects if each.result[2:] == sides]
        if (made and not any(map(_UPSAMPLES.search, made))) or not isinstance(skip, ast.Name | ast.Attribute):
            continue  # It is what a layer gave that makes nothing larger.
        size = f"size={ast.unparse(skip)}.shape[{-len(sides)}:]"
        found += [Fix(f"Resize to {size}", [edit], place.file, Likelihood.EXPRESSION) for edit in _scaled(place, operands[one], size)]
        span = node_span(place, operands[one])
        text = f"{_functional(place)}.interpolate({place.module.lines.text_of(span)}, {size})"
        found.append(Fix(f"Resize it: {size}", [TextEdit(span, text)], place.file, Likelihood.EXPRESSION))
    return [*found, *_other_sides(places, mismatch)]


def _differ_in_sides(one: Sequence[int | None], other: Sequence[int | None]) -> bool:
    if len(one) != len(other) or not 2 < len(one) < 6 or None in one[2:] or None in other[2:]:
        return False
    pairs = [(a or 0, b or 0) for a, b in zip(one[2:], other[2:], strict=True) if a != b]
    return bool(pairs) and all(min(pair) > 1 and max(pair) < 2 * min(pair) for pair in pairs)


def _scaled(place: Place, operand: ast.expr, size: str) -> Iterator[TextEdit]:
    """An `interpolate` by a factor, which gave an operand, to a size instead."""
    around = nodes_around(place, ast.FunctionDef)
    made = (
        [operand, *(each.value for each in ast.walk(around[-1]) if isinstance(each, ast.Assign) and _gives(each, operand))]
        if around
        else []
    )
    for call in [each for each in made if isinstance(each, ast.Call) and last_name(each.func) == "interpolate"]:
        for given in call.keywords:
            end = node_span(place, given.value).end
            if given.arg == "scale_factor":
                start = place.module.lines.from_bytes(given.lineno, given.col_offset)
                yield TextEdit(Span.of(start, end), size)


def _gives(node: ast.Assign, operand: ast.expr) -> bool:
    return isinstance(operand, ast.Name) and last_name(node.targets[0]) == operand.id and node.lineno < operand.lineno


def _operands(place: Place) -> list[ast.expr]:
    """The two sides of a sum, or what a call joins."""
    for node in ast.walk(tree_of(place)):
        if isinstance(node, ast.BinOp | ast.Call) and node_span(place, node) == place.span:
            if isinstance(node, ast.BinOp):
                return [node.left, node.right]
            first = next(iter(node.args), None)
            return first.elts if isinstance(first, ast.List | ast.Tuple) else node.args
    return []


def _functional(place: Place) -> str:
    """Returns the name that a file has for `torch.nn.functional`."""
    for node in ast.walk(tree_of(place)):
        for name in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if name.asname and name.name in ("torch.nn.functional", "functional"):
                return name.asname
    named = re.search(r"^(?:import torch\.nn as nn|from torch import (?:.*\b)?nn\b)", place.module.text, re.MULTILINE)
    return "nn.functional" if named else "torch.nn.functional"


# --- the picture that is given ---


def _other_sides(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """The program's own picture with sides that can be halved as often as the model does."""
    run = places.trace.examples[mismatch.example] if 0 <= mismatch.example < len(places.trace.examples) else None
    model = next((each for each in places.trace.layers if each.example == mismatch.example and not each.path and each.calls), None)
    given = model.calls[0].inputs[0].shape if model is not None and model.calls[0].inputs else None
    side = given[-1] if given and len(given) > 2 else None
    if run is None or side is None or model is None:
        return
    calls = [where for span in (run.call, model.call_span, *mismatch.trail) if (where := places.locate(span)) is not None]
    for where, sizes in [(call, sizes) for call in calls[:2] for sizes in _made_of(call, given or [])][:1]:
        for wanted in _likely_sides(side)[:MOST_SIDES]:
            edits, file = _edits_of_side(places, where, sizes, side, wanted)
            as_then = _SIZES.sub(lambda found: re.sub(rf"(?<!\w){side}\b", str(wanted), found[0]), run.expression)  # noqa: B023
            if edits:
                title = f"Make the picture {wanted} wide"
                yield Fix(title, edits, file, Likelihood.HERE, {run.expression: as_then} if run.evidence and run.expression else {})


def _edits_of_side(
    places: Places, where: Place, sizes: Sequence[tuple[Span, int | None]], side: int, wanted: int
) -> tuple[list[TextEdit], str]:
    """The edits that change a side where a picture is made, or the setting that it is, and the file that they are of."""
    edits = [TextEdit(span, str(wanted)) for span, value in sizes if value == side]
    if edits:
        return edits, where.file
    text = where.module.lines.text_of(sizes[-1][0])  # It is a name.
    settings = list(settings_named(places, Place(where.file, where.module, sizes[-1][0]), text, side, wanted))
    return [each.edit for each in settings[:1] if each.edit is not None], settings[0].place.file if settings else where.file


def _likely_sides(side: int) -> list[int]:
    """Sides that can be halved some times, near ones first; of two that are as near the one that can be halved more often."""
    sides = {side // 2**count * 2**count for count in HALVINGS} | {-(-side // 2**count) * 2**count for count in HALVINGS}
    return sorted((each for each in sides if each not in (0, side)), key=lambda each: (abs(each - side), -(each & -each)))


def _made_of(where: Place, given: Sequence[int | None]) -> Iterator[list[tuple[Span, int | None]]]:
    """The sizes of the sides of a picture, as they are written where it is made that a call takes."""
    for call in [node for node in ast.walk(tree_of(where)) if isinstance(node, ast.Call) and node_span(where, node) == where.span]:
        first = next(iter(call.args), None)
        values = [first] if first is not None else []
        around = nodes_around(where, ast.FunctionDef)
        assigned = [each for each in ast.walk(around[-1] if around else tree_of(where)) if isinstance(each, ast.Assign)]
        values += [each.value for each in assigned if last_name(first) and last_name(each.targets[0]) == last_name(first)]
        for made in [each for each in values if isinstance(each, ast.Call) and last_name(each.func) in _MAKERS]:
            sizes = made.args[0].elts if made.args and isinstance(made.args[0], ast.Tuple | ast.List) else made.args
            if len(sizes) == len(given):
                yield [(node_span(where, each), integer(each)) for each in sizes[2:]]
