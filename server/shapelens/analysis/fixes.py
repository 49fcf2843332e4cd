"""Quick fixes: the smallest edit that gives a layer the size that it got."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..protocol import LayerSeen, Mismatch, Value
from ..source.edits import TextEdit, replace_argument
from .layers import fits, normalized_shape
from .places import ArgumentPlace, Places, layer_name

_COUNTED_FROM_THE_FRONT = ("num_features", "num_channels")  # dim 1, whatever the number of dims; all else counts from the back


@dataclass(frozen=True)
class Fix:
    """Edits of one file that are likely to mend a finding."""

    title: str
    edits: list[TextEdit]
    file: str


def in_size_fix(places: Places, mismatches: Sequence[Mismatch], place: ArgumentPlace) -> Fix | None:
    """Sets the argument to the size that arrived; None where layers of this constructor call need different sizes, or the layer's other
    arguments forbid the size."""
    first = mismatches[0]
    layers = [places.trace.layers[each.layer] for each in mismatches if each.layer is not None]
    sizes = {each.got for each in mismatches}
    if first.got is None or len(sizes) != 1 or place.hidden or not all(fits(layer, first.argument, first.got) for layer in layers):
        return None
    if not _all_need(places, layers[0], first):
        return None
    text = _argument_text(place, layers[0], first)
    if text is None:
        return None
    edit = replace_argument(place.module, place.call, place.argument, first.argument, text)
    return Fix(f"Change {first.argument} to {text}", [edit], place.file)


def producer_fix(places: Places, mismatches: Sequence[Mismatch]) -> Fix | None:
    """Sets the size that the layer before gives (its `out_features`, `out_channels`) to the one that is needed; None where the size did not
    come straight out of a layer that is built once."""
    first = mismatches[0]
    origin = first.origins[0] if first.origins else None
    if origin is None or origin.layer is None or not origin.argument or first.need is None or len({each.need for each in mismatches}) != 1:
        return None
    producer = places.trace.layers[origin.layer]
    place = places.argument(producer, origin.argument)
    if place is None or place.argument is None or place.argument.star or _number(place.argument.text) not in (None, first.got):
        return None
    if origin.argument == "hidden_size" and re.search("bidirectional=True|proj_size", producer.description):
        return None  # The size is twice the argument, or another argument's.
    if not fits(producer, origin.argument, first.need):
        return None
    if sum(call.count for call in producer.calls) > 1:
        return None  # What else it gives its result to would no longer fit.
    built = {layer.path for layer in places.trace.layers if layer.span == producer.span and layer.example == producer.example}
    if len(built) > 1:
        return None
    edit = replace_argument(place.module, place.call, place.argument, origin.argument, str(first.need))
    return Fix(f"Change {origin.argument} of {layer_name(producer)} to {first.need}", [edit], place.file)


def _all_need(places: Places, layer: LayerSeen, mismatch: Mismatch) -> bool:
    """Whether all that ever went into layers of this constructor call has the size of the mismatch."""
    size_at = _dim(mismatch)
    if size_at is None:
        return True
    for other in places.trace.layers:
        if other.span != layer.span:
            continue
        for call in other.calls:
            value = call.inputs[0] if call.inputs else None
            if value is not None and value.kind == "tensor" and _size(value, size_at) not in (None, mismatch.got):
                return False
    return True


def _dim(mismatch: Mismatch) -> int | None:
    """The dim of the layer's first input that carries the size, counted so that it holds for inputs of other ranks too."""
    first = mismatch.inputs[0] if mismatch.inputs else None
    if mismatch.dim is None or first is None or first.shape is None or mismatch.argument in ("in2_features", "kdim", "vdim"):
        return None
    return mismatch.dim if mismatch.argument in _COUNTED_FROM_THE_FRONT or mismatch.dim < 0 else mismatch.dim - len(first.shape)


def _size(value: Value, dim: int) -> int | None:
    shape = value.shape or []
    return shape[dim] if -len(shape) <= dim < len(shape) else None


def _argument_text(place: ArgumentPlace, layer: LayerSeen, mismatch: Mismatch) -> str | None:
    """What to write for the argument: the size, or the list of sizes where `normalized_shape` is one."""
    if mismatch.argument != "normalized_shape" or place.argument is None:
        return str(mismatch.got)
    count = len(normalized_shape(layer))
    text = place.argument.text.strip()
    closing = {"[": "]", "(": ")"}.get(text[:1], "") if "," in text or text.startswith("[") else ""
    if count == 1 and not closing:
        return str(mismatch.got)
    shape = (mismatch.inputs[0].shape or [])[-count:] if mismatch.inputs else []
    if not closing or len(shape) != count or None in shape:
        return None
    return text[0] + ", ".join(map(str, shape)) + ("," if closing == ")" and count == 1 else "") + closing


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None
