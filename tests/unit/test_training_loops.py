"""A loop that computes tensors and would take long takes the turns that show its shapes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from shapelens.worker.meta.training_loops import SHOWN, TOLD, Loop
from shapelens.worker.rewrite.site_table import SiteTable
from shapelens.worker.trace.recorder import Recorder

SLOW, FAST = 0.06, 0.01  # seconds of a turn: a hundred of either take too long


def met(recorder: Recorder, turn: int) -> None:
    """A turn computes tensors of the shapes that the first one did."""
    recorder.met += 1
    recorder.news += turn == 1


def grown(recorder: Recorder, turn: int) -> None:
    """A turn computes tensors that are larger each time."""
    recorder.met += 1
    recorder.news += 1


def built(recorder: Recorder, turn: int) -> None:
    """A turn makes a layer."""
    recorder.met += 1
    recorder.made += 1


def counted(recorder: Recorder, turn: int) -> None:
    """A turn meets no tensor."""


@pytest.mark.parametrize(
    ("turn", "seconds", "taken"),
    [
        (met, SLOW, 2),
        (grown, SLOW, TOLD),
        (met, FAST, SHOWN),
        (grown, FAST, SHOWN),
        (built, SLOW, None),
        (counted, SLOW, None),
    ],
)
def test_a_long_loop_ends_once_its_turns_show_nothing_new(turn: Callable[[Recorder, int], None], seconds: float, taken: int | None) -> None:
    recorder = Recorder(SiteTable(), lambda module, site: None)
    loop = Loop(sys._getframe(), recorder, range(100))
    ended = None
    for loop.count in range(1, SHOWN + 3):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        turn(recorder, loop.count)
        if loop.is_long():
            ended = loop.count
            break
    assert ended == taken


def test_a_short_loop_takes_all_of_its_turns() -> None:
    recorder = Recorder(SiteTable(), lambda module, site: None)
    loop = Loop(sys._getframe(), recorder, range(SHOWN + 2))
    for loop.count in range(1, SHOWN + 3):
        met(recorder, loop.count)
        assert not loop.is_long()
