"""Traces put together, and taken apart: their examples and layers are numbered, and what was seen refers to them by number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from shapelens.protocol import LayerSeen, Mismatch, Observation, Remark, Trace, Value

T = TypeVar("T")
Numbered = TypeVar("Numbered", Mismatch, Remark)
Number = Callable[[int], int]  # from the number of an example or layer to its new one


def merged(file: str, traces: Sequence[Trace]) -> Trace:
    """Several traces of one file as one. Examples and layers are numbered on from those of the trace before."""
    whole = Trace(file)
    for trace in traces:
        examples, layers = len(whole.examples), len(whole.layers)
        moved = trace if not examples and not layers else renumbered(trace, _plus(examples), _plus(layers))
        whole.examples += moved.examples
        whole.observations += moved.observations
        whole.layers += moved.layers
        whole.mismatches += moved.mismatches
        whole.remarks += moved.remarks
        whole.notes += [note for note in moved.notes if note not in whole.notes]
        whole.files += [other for other in moved.files if other not in whole.files]
    return whole


def _plus(offset: int) -> Number:
    return lambda number: number + offset


def renumbered(trace: Trace, example: Number, layer: Number) -> Trace:
    """A trace with other numbers for its examples and layers. Its list of examples stays as it is."""
    return replace(
        trace,
        observations=[_renumbered_values(seen, example(seen.example), layer) for seen in trace.observations],
        layers=[_numbered(each, layer(each.index), example(each.example)) for each in trace.layers],
        mismatches=[_renumbered_one(mismatch, example, layer) for mismatch in trace.mismatches],
        remarks=[_renumbered_one(remark, example, layer) for remark in trace.remarks],
    )


def _renumbered_values(seen: Observation, example: int, layer: Number) -> Observation:
    values = [_of_layers(value, layer) for value in seen.values]
    same = example == seen.example and all(value is before for value, before in zip(values, seen.values, strict=True))
    return seen if same else with_fields(seen, example=example, values=values)


def _numbered(seen: LayerSeen, index: int, example: int) -> LayerSeen:
    return seen if (index, example) == (seen.index, seen.example) else with_fields(seen, index=index, example=example)


def _renumbered_one(seen: Numbered, example: Number, layer: Number) -> Numbered:
    origins = [replace(origin, layer=None if origin.layer is None else layer(origin.layer)) for origin in seen.origins]
    number = example(seen.example) if seen.example >= 0 else seen.example
    moved = replace(seen, layer=None if seen.layer is None else layer(seen.layer), example=number, origins=origins)
    if isinstance(moved, Mismatch):
        moved.inside = [layer(index) for index in moved.inside]
        moved.suspects = [replace(each, layer=None if each.layer is None else layer(each.layer)) for each in moved.suspects]
    return moved


def _of_layers(value: Value, layer: Number) -> Value:
    if value.layer is None and not value.items:
        return value
    items = None if value.items is None else [_of_layers(item, layer) for item in value.items]
    number = None if value.layer is None else layer(value.layer)
    same = number == value.layer and all(item is before for item, before in zip(items or [], value.items or [], strict=True))
    return value if same else with_fields(value, layer=number, items=items)


def without_examples(trace: Trace, dropped: Collection[int]) -> Trace:
    """A trace without these of its examples, by number, and what they saw. The others are numbered anew."""
    if not dropped:
        return trace
    examples = {old: new for new, old in enumerate(number for number in range(len(trace.examples)) if number not in dropped)}
    kept = [layer for layer in trace.layers if layer.example not in dropped]
    layers = {layer.index: new for new, layer in enumerate(kept)}
    left = replace(
        trace,
        examples=[trace.examples[number] for number in examples],
        observations=[seen for seen in trace.observations if seen.example not in dropped],
        layers=kept,
        mismatches=[seen for seen in trace.mismatches if seen.example not in dropped],
        remarks=[seen for seen in trace.remarks if seen.example not in dropped],
    )
    return renumbered(left, lambda number: examples.get(number, number), lambda number: layers.get(number, number))


def with_fields(instance: T, **fields: Any) -> T:
    """As `dataclasses.replace`, in a fourth of the time: `__init__` is not called. For dataclasses without slots that compute no field."""
    copy: T = object.__new__(type(instance))
    copy.__dict__.update(instance.__dict__)
    copy.__dict__.update(fields)
    return copy
