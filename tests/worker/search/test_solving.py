"""Sizes that meet what a failed attempt asks for."""

from __future__ import annotations

import pytest

from shapelens.worker.search.trials.demands import Demand
from shapelens.worker.search.trials.solving import WAYS, _Failure, sizes_for
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


@pytest.mark.parametrize(
    ("way", "wanted", "first"),
    [
        ("_as_asked", Demand("equal", 64, 32), {"x.#D": 32}),
        ("_as_multiples", Demand("multiple", 30, 8), {"x.P": 32}),
        ("_of_usual_pictures", Demand("equal", 64, 32), {"x.#H": 224, "x.#W": 224}),
        ("_larger", Demand("larger"), {"x.P": 224}),
        ("_near", Demand("equal", 128, 64), {"x.#D": 32}),
        ("_of_constructor", Demand("equal", 48, 16), {"dim": 16}),
    ],
)
def test_a_way_to_meet_a_demand_stands_for_itself(way: str, wanted: Demand, first: dict[str, int]) -> None:
    free = {"#B": 2, "x.#D": 64, "x.#H": 32, "x.#W": 32, "x.P": 30, "dim": 48}
    failure = _Failure(Trial(1, AssertionError(), None), [wanted], free, {"dim"}, lambda sizes: None)
    tried = {each.__name__: list(each(failure)) for each in WAYS}
    assert tried[way][0] == first
