"""The largest size of a named dim with which a training step fits a memory.

Memory grows with a size, mostly in proportion: each try is made where a line through the last two says that the limit lies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

MOST_TRIES = 12
LARGEST = 1 << 24

PeakAt = Callable[[int], Awaitable[int | None]]


async def largest_size(limit: int, size: int, peak: int, peak_at: PeakAt) -> int:
    """The largest size that fits `limit` bytes; 0 where none does. `peak` is known for `size`; `peak_at` gives it for another one, None
    where the model cannot take that."""
    fits, too_large = (size, None) if peak <= limit else (0, size)  # type: tuple[int, int | None]
    known = {size: peak}
    guess = size * 2 if too_large is None else max(size // 2, 1)
    for _ in range(MOST_TRIES):
        if guess not in known:
            found = await peak_at(guess)
            if found is None:
                break
            known[guess] = found
        if known[guess] <= limit:
            fits = max(fits, guess)
        else:
            too_large = min(too_large or guess, guess)
        if too_large is not None and too_large - fits <= 1:
            return fits
        guess = _next(known, limit, fits, too_large)
        if guess > LARGEST:
            return LARGEST
    return fits


def _next(known: dict[int, int], limit: int, fits: int, too_large: int | None) -> int:
    """Where the line through the two sizes nearest to the limit reaches it, kept between what is known to fit and what is not."""
    (first, low), (second, high) = sorted(known.items(), key=lambda pair: abs(pair[1] - limit))[:2]
    slope = (high - low) / (second - first)
    guess = int(first + (limit - low) / slope) if slope > 0 else 2 * max(first, second)
    if too_large is None:
        return max(guess, fits + 1)
    if guess <= fits or guess >= too_large:  # One step beside what is known, where the line was right.
        return fits + 1 if guess <= fits else too_large - 1
    return guess if guess not in known else (fits + too_large) // 2
