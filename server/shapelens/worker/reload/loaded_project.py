"""A run's modules that stay loaded, so that a later run of the project loads only what has changed since.

What has to be loaded anew are the document, the files whose text is another one, and all that took values from these at its import. Where
the document itself needs none of the latter, they stay as well, and only get the document's new classes under the names that they know
(`monai/networks/nets/__init__.py` imports all networks, but none of them needs it).
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import time
import warnings
from types import ModuleType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple, Union

import torch

from ...protocol import Mismatch, Note, Run
from ...regular_files import read_regular
from ..evaluation.workspace import Workspace, missing_message
from ..loading.compile_cache import compile_all, state_of
from ..loading.definitions import KEPT
from ..loading.hot_patch import Loaded
from ..loading.import_graph import Imports
from ..loading.importer import NOBODYS, load, parse, relative_levels
from ..memo.early_diagnosis import RehearsedExamples
from ..meta import op_cache
from ..sandbox import monkeypatches
from ..shims.command_line import Arguments
from ..shims.data_sets import absences
from ..trace.module_names import package_of, search_path
from ..unknown.stand_ins import StandInModule
from .rebinding import pass_on, put_in_place

State = Union[str, Tuple[int, int], None]  # a file's text in the editor; its time of change and size on disk; None where it is not there


MOST_NEW_SITES = 50_000  # of versions of statements that are no more: each takes some 300 bytes


class Unsuitable(Exception):
    """A run cannot be done with what stands loaded: it needs a process that has loaded nothing."""


class Standing:
    """The modules that a run loaded, in an environment that holds on, and what they were loaded from. To be made before they are loaded."""

    def __init__(self, run: Run) -> None:
        self.workspace = Workspace(run)
        self._process: Optional[monkeypatches.ProcessState] = None  # before anything was loaded
        self._patches: Optional[monkeypatches.Monkeypatches] = None  # what was changed by that
        self._nearest: Optional[monkeypatches.Snapshot] = None  # of what a rehearsal may change
        self._path = list(sys.path)
        self._dtype = torch.get_default_dtype()
        self._before = set(sys.modules)
        self._root = run.root
        self._states: Dict[str, State] = {}
        self._files: Dict[str, str] = {}  # of the user's modules, by their names
        self._takes: Dict[str, Set[str]] = {}  # by name of a module: the modules that it takes values from, as far as they are the user's
        self._imports: Dict[str, Imports] = {}  # of these modules
        self._unread: List[str] = []  # those of them whose imports are not known yet
        self._read: List[str] = []  # those of them of which it is not known yet what they take
        self._known: Set[str] = set()  # the names of all modules that were there when this was last noted
        self._notes: List[Tuple[Note, str]] = []  # what loading said, with the text of the line that it is about
        self._mismatches: List[Mismatch] = []  # of definitions that failed
        self._folders: Dict[str, FrozenSet[str]] = {}  # that imports are looked for in, and what is in them
        self._absent: Set[str] = set()  # modules that are not there
        self._document = run.file
        self._documents = {run.file}  # of all runs: no other run's import has found them
        self._package = ""  # the outermost one that it is in
        self._most_sites = 0
        self._names: Optional[Dict[str, Any]] = None  # of the document, until something is run with them
        self._is_half_loaded = False  # something ended the loading of a run: what is there is of no text
        self.outdated = False  # more than the document had to be loaded anew
        self._loaded: Optional[Loaded] = None  # the document, where a later one may be a patch of it
        self._beside: Tuple[Any, ...] = ()  # what else it has set then
        self.rehearsed_examples: Optional[RehearsedExamples] = None  # of the last run, where it is done once more ahead of the next one
        self.is_rehearsed = False  # what is loaded will be run for its side effects: then it has to be known what these are

    def load(self) -> None:
        """Load the document and all that it imports. Raises what loading a document raises."""
        workspace, run = self.workspace, self.workspace.run
        self._process = monkeypatches.ProcessState()
        self._names = workspace.load()
        self._note_states(run)
        self._note_modules()
        self._most_sites = 2 * len(workspace.recorder.sites) + MOST_NEW_SITES
        self._notes = [(note, _line(workspace, note)) for note in workspace.trace.notes]
        self._mismatches = workspace.trace.mismatches
        levels = relative_levels(workspace.finder.trees[run.file])
        self._package = package_of(run.file, levels)[1].partition(".")[0]
        self._folders = {folder: _names_in(folder) for folder in _folders(run, levels)}
        self._note_loaded(run)

    def absorb(self, run: Run) -> bool:
        """Parse, rewrite and compile what a later document has anew, so that those who follow have it; nothing of it is executed.

        Returns whether that may go on: what is no longer used is not given back.
        """
        finder, recorder = self.workspace.finder, self.workspace.recorder
        try:
            tree = finder.parse_document(run.file, run.text)
            finder.document = run.file
            finder.rewrite_document(tree, run.text)
            compile_all(tree, run.file)
        except (SyntaxError, ValueError, RecursionError):
            finder.last = None
        return len(recorder.sites) < self._most_sites

    def _note_states(self, run: Run) -> None:
        finder = self.workspace.finder
        for file in {run.file, *finder.loaded}:
            self._states[file] = finder.texts.get(file) if file in finder.texts else state_of(file)

    def _note_modules(self) -> None:
        """Which modules are new, or were loaded anew: only these are looked at, as there are thousands."""
        new = [name for name in sys.modules if name not in self._known]
        for name in new:
            file = getattr(sys.modules[name], "__file__", None)
            if file in self._states:
                self._files[name] = file
                self._unread.append(name)
        self._known = set(sys.modules)
        self._absent |= {name for name in new if type(sys.modules[name]) is StandInModule}

    def read_imports(self, seconds: float = float("inf")) -> bool:
        """Look for some seconds what the new modules take from each other; whether that is known now. Only a second run needs it."""
        end = time.perf_counter() + seconds
        while self._unread:
            name = self._unread.pop()
            self._imports[name] = self._imports_of(self._files[name], name)
            self._read.append(name)
            if time.perf_counter() > end:
                return False
        for name in self._read:
            self._takes[name] = self._imports[name].modules(self._imports)
        self._read.clear()
        return True

    def _imports_of(self, file: str, name: str) -> Imports:
        tree = self.workspace.finder.tree_of(file)
        return Imports(tree or ast.Module([], []), name, hasattr(sys.modules[name], "__path__"))

    def again(self, run: Run) -> Dict[str, Any]:
        """Load the document of another run, and what has changed; the document's names. Raises Unsuitable, and SyntaxError."""
        workspace, finder = self.workspace, self.workspace.finder
        if run.root != self._root:
            raise Unsuitable("another workspace folder")
        if self._is_half_loaded:
            raise Unsuitable("what was loaded last was not loaded to its end")
        first, self._names = self._names, None
        rehearsed, self.rehearsed_examples = self.rehearsed_examples, RehearsedExamples() if self.is_rehearsed else None
        if first is not None and self._is_as_loaded(run):
            workspace.run = run
            workspace.trace.notes += [note for note, _ in self._notes]
            workspace.trace.mismatches += self._mismatches
            if self.is_rehearsed and self._loaded is not None:
                self._loaded.note_state()
            return first
        tree = finder.parse_document(run.file, run.text)
        self._check_folders(run, relative_levels(tree))
        changed = {file for file in self._states if file != run.file and self._has_changed(file, run)}
        text = self._states.get(run.file)
        patched = self._patched(run, tree) if not changed else None
        if patched is not None:
            if rehearsed is not None and self._loaded is not None and isinstance(text, str) and text.count("\n") == run.text.count("\n"):
                self.rehearsed_examples = rehearsed.for_patched(self._loaded, workspace.recorder)
            return patched
        self.read_imports()
        self._check_monkeypatches(run, tree)
        documents = self._documents_now(run)
        stale = self._users_of(documents | {name for name, file in self._files.items() if file in changed})
        needs = set().union(*(self._needs(tree, name) for name in documents - {NOBODYS}))
        more = bool(changed) or not needs.isdisjoint(stale - documents)
        if run.file != self._document and self._notes and not self._comes_with_package(run, relative_levels(tree)):
            raise Unsuitable("something that another document may import is missing")
        self._is_half_loaded, self._loaded = True, None
        missed = self._missed_by(tree)
        self._adopt(run, changed | {run.file}, [(note, text) for note, text in self._notes if note.message not in missed])
        self.outdated = more
        old = [sys.modules[name] for name in documents]
        anew = {name: sys.modules[name] for name in (stale if more else documents)}
        for name in anew:
            if more and KEPT not in sys.modules[name].__dict__:
                raise Unsuitable("a module that is not ours has to be loaded again: %s" % name)
            self._forget(name)
        finder.standing = set(self._takes)
        finder.trees[run.file] = tree
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What registers itself is registered twice.
            module = load(run.file, run.root, finder)
        self._bind_again(anew)
        for before in old:
            put_in_place(before, module, [] if more else [sys.modules[name] for name in stale - documents if name in sys.modules])
        if not more:
            pass_on(old, module, {name: self._imports[name] for name in stale - documents if name in self._imports})
        if not _messages(workspace.trace.mismatches) <= _messages(self._mismatches):
            raise Unsuitable("a definition fails that did not fail the first time")
        workspace.evaluation.calls.definitions_ended()
        finder.loaded += [file for file in self._former_documents(run, tree, module) if file not in finder.loaded]
        self._note_states(run)
        self._note_modules()
        self._is_half_loaded = False
        if self.is_rehearsed:
            self._note_loaded(run)
        return _names_of(module)

    # --- what the code that was loaded has changed elsewhere ---

    def foreign_changes(self) -> monkeypatches.Monkeypatches:
        """What loading all of this has changed in modules that are not the user's."""
        if self._patches is None:
            assert self._process is not None
            self._patches = self._process.monkeypatches(self._files, self._texts)
        return self._patches

    def _texts(self) -> Iterator[str]:
        for file in set(self._files.values()):
            with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
                yield self.workspace.finder.text_of(file)

    def _check_monkeypatches(self, run: Run, tree: ast.Module) -> None:
        """Raises Unsuitable where what was loaded has changed what another text would find otherwise."""
        found = self.foreign_changes()
        if found.by_project:
            raise Unsuitable("the project has changed %s" % ", ".join(sorted(found.by_project)))
        if found.by_packages:
            loaded = set().union(*(imports.packages() for imports in self._imports.values())) - monkeypatches.BUILT_IN
            # A package that has changed others may have been imported by another one: by any of them.
            if not (found.by_packages if found.by_packages <= loaded else loaded) <= self._packages(run, tree):
                raise Unsuitable("packages have changed others: %s" % ", ".join(sorted(found.by_packages)))

    def _packages(self, run: Run, tree: ast.Module) -> Set[str]:
        """The outermost packages that a document imports, directly or by way of other files of the user's."""
        imports = Imports(tree, package_of(run.file, relative_levels(tree))[1], os.path.basename(run.file) == "__init__.py")
        reached = self._reached(imports)
        return imports.packages().union(*(known.packages() for name, known in self._imports.items() if name in reached))

    def look_at_changes(self) -> bool:
        """Find out, step by step, what has changed of modules that are not the user's, and what may; whether that is all known now."""
        if self._patches is None:
            self.foreign_changes()
            return False
        self.note_nearest()
        return True

    def note_nearest(self) -> None:
        """Remember what a rehearsal may come to change."""
        if self._nearest is None:
            modules = [sys.modules[name] for name in self._files if name in sys.modules]
            self._nearest = monkeypatches.Snapshot()
            self._nearest.add(monkeypatches.nearest(value for module in modules for value in module.__dict__.values()))

    def is_patched(self) -> bool:
        """Whether what was loaded and run in this process has changed modules that are not the user's."""
        assert self._process is not None
        changes = None if self._patches is None or self._nearest is None else self._nearest.changes()
        found = self._process.monkeypatches(self._files, self._texts, changes)
        return bool(found.by_project or (self._patches is not None and self._patches.by_project))

    def has_patched(self, before: monkeypatches.ProcessState, look: Optional[Callable[[], None]]) -> bool:
        """Whether a rehearsal has changed modules that are not the user's. look: see Snapshot.changes; None where somebody waits."""
        assert self._nearest is not None
        changes = self._nearest.changes_at_once() if look is None else self._nearest.changes(look)
        found = before.monkeypatches(self._files, self._texts, changes)
        return bool(found.by_project or found.by_packages)

    def _documents_now(self, run: Run) -> Set[str]:
        """The names of the modules that were loaded from the document."""
        return {name for name, file in self._files.items() if file == run.file or name == NOBODYS}

    # --- what is changed in place ---

    def _note_loaded(self, run: Run) -> None:
        """The document has been loaded, and nothing was run since."""
        workspace, last = self.workspace, self.workspace.finder.last
        modules = [sys.modules[name] for name in self._documents_now(run)]
        places = [found.span for found in workspace.trace.mismatches] + [span for _, span in workspace.evaluation.calls.defined]
        own = [span.file for span in places if span is not None] + [entry[0] for entry in absences.said]
        self._loaded = None
        if last is not None and len(modules) == 1 and run.file not in own:
            notes = [(note, _line(workspace, note)) for note in workspace.trace.notes]
            self._loaded = Loaded(run.file, modules[0], last.body, workspace.recorder.always_reached(run.file), notes)
            self._beside = list(absences.said), list(sys.path), torch.get_default_dtype()
            if self.is_rehearsed:
                self._loaded.note_state()

    def rehearsed(self, *, interrupted: bool = False) -> None:
        """What was loaded has been run for its side effects. Where that has changed the document it has to be loaded anew."""
        self.is_rehearsed, loaded = False, self._loaded
        if loaded is not None and self._names is None:
            loaded.fix(self.workspace.recorder.always_reached(self.workspace.run.file))  # Statements may have run as a name was asked for.
            self._loaded = loaded if loaded.is_as_it_was(at_once=interrupted) else None

    def _patched(self, run: Run, tree: ast.Module) -> Optional[Dict[str, Any]]:
        """The document's names, where what stands loaded is that of the run once some functions have other code; else None."""
        finder, loaded = self.workspace.finder, self._loaded
        if loaded is None or not loaded.is_of(run.file):
            return None
        finder.document = run.file  # It may have been another one since.
        try:
            finder.rewrite_document(tree, run.text)
            patch = loaded.patch_for(tree)
        except (SyntaxError, ValueError, RecursionError):
            finder.last, tree.body = None, parse(run.text, run.file).body  # What is there may be half rewritten.
            return None
        if patch is None:
            return None
        self._adopt(run, set(), loaded.notes)
        absences.said[:], sys.path[:], dtype = self._beside
        torch.set_default_dtype(dtype)
        finder.trees[run.file] = tree
        finder.show(run.file)
        loaded.apply(patch, tree)
        self._states[run.file] = run.text
        self.outdated = False
        if self.is_rehearsed:
            loaded.note_state()
        return _names_of(loaded.module)

    def _is_as_loaded(self, run: Run) -> bool:
        """Whether a run is the one that all of this was loaded for, and finds everything as it was."""
        loaded = self.workspace.run
        same = (run.file, run.text, run.overlays, run.observe) == (loaded.file, loaded.text, loaded.overlays, loaded.observe)
        return same and not any(self._has_changed(file, run) for file in self._states if file != run.file)

    def _former_documents(self, run: Run, tree: ast.Module, module: ModuleType) -> List[str]:
        """The documents of earlier runs that this one imports, directly or not: they stood there, so that no import of them was seen."""
        former = self._documents - {run.file}
        self._documents.add(run.file)
        names = {name for name, file in self._files.items() if file in former}
        reached = self._reached(Imports(tree, module.__name__, hasattr(module, "__path__"))) if names else set()
        return sorted({self._files[name] for name in names & reached})

    def _reached(self, imports: Imports) -> Set[str]:
        """The names of all modules that are loaded for one with these imports, and for these in turn, as far as they are the user's."""
        todo = list(imports.loaded())
        reached = set(todo)
        while todo:
            name = todo.pop()
            more = self._imports[name].loaded() - reached if name in self._imports else set()
            reached |= more
            todo += more
        return reached

    def _needs(self, tree: ast.Module, name: str) -> Set[str]:
        return Imports(tree, name, hasattr(sys.modules[name], "__path__")).modules(self._imports)

    def _bind_again(self, before: Dict[str, ModuleType]) -> None:
        """Let modules that imported some of these by `import a.b`, and took nothing of them yet, have those that are loaded now."""
        instead = {id(module): sys.modules[name] for name, module in before.items() if sys.modules.get(name, module) is not module}
        for name in self._files if instead else ():
            names = sys.modules[name].__dict__ if name in sys.modules else {}
            for bound in [bound for bound, value in names.items() if id(value) in instead]:
                names[bound] = instead[id(names[bound])]

    def _forget(self, name: str) -> None:
        """A module is to be loaded anew."""
        del sys.modules[name]
        self._known.discard(name)
        for known in (self._files, self._imports, self._takes):
            known.pop(name)

    def _comes_with_package(self, run: Run, levels: int) -> bool:
        """Whether what is missing was asked for by the package that this document is in as well, before it came to the documents."""
        package = package_of(run.file, levels)[1].partition(".")[0]
        inside = package and package == self._package and package in self._takes
        return bool(inside) and all(note.span is None or note.span.file not in (self._document, run.file) for note, _ in self._notes)

    def _missed_by(self, tree: ast.Module) -> Set[str]:
        """Forget the missing packages that the document imports itself: its import tells of them. Returns what it says."""
        imported = Imports(tree, "", False).packages()
        missing = {name for name in self._absent if name.partition(".")[0] in imported}
        for name in missing:
            sys.modules.pop(name, None)
        return {missing_message(name) for name in missing}

    def _adopt(self, run: Run, anew: Set[str], notes: List[Tuple[Note, str]]) -> None:
        """Make everything that watches ready for another run, which loads some files anew. notes: those that hold for it as well."""
        workspace, finder = self.workspace, self.workspace.finder
        workspace.run = run
        workspace.trace.mismatches += [found for found in self._mismatches if found.span is None or found.span.file not in anew]
        workspace.recorder.forget_files(anew)
        calls = workspace.evaluation.calls
        calls.defined = [(module, span) for module, span in calls.defined if span is None or span.file not in anew]
        calls.start_example(0)
        workspace.frames.adopt(run.file, run.root)
        workspace.missing.forget()
        finder.adopt(run.file, {**run.overlays, run.file: run.text}, run.observe, anew)
        absences.said[:] = [entry for entry in absences.said if entry[0] not in anew]
        op_cache.state.off = False
        sys.path[:] = self._path
        if "set_default_" in str(self._states.get(run.file)):  # It is for the new text to say.
            torch.set_default_dtype(self._dtype)
        sys.argv = Arguments([run.file])
        lines = run.text.splitlines()
        for note, text in notes:
            span = note.span
            if span is not None and span.file == run.file:
                places = [number for number, line in enumerate(lines, 1) if line.strip() == text] if text else []
                if not places:
                    continue
                finder.show(run.file)
                span = workspace.frames.line(run.file, places[0])
            workspace.trace.notes.append(Note(note.code, note.message, span))

    def _has_changed(self, file: str, run: Run) -> bool:
        """Whether a file has another text than it was loaded with, or is to be watched and was not."""
        state, text = self._states[file], run.overlays.get(file)
        if (file in run.observe or text is not None) and file not in self.workspace.recorder.rewritten:
            return True
        if isinstance(state, str):
            return state != (_on_disk(file) if text is None else text)
        return state != state_of(file) or (text is not None and text != _on_disk(file))

    def _users_of(self, roots: Set[str]) -> Set[str]:
        """These modules, and those that took values from them, directly or not."""
        found = set(roots)
        while True:
            more = {name for name, taken in self._takes.items() if name not in found and not taken.isdisjoint(found)}
            if not more:
                return found
            found |= more

    def _check_folders(self, run: Run, levels: int) -> None:
        """Raises Unsuitable where imports might find something else than they did."""
        folders = _folders(run, levels)
        for folder in folders:
            if folder in self._folders and self._folders[folder] != _names_in(folder):
                raise Unsuitable("a folder that imports are looked for in has changed")
        others = set(folders) ^ set(self._folders)
        loaded = {name.partition(".")[0] for name in sys.modules.keys() - self._before} if others else set()
        for folder in others:
            if not loaded.isdisjoint(_names_in(folder)):
                raise Unsuitable("an import might be found in another folder")


def _names_of(module: ModuleType) -> Dict[str, Any]:
    names: Dict[str, Any] = module.__dict__.get(KEPT, module.__dict__)
    return names


def _messages(mismatches: List[Mismatch]) -> Set[str]:
    return {found.message for found in mismatches}


def _line(workspace: Workspace, note: Note) -> str:
    """The text of the line that a note is about."""
    if note.span is None or note.span.file != workspace.run.file:
        return ""
    lines = workspace.run.text.splitlines()
    return lines[note.span.line - 1].strip() if note.span.line <= len(lines) else ""


def _folders(run: Run, levels: int) -> List[str]:
    return search_path(run.file, run.root, levels)


def _names_in(folder: str) -> FrozenSet[str]:
    """What a folder offers to imports: modules and folders, without the endings of their names."""
    try:
        return frozenset(name.partition(".")[0] for name in os.listdir(folder) if name.endswith(".py") or "." not in name)
    except OSError:
        return frozenset()


def _on_disk(file: str) -> Optional[str]:
    try:
        return read_regular(file).decode("utf-8")
    except (OSError, ValueError):
        return None
