"""What is worth loading in a worker ahead of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path


def third_party(imports: Iterable[str], root: str, path: str) -> list[str]:
    """Those of the imported top-level modules that neither Python nor the workspace has: worth loading before the first run."""
    folders = {Path(folder) for folder in (root, str(Path(path).parent)) if folder}
    folders |= {folder / "src" for folder in folders}
    outside = [name for name in imports if name not in sys.stdlib_module_names and name != "torch"]
    return [name for name in outside if not any((folder / f"{name}.py").exists() or (folder / name).is_dir() for folder in folders)]
