"""Fixes that change a setting of a layer that takes no part in what it learns: the padding of a convolution, `batch_first`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shapelens.analysis.explanations.names_in_scope import known_sizes, scope_of
from shapelens.analysis.layer_arguments import ARGUMENTS
from shapelens.analysis.places import Places, layer_name
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import LayerSeen, Mismatch
from shapelens.source.edits import replace_argument

_SHAPES = ("broadcast", "cat", "shape", "view", "matmul", "rnn-input-size", "attention")
_STRIDE = re.compile(r"stride=\((\d+)")
_KERNEL = re.compile(r"kernel_size=\(([\d, ]+)\)")


def setting_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates, those of the layers nearest to the failure first."""
    if mismatch.code not in _SHAPES:
        return []
    numbers = [mismatch.layer, *(suspect.layer for suspect in mismatch.suspects), *(origin.layer for origin in mismatch.origins)]
    found = []
    for index in dict.fromkeys(number for number in numbers if number is not None):
        layer = places.trace.layers[index]
        if layer.qualified_name.startswith("torch.nn."):
            found += [*_padded(places, layer, mismatch), *_strided(places, layer, mismatch), *_batch_first(places, layer)]
            found += _made_even(places, layer, mismatch)
    return found


def _padded(places: Places, layer: LayerSeen, mismatch: Mismatch) -> Iterator[Fix]:
    """A convolution of an odd kernel that has no padding, and makes its picture smaller."""
    kernel = _KERNEL.search(layer.description)
    sizes = [int(part) for part in kernel.group(1).split(",") if part.strip()] if kernel else []
    is_conv = layer.class_name in ("Conv1d", "Conv2d", "Conv3d")
    if not is_conv or mismatch.code not in ("broadcast", "cat", "shape") or len(set(sizes)) != 1 or sizes[0] % 2 == 0 or sizes[0] == 1:
        return
    if "padding=" not in layer.description and "dilation=" not in layer.description:
        yield from _with_setting(places, layer, "padding", str(sizes[0] // 2))


def _made_even(places: Places, layer: LayerSeen, mismatch: Mismatch) -> Iterator[Fix]:
    """A transposed convolution that gives back a side that was odd before it was halved: 13 for 14, or 8 for 7."""
    stride = _STRIDE.search(layer.description)
    if layer.class_name.startswith("ConvTranspose") and mismatch.code in ("broadcast", "cat", "shape"):
        if "output_padding=" in layer.description:
            yield from _with_setting(places, layer, "output_padding", "0")
        elif stride is not None and int(stride.group(1)) > 1:
            yield from _with_setting(places, layer, "output_padding", str(int(stride.group(1)) - 1))


def _strided(places: Places, layer: LayerSeen, mismatch: Mismatch) -> Iterator[Fix]:
    """A convolution of stride 1 beside another one that halves its picture: a shortcut."""
    shapes = [value.shape or [] for value in mismatch.inputs if value.kind == "tensor"]
    if mismatch.code != "broadcast" or "stride=(1, 1)" not in layer.description or len(shapes) != 2 or len(shapes[0]) != len(shapes[1]):
        return
    sizes = [(shape[-1] or 0, other[-1] or 0) for shape, other in (shapes, shapes[::-1])]
    given = [large // small for large, small in sizes if small and large > small]
    gave = layer.calls[0].output.shape if layer.calls else None
    place = places.argument(layer, "stride")
    if not given or given[0] < 2 or place is None or not gave or gave[-1] != max(sizes[0]):
        return
    scope = scope_of(place)
    names = [each.text for each in known_sizes(places, place, scope) if given[0] in each.values] if scope is not None else []
    likely = [name for name in names if "stride" in name]
    yield from _with_setting(places, layer, "stride", next(iter(likely), str(given[0])))


def _batch_first(places: Places, layer: LayerSeen) -> Iterator[Fix]:
    if "batch_first" in ARGUMENTS.get(layer.class_name, ()):
        yield from _with_setting(places, layer, "batch_first", "True")


def _with_setting(places: Places, layer: LayerSeen, name: str, text: str) -> Iterator[Fix]:
    place = places.argument(layer, name)
    if place is None or place.hidden or (place.argument is not None and place.argument.text == text):
        return
    edit = replace_argument(place.module, place.call, place.argument, name, text)
    yield Fix(f"Set {name} of {layer_name(layer)} to {text}", [edit], place.file, Likelihood.LAYOUT)
