"""The user's modules that are loaded, the files that they are of, and which of them take values from which."""

from __future__ import annotations

import ast
import sys
from typing import Dict, FrozenSet, Iterable, List, Set

from ..loading.import_graph import Imports
from ..loading.importer import NAME_OF_NO_FILE, UserFinder
from ..sandbox.originals import time
from ..unknown.stand_ins import StandInModule


class ModuleGraph:
    """The modules of one process. `imports` of a module are read when there is time, as only a second run needs them."""

    def __init__(self, finder: UserFinder) -> None:
        self.files: Dict[str, str] = {}  # by the names of the modules
        self.imports: Dict[str, Imports] = {}
        self.missing_packages: Set[str] = set()  # modules that stand in for packages that are not installed
        self._finder = finder
        self._sources: Dict[str, FrozenSet[str]] = {}  # the modules that a module takes values from, as far as they are the user's
        self._unread: List[str] = []  # modules whose imports are not known yet
        self._read: List[str] = []  # modules of which it is not known yet what they take
        self._known: Set[str] = set()  # the names of all modules that were there when `note_loaded` was last called

    def note_loaded(self) -> None:
        """Add the modules that are new, or were loaded anew: only these are looked at, as there are thousands."""
        new = [name for name in sys.modules if name not in self._known]
        for name in new:
            file = getattr(sys.modules[name], "__file__", None)
            if file in self._finder.states:
                self.files[name] = file
                self._unread.append(name)
        self._known = set(sys.modules)
        self.missing_packages |= {name for name in new if isinstance(sys.modules[name], StandInModule)}

    def read_imports(self, seconds: float = float("inf")) -> bool:
        """Look for some seconds what the new modules take from each other; whether that is known now."""
        end = time.perf_counter() + seconds
        while self._unread:
            name = self._unread.pop()
            tree = self._finder.tree_of(self.files[name])
            self.imports[name] = Imports(tree or ast.Module([], []), name, _is_package(name))
            self._read.append(name)
            if time.perf_counter() > end:
                return False
        for name in self._read:
            self._sources[name] = frozenset(self.imports[name].modules(self.imports))
        self._read.clear()
        return True

    def forget(self, name: str) -> None:
        """A module is to be loaded anew. Its package lets go of it, too: `from package import module` would take that one."""
        module = sys.modules.pop(name)
        package, _, part = name.rpartition(".")
        held = vars(sys.modules[package]) if package in sys.modules else {}
        if held.get(part) is module:
            del held[part]
        self._known.discard(name)
        for known in (self.files, self.imports, self._sources):
            known.pop(name)

    def are_all_there(self) -> bool:
        """True if Python still knows all of the modules: a rehearsal that was interrupted may have left `sys.modules.clear()` behind."""
        return self.files.keys() <= sys.modules.keys()

    def names(self) -> Set[str]:
        """The names of the modules whose imports are known."""
        return set(self._sources)

    def of_files(self, files: Iterable[str]) -> FrozenSet[str]:
        """The names of the modules that are of these files."""
        wanted = set(files)
        return frozenset(name for name, file in self.files.items() if file in wanted)

    def of_document(self, file: str) -> FrozenSet[str]:
        """The names of the modules that were loaded from a document, or from the one before it that had no name of its own."""
        return frozenset(name for name, each in self.files.items() if each == file or name == NAME_OF_NO_FILE)

    def with_dependents(self, modules: Iterable[str]) -> FrozenSet[str]:
        """These modules, and those that took values from them, directly or not."""
        found = set(modules)
        while True:
            more = {name for name, sources in self._sources.items() if name not in found and not sources.isdisjoint(found)}
            if not more:
                return frozenset(found)
            found |= more

    def sources_of(self, tree: ast.Module, modules: Iterable[str]) -> FrozenSet[str]:
        """The modules that these modules would take values from, if their text were that of a tree."""
        return frozenset().union(*(Imports(tree, name, _is_package(name)).modules(self.imports) for name in modules))

    def reached(self, imports: Imports) -> Set[str]:
        """The names of all modules that are loaded for one with these imports, and for those in turn, as far as they are the user's."""
        todo = list(imports.loaded())
        reached = set(todo)
        while todo:
            name = todo.pop()
            more = self.imports[name].loaded() - reached if name in self.imports else set()
            reached |= more
            todo += more
        return reached

    def packages_of(self, imports: Imports) -> Set[str]:
        """The outermost packages that are imported by a module with these imports, directly or by way of other files of the user's."""
        reached = self.reached(imports)
        return imports.packages().union(*(known.packages() for name, known in self.imports.items() if name in reached))

    def loaded_packages(self) -> Set[str]:
        """The outermost packages that any of the modules imports."""
        return set().union(*(imports.packages() for imports in self.imports.values()))


def _is_package(name: str) -> bool:
    return hasattr(sys.modules[name], "__path__")
