"""Where a layer's argument comes from that a module of the user's passes on: 256 of `Block(256, 512)`, for its `nn.Conv2d(width, …)`."""

from __future__ import annotations

from collections.abc import Sequence

from shapelens.analysis.explanations.names_in_scope import scope_of
from shapelens.analysis.places import ArgumentPlace, Places
from shapelens.protocol import LayerSeen, Mismatch

MOST_STEPS = 4  # from constructor to constructor


def passed_argument(places: Places, mismatches: Sequence[Mismatch], place: ArgumentPlace | None) -> ArgumentPlace | None:
    """Returns the argument of the user's constructor call that gave the layers of `mismatches` what does not fit, if other layers which are
    made in the same place fit: then the place is right, and what it was given is wrong. None where that is not so, or cannot be told.

    place: the layers' own argument.
    """
    failing = {mismatch.layer for mismatch in mismatches if mismatch.layer is not None}
    layers = [places.trace.layers[index] for index in failing]
    if place is None or not layers or not _others_fit(places, layers, failing):
        return None
    found = {(given.file, given.span): given for layer in layers if (given := _passed(places, layer, place)) is not None}
    return next(iter(found.values())) if len(found) == 1 else None


def _others_fit(places: Places, layers: Sequence[LayerSeen], failing: set[int]) -> bool:
    made = layers[0].span
    return any(each.span == made and each.calls and each.index not in failing for each in places.trace.layers)


def _passed(places: Places, layer: LayerSeen, place: ArgumentPlace) -> ArgumentPlace | None:
    found = None
    for _ in range(MOST_STEPS):
        name = place.argument.text.strip() if place.argument is not None else ""
        scope = scope_of(place)
        names = scope.qualified_name.split(".") if scope is not None else []
        if not name.isidentifier() or len(names) < 2 or names[-1] != "__init__":
            break
        cls = next((each for each in place.module.classes if each.qualname == ".".join(names[:-1])), None)
        parameters = [each.name for each in cls.init_parameters if each.name != "self"] if cls is not None else []
        owner = _owner(places, layer, names[-2]) if name in parameters else None
        made = places.locate(owner.span) if owner is not None else None
        call = made.module.call_at(made.span) if made is not None else None
        if owner is None or made is None or call is None or (call.qualified or call.function).rpartition(".")[2] != owner.class_name:
            break
        argument = made.module.argument(call, [name], parameters.index(name))
        if argument is None or argument.star:
            break
        layer, place = owner, ArgumentPlace(made.file, made.module, call, argument)
        found = place
    return found


def _owner(places: Places, layer: LayerSeen, class_name: str) -> LayerSeen | None:
    """The innermost module around a layer that is of this class."""
    around = [
        each
        for each in places.trace.layers
        if each.example == layer.example and each.class_name == class_name and each.path and layer.path.startswith(f"{each.path}.")
    ]
    return max(around, key=lambda each: len(each.path), default=None)
