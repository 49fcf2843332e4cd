"""Which module a file is: the packages that it lies in, and where its imports start."""

from __future__ import annotations

import os
from typing import List, Tuple


def package_of(file: str, levels: int = 0) -> Tuple[str, str]:
    """(import root, dotted module name) of a file: the folders above it that have an `__init__.py` are its packages.

    A folder without one is a package too where its parent has one, or where relative imports of `levels` dots reach above it.
    """
    folder, base = os.path.split(file)
    parts = [] if base == "__init__.py" else [os.path.splitext(base)[0]]
    least = levels + len(parts) if levels else 0  # `from .part import x` needs a package that it lies in
    while folder != os.path.dirname(folder):
        parent, name = os.path.split(folder)
        is_package = any(os.path.isfile(os.path.join(place, "__init__.py")) for place in (folder, parent))
        if not name.isidentifier() or not (is_package or len(parts) < least):
            break
        folder = parent
        parts.insert(0, name)
    return folder, ".".join(parts)


def search_path(file: str, root: str, levels: int = 0) -> List[str]:
    """Returns the folders for the front of sys.path: where the file's own imports start, then the workspace and its `src`."""
    folders = [package_of(file, levels)[0], root, os.path.join(root, "src") if root else "", os.path.dirname(file)]
    return [folder for index, folder in enumerate(folders) if folder and os.path.isdir(folder) and folder not in folders[:index]]
