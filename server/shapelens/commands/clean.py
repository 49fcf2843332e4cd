"""`shapelens clean`."""

from __future__ import annotations

from rich.console import Console

from shapelens.cache import location


def clean() -> None:
    """Empty the cache, and say how large it was."""
    store = location.opened()
    size = store.clear() if store is not None else 0
    where = f" from {store.folder}" if store is not None else ""
    Console(highlight=False).print(f"{size / 1e6:.1f} MB removed{where}", soft_wrap=True, markup=False)
