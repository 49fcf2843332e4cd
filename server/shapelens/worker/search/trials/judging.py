"""Tells mistakes of the code from mismatches that the guesses of an example may have brought about."""

from __future__ import annotations

from typing import Container

from ....protocol import ExampleRun, Trace
from ...calls.module_calls import Calls, Mistake, mistake_of
from .certainty import is_ill_formed


def judge(trace: Trace, example: ExampleRun, number: int, first_layer: int, calls: Calls, certain: Container[Mistake]) -> None:
    """Mark the mismatches of a doubtful example that are not certain as guessed, and leave out what follows from those that are.

    number, first_layer: of the example and of its first layer in the trace; certain: its mistakes.
    """
    own = [each for each in trace.mismatches if each.example == number]
    if not own:
        return
    failed = [each for each in own if not any(each is same for same in calls.mismatches)]  # It has ended the example.
    for each in own:
        shifted_by = first_layer if any(each is same for same in failed) else 0
        each.guessed = mistake_of(each, calls.spans, shifted_by) not in certain and not is_ill_formed(each)
    example.doubtful = all(each.guessed for each in own)
    places = [each.span for each in own if not each.guessed and each.span is not None]
    follow = [each for each in own if each.guessed and any(suspect.span in places for suspect in each.suspects)]
    trace.mismatches = [each for each in trace.mismatches if not any(each is other for other in follow)]
