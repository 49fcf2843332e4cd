"""Fixes of masks that an attention refuses: turned round, repeated for each head, or read by a layer that takes the time for the batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shapelens.analysis.places import Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.targets import appended
from shapelens.protocol import LayerSeen, Mismatch
from shapelens.source.edits import replace_argument

_SHAPES = re.compile(r"The shape of the (\d)D attn_mask is torch\.Size\(\[(\d+)\D.*, but should be \((\d+),")
_HAVE_BATCH_FIRST = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer")


def mask_fixes(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """Yields what may mend a mask of an attention, likely ones first. Each is run before it is offered."""
    place = places.here(mismatch)
    call = place.module.call_at(place.span) if mismatch.code == "attention" and place is not None else None
    if place is None or call is None:
        return
    shapes = _SHAPES.search(mismatch.message)
    masks = [argument for argument in call.arguments if not argument.star and "mask" in (argument.keyword or argument.text)]
    for mask in masks:
        name = mask.keyword or "the mask"
        if shapes is None:
            yield appended(place, mask.span, "T", f"Turn {name} round")
        elif shapes[1] == "3" and int(shapes[3]) % int(shapes[2]) == 0:
            heads = int(shapes[3]) // int(shapes[2])
            yield appended(place, mask.span, f"repeat_interleave({heads}, dim=0)", f"Repeat {name} for each of the {heads} heads")
    other = _batch_first(places, mismatch)
    if other is not None:
        yield other


def _batch_first(places: Places, mismatch: Mismatch) -> Fix | None:
    """Sets batch_first at the constructor of the attention, or of the layer that holds it, to what it is not."""
    layer = _constructed(places, mismatch)
    said = places.argument(layer, "batch_first") if layer is not None else None
    if said is None or said.hidden or (said.argument is not None and said.argument.text not in ("True", "False")):
        return None
    value = "False" if said.argument is not None and said.argument.text == "True" else "True"
    edit = replace_argument(said.module, said.call, said.argument, "batch_first", value)
    return Fix(f"Set batch_first={value}", [edit], said.file)


def _constructed(places: Places, mismatch: Mismatch) -> LayerSeen | None:
    """The layer with `batch_first` that failed, around it or in it, which the user's code constructs; None where several may be meant."""
    layers = places.trace.layers
    failed = layers[mismatch.layer] if mismatch.layer is not None else None
    if failed is None:
        return None
    able = [each for each in layers if each.example == failed.example and each.span is not None and each.class_name in _HAVE_BATCH_FIRST]
    inside = f"{failed.path}." if failed.path else ""
    around = [each for each in able if each.path == failed.path or failed.path.startswith(f"{each.path}.")]
    found = [each for each in around if each.class_name == failed.class_name or failed.path] or [
        each for each in able if each.path != failed.path and each.path.startswith(inside)
    ]
    return found[-1] if len({each.span for each in found}) == 1 else None
