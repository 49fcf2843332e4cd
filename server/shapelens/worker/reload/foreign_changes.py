"""Finds what loading and running a project has changed in modules that are not the user's, which another text must not see."""

from __future__ import annotations

import sys
from typing import Callable, Iterable, Optional, Set

from ..sandbox.monkeypatches import BUILT_IN, SNAPSHOT, AttributeChange, Monkeypatches, ProcessState, Snapshot, nearest
from .loaded_files import LoadedFiles
from .module_graph import ModuleGraph


class ForeignChanges:
    """Of one process. To be made in the environment of a run, before anything is loaded."""

    def __init__(self, modules: ModuleGraph, files: LoadedFiles) -> None:
        self._modules, self._files = modules, files
        self._before = ProcessState()
        self._by_loading: Optional[Monkeypatches] = None
        self._nearest: Optional[Snapshot] = None  # of what a rehearsal may change

    def look_further(self) -> bool:
        """Find out, step by step, what has changed, and note what a rehearsal may change; whether that is all known now."""
        if self._by_loading is None:
            self.by_loading()
            return False
        self.note_nearest()
        return True

    def by_loading(self) -> Monkeypatches:
        """Returns what loading the project has changed. To be asked for the first time before anything of the project runs."""
        if self._by_loading is None:
            self._by_loading = self._since(self._before, None)
        return self._by_loading

    def note_nearest(self) -> None:
        """Remember what a rehearsal may come to change."""
        if self._nearest is None:
            modules = [sys.modules[name] for name in self._modules.files if name in sys.modules]
            own = {name.partition(".")[0] for name in self._modules.files}
            names = nearest(value for module in modules for value in module.__dict__.values())
            self._nearest = Snapshot()
            self._nearest.add(name for name in names if name.partition(".")[0] not in own)

    def are_seen_by(self, packages: Callable[[], Set[str]]) -> str:
        """Returns what of these changes a text would find that would not have made them; empty where there is nothing.

        packages: the outermost ones that the text imports, directly or not.
        """
        found = self.by_loading()
        if found.by_project:
            return "the project has changed %s" % ", ".join(sorted(found.by_project))
        if found.by_packages:
            loaded = self._modules.loaded_packages() - BUILT_IN
            # A package that has changed others may have been imported by another one: by any of them.
            if not (found.by_packages if found.by_packages <= loaded else loaded) <= packages():
                return "packages have changed others: %s" % ", ".join(sorted(found.by_packages))
        return ""

    def are_made_near(self) -> bool:
        """True if what was loaded and run in this process has changed what models are made of, and shapes are computed with."""
        return bool(self._since(self._before, SNAPSHOT.changes_near()).by_project)

    def are_made_since(self, before: ProcessState, look: Optional[Callable[[], None]]) -> bool:
        """True if a rehearsal has changed modules that are not the user's. look: see Snapshot.changes; None where somebody waits."""
        assert self._nearest is not None
        found = self._since(before, self._nearest.changes_at_once() if look is None else self._nearest.changes(look))
        return bool(found.by_project or found.by_packages)

    def _since(self, before: ProcessState, changes: Optional[Iterable[AttributeChange]]) -> Monkeypatches:
        return before.monkeypatches(self._modules.files, lambda: self._files.texts(self._modules.files.values()), changes)
