"""Loops while a program is followed: how many turns they take, and what those that are cut have gathered."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Dict, Iterable, Iterator, List

import torch

from ..sandbox.clocks import WorkClock
from ..trace.value_summary import key_of
from ..unknown import unknown_sizes
from . import op_cache
from .gradients import training

LOOP_SECONDS = 0.25  # that a loop takes, after which it is cut
MOST_TURNS = 4096


def first_turns(iterable: Iterable[Any]) -> Iterable[Any]:
    """What a `for` of an imported module goes through: one that trains takes its first turns only while a program is followed."""
    return _first_turns(iterable, sys._getframe(1)) if op_cache.state.assumes_gradients else iterable


def _first_turns(iterable: Iterable[Any], frame: FrameType) -> Iterator[Any]:
    steps, loop = training.steps, Loop(frame)
    for count, item in enumerate(iterable, 1):
        yield item
        if training.steps != steps and not loop.goes_on(count):
            unknown_sizes.cut_short(loop.gathered())
            return


class Loop:
    """A loop under way: what it has cost, and what it carries along."""

    def __init__(self, frame: FrameType) -> None:
        self.frame = frame
        self.count = 0
        self._steps = training.steps
        self._clock = WorkClock()
        self._shapes = _shapes(frame)
        self._lengths = {id(value): len(value) for value in _containers(frame)}

    def seconds_of_turn(self) -> float:
        """How long a turn has taken on average."""
        return self._clock() / max(self.count, 1)

    def gathered(self) -> List[Any]:
        """The lists and dicts that have grown since the loop began."""
        return [value for value in _containers(self.frame) if len(value) > self._lengths.get(id(value), 0)]

    def goes_on(self, count: int) -> bool:
        """Whether it takes another turn after this many."""
        if training.steps != self._steps:
            before, self._shapes = self._shapes, _shapes(self.frame)
            return count < 2 and any(self._shapes[name] != shape for name, shape in before.items() if name in self._shapes)
        return count < MOST_TURNS and self._clock() < LOOP_SECONDS


def _shapes(frame: FrameType) -> Dict[str, Any]:
    """The shapes of the tensors that the names of a frame hold."""
    with torch._C.DisableTorchFunction():
        return {name: key_of(value) for name, value in list(frame.f_locals.items()) if isinstance(value, torch.Tensor)}


def _containers(frame: FrameType) -> List[Any]:
    return [value for value in list(frame.f_locals.values()) if type(value) in (list, dict)]
