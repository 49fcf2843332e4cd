"""Repairs that may be right: the operations and layers that led to a mismatch, each with one number or the order of its dims changed.

Nothing here knows that a guess is right. They are put into the order in which they are likely, and tried in it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from shapelens import protocol
from shapelens.analysis.explanations.names_in_scope import argument_size
from shapelens.analysis.explanations.related_places import Related, related_place
from shapelens.analysis.explanations.size_settings import settings_named
from shapelens.analysis.layer_arguments import ARGUMENTS
from shapelens.analysis.places import ArgumentPlace, Place, Places, layer_name
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.analysis.repairs.rearrangements import place as place_of_numbers
from shapelens.analysis.repairs.rearrangements import rewritings
from shapelens.analysis.repairs.size_expressions import operands, with_factors
from shapelens.analysis.repairs.sizes_in_scope import size_expressions
from shapelens.analysis.shapes import sizes_text
from shapelens.protocol import LayerSeen, Mismatch, Suspect
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import program_of

MOST_SHOWN = 5  # suspects among the related places of a finding
MOST_OWNERS = 3  # modules that the failure lies in, whose constructor calls are tried otherwise
MOST_SIZES = 8  # numbers that are tried for one size
IN_A_ROW = 2  # guesses for one place before those for the next
# No shape is to blame for these.
_NO_SHAPES = (
    "data-dependent",
    "missing-import",
    "missing-file",
    "unavailable",
    "definition",
    "dtype",
    "embedding-dtype",
    "backward-scalar",
)
_OUT_SIZES = ("out_features", "out_channels", "hidden_size", "embedding_dim")


def guesses(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Repairs to try. Of each place the likeliest come first, nearest to the failure, then the others, so that none has to wait for all of
    another's."""
    if mismatch.code in _NO_SHAPES:
        return []
    sizes, asked = _sizes(mismatch), _asked(mismatch.message)
    given = next((value.shape for value in mismatch.inputs if value.kind == "tensor" and value.shape is not None), [])
    tried: set[tuple[str, Span]] = set()
    by_place: list[list[Fix]] = []
    failed = [
        (place, shape, Likelihood.BEFORE if number else Likelihood.HERE)
        for number, (place, shape) in enumerate(_failed(places, mismatch, given))
    ]
    for suspect in mismatch.suspects:
        place = places.locate(suspect.span)
        if suspect.layer is not None:
            layer = places.trace.layers[suspect.layer]
            by_place.append(
                list(_resized(places, layer, suspect, sizes, asked) if _out_size(layer) else _built_otherwise(places, layer, sizes))
            )
        # Else it is right for all batches but the last one, which may have a single sample.
        elif place is not None and (not mismatch.remainder or suspect.operation == "squeeze"):
            failed.append((place, suspect.shape, Likelihood.BEFORE))
    by_place += [list(_built_otherwise(places, places.trace.layers[index], sizes)) for index in mismatch.inside[:MOST_OWNERS]]
    for place, shape, likelihood in failed:
        if (place.file, place.span) not in tried:
            tried.add((place.file, place.span))
            by_place.append(list(_rearranged(place, shape, sizes, likelihood)))
    rounds = range(0, max(map(len, by_place), default=0), IN_A_ROW)
    return [fix for start in rounds for fixes in by_place for fix in fixes[start : start + IN_A_ROW]]


def suspected(places: Places, mismatch: Mismatch) -> Iterator[Related]:
    """The places that led to a mismatch, nearest first, less those that are known to have given the size."""
    if mismatch.code in _NO_SHAPES:
        return
    origins = [origin.span for origin in mismatch.origins]
    found: list[tuple[Place | ArgumentPlace, str]] = []
    for place, _ in _failed(places, mismatch, []):
        if place.span != _span(places, mismatch.span) and any(rewritings(place.module, place.span, [], [])):
            found.append((Place(place.file, place.module, place_of_numbers(place.module, place.span)), "it may be wrong here"))
    for suspect in mismatch.suspects:
        if suspect.behind and mismatch.argument:
            continue  # A layer in between gave the size that does not fit: what it was given cannot be the reason.
        changed = _place(places, suspect) if suspect.layer is not None or suspect.span not in origins else None
        if changed is not None:
            what = layer_name(places.trace.layers[suspect.layer]) if suspect.layer is not None else suspect.operation.strip("_")
            found.append((changed, f"{what} gives {sizes_text(suspect.result)} here"))
    for where, words in found[:MOST_SHOWN]:
        yield related_place(places, where, words, suspected=True)


def _place(places: Places, suspect: Suspect) -> Place | ArgumentPlace | None:
    """Returns the place to change of a suspect: the numbers of an operation, the size that a layer was constructed with."""
    if suspect.layer is not None:
        layer = places.trace.layers[suspect.layer]
        argument = _out_size(layer)
        return (places.argument(layer, argument) if argument else None) or places.locate(layer.span)
    place = places.locate(suspect.span)
    return Place(place.file, place.module, place_of_numbers(place.module, place.span)) if place is not None else None


def _failed(places: Places, mismatch: Mismatch, given: list[int | None]) -> Iterator[tuple[Place, list[int | None]]]:
    """The operation that failed, then the calls around it: what it was given may have been computed on the same line."""
    place = places.locate(mismatch.span)
    if place is None or mismatch.argument:
        return
    yield place, given
    known = {_span(places, suspect.span) for suspect in mismatch.suspects}
    for call in place.module.calls_around(place.span.start):
        # What the failed operation is itself an argument of came too late to be wrong.
        if call.span not in known and not (call.span.start <= place.span.start and place.span.end <= call.span.end):
            yield Place(place.file, place.module, call.span), []


def _span(places: Places, span: protocol.FileSpan | None) -> Span | None:
    place = places.locate(span)
    return place.span if place is not None else None


def _rearranged(place: Place, shape: list[int | None], sizes: list[int], likelihood: Likelihood) -> Iterator[Fix]:
    for each in rewritings(place.module, place.span, shape, sizes):
        if _meets_itself(place, each.edit):
            continue
        alike = likelihood is Likelihood.BEFORE and _reads_like_another(place, each.edit)
        yield Fix(each.title, [each.edit], place.file, Likelihood.LIKE_ANOTHER if alike else likelihood)


def _reads_like_another(place: Place, edit: TextEdit) -> bool:
    """True if the call is written somewhere else in the file as it is after an edit: `transpose(1, 2)` of `q`, but not yet of `k`."""
    call = place.module.call_at(place.span)
    if call is None:
        return False
    lines = place.module.lines
    start = lines.offset(call.open_bracket) - 1 - len(call.function.rpartition(".")[2])
    end = lines.offset(call.span.end)
    written = lines.text[start : lines.offset(edit.span.start)] + edit.new_text + lines.text[lines.offset(edit.span.end) : end]
    return written in lines.text


def _meets_itself(place: Place, edit: TextEdit) -> bool:
    """True if an edit makes both sides of an operator the same: `pos.unsqueeze(1) - pos.unsqueeze(1)`."""
    text = place.module.lines.line(edit.span.line)
    changed = text[: edit.span.column] + edit.new_text + text[edit.span.end_column :]
    return edit.span.line == edit.span.end_line and _same_sides(changed) > _same_sides(text)


def _same_sides(line: str) -> int:
    tree = program_of(line.strip())
    return sum(ast.dump(node.left) == ast.dump(node.right) for node in ast.walk(tree) if isinstance(node, ast.BinOp))


def _built_otherwise(places: Places, layer: LayerSeen, sizes: list[int]) -> Iterator[Fix]:
    """Edits that build one of the user's own modules with another size for one of its arguments."""
    place = places.locate(layer.span)
    call = place.module.call_at(place.span) if place is not None else None
    if place is None or call is None or call.span != place.span:
        return
    for argument in call.arguments:
        text = argument.text.strip()
        others = [(part, Likelihood.PART) for part in operands(text)] if not argument.star else []
        if text.isdecimal():
            others += [(str(size), Likelihood.NUMBER) for size in sorted(sizes, key=lambda size: abs(size - int(text)))[:2]]
        for other, likelihood in others:
            if other != text:
                title = f"Change {text} to {other} where {layer_name(layer)} is built"
                if argument.keyword is not None:
                    title = f"Change {argument.keyword} of {layer_name(layer)} to {other}"
                yield Fix(title, [TextEdit(argument.span, other)], place.file, likelihood)


def _out_size(layer: LayerSeen) -> str:
    names = ARGUMENTS.get(layer.class_name, ()) if layer.qualified_name.startswith("torch.nn.") else ()
    return next((name for name in _OUT_SIZES if name in names), "")


def _resized(places: Places, layer: LayerSeen, suspect: Suspect, sizes: list[int], asked: list[list[int]]) -> Iterator[Fix]:
    """A layer with another out-size: a part of what is written for it, else a number that fits what failed."""
    name = _out_size(layer)
    place = places.argument(layer, name) if name else None
    if place is None or place.argument is None or place.argument.star:
        return
    text = place.argument.text.strip()
    for part in operands(text):
        yield _with_size(layer, name, place, part, Likelihood.PART)
    others = [size for size in sizes if str(size) != text and size not in suspect.result]
    if not text.isdecimal():
        yield from _where_it_is_set(places, place, text, argument_size(layer, name), others)
        for size in others:
            written = [with_factors(text, dims) for dims in asked if math.prod(dims) == size]
            for other in [each for each in written if each is not None] or size_expressions(places, place, [size], None)[:1]:
                yield _with_size(layer, name, place, other, Likelihood.EXPRESSION_BEFORE)
    for size in others:
        yield _with_size(layer, name, place, str(size), Likelihood.NUMBER if text.isdecimal() else Likelihood.NUMBER_FOR_EXPRESSION)


def _where_it_is_set(places: Places, place: ArgumentPlace, text: str, now: int | None, others: Sequence[int]) -> Iterator[Fix]:
    """Another size, where what is written for it is set."""
    where = Place(place.file, place.module, place.span)
    for size in [each for each in others if each != now] if now is not None else ():
        for setting in settings_named(places, where, text, now or 0, size):
            if setting.edit is not None:
                title = f"Change {setting.name} to {setting.wanted}"
                yield Fix(title, [setting.edit], setting.place.file, Likelihood.EXPRESSION_BEFORE)


def _with_size(layer: LayerSeen, name: str, place: ArgumentPlace, text: str, likelihood: Likelihood) -> Fix:
    edit: TextEdit = replace_argument(place.module, place.call, place.argument, name, text)
    return Fix(f"Change {name} of {layer_name(layer)} to {text}", [edit], place.file, likelihood)


def _sizes(mismatch: Mismatch) -> list[int]:
    """The numbers that may be meant where another one is written: those that the failed operation needed or was given."""
    found: list[int] = [mismatch.need] if mismatch.need is not None else []
    for value in mismatch.inputs:
        found += [size for size in reversed(value.shape or []) if size is not None]
    found += [*_products(mismatch.message), *_sums(mismatch.message)]
    found += [int(count) for count in re.findall(r"(?:unpack \(expected|is not divisible by) (\d+)", mismatch.message)]
    return [size for size in dict.fromkeys(found) if size > 1][:MOST_SIZES]


def _products(message: str) -> Iterable[int]:
    """The sizes that make up the last dims of a shape that a message names: 72 and 24 of `shape '[15, 3, 4, 6]' is invalid`."""
    return [product for dims in _asked(message) if (product := math.prod(dims)) > 1]


def _sums(message: str) -> Iterable[int]:
    """Yields the sums of the parts into which a tensor is to be split."""
    parts = re.search(r"split_sizes=\[([\d, ]+)\]", message)
    return [sum(int(size) for size in parts.group(1).split(",") if size.strip())] if parts else []


def _asked(message: str) -> list[list[int]]:
    """The last dims of a shape that a message names, two or more of them."""
    named = re.search(r"shape '\[([-\d, ]+)\]'", message)
    sizes = [int(size) for size in named.group(1).split(",") if size.strip()] if named else []
    return [sizes[start:] for start in range(1, len(sizes) - 1)]
