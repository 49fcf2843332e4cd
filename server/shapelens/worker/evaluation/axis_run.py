"""Runs an example once more to follow the axes of its inputs, with sizes that do not divide each other: remarks of what it finds."""

from __future__ import annotations

import re
from typing import Any, Callable, Container, Iterator, List, NamedTuple, Optional, Set

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

RunAgain = Callable[["Sized", List[Any]], Optional[Evaluated]]

LONGEST = 2.0  # seconds of the evaluation that is done once more
TIMES, LEAST_SECONDS = 4.0, 0.5  # as long as that it may take, and so much longer
MOST_POWER = 32  # of two, by which strides and poolings may divide a side
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
LEAST_PICTURE = 8  # pixels of a side that may have another size
_BATCH_SIZE = re.compile(r"(?i)\bbatch_?size\s*[=:]\s*(\d+)")
_NUMBER = re.compile(r"(?<![\w:.])\d+\b")  # `32` of `f32[B:2, 32]`
_PICTURE = re.compile(r"\w\d*\[(?:[^\[\],]+,){3}")  # a shorthand of four dims: `f32[B:2, 3, 32, 32]`
_WITH_AXES = ("torn-view",)  # remarks that stand only if the axes say the same


def is_worth_following(found: Evaluated) -> bool:
    """True if an evaluation ran anything that the axes could tell about."""
    return found.may_mix or any(remark.code in _WITH_AXES for remark in found.remarks)


class Sized(NamedTuple):
    """The sizes of named dims, and whether pictures have other sizes than the example says."""

    names: Sizes
    is_resized: bool

    def resized(self, place: int, rank: int, size: int) -> int:
        """The size of a dim without a name: a prime number of times the power of two in it, another one for height and width."""
        if not self.is_resized or rank < 4 or place < 2 or size < LEAST_PICTURE:
            return size
        power = min(size & -size, MOST_POWER)
        larger = [prime * power for prime in _PRIMES[1:] if prime * power >= size]
        return larger[place % 3] if len(larger) > 2 else size


def axis_sizes(sizes: Sizes, *, has_picture: bool, numbers: Container[int] = ()) -> Iterator[Sized]:
    """Sizes for an example, best first: primes that no other size of the model divides; for the batch alone; as they are.

    numbers: those that the example has already.
    """
    left = iter([prime for prime in _PRIMES if prime not in numbers])  # `3` is taken by the channels of a picture.
    primes = {name: next(left, size) for name, size in sorted(sizes.items(), key=lambda each: each[1])}
    alone = dict.fromkeys(list(sizes)[:1], 3)
    tried: List[Sized] = []
    for own in (primes, {**(apart(sizes) or sizes), **alone}, {**sizes, **alone}, dict(sizes)):
        for chosen in (Sized(own, True), Sized(own, False)) if has_picture else (Sized(own, False),):
            if chosen not in tried:
                tried.append(chosen)
                yield chosen


def stated_batch_sizes(text: str) -> Set[int]:
    """The numbers that a text gives to arguments and variables called `batch_size`."""
    return {int(number) for number in _BATCH_SIZE.findall(text)}


def add_remarks_of_axes(found: Evaluated, frames: Frames, run: RunAgain, *, samples: Container[str], expression: str) -> None:
    """Follow the axes through an evaluation like that one, and put what it says into its remarks.

    samples: the named dims of which it is known that they are the samples of a batch. expression: the example.
    run(sizes, outputs): evaluates it with these sizes, and appends what it gives to `outputs`; None where it goes another way.
    """
    numbers = {int(number) for number in _NUMBER.findall(expression)}
    for sized in axis_sizes(found.sizes, has_picture=_PICTURE.search(expression) is not None, numbers=numbers):
        is_told_apart = len(set(sized.names.values())) == len(sized.names)
        tracking = Tracking(sized.names if is_told_apart else {}, frames, samples=samples)
        outputs: List[Any] = []
        axes.state.tracking = tracking
        try:
            if run(sized, outputs) is None:
                continue
        finally:
            axes.state.tracking = None
        _add(found, list(verdicts(tracking, outputs)), is_resized=sized.is_resized)
        return


def _add(found: Evaluated, said: List[Verdict], *, is_resized: bool) -> None:
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
        remark.axes = names(verdict.event.dims, is_resized=is_resized)
        remark.sized = [list(tensor.shape) for tensor in verdict.event.tensors]


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
