"""Judges which events of axes are worth a remark: views that tear, samples that meet, a softmax over another dim than the sum.

An event counts if the example's output descends from it. A tear that a later view mends is none. Samples are those of an axis that the code
itself treats as a batch, and that the output still has.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Sequence, Set

from ..trace.provenance import tensors_in
from . import products, reductions, views  # noqa: F401  They register their rules.
from .factors import Axis, Dim, Factor
from .tracking import LAYERS, MIXES, AxisEvent, Tracking


class Verdict:
    """An event that is worth a remark, with the remark's code."""

    def __init__(self, code: str, event: AxisEvent) -> None:
        self.code = code
        self.event = event


def verdicts(tracking: Tracking, output: Any) -> Iterator[Verdict]:
    """Yields the verdicts on a run that gave an output."""
    outputs = [tracking.traced(tensor) for tensor in tensors_in(output, 64)]
    led_there: Set[AxisEvent] = set().union(*[each.events for each in outputs])
    for event in tracking.events:
        if event not in led_there or event.span is None:
            continue
        if event.kind == "torn" and event.tear is not None and (event.tear.is_used or not event.tear.is_mended):
            yield Verdict("torn-view", event)
        elif event.kind == "softmax":
            yield Verdict("attention-axis", event)
        elif event.kind == "mix" and event.operation in MIXES:
            kept = [each for each in outputs if event in each.events]
            mixed = [axis for axis in event.axes if axis.is_samples and not axis.is_steps and _is_alone(axis, event.dims)]
            if any(_has(axis, each.dims) for axis in mixed for each in kept):
                yield Verdict("batch-first" if event.operation in LAYERS else "batch-mix", event)


def _has(axis: Axis, dims: Sequence[Dim]) -> bool:
    """True if dims have an axis as it came."""
    return any(factor.axis is axis for dim in dims for factor in dim)


def _is_alone(axis: Axis, dims: Sequence[Dim]) -> bool:
    """True if one dim alone stems from an axis: scores of all samples with each other are meant."""
    return sum(any(axis in factor.axis.roots for factor in dim) for dim in dims) == 1


def names(dims: Sequence[Dim], *, is_resized: bool) -> List[str]:
    """The dims as people write them: names of axes, numbers of features, `?` for what follows from sizes that were chosen.

    is_resized: sizes without names were chosen as well.
    """
    return ["·".join(_factor_name(factor, is_resized) for factor in dim) or "1" for dim in dims]


def _factor_name(factor: Factor, is_resized: bool) -> str:
    axis = factor.axis
    if axis.name and factor.size == axis.size:
        return axis.name
    is_chosen = bool(axis.roots) and (is_resized or any(root.name for root in axis.roots))
    return "?" if is_chosen else str(factor.size)
