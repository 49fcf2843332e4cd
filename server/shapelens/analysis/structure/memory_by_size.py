"""The memory of a training step as a function of the size of a named dim, where the allocations have formulas that are exact.

Four sizes that follow each other are run. Through three of them goes a polynomial for each allocation, which the fourth has to lie on: what
rounds (a stride over pixels) or branches fails that. Sizes that have no formula are to be run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shapelens.profiles import Allocation, MemoryProfile

SIZES = 4  # how many are run


@dataclass(frozen=True)
class MemoryBySize:
    """Bytes of each allocation as `a + b·n + c·n²` with n the size less `first`; times and steps are the same for all sizes."""

    first: int
    profile: MemoryProfile
    bytes: tuple[tuple[int, int, int], ...]  # the amounts for the first three sizes

    def at(self, size: int) -> MemoryProfile | None:
        """The memory with this size; None below the sizes that were run."""
        if size < self.first:
            return None
        n = size - self.first
        # Newton's form: all terms are whole numbers.
        allocations = [
            _sized(made, zero + n * (one - zero) + n * (n - 1) // 2 * (two - 2 * one + zero))
            for made, (zero, one, two) in zip(self.profile.allocations, self.bytes, strict=True)
        ]
        return replace(self.profile, allocations=allocations)


def memory_by_size(first: int, profiles: Sequence[MemoryProfile]) -> MemoryBySize | None:
    """The function through the profiles of the sizes first, first + 1, ...; None where it has no such form. Needs four."""
    if len(profiles) < SIZES or any(each.error for each in profiles):
        return None
    base = profiles[0]
    if any(_form(each) != _form(base) for each in profiles[1:]):
        return None
    amounts = list(zip(*([made.bytes for made in each.allocations] for each in profiles), strict=True))
    if any(three - 3 * two + 3 * one - zero for zero, one, two, three, *_ in amounts):
        return None
    return MemoryBySize(first, base, tuple((zero, one, two) for zero, one, two, *_ in amounts))


def _sized(made: Allocation, size: int) -> Allocation:
    return Allocation(size, made.kind, made.step, made.born, made.died)


def _form(memory: MemoryProfile) -> object:
    """All but the amounts. Parameters have to be the same, as their state is counted by them."""
    events = [(made.kind, made.step, made.born, made.died) for made in memory.allocations]
    held = (memory.parameter_storages, memory.trained_storages, memory.buffer_storages, memory.parameters)
    return memory.forward_end, memory.backward_end, events, held
