"""The largest size of a named dim with which a training step fits a memory.

Memory grows with a size, mostly in proportion, but in steps, as a device allocates in blocks: each try is made where a line through what is
known says that the limit lies, or in the middle where that has not come much nearer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

MOST_TRIES = 60
LARGEST = 1 << 24

PeakAt = Callable[[int], Awaitable[int | None]]


async def largest_size(limit: int, size: int, peak: int, peak_at: PeakAt) -> int:
    """The largest size that fits `limit` bytes; 0 where none does. `peak` is known for `size`; `peak_at` gives it for another one, None
    where the model cannot take that."""
    known = {size: peak}
    fits, too_large = (size, None) if peak <= limit else (0, size)  # type: tuple[int, int | None]
    halve = False
    for _ in range(MOST_TRIES):
        if too_large is not None and too_large - fits <= 1:
            break
        guess = _beyond(known, limit, fits) if too_large is None else _between(known, limit, fits, too_large, halve=halve)
        found = await peak_at(guess)
        if found is None:
            break
        known[guess] = found
        before = too_large - fits if too_large is not None else None
        if found <= limit:
            fits = guess
        else:
            too_large = guess
        if fits >= LARGEST:
            break
        halve = before is not None and too_large is not None and 2 * (too_large - fits) > before
    return fits


def _beyond(known: dict[int, int], limit: int, fits: int) -> int:
    """A size larger than all that are known, where a line through the smallest and the largest of them reaches the limit."""
    smallest = min(known)
    slope = (known[fits] - known[smallest]) / (fits - smallest) if fits > smallest else 0.0
    guess = fits + int((limit - known[fits]) / slope) + 1 if slope > 0 else 8 * fits
    return min(max(guess, fits + 1), LARGEST)


def _between(known: dict[int, int], limit: int, fits: int, too_large: int, *, halve: bool) -> int:
    """A size between one that fits and one that is too large."""
    if halve or fits not in known or known[too_large] == known[fits]:
        return (fits + too_large) // 2
    share = (limit - known[fits]) / (known[too_large] - known[fits])
    return min(max(fits + int(share * (too_large - fits)), fits + 1), too_large - 1)
