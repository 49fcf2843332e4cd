"""Tensors of different devices, in words; and the places that have put them there."""

from __future__ import annotations

from collections.abc import Iterable

from shapelens.analysis.places import Places, layer_name
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import Mismatch, Origin, Value

DEVICE = "device"  # the code
PARAMETER = "Parameter"  # the type of a value that is one
_NEVER_MOVED = "Parameter"  # the operation of a side that nothing has moved
_LOADER = "DataLoader"


def device_words(places: Places, mismatch: Mismatch) -> str:
    """Returns words for the devices of two tensors, and for the reason that one lies on the CPU."""
    if mismatch.operation == "numpy":
        where = mismatch.inputs[0].device
        return f"{_named(mismatch, 0)} is on {where}, and an array of numpy needs it on the CPU: cpu() it first"
    if _is_model(places, mismatch):
        model = places.trace.layers[mismatch.layer or 0].class_name
        return f"{model} is on the CPU, as nothing moves it, and {_named(mismatch, 1)} on {mismatch.inputs[1].device}: torch refuses that"
    return f"{_side(places, mismatch, 0)}, and {_side(places, mismatch, 1)} on {mismatch.inputs[1].device}: torch refuses to mix them"


def sides(mismatch: Mismatch) -> Iterable[tuple[Origin, str]]:
    """The places where each side got its device, each with its words."""
    for number, (origin, value) in enumerate(zip(mismatch.origins, mismatch.inputs, strict=False)):
        where = "the CPU" if value.device == "cpu" else value.device
        name = origin.argument or ("its model" if origin.layer is not None else "it")
        words = f"{name} is on {where} from here"
        yield origin, f"the loader gives {name} on {where}" if number == 0 and origin.operation == _LOADER else words


def _side(places: Places, mismatch: Mismatch, number: int) -> str:
    """`x [64, 784] is on the CPU, as the loader gives it`, or what follows "and" for the other side."""
    value, origin = mismatch.inputs[number], mismatch.origins[number]
    if value.type_name == PARAMETER:
        index = mismatch.layer if mismatch.layer is not None else origin.layer
        owner = f" of {layer_name(places.trace.layers[index])}" if index is not None else ""
        said = f"{origin.argument} {dims_text(value)}" if origin.argument else f"the weight {dims_text(value)}{owner}"
    else:
        said = _named(mismatch, number)
    return said if number else f"{said} is on the CPU{_why(origin)}"


def _why(origin: Origin) -> str:
    if origin.operation == _LOADER:
        return ", as the loader gives it"
    if origin.operation == _NEVER_MOVED:
        return ", as nothing moves it"
    return ", where cpu() or to() has put it" if origin.operation in ("cpu", "to") else f", where {origin.operation}() makes it"


def _named(mismatch: Mismatch, number: int) -> str:
    value, origin = mismatch.inputs[number], mismatch.origins[number]
    return f"{origin.argument or 'a tensor'} {dims_text(value)}"


def _is_model(places: Places, mismatch: Mismatch) -> bool:
    """True if a whole model was never moved."""
    value = mismatch.inputs[0]
    if value.type_name != PARAMETER or mismatch.layer is None or mismatch.origins[0].operation != _NEVER_MOVED:
        return False
    return places.trace.layers[mismatch.layer].class_name != mismatch.operation


def is_parameter(value: Value) -> bool:
    """True if one side is a parameter of a module."""
    return value.type_name == PARAMETER
