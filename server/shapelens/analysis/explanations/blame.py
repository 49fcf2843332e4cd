"""Which part of a failed expression is to blame: the number in a view that does not fit, the dim of a cat, the index, the equation.

Where several parts are as likely to be wrong, it is the whole expression.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from shapelens.analysis.explanations.expression_parts import ExpressionPart, Parts
from shapelens.analysis.explanations.operation_messages import Failed
from shapelens.analysis.layer_arguments import ARGUMENTS, constructor_words
from shapelens.analysis.places import ArgumentPlace, Place, Places
from shapelens.source.calls import Argument
from shapelens.source.positions import Span


def blamed(places: Places, failed: Failed, place: Place) -> Span:
    """The span of the part to blame, inside the expression at the place; that of the expression where no part is."""
    mismatch, parts = failed.mismatch, failed.parts
    constructor = constructor_argument(places, failed, place)
    if constructor is not None:
        return constructor.span
    if parts is None or mismatch.layer is not None:
        return place.span
    find = _BY_CODE.get(mismatch.code)
    part = find(failed, parts) if find is not None else None
    return part.span if part is not None else place.span


def _sizes(parts: Parts) -> list[ExpressionPart]:
    """The sizes of `view(2, 3)`; [] of `view((2, 3))` and where there is a star."""
    given = [argument for argument in parts.arguments if not argument.keyword]
    return [] if parts.receiver is None or any(isinstance(part.node, ast.Starred | ast.Tuple | ast.List) for part in given) else given


def _view(failed: Failed, parts: Parts) -> ExpressionPart | None:
    found = re.search(r"shape '\[(.*?)\]' is invalid", failed.message)
    asked = [int(size) for size in found.group(1).split(",") if size.strip()] if found else []
    shape, given = failed.tensors[0].shape or [], _sizes(parts) if failed.tensors else []
    if len(given) != len(asked):
        return None
    kept = 0  # leading dims that stay as they are
    while kept < min(len(asked), len(shape)) and asked[kept] == shape[kept] and (kept == 0 or -1 not in asked):
        kept += 1
    suspects = [place for place, size in enumerate(asked) if size != -1 and place >= kept]
    known = [size for size in shape if size is not None]
    if len(suspects) > 1 and -1 not in asked and len(known) == len(shape):
        # The one that can be put right by itself.
        suspects = [place for place in suspects if math.prod(known) % max(math.prod(asked) // max(asked[place], 1), 1) == 0]
    return given[suspects[0]] if len(suspects) == 1 else None


def _dim(failed: Failed, parts: Parts) -> ExpressionPart | None:
    found = re.search(r"but got (-?\d+)\)?$", failed.message)
    named = [argument for argument in parts.arguments if argument.keyword in ("dim", "axis", "start_dim", "end_dim", "dim0", "dim1")]
    if not found:
        return None
    given = [argument for argument in parts.arguments if argument.number == int(found.group(1))]
    return given[0] if len(given) == 1 else named[0] if len(named) == 1 else None


def _cat(failed: Failed, parts: Parts) -> ExpressionPart | None:
    """The dim, where joining along another one would do."""
    shapes = [value.shape or [] for value in failed.tensors]
    if parts.function == "stack" or len({len(shape) for shape in shapes}) != 1:
        return None
    different = [dim for dim in range(len(shapes[0])) if len({shape[dim] for shape in shapes}) > 1]
    return parts.argument("dim", 1) if len(different) == 1 else None


def _split(failed: Failed, parts: Parts) -> ExpressionPart | None:
    return parts.argument("split_size", 0 if parts.receiver is not None else 1)


def _index(failed: Failed, parts: Parts) -> ExpressionPart | None:
    found = re.search(r"out of bounds for dimension (\d+)", failed.message)
    if not found or parts.function != "[]":
        return None
    dim = 0
    for argument in parts.arguments:
        if isinstance(argument.node, ast.Constant) and argument.node.value in (None, Ellipsis):
            if argument.node.value is Ellipsis:
                return None
            continue
        if dim == int(found.group(1)):
            return argument
        dim += 1
    return None


def _einsum(failed: Failed, parts: Parts) -> ExpressionPart | None:
    return parts.arguments[0] if parts.arguments and isinstance(parts.arguments[0].node, ast.Constant) else None


def _expand(failed: Failed, parts: Parts) -> ExpressionPart | None:
    found = re.search(r"at non-singleton dimension (\d+)\.", failed.message)
    given = _sizes(parts)
    return given[int(found.group(1))] if found and parts.function == "expand" and int(found.group(1)) < len(given) else None


def _target(failed: Failed, parts: Parts) -> ExpressionPart | None:
    return parts.argument("target", 1) if "target" in failed.message and parts.receiver is None else None


_BY_CODE = {
    "view": _view,
    "dim": _dim,
    "cat": _cat,
    "split": _split,
    "index": _index,
    "einsum": _einsum,
    "einops": _einsum,
    "broadcast": _expand,
    "dtype": _target,
}


# --- arguments of constructors ---


def constructor_argument(places: Places, failed: Failed, place: Place) -> ArgumentPlace | None:
    """The argument that a layer's constructor refused; None where the mismatch is no such, or no argument can be told."""
    mismatch = failed.mismatch
    layer = places.layer_of(mismatch)
    call = place.module.call_at(place.span)
    if layer is None or mismatch.state is not None or call is None or call.span != place.span or layer.span != mismatch.span or layer.calls:
        return None
    message = constructor_words(layer, mismatch.message)
    if "missing" in message:
        return None
    said = [name for name in ARGUMENTS.get(layer.class_name, ()) if re.search(rf"\b{name}\b", message, re.IGNORECASE)]
    # `a must be divisible by b`: the last one that is named is the divisor.
    for name in sorted(said, key=message.lower().rfind, reverse="divisible" in message):
        found = places.argument(layer, name)
        if found is not None and found.argument is not None:
            return found
    fitting = _as_worded(call.arguments, message)
    return ArgumentPlace(place.file, place.module, call, fitting[0]) if len(fitting) == 1 else None


def _as_worded(arguments: Sequence[Argument], message: str) -> Sequence[Argument]:
    """The arguments of which a message speaks without the names of parameters: by their numbers, as texts, by an unknown keyword."""
    keyword = re.search(r"unexpected keyword argument '(\w+)'", message)
    if keyword:
        fitting = [argument for argument in arguments if argument.keyword == keyword.group(1)]
    else:
        numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", message)
        fitting = [argument for argument in arguments if argument.text in numbers]
        fitting = [argument for argument in fitting if argument.text.startswith("-")] or fitting
    if not fitting and not keyword and re.search(r"\bstr(ing)?\b", message):
        fitting = [argument for argument in arguments if argument.text[:1] in "\"'"]
    return arguments if not fitting and len(arguments) == 1 else fitting
