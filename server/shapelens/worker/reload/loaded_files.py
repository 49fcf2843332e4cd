"""Notes what the user's modules were loaded from: the texts and states of their files, and the folders in which imports were looked for."""

from __future__ import annotations

import os
import sys
from typing import Dict, FrozenSet, Iterable, List, Optional

from ...protocol import Run
from ...regular_files import read_regular
from ..loading.compile_cache import state_of
from ..loading.importer import UserFinder
from ..trace.module_names import search_path


class LoadedFiles:
    """The files of one process. To be made before anything is loaded."""

    def __init__(self, finder: UserFinder) -> None:
        self._finder = finder
        self._modules_before = set(sys.modules)
        self._folders: Dict[str, FrozenSet[str]] = {}  # that imports are looked for in, and what is in them

    def note_folders(self, run: Run, levels: int) -> None:
        """Remember where the imports of a run that was loaded looked. levels: how many packages its relative imports climb."""
        self._folders = {folder: _names_in(folder) for folder in _folders(run, levels)}

    def changed(self, run: Run) -> FrozenSet[str]:
        """The files, besides the document, that have another text than they were loaded with."""
        return frozenset(file for file in self._finder.states if file != run.file and self._has_changed(file, run))

    def have_changed(self, run: Run) -> bool:
        """True if there are such files."""
        return any(self._has_changed(file, run) for file in self._finder.states if file != run.file)

    def _has_changed(self, file: str, run: Run) -> bool:
        """True if a file has another text than it was loaded with, or is to be watched and was not."""
        state, text = self._finder.states[file], run.overlays.get(file)
        if (file in run.observe or text is not None) and file not in self._finder.recorder.rewritten:
            return True
        if isinstance(state, str):
            return state != (_on_disk(file) if text is None else text)
        return state != state_of(file) or (text is not None and text != _on_disk(file))

    def moved_imports(self, run: Run, levels: int) -> str:
        """Why imports of a run might find something else than they did; empty where they find the same."""
        folders = _folders(run, levels)
        if any(folder in self._folders and self._folders[folder] != _names_in(folder) for folder in folders):
            return "a folder that imports are looked for in has changed"
        others = set(folders) ^ set(self._folders)
        loaded = {name.partition(".")[0] for name in sys.modules.keys() - self._modules_before} if others else set()
        return "an import might be found in another folder" if any(not loaded.isdisjoint(_names_in(folder)) for folder in others) else ""

    def texts(self, files: Iterable[str]) -> Iterable[str]:
        """The texts of these files, of those that can be read."""
        for file in set(files):
            try:
                yield self._finder.text_of(file)
            except (OSError, SyntaxError, UnicodeDecodeError):
                continue


def _folders(run: Run, levels: int) -> List[str]:
    return search_path(run.file, run.root, levels)


def _names_in(folder: str) -> FrozenSet[str]:
    """Returns what a folder offers to imports: modules and folders, without the endings of their names."""
    try:
        return frozenset(name.partition(".")[0] for name in os.listdir(folder) if name.endswith(".py") or "." not in name)
    except OSError:
        return frozenset()


def _on_disk(file: str) -> Optional[str]:
    try:
        return read_regular(file).decode("utf-8")
    except (OSError, ValueError):
        return None
