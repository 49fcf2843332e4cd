"""`check --watch`: which files have changed, each time that some have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from watchfiles import Change, awatch

from shapelens.examples.importing_files import is_skipped
from shapelens.notebooks import SUFFIX

PAUSE = 200  # milliseconds within which changes belong together


async def changes_of(paths: Sequence[Path]) -> AsyncIterator[set[Path]]:
    """The Python files and notebooks below the paths that were written, added or removed, again and again until it is interrupted."""
    tops = [path.resolve() for path in paths]

    def is_wanted(change: Change, name: str) -> bool:
        file = Path(name)
        above = [parent for top in tops for parent in file.parents if parent.is_relative_to(top) and parent != top]
        return file.suffix in (".py", SUFFIX) and not any(is_skipped(parent) for parent in above)

    async for changes in awatch(*paths, watch_filter=is_wanted, debounce=PAUSE, recursive=True):
        yield {Path(name).resolve() for _, name in changes}
