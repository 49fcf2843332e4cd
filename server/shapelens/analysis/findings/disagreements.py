"""A layer that several others contradict: what it gives or takes has one size, and each of them asks for the same other one.

The layer is the cause, and is told once, where its size is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shapelens.analysis.explanations.names_in_scope import argument_size
from shapelens.analysis.explanations.related_places import Related, argument_place, call_places, distinct_places, related_place
from shapelens.analysis.layer_arguments import noun
from shapelens.analysis.places import ArgumentPlace, Places, layer_name
from shapelens.analysis.repairs.fixes import Fix, resized
from shapelens.protocol import FileSpan, LayerSeen, Mismatch

_TAKEN = ("in_features", "in_channels", "normalized_shape", "num_features", "num_channels", "input_size", "embed_dim")
_DIMS = re.compile(r"\w+\[([^\[\]]*)\]")
MOST_NAMES = 3  # of layers in a message

Groups = list[list[Mismatch]]


@dataclass(frozen=True)
class Disagreement:
    """groups: the mismatches of each constructor call that contradicts. place: where the size is written."""

    layer: LayerSeen
    argument: str
    place: ArgumentPlace
    groups: Groups

    @property
    def mismatches(self) -> list[Mismatch]:
        return [mismatch for group in self.groups for mismatch in group]


def disagreements(places: Places, groups: Iterable[list[Mismatch]]) -> tuple[list[Disagreement], Groups]:
    """The layers that two constructor calls or more contradict, and the groups of mismatches that have no such cause."""
    by_cause: dict[object, tuple[LayerSeen, str, Groups]] = {}
    others: Groups = []
    for group in groups:
        first = group[0]
        cause = _cause(places, first) if len({(each.got, each.need) for each in group}) == 1 else None
        if cause is None:
            others.append(group)
        else:
            layer, argument = cause
            by_cause.setdefault((str(layer.span), argument, first.got, first.need), (layer, argument, []))[2].append(group)
    found: list[Disagreement] = []
    for layer, argument, contradicting in by_cause.values():
        place = places.argument(layer, argument)
        if len(contradicting) > 1 and place is not None and place.argument is not None and place.file == places.trace.file:
            found.append(Disagreement(layer, argument, place, contradicting))
        else:
            others += contradicting
    return found, others


def _cause(places: Places, mismatch: Mismatch) -> tuple[LayerSeen, str] | None:
    """The layer of torch's whose argument says the size that arrived: which gave the tensor, or takes it as well."""
    origin = next(iter(mismatch.origins), None)
    if origin is not None and origin.layer is not None and origin.argument:
        layer = places.trace.layers[origin.layer]
        return (layer, origin.argument) if argument_size(layer, origin.argument) == mismatch.got else None
    if mismatch.origins or mismatch.layer is None or not mismatch.inputs:
        return None
    nearest = places.layer_of(mismatch.suspects[0]) if mismatch.pinned == mismatch.got and mismatch.suspects else None
    for layer in [*([nearest] if nearest is not None else []), *_others_given_the_same(places, mismatch)]:
        argument = next((name for name in _TAKEN if argument_size(layer, name) == mismatch.got), "")
        if argument and layer.qualified_name.startswith("torch.nn."):
            return layer, argument
    return None


def _others_given_the_same(places: Places, mismatch: Mismatch) -> list[LayerSeen]:
    """The layers that were called with what a layer refuses, as the same is written in both calls."""
    written, refusing = _first_argument(places, mismatch.span), places.layer_of(mismatch)
    if refusing is None or not written:
        return []
    parent = refusing.path.rpartition(".")[0]
    beside = [each for each in places.trace.layers if each.path.rpartition(".")[0] == parent and each.example == refusing.example]
    return [
        layer
        for layer in beside
        if layer is not refusing
        and mismatch.inputs[0].shape in [call.inputs[0].shape for call in layer.calls if call.inputs]
        and _first_argument(places, layer.call_span) == written
    ]


def _first_argument(places: Places, span: FileSpan | None) -> str:
    place = places.locate(span)
    call = place.module.call_at(place.span) if place is not None else None
    return call.arguments[0].text if call is not None and len(call.arguments) == 1 else ""


def agreeing_place(places: Places, mismatch: Mismatch) -> Iterable[Related]:
    """Yields the argument of another layer that says the size which an input has, where no layer gave it."""
    cause = _cause(places, mismatch) if not mismatch.origins else None
    place = places.argument(*cause) if cause is not None else None
    if cause is not None and place is not None:
        yield related_place(places, place, f"{cause[1]} of {layer_name(cause[0])} is {mismatch.got} here")


def disagreement_message(places: Places, found: Disagreement) -> str:
    """`normalized_shape of norm is 65 but to_q and to_k take 64 features`."""
    first = found.mismatches[0]
    layers = [places.trace.layers[group[0].layer] for group in found.groups if group[0].layer is not None]
    names = list(dict.fromkeys(layer_name(layer) for layer in layers))
    told = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    listed = f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]
    units = noun(layers[0], first.argument)
    takes = "take" if len(told) > 1 else "takes"
    return f"{found.argument} of {layer_name(found.layer)} is {first.got} but {listed} {takes} {first.need}{units and f' {units}'}"


def disagreement_places(places: Places, found: Disagreement) -> list[Related]:
    """The arguments that ask for the other size, then the first call that refuses."""
    related: list[Related] = []
    for group in found.groups:
        layer = places.layer_of(group[0])
        argument = places.argument(layer, group[0].argument) if layer is not None else None
        related += argument_place(places, layer, argument, group[0], found.place.span) if layer is not None else ()
    return distinct_places([*related[:2], *call_places(places, found.mismatches[0], found.place.span)], found.place.span)


def disagreement_fixes(places: Places, found: Disagreement) -> list[Fix]:
    """The layer with the size that all others ask for, and the input of that size, where a guess has followed the layer."""
    first = found.mismatches[0]
    if first.got is None or first.need is None:
        return []
    needing = (places.trace.layers[first.layer], first.argument) if first.layer is not None else None
    fix = resized(places, found.layer, found.argument, [(first.got, first.need)], needing)
    if fix is None or first.origins:
        return [fix] if fix is not None else []
    examples = places.trace.examples
    run = examples[first.example] if 0 <= first.example < len(examples) else None
    other = _with_size(run.expression, first) if run is not None and run.evidence else ""
    return [Fix(fix.title, fix.edits, fix.file, fix.likelihood, calls={run.expression: other} if run is not None and other else {})]


def _with_size(expression: str, mismatch: Mismatch) -> str:
    """An example with the size that is asked for in the one tensor that has the other one at the dim of the mismatch; "" for none."""
    rank = len(mismatch.inputs[0].shape or [])
    dim = (mismatch.dim or 0) % max(rank, 1)
    matches = [match for match in _DIMS.finditer(expression) if len(match[1].split(", ")) == rank]
    fitting = [match for match in matches if match[1].split(", ")[dim].rpartition(":")[2] == str(mismatch.got)]
    if len(fitting) != 1:
        return ""
    dims = fitting[0][1].split(", ")
    dims[dim] = f"{dims[dim].rpartition(':')[0]}:{mismatch.need}".removeprefix(":")
    return expression[: fitting[0].start(1)] + ", ".join(dims) + expression[fitting[0].end(1) :]
