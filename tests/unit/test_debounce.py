"""How long a keystroke waits for more of them."""

from __future__ import annotations

import pytest

from shapelens.lsp.runs.schedule import LONGEST_DEBOUNCE, seconds_to_wait


@pytest.mark.parametrize(
    ("run", "since_the_last", "waits"),
    [
        (0.01, float("inf"), 0.0),  # the first one
        (0.01, 0.1, 0.0),  # typed: the last run has said what is wrong
        (0.01, 0.03, 0.0025),  # from a held key: faster than anybody types
        (0.2, 0.1, 0.05),  # the last run is still under way
        (5.0, 0.1, LONGEST_DEBOUNCE),
    ],
)
def test_a_keystroke_waits_in_proportion_to_the_last_run(run: float, since_the_last: float, waits: float) -> None:
    assert seconds_to_wait(run, since_the_last) == pytest.approx(waits)
