"""A trace of which some examples were run rerun after an edit, put together with what the others saw before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from shapelens.protocol import Trace
from shapelens.trace_numbering import renumbered


def spliced(old: Trace, rerun: Collection[int], new: Trace) -> Trace:
    """`old` with the examples numbered `rerun` replaced by those of `new`. Positions of both are of the same text.

    An example that was found anew for a class takes the place of the one before; one that has no successor is left out.
    """
    traces = (old, new)
    slots = _slots(old, rerun, new)
    examples: tuple[dict[int, int], dict[int, int]] = ({}, {})
    layers: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for place, (side, number) in enumerate(slots):
        examples[side][number] = place
        for layer in traces[side].layers:
            if layer.example == number:
                layers[side][layer.index] = len(layers[0]) + len(layers[1])
    kept, seen = (_part(trace, *numbers) for trace, *numbers in zip(traces, examples, layers, strict=True))
    return replace(
        new,
        examples=[traces[side].examples[number] for side, number in slots],
        observations=sorted([*kept.observations, *seen.observations], key=lambda each: each.example),
        layers=sorted([*kept.layers, *seen.layers], key=lambda layer: layer.index),
        mismatches=sorted([*kept.mismatches, *seen.mismatches], key=lambda each: each.example),
        remarks=sorted([*kept.remarks, *seen.remarks], key=lambda each: each.example),
        notes=new.notes + [note for note in old.notes if note not in new.notes],
        files=new.files + [file for file in old.files if file not in new.files],
    )


def without_values(trace: Trace) -> Trace:
    """A trace with no more than it takes to say what is wrong."""
    return trace if trace.mismatches else replace(trace, observations=[], layers=[], remarks=[])


def _slots(old: Trace, rerun: Collection[int], new: Trace) -> list[tuple[int, int]]:
    """The examples in their order: (0, number in `old`) or (1, number in `new`)."""
    slots = []
    left = list(range(len(new.examples)))
    for number, run in enumerate(old.examples):
        if number not in rerun:
            slots.append((0, number))
            continue
        same = [other for other in left if new.examples[other].target == run.target]
        if same:
            best = next((other for other in same if new.examples[other].expression == run.expression), same[0])
            left.remove(best)
            slots.append((1, best))
    return slots + [(1, number) for number in left]


def _part(trace: Trace, examples: dict[int, int], layers: dict[int, int]) -> Trace:
    """Returns the part of a trace that belongs to these examples, with their new numbers, or to none."""
    part = replace(
        trace,
        observations=[seen for seen in trace.observations if seen.example in examples],
        layers=[layer for layer in trace.layers if layer.index in layers],
        mismatches=[seen for seen in trace.mismatches if seen.example in examples or seen.example < 0],
        remarks=[seen for seen in trace.remarks if seen.example in examples],
    )
    if all(number == now for numbers in (examples, layers) for number, now in numbers.items()):
        return part
    return renumbered(part, examples.__getitem__, layers.__getitem__)
