"""The places that have to do with a finding: its callers, where its layers and parameters were made, where a size came from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapelens import protocol
from shapelens.analysis.evidence import where_text
from shapelens.analysis.explanations.checkpoint_messages import CHECKPOINT, settings_places
from shapelens.analysis.explanations.device_messages import DEVICE, sides
from shapelens.analysis.explanations.messages import product
from shapelens.analysis.explanations.tape_messages import OF_THE_TAPE, roles
from shapelens.analysis.layer_arguments import noun
from shapelens.analysis.places import ArgumentPlace, Place, Places, layer_name
from shapelens.analysis.shapes import shape_text
from shapelens.protocol import LayerSeen, Mismatch, Observation
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import program_of

_NAMES = {"__getitem__": "an index", "__matmul__": "@", "__rmatmul__": "@"}  # of operations that Python writes as signs
MOST_PLACES = 3  # of a finding: more of them are read by nobody
MOST_CALLERS = 4  # of a mismatch deep in calls that are shown
MOST_VARIABLES = 3  # of one expression, whose assignments are shown
MOST_MAKERS = 3  # constructor calls that are shown for one call of a layer


@dataclass(frozen=True)
class Related:
    """A place that has to do with a finding. file: None for the finding's own file. suspected: it may be the place that is wrong."""

    file: str | None
    span: Span
    message: str
    suspected: bool = False


def call_places(places: Places, mismatch: Mismatch, primary: Span) -> list[Related]:
    """Returns the call that the size arrived in, then its callers, from the inside out."""
    found = []
    arrived = ", ".join(shape_text(value) for value in mismatch.inputs[:3] if value.kind == "tensor")
    for number, span in enumerate(from_inside(mismatch)):
        place = places.locate(span)
        if place is None or number > MOST_CALLERS:
            continue
        words = (f"gets {arrived} here" if arrived else "fails here") if number == 0 else "called from here"
        related = related_place(places, place, words)
        if related.file is not None or related.span != primary:
            found.append(related)
    return found


def from_inside(mismatch: Mismatch) -> list[protocol.FileSpan]:
    """Returns the expressions that a mismatch happened in, the innermost first."""
    spans = [mismatch.span] if mismatch.span is not None else []
    return spans + [span for span in reversed(mismatch.trail) if span not in spans]


def argument_place(
    places: Places, layer: LayerSeen, argument: ArgumentPlace | None, mismatch: Mismatch, primary: Span
) -> Iterable[Related]:
    """Yields the argument of the constructor that asks for another size, unless the finding stands there itself."""
    if argument is not None:
        related = related_place(places, argument, f"{mismatch.argument} of {layer_name(layer)} is {mismatch.need} here")
        if related.file is not None or related.span != primary:
            yield related


def size_origins(places: Places, mismatch: Mismatch) -> Iterable[Related]:
    """Yields the places that the size came from: a layer's argument rather than its call, as one would change the argument."""
    if mismatch.code == "dtype":
        return
    if mismatch.code in OF_THE_TAPE or mismatch.code == DEVICE:
        for origin, words in roles(mismatch) if mismatch.code != DEVICE else sides(mismatch):
            there = places.locate(origin.span)
            if there is not None:
                yield related_place(places, there, words)
        return
    if mismatch.code == CHECKPOINT:
        for setting, words in settings_places(places, mismatch):
            yield related_place(places, setting.place, words)
        return
    multiplied = False
    for origin in mismatch.origins:
        if origin.layer is not None and origin.argument:
            producer = places.trace.layers[origin.layer]
            place: Place | ArgumentPlace | None = places.argument(producer, origin.argument) or places.locate(producer.span)
            words = f"{origin.argument} of {layer_name(producer)}"
            words = f"a factor of it comes from {words}" if multiplied else f"the size comes from {words}"
        else:
            place = places.locate(origin.span)
            factors = product(origin, mismatch.got)
            multiplied = multiplied or bool(factors)
            operation = _NAMES.get(origin.operation, origin.operation)
            words = f"{mismatch.got} is {factors} here" if factors else f"the size comes from {operation}"
        if place is not None:
            yield related_place(places, place, words)


def example_call(places: Places, mismatch: Mismatch) -> Iterable[Related]:
    """Yields the call in the project that the example is taken from, with the size that it gives: `test() gives 3 channels`."""
    run = places.trace.examples[mismatch.example] if 0 <= mismatch.example < len(places.trace.examples) else None
    place = places.locate(run.call) if run is not None else None
    if run is None or place is None:
        return
    units = noun(places.trace.layers[mismatch.layer], mismatch.argument) if mismatch.layer is not None and mismatch.argument else ""
    if units and mismatch.got is not None and not mismatch.origins:
        words = f"{where_text(run.where, place.module)} gives {mismatch.got} {units}"
    else:
        words = f"called here: {run.expression}"
    yield related_place(places, place, words)


def related_place(places: Places, place: Place | ArgumentPlace, message: str, *, suspected: bool = False) -> Related:
    """Returns a place with its message; its file is None if it is the file of the trace."""
    return Related(None if place.file == places.trace.file else place.file, place.span, message, suspected)


def distinct_places(related: Iterable[Related], primary: Span) -> list[Related]:
    """Returns the first MOST_PLACES places, each once, with its first message. The finding's own place is left out."""
    kept: dict[tuple[str | None, Span], Related] = {}
    for each in related:
        if each.file is not None or each.span != primary:
            kept.setdefault((each.file, each.span), each)
    return list(kept.values())[:MOST_PLACES]


# --- what an operation's operands belong to ---


def construction_places(places: Places, mismatch: Mismatch) -> Iterable[Related]:
    """Yields the calls that built the user's modules around the mismatch, and the assignments of the parameters that it reads.

    An operation in the `forward` of a module is as often wrong because of what its constructor was given.
    """
    inside = [places.trace.layers[index] for index in mismatch.inside[:MOST_MAKERS]]
    if mismatch.of_parameter:
        yield from _built(places, inside[:1])
    if mismatch.span is not None:
        yield from _parameters_read(places, mismatch.span)
    called = [layer for span in from_inside(mismatch)[: MOST_CALLERS + 1] for layer in _called_at(places, span)]
    yield from _built(places, [*inside, *called])


def _built(places: Places, layers: Iterable[LayerSeen]) -> Iterable[Related]:
    for layer in {str(layer.span): layer for layer in layers}.values():
        place = places.locate(layer.span)
        if place is not None:
            yield related_place(places, place, f"{layer_name(layer)} is built here")


def variable_assignments(places: Places, spans: Sequence[protocol.FileSpan], example: int, others: Iterable[Related]) -> Iterable[Related]:
    """Yields the assignments of the variables that these expressions read, from the inside out.

    A statement that holds one of the `others` is left out.
    """
    named = [(each.file, each.span) for each in others]
    for span in spans[: MOST_CALLERS + 1]:
        place = places.locate(span)
        if place is None:
            continue
        for name in _variables(place)[:MOST_VARIABLES]:
            made = _last_assignment(places, name, span, example)
            where = places.locate(made.statement) if made is not None else None
            if made is not None and where is not None and where.span != place.span:
                shapes = ", ".join(dict.fromkeys(shape_text(value) for value in made.values if value.kind == "tensor"))
                related = related_place(places, where, f"{name} is {shapes} here")
                if not any(file == related.file and where.span.start <= part.start and part.end <= where.span.end for file, part in named):
                    yield related


def unreduced_loss(places: Places, mismatch: Mismatch) -> Iterable[Related]:
    """Yields the `reduction` of the loss that has to be a single number."""
    argument = reduction_argument(places, mismatch)
    if argument is not None:
        yield related_place(places, argument, "the loss is not reduced")


def reduction_argument(places: Places, mismatch: Mismatch) -> ArgumentPlace | None:
    """Returns the argument `reduction` of the layer whose loss has to be a single number; None if it has no such argument."""
    one_number = mismatch.code == "backward-scalar" or "converted to Scalar" in mismatch.message
    given = mismatch.inputs[0].shape if one_number and mismatch.inputs else None
    for layer in places.trace.layers if given is not None else ():
        place = places.locate(layer.span) if layer.class_name.endswith("Loss") else None
        call = place.module.call_at(place.span) if place is not None else None
        if place is None or call is None or not any(seen.output.shape == given for seen in layer.calls):
            continue
        argument = next((each for each in call.arguments if each.keyword == "reduction"), None)
        if argument is not None:
            return ArgumentPlace(place.file, place.module, call, argument)
    return None


def _variables(place: Place) -> list[str]:
    """The names that an expression reads, but for what it calls."""
    tree = program_of(f"({place.module.lines.text_of(place.span)})")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return list(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called))


def _last_assignment(places: Places, name: str, before: protocol.FileSpan, example: int) -> Observation | None:
    """The last statement above a place of the same function that gave a variable a tensor."""
    found = [
        seen
        for seen in places.trace.observations
        if (seen.kind, seen.name, seen.example) == ("assign", name, example)
        and seen.span.file == before.file
        and seen.span.line < before.line
        and seen.statement is not None
        and any(value.kind == "tensor" for value in seen.values)
    ]
    inside = _function_at(places, before, example)
    return max((seen for seen in found if inside in (seen.function, None)), key=lambda seen: seen.span.line, default=None)


def _function_at(places: Places, span: protocol.FileSpan, example: int) -> str | None:
    """The function that an expression was seen in."""
    near = (seen for seen in places.trace.observations if seen.span.line == span.line and seen.span.file == span.file)
    return next((seen.function for seen in near if seen.example == example), None)


def _called_at(places: Places, span: protocol.FileSpan) -> list[LayerSeen]:
    """The layers that a call `self.norm(x)` called: those that the expression it starts with held."""
    layers = places.trace.layers
    for seen in places.trace.observations:
        where = seen.span
        if (where.line, where.column, where.file) == (span.line, span.column, span.file) and seen.kind == "expression":
            found = [layers[value.layer] for value in seen.values if value.kind == "layer" and value.layer is not None]
            if found:
                return found if len({str(layer.span) for layer in found}) <= MOST_MAKERS else []
    return []


def _parameters_read(places: Places, span: protocol.FileSpan) -> Iterable[Related]:
    """The assignments of the attributes that an expression reads: of `self.scale` in `x * self.scale`."""
    for read in places.trace.observations:
        if read.kind == "expression" and read.name and _inside(read.span, span) and any(value.kind == "tensor" for value in read.values):
            for made in assignments(places, read):
                place = places.locate(made.statement)
                if place is not None:
                    shapes = ", ".join(dict.fromkeys(shape_text(value) for value in made.values if value.kind == "tensor"))
                    yield related_place(places, place, f"{read.name} is {shapes} here")


def assignments(places: Places, read: Observation) -> list[Observation]:
    """Returns the assignments, in the constructor of the class, of the attribute that an expression reads."""
    constructor_name = read.function.rpartition(".")[0] + ".__init__"
    return [
        seen
        for seen in places.trace.observations
        if (seen.kind, seen.name, seen.function) == ("assign", read.name, constructor_name) and seen.span.file == read.span.file
    ]


def _inside(inner: protocol.FileSpan, outer: protocol.FileSpan) -> bool:
    start, end = (inner.line, inner.column), (inner.end_line, inner.end_column)
    return inner.file == outer.file and (outer.line, outer.column) <= start and end <= (outer.end_line, outer.end_column)
