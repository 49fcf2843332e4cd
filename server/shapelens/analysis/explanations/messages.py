"""The words of findings: which layer, what it got, what it needs, and where the size came from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from shapelens.analysis.explanations.checkpoint_messages import CHECKPOINT, checkpoint_words
from shapelens.analysis.explanations.device_messages import DEVICE, device_words
from shapelens.analysis.explanations.names_in_scope import value_of
from shapelens.analysis.explanations.operation_messages import Failed, words
from shapelens.analysis.explanations.python_messages import python_words
from shapelens.analysis.layer_arguments import ARGUMENTS, constructor_words, normalized_shape, noun
from shapelens.analysis.places import Places, layer_name
from shapelens.analysis.shapes import dtype_text, has_tensor, shape_text, sizes_text
from shapelens.protocol import Mismatch, Origin

MOST_SIZES = 3  # that layers of one constructor call got, before an ellipsis

_VERBS = {
    "flatten": "flattened",
    "view": "reshaped",
    "reshape": "reshaped",
    "unflatten": "reshaped",
    "cat": "concatenated",
    "concat": "concatenated",
    "stack": "stacked",
    "permute": "permuted",
    "transpose": "transposed",
    "movedim": "permuted",
    "expand": "expanded",
    "repeat": "repeated",
    "unfold": "unfolded",
    "__getitem__": "indexed",
    "einsum": "from an einsum",
    "interpolate": "resized",
    "pad": "padded",
    "chunk": "split",
    "split": "split",
}


def in_size_message(places: Places, mismatches: Sequence[Mismatch]) -> str:
    """`fc1 gets 400 features (16·5·5, flattened on line 14) but in_features is 576`, for the mismatches of one constructor's argument."""
    first = mismatches[0]
    layers = {places.trace.layers[each.layer].path: places.trace.layers[each.layer] for each in mismatches if each.layer is not None}
    layer = next(iter(layers.values()))
    name = layer_name(layer) + (f" (one of {len(layers)} layers built here)" if len(layers) > 1 else "")
    got = _listed(each.got for each in mismatches)
    need = _listed(each.need for each in mismatches)
    counted = noun(layer, first.argument)
    if counted and got == "1":
        counted = counted.replace("features", "feature", 1).replace("channels", "channel", 1)
    units = f"{got} {counted}" if counted else f"a last dim of {got}" if first.argument == "normalized_shape" else f"a size of {got}"
    if first.argument == "num_embeddings" and first.got is not None:
        return f"{name} gets indices up to {first.got - 1} but num_embeddings is {need}"
    origin = origin_words(places, first) if "," not in got else ""
    last_dims = normalized_shape(layer)
    if len(last_dims) > 1 and first.inputs:
        arrived = sizes_text((first.inputs[0].shape or [])[-len(last_dims) :])
        units, need = f"last dims of {arrived}", sizes_text(last_dims)
    return f"{name} gets {units}{origin and f' ({origin})'} but {first.argument} is {need}"


def _listed(sizes: Iterable[int | None]) -> str:
    texts = list(dict.fromkeys(str(size) for size in sizes))
    return ", ".join(texts if len(texts) <= MOST_SIZES else [*texts[:MOST_SIZES], "…"])


def origin_words(places: Places, mismatch: Mismatch) -> str:
    """Where the size that arrived came from: `16·5·5, flattened on line 14`, `out_channels of conv1, line 5`; "" where it is not known."""
    for origin in mismatch.origins:
        words = _one_origin(places, mismatch, origin)
        if words:
            return words
    return ""


def _one_origin(places: Places, mismatch: Mismatch, origin: Origin) -> str:
    if origin.layer is not None and origin.argument:
        layer = places.trace.layers[origin.layer]
        place = places.argument(layer, origin.argument)
        return f"{origin.argument} of {layer_name(layer)}" + (f", {places.words(place)}" if place is not None else "")
    place_of_operation = places.locate(origin.span)
    where = ""
    if place_of_operation is not None:
        where = f" {'on' if place_of_operation.module.notebook is None else 'in'} {places.words(place_of_operation)}"
    if origin.layer is not None:
        return f"from {layer_name(places.trace.layers[origin.layer])}{where}"
    verb = _VERBS.get(origin.operation, "")
    factors = product(origin, mismatch.got)
    if not verb and not where:
        return ""
    return (f"{factors}, " if factors else "") + (f"{verb}{where}" if verb else f"from {origin.operation}{where}")


def product(origin: Origin, size: int | None) -> str:
    """The dims that a flatten or view multiplied into a size: `16·5·5` for [B, 16, 5, 5] → [B, 400]; "" where it did not."""
    if size is None or None in origin.shape or None in origin.result:
        return ""
    before = [dim for dim in origin.shape if dim is not None]
    after = [dim for dim in origin.result if dim is not None]
    if math.prod(before) != math.prod(after):
        return ""
    for position in [place for place, dim in enumerate(after) if dim == size]:
        ahead = math.prod(after[:position])
        for start in range(len(before)):
            if math.prod(before[:start]) != ahead:
                continue
            for end in range(start + 2, len(before) + 1):
                if math.prod(before[start:end]) == size and 1 not in before[start:end]:
                    return "·".join(map(str, before[start:end]))
    return ""


# --- other mismatches ---


def operation_message(places: Places, failed: Failed) -> str:
    """Returns words for a failed operation, in terms of its inputs' shapes; eager's own words where nothing better is known."""
    mismatch = failed.mismatch
    message = mismatch.message.strip().rstrip(".") or mismatch.exception
    if mismatch.code == "data-dependent":
        return f"the run ends here: this needs the values of a tensor, which only real data has ({_shortened(message)})"
    if mismatch.code == DEVICE:
        return device_words(places, mismatch)
    if mismatch.code == CHECKPOINT:
        return checkpoint_words(places, mismatch)
    said = python_words(places, mismatch) if mismatch.meant or mismatch.code in ("exception", "call-arguments") else words(failed)
    if not said and mismatch.code in ("layer-arguments", "attention-heads"):
        said = _constructor_message(places, mismatch, message)
    elif not said:
        said = message
        if mismatch.code in ("exception", "definition") and mismatch.exception and not message.startswith(mismatch.exception):
            said = f"{mismatch.exception}: {message}"
        elif any(has_tensor(value) for value in mismatch.inputs) and mismatch.code != "exception":
            text_of = dtype_text if mismatch.code in ("dtype", "embedding-dtype") else shape_text
            said += " (given " + ", ".join(text_of(value) for value in mismatch.inputs[:4] if has_tensor(value)) + ")"
    layer = places.layer_of(mismatch)
    return f"{layer_name(layer)}: {said}" if layer is not None and layer.path else said


def _constructor_message(places: Places, mismatch: Mismatch, message: str) -> str:
    """`in_channels (6) must be divisible by groups (4)`: what a constructor says of its arguments, with what they were given."""
    layer = places.layer_of(mismatch)
    if layer is None:
        return message
    message = constructor_words(layer, message)
    for name in ARGUMENTS.get(layer.class_name, ()) if "divisible" in message else ():
        place = places.argument(layer, name) if re.search(rf"\b{name}\b(?! \()", message) else None
        text = place.argument.text if place is not None and place.argument is not None else name
        size = value_of(places, place, text) if place is not None and not text.isdecimal() else None
        text = f"{text} = {size}" if size is not None else text
        if text != name and len(text) <= 40:
            before, _, behind = re.sub(rf"\b{name}\b", "\0", message, count=1).partition("\0")
            message = f"{before}{name} ({text}){behind}"
    return message


def _shortened(message: str, longest: int = 90) -> str:
    return message if len(message) <= longest else message[: longest - 1].rstrip() + "…"
