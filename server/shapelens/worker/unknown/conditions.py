"""Conditions on data: their truth is not known, so a path is chosen that goes on; where that is cheap the other one is looked at too.

A condition is told by its place, the file and line that asks for it. It is false, but for those that an evaluation turns, and for one that
is asked again and again, as by `while not done.all()`: that becomes true in the end. `branch_exploration.py` looks at the ways not taken.
"""

from __future__ import annotations

import linecache
import re
import sys
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

import torch

from ...protocol import FileSpan, Mismatch, Note
from ..locations import TORCH, WORKER
from ..sandbox.exceptions import is_raise, raised_at
from . import unknown_sizes

Tensor = torch.Tensor
_ON_THE_WAY = (WORKER, TORCH + "_tensor.py", TORCH + "overrides.py")  # from a condition to the tensor that is asked

ConditionPlace = Tuple[str, int]  # file and line

MOST_TURNS = 64  # that a loop takes while its condition depends on data
MOST_PATHS = 4  # that are tried where user code gives one up
LONGEST = 0.05  # seconds that an evaluation may take whose conditions are turned one by one
_ASSERTED = re.compile(r"\s*assert\b\s*\(?\s*(not\b)?")
_FALSE = "this condition depends on data: what is shown is seen where it is false"
_TRUE = "this condition depends on data: what is shown is seen where it is true, as the code goes no further where it is false"
_LOOP = "this loop ends when the data says so: what is shown is seen in %d turns of it" % MOST_TURNS
_NONE: FrozenSet[ConditionPlace] = frozenset()


class Branches:
    """The conditions on data that one evaluation of an example came to."""

    def __init__(self) -> None:
        self.start()

    def start(self, turned: FrozenSet[ConditionPlace] = _NONE) -> None:
        """Forget what was asked. From now on the conditions in `turned` are the other way round than they would be."""
        self.asked: Dict[ConditionPlace, int] = {}  # how often, in the order in which they came
        self.turned = turned

    def decide(self, place: ConditionPlace) -> bool:
        """The truth of the condition at a place. What code asserts is taken to hold, on the other path too (in libraries as well, which are
        not rewritten)."""
        asserted = _ASSERTED.match(linecache.getline(*place))
        if asserted is not None:
            return asserted[1] is None
        count = self.asked[place] = self.asked.get(place, 0) + 1
        return (count > MOST_TURNS) is not (unknown_sizes.state.other_path is not (place in self.turned))

    def last(self, is_user_file: Callable[[str], bool]) -> FrozenSet[ConditionPlace]:
        """The last condition in user code that is not turned yet, in a set; an empty one where there is none, or enough are."""
        found = [place for place in self.asked if place not in self.turned and is_user_file(place[0])]
        return frozenset(found[-1:]) if len(self.turned) < MOST_PATHS else _NONE

    def places(self, is_user_file: Callable[[str], bool]) -> List[ConditionPlace]:
        """The conditions in user code that are worth turning one by one: none where there is only one, or more than is cheap."""
        found = [place for place in self.asked if is_user_file(place[0])]
        return found if 1 < len(found) <= MOST_PATHS else []

    def notes(self, is_user_file: Callable[[str], bool], line: Callable[[str, int], FileSpan]) -> List[Note]:
        """Returns the notes on the assumed outcome of conditions in user code. `line(file, number)` is the span of a line."""
        found = [(place, count) for place, count in self.asked.items() if is_user_file(place[0])]
        return [
            Note("data-dependent", _TRUE if place in self.turned else _LOOP if count > MOST_TURNS else _FALSE, line(*place))
            for place, count in found
        ]


def gave_up(error: Optional[BaseException], mismatches: List[Mismatch], is_user_file: Callable[[str], bool]) -> bool:
    """True if an evaluation took the wrong path: user code raised on purpose there, or missed a name that the other path sets.

    `error` ended it; `mismatches` are the earlier ones, an exception of a module among them.
    """
    if any(
        found.exception == "UnboundLocalError" or (found.span is not None and is_raise(found.span.file, found.span.line))
        for found in mismatches
    ):
        return True
    if error is None or isinstance(error, UnboundLocalError):
        return error is not None
    traceback = raised_at(error)
    file = traceback.tb_frame.f_code.co_filename if traceback is not None else ""
    return traceback is not None and is_user_file(file) and is_raise(file, traceback.tb_lineno)


branches = Branches()


def decide() -> bool:
    """The truth of the condition on data that the code is at: one of torch's own stays torch's, and nothing is said of it."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_ON_THE_WAY) and frame.f_back is not None:
        frame = frame.f_back
    return branches.decide((frame.f_code.co_filename, frame.f_lineno))


def called_by_library() -> bool:
    """True if the code that called torch is an installed package's, as a random transform of a picture is."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_ON_THE_WAY) and frame.f_back is not None:
        frame = frame.f_back
    return any(folder in frame.f_code.co_filename for folder in ("site-packages", "dist-packages"))


def assumed(value: Any, holds: bool) -> Any:
    """An asserted value; what it has to be where it is data, so that its truth is not known."""
    with torch._C.DisableTorchFunction():
        return holds if isinstance(value, Tensor) and value.is_meta else value
