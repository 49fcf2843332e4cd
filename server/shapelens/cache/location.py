"""Where the cache lies."""

from __future__ import annotations

import os
from pathlib import Path

from shapelens.cache.store import Store

# The folder of the cache; empty: nothing is kept.
VARIABLE = "SHAPELENS_CACHE_DIR"


def opened() -> Store | None:
    """The store of this user; None where the environment says that there is none."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return Store(Path(given).absolute()) if given.strip() else None
    import platformdirs

    return Store(platformdirs.user_cache_path("shapelens", appauthor=False))
