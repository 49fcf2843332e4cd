"""The memory of a training step as a function of a dim's size."""

from __future__ import annotations

from shapelens.analysis.structure.memory_by_size import memory_by_size
from shapelens.profiles import Allocation, MemoryProfile


def _profile(*sizes: int) -> MemoryProfile:
    return MemoryProfile([Allocation(size, "activation", 0, number) for number, size in enumerate(sizes)], 9, 9)


def test_formulas_hold_for_all_sizes() -> None:
    found = memory_by_size(2, [_profile(4 * n, 3 * n * n + 7, 12) for n in (2, 3, 4, 5)])
    assert found is not None
    for size in (2, 9, 100_001):
        memory = found.at(size)
        assert memory is not None
        assert [made.bytes for made in memory.allocations] == [4 * size, 3 * size * size + 7, 12]
    assert found.at(1) is None


def test_what_rounds_or_branches_has_no_formula() -> None:
    assert memory_by_size(8, [_profile(4 * (n // 2)) for n in (8, 9, 10, 11)]) is None
    assert memory_by_size(8, [_profile(*([4] * n)) for n in (8, 9, 10, 11)]) is None
    assert memory_by_size(8, [_profile(4 * n) for n in (8, 9, 10)]) is None
    assert memory_by_size(8, [MemoryProfile(parameter_storages=[n]) for n in (8, 9, 10, 11)]) is None
