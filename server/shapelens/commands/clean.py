"""`shapelens clean`."""

from __future__ import annotations

from rich.console import Console

from shapelens.cache import location
from shapelens.cache.store import removal


def clean() -> None:
    """Empty the cache, and say how large it was."""
    store = location.opened()
    size = store.clear() if store is not None else 0
    Console(highlight=False).print(removal(size, store), soft_wrap=True, markup=False)
