"""Runs an example once more to follow the axes of its inputs, with sizes that do not divide each other: remarks of what it finds."""

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Optional

from ...protocol import Origin, Remark
from ..axes import tracking as axes
from ..axes.tracking import Tracking
from ..axes.verdicts import Verdict, names, verdicts
from ..calls.module_calls import shift
from ..trace.dim_names import Sizes
from ..trace.frames import Frames
from ..trace.value_summary import LAYER, key_of, value_of
from .evaluated import Evaluated
from .probing import apart

LONGEST = 2.0  # seconds of the evaluation that is done once more
_COPRIME = (3, 5, 7, 11, 13, 17, 19)
_WITH_AXES = ("torn-view",)  # remarks that stand only if the axes say the same


def is_worth_following(found: Evaluated) -> bool:
    """Whether an evaluation ran anything that the axes could say something of."""
    return found.may_mix or any(remark.code in _WITH_AXES for remark in found.remarks)


def axis_sizes(sizes: Sizes) -> Iterator[Sizes]:
    """Sizes for the example's names, best first: primes that no other size of the model divides; for the batch alone; as they are."""
    taken = iter(_COPRIME)
    primes = {name: next(taken, size) for name, size in sorted(sizes.items(), key=lambda each: each[1])}
    alone = dict.fromkeys(list(sizes)[:1], 3)
    tried: List[Sizes] = []
    for chosen in (primes, {**(apart(sizes) or sizes), **alone}, {**sizes, **alone}, dict(sizes)):
        if chosen not in tried:
            tried.append(chosen)
            yield chosen


def add_remarks_of_axes(found: Evaluated, frames: Frames, run: Callable[[Sizes, List[Any]], Optional[Evaluated]], *, given: bool) -> None:
    """Follow the axes through an evaluation like that one, and put what it says into its remarks.

    given: the user wrote the example. run(sizes, outputs): evaluates it with these sizes, and appends what it gives to `outputs`;
    None where it goes another way.
    """
    for sizes in axis_sizes(found.sizes):
        is_told_apart = len(set(sizes.values())) == len(sizes)
        tracking = Tracking(sizes if is_told_apart else {}, frames, given=given)
        outputs: List[Any] = []
        axes.state.tracking = tracking
        try:
            if run(sizes, outputs) is None:
                continue
        finally:
            axes.state.tracking = None
        _add(found, list(verdicts(tracking, outputs)))
        return


def _add(found: Evaluated, said: List[Verdict]) -> None:
    places = {(each.code, each.event.span) for each in said}
    found.remarks = [
        remark
        for remark in found.remarks
        if remark.code not in _WITH_AXES or remark.layer is not None or (remark.code, remark.span) in places
    ]
    known = {(remark.code, remark.span): remark for remark in found.remarks}
    for verdict in said:
        remark = known.get((verdict.code, verdict.event.span))
        if remark is None:
            remark = known[verdict.code, verdict.event.span] = _remark(found, verdict)
            shift(remark, found.first_layer)
            found.remarks.append(remark)
        remark.axes = names(verdict.event.dims)


def _remark(found: Evaluated, verdict: Verdict) -> Remark:
    event = verdict.event
    remark = Remark(verdict.code, event.operation, event.span, found.example, dim=event.dim)
    remark.inputs = [value_of(key_of(tensor)) for tensor in event.tensors]
    layer = event.layer.__dict__.get(LAYER) if event.layer is not None else None
    if verdict.code == "batch-first":
        remark.given = type(event.layer).__name__ if event.layer is not None else event.operation
        shapes = [list(value.shape or []) for value in remark.inputs]
        remark.origins = [Origin(event.operation, event.span, shapes[0], shapes[-1], layer, "batch_first")]
    else:
        remark.layer = layer
    return remark
