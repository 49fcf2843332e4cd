"""Numbers that are drawn by chance and decide which way code goes: `if random.random() > eps`."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Iterator, List, Optional, Tuple

HIGH, LOW = 1.0 + 1e-9, 0.0  # `random.random() > eps` also holds where all is left to chance at first: `eps = 1.0`
_OF_NUMPY = ("rand", "random", "random_sample")


@contextlib.contextmanager
def decided(value: Optional[float]) -> Iterator[None]:
    """Meanwhile Python's and numpy's functions that draw one number between 0 and 1 give this one; None: what they draw."""
    if value is None:
        yield
        return
    numpy = sys.modules.get("numpy")
    owners: List[Tuple[Any, str]] = [(random, "random")]
    owners += [(numpy.random, name) for name in _OF_NUMPY] if numpy is not None else []
    before = [(owner, name, getattr(owner, name)) for owner, name in owners]

    def instead(draw: Any) -> Any:
        return lambda *args, **kwargs: draw(*args, **kwargs) if args or kwargs else value

    try:
        for owner, name, draw in before:
            setattr(owner, name, instead(draw))
        yield
    finally:
        for owner, name, draw in before:
            setattr(owner, name, draw)
