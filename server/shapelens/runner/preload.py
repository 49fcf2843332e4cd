"""Finds what is worth loading in a worker ahead of a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

from shapelens.source.module import Module

INSTALLED = ("site-packages", "dist-packages")
_RELATIVE = re.compile(r"^from (\.{2,})(\w[\w.]*) import\b", re.MULTILINE)


def ahead_of(module: Module, root: str, path: str) -> list[str]:
    """The modules that a file imports and that no edit of the workspace changes: worth loading before its first run. Behind them, as
    "module:name", what it takes from them: some libraries load most of themselves when they are asked for it.
    """
    modules = _third_party(module, root, path)
    parts = [":".join(name.split(".")) for name in module.imported_names if name.count(".") == 1 and name.partition(".")[0] in modules]
    return [*modules, *dict.fromkeys(parts), *dict.fromkeys(_of_own_package(module.text, PurePath(path)))]


def _third_party(module: Module, root: str, path: str) -> list[str]:
    """The top-level modules that neither Python nor the workspace has."""
    folders = {Path(folder) for folder in (root, str(Path(path).parent)) if folder}
    folders |= {folder / "src" for folder in folders}
    outside = [name for name in module.imports if name not in sys.stdlib_module_names and name != "torch"]
    return [name for name in outside if not any((folder / f"{name}.py").exists() or (folder / name).is_dir() for folder in folders)]


def _of_own_package(text: str, path: PurePath) -> Iterator[str]:
    """For a file of an installed package: the modules of the packages around its own, which its neighbours import as well."""
    installed = [number for number, part in enumerate(path.parts) if part in INSTALLED]
    package = path.parts[installed[-1] + 1 : -1] if installed else ()
    for dots, name in _RELATIVE.findall(text):
        around = package[: len(package) - len(dots) + 1] if len(dots) <= len(package) else ()
        if len(around) == 1 or (around and "." not in name):  # Not what is in a neighbour: each has others.
            yield ".".join((*around, name))
