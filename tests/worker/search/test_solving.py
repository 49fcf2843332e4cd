"""Sizes that meet what a failed attempt asks for."""

from __future__ import annotations

import pytest

from shapelens.worker.search.trials.demands import Demand
from shapelens.worker.search.trials.solving import sizes_for
from shapelens.worker.search.trials.trial import Trial


@pytest.mark.parametrize(
    ("size", "is_tried"),
    [
        (784, True),
        (480_000, True),  # 30 s of sound
        (64 * 112 * 112, True),  # a picture's features, flattened
        (524_290, False),  # An unknown size that was divided by 32 is as large.
        (262_146, False),  # In `assert 2 * height - 2 <= height` it would pass for an unknown one, as it did in demucs' MultiWrap.
    ],
)
def test_no_input_is_so_large_that_conditions_take_it_for_unknown(size: int, is_tried: bool) -> None:
    failed = Trial(1, AssertionError(), None)
    changes = sizes_for(failed, [Demand("equal", 64, size)], {"x.#H": 64}, set(), lambda sizes: None)
    assert ({"x.#H": size} in list(changes)) is is_tried
