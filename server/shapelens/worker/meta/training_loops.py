"""Loops while a program is followed: how many turns they take, and what those that are cut have gathered."""

from __future__ import annotations

from itertools import islice
from types import FrameType
from typing import Any, Dict, Iterable, Iterator, List, Optional

import torch

from ..sandbox.clocks import WorkClock
from ..trace.provenance import tape_clock
from ..trace.recorder import Recorder
from ..trace.tape import tape
from ..trace.value_summary import key_of
from ..unknown import unknown_sizes
from .gradients import training
from .mode import become_meta

LOOP_SECONDS = 0.25  # that a loop takes, after which it is cut
MOST_TURNS = 4096
SHOWN = 8  # turns that show how the shapes of a loop change
TOLD = 4  # turns of which a hint tells, as it says "…" of more shapes than three
SLOW_SECONDS = 0.1  # that turns take, for fewer to be taken
MOST_MODULES = 32  # of a model that are looked at for a state that they keep
LONG_SECONDS = 0.5  # that the turns of a loop that counts may take in all, for it to take more


def turns_followed(items: Iterable[Any], loop: "Loop") -> Iterator[Any]:
    """Yields what a `for` goes through while a program is followed, or a statement of a module that is loaded.

    One that trains takes its first turns, and one that counts and takes long (`for _ in range(max_new_tokens)`) those that show its shapes;
    what this one carries along is of unknown size then. All others take all turns, and so does one that `forward` comes to.
    """
    for loop.count, item in enumerate(items, 1):
        yield item
        if loop.trains():
            if not loop.goes_on(loop.count):
                unknown_sizes.cut_short(loop.gathered())
                return
        elif loop.is_long() and not _is_called_by_forward(loop.frame):
            loop.end_early()
            return


class Loop:
    """A loop under way: what it has met and cost, and what it carries along. iterable: what it goes through."""

    def __init__(self, frame: FrameType, recorder: Recorder, iterable: Any = None) -> None:
        self.frame = frame
        self.count = 0
        self._recorder, self._met, self._news = recorder, recorder.met, recorder.news
        self._made, self._used = recorder.made, recorder.used
        self._whole = len(iterable) if type(iterable) is range else 0
        self._steps = training.steps
        self._clock = WorkClock()
        self._began = 0.0  # when the last turn did
        self._shown = [_shapes(frame)]  # after each of the first turns
        self._carried = _carried(frame)
        self._optimizers, self._time, self._backwards = len(tape.optimizers), tape_clock.time, tape.backwards
        self._numbers = [name for name, value in list(frame.f_locals.items()) if type(value) in (int, float)]
        self._lengths = {id(value): len(value) for value in _containers(frame)}

    def seconds(self) -> float:
        """Returns how long it has taken until now."""
        return self._clock()

    def seconds_of_turn(self) -> float:
        """Returns how long a turn has taken on average."""
        return self._clock() / max(self.count, 1)

    def gathered(self) -> List[Any]:
        """The lists and dicts that have grown since the loop began."""
        return [value for value in _containers(self.frame) if len(value) > self._lengths.get(id(value), 0)]

    def trains(self) -> bool:
        """True if an optimizer has taken a step, or `backward` was called, since the loop began."""
        return training.steps != self._steps

    def goes_on(self, count: int) -> bool:
        """True if it takes another turn after this many."""
        if self.trains():
            self._look_at_sums()
            tape.turned(self._optimizers, self._time)
            before, self._carried = self._carried, _carried(self.frame)
            changes = any(self._carried[name] != kind for name, kind in before.items() if name in self._carried)
            return count < 2 and (changes or self._holds_freed(before))
        return count < MOST_TURNS and (self._clock() < LOOP_SECONDS or self.builds())

    def has_met(self) -> bool:
        """True if there was a tensor since the loop began, or anything else that is to be reported."""
        return self._recorder.met != self._met

    def builds(self) -> bool:
        """True if it makes layers and calls none: a model without some of them would be another one."""
        return self._recorder.made != self._made and self._recorder.used == self._used

    def is_long(self) -> bool:
        """True if it computes tensors, has taken the turns that show its shapes, and all of them would take too long.

        To be asked after each turn. Of turns that take their time fewer are taken: until one shows nothing new, or more than a hint tells.
        """
        if self.count > SHOWN or not self._whole > SHOWN:
            return False
        self._shown.append(_shapes(self.frame))
        began, self._began = self._began, self._clock()
        news, self._news = self._news, self._recorder.news
        if self.count < SHOWN:
            shows_more = self.count == 1 or (self._news != news and self.count < TOLD)
            if shows_more or self._began < SLOW_SECONDS:
                return False
        return self.has_met() and not self.builds() and (self._began - began) * self._whole > LONG_SECONDS

    def end_early(self) -> None:
        """It takes no more turns: what it gathers is of unknown length, and the sizes that changed from turn to turn are not known."""
        unknown_sizes.cut_short(self.gathered())
        for name, value in list(self.frame.f_locals.items()):
            keys = [shapes[name] for shapes in self._shown if shapes.get(name) is not None] if isinstance(value, torch.Tensor) else []
            shapes = {key[1] for key in keys}
            if len(shapes) > 1 and len({len(shape) for shape in shapes}) == 1:
                _forget_sizes(value, [len(set(sizes)) > 1 for sizes in zip(*shapes)])

    def _holds_freed(self, names: Iterable[str]) -> bool:
        """True if one of these names holds what a turn went back through: another turn that uses it does so for the second time."""
        values = [self.frame.f_locals.get(name) for name in (names if tape.active else ())]
        modules = [value for value in values if isinstance(value, torch.nn.Module)]
        values += [part for module in modules for each in islice(module.modules(), MOST_MODULES) for part in list(vars(each).values())]
        parts = [part for value in values for part in (value if type(value) is tuple else (value,))]
        return any(tape.has_freed(part, self._backwards) for part in parts if type(part) is torch.Tensor)

    def _look_at_sums(self) -> None:
        """Tell of names that a turn has made the sum of what it went back through, where they were numbers before."""
        for name in self._numbers if tape.active else ():
            value = self.frame.f_locals.get(name)
            if type(value) is torch.Tensor:
                with torch._C.DisableTorchFunction():
                    tape.keeps_graph_of(name, value)


def _forget_sizes(tensor: torch.Tensor, changed: List[bool]) -> None:
    with torch._C.DisableTorchFunction():
        become_meta(tensor)
        shape = [None if is_changed else size for size, is_changed in zip(tensor.shape, changed)]
        tensor.data = torch.empty(unknown_sizes.filled_in(shape), dtype=tensor.dtype, device=tensor.device)


def _is_called_by_forward(frame: Optional[FrameType]) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "forward":
            return True
        frame = frame.f_back
    return False


def _shapes(frame: FrameType) -> Dict[str, Any]:
    """The shapes of the tensors that the names of a frame hold."""
    with torch._C.DisableTorchFunction():
        return {name: key_of(value) for name, value in list(frame.f_locals.items()) if isinstance(value, torch.Tensor)}


def _carried(frame: FrameType) -> Dict[str, Any]:
    """Returns what the names of a frame hold that a turn may hand to the next one: tensors by their shapes, alone or in tuples, modules,
    None.
    """
    found: Dict[str, Any] = {}
    with torch._C.DisableTorchFunction():
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, (torch.Tensor, tuple)):
                kind = key_of(value)
                if kind is not None:
                    found[name] = kind
            elif value is None or isinstance(value, torch.nn.Module):
                found[name] = type(value)
    return found


def _containers(frame: FrameType) -> List[Any]:
    return [value for value in list(frame.f_locals.values()) if type(value) in (list, dict)]
