"""The modules that a run loaded, which stay loaded, so that a later run of the project loads only what has changed since."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from functools import cached_property
from types import ModuleType
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

import torch

from ...protocol import Mismatch, Note, Run
from ..evaluation.run_context import RunContext, missing_message
from ..loading.compile_cache import compile_all
from ..loading.definitions import KEPT
from ..loading.hot_patch import LoadedDocument, Patch
from ..loading.import_graph import Imports
from ..loading.importer import NAME_OF_NO_FILE, load, parse, relative_levels
from ..loading.shadowed_modules import shadowed_by_files
from ..memo.early_diagnosis import RehearsedExamples
from ..meta import op_cache
from ..shims.command_line import CommandLine
from ..shims.data_sets import absences
from ..trace.definition_time import executing
from ..trace.module_names import package_of
from ..unknown import stand_ins, unknown_sizes
from .foreign_changes import ForeignChanges
from .loaded_files import LoadedFiles
from .module_graph import ModuleGraph
from .reload_plan import NO_NAMES, Action, ReloadPlan, plan_reload
from .replaced_values import replace_definitions, replace_imported_values, replace_modules

MOST_NEW_SITES = 50_000  # of versions of statements that are no more: each takes some 300 bytes

NoteOfLine = Tuple[Note, str]  # what loading said, with the text of the line that it is about


class Unsuitable(Exception):
    """A run cannot be done with what is loaded: it needs a process that has loaded nothing."""


class _SetByDocument(NamedTuple):
    """Holds what loading the document has set outside of modules."""

    absences: List[Any]
    path: List[str]
    dtype: torch.dtype


class LoadedProject:
    """The modules that a run loaded, in an environment that holds on, and what they were loaded from. To be made before they are loaded."""

    def __init__(self, run: Run) -> None:
        self.context = RunContext(run)
        self.modules = ModuleGraph(self.context.finder)
        self.files = LoadedFiles(self.context.finder)
        self.foreign_changes: ForeignChanges  # since `load`
        self._path = list(sys.path)
        self._dtype = torch.get_default_dtype()
        self._notes: List[NoteOfLine] = []
        self._mismatches: List[Mismatch] = []  # of definitions that failed
        self._document = run.file
        self._documents = {run.file}  # of all runs: no other run's import has found them
        self._package = ""  # the outermost one that the document is in
        self._most_sites = 0
        self._names: Optional[Dict[str, Any]] = None  # of the document, until something is run with them
        self.is_moved = False  # the document's statements are at their places in another text, which was read for those who follow
        self.is_half_loaded = False  # something ended the loading of a run: what is there is of no text
        self._patchable: Optional[LoadedDocument] = None  # the document, where a later one may be a patch of it
        self._set_by_document = _SetByDocument([], [], self._dtype)
        self.is_outdated = False  # more than the document had to be loaded anew
        self.rehearsed_examples: Optional[RehearsedExamples] = None  # of the last run, where it is done once more ahead of the next one
        self.is_rehearsal = False  # what is loaded will be run for its side effects: then it has to be known what these are

    def load(self) -> None:
        """Load the document and all that it imports. Raises what loading a document raises."""
        context, run = self.context, self.context.run
        self.foreign_changes = ForeignChanges(self.modules, self.files)
        self._names = context.load()
        context.finder.states[run.file] = run.text
        self.modules.note_loaded()
        self._most_sites = 2 * len(context.recorder.sites) + MOST_NEW_SITES
        self._note_what_was_said()
        levels = relative_levels(context.finder.trees[run.file])
        self._package = package_of(run.file, levels)[1].partition(".")[0]
        self.files.note_folders(run, levels)
        self._note_patchable(run)

    def _note_what_was_said(self) -> None:
        """Notes what loading says of what is loaded now: it holds for later runs, and nothing that an earlier text of the document was
        told.
        """
        self._notes = [(note, _line(self.context, note)) for note in self.context.trace.notes]
        self._mismatches = list(self.context.trace.mismatches)

    def absorb(self, run: Run) -> bool:
        """Parse, rewrite and compile what a later document has anew, so that those who follow have it; nothing of it is executed.

        Returns whether that may go on: what is no longer used is not given back.
        """
        finder, recorder, loaded_run = self.context.finder, self.context.recorder, self.context.run
        # What the two have in common is at the places of the later one now.
        self.is_moved |= run.file == loaded_run.file and run.text != loaded_run.text
        loaded = dict(recorder.rewritten)
        try:
            tree = finder.parse_document(run.file, run.text)
            finder.document = run.file
            finder.rewrite_document(tree, run.text)
            compile_all(tree, run.file)
        except (SyntaxError, ValueError, RecursionError):
            finder.last = None
        recorder.rewritten = loaded  # A later document that imports this one has it rewritten as it is loaded.
        return len(recorder.sites) < self._most_sites

    def reload(self, run: Run) -> Dict[str, Any]:
        """Make what is loaded that of another run; the document's names. Raises Unsuitable, and SyntaxError."""
        if shadowed_by_files(run.file, run.root) != self.context.shadowed:
            raise Unsuitable("other files stand in front of modules of the standard library")
        if run.allow != self.context.run.allow:
            raise Unsuitable("other acts are allowed")
        if not self.modules.are_all_there():
            raise Unsuitable("modules that were loaded are no longer there")
        compared = _NextRun(self, run, self._names)
        self._names = None
        rehearsed, self.rehearsed_examples = self.rehearsed_examples, RehearsedExamples() if self.is_rehearsal else None
        plan = plan_reload(compared)
        if plan.action is Action.LOAD_ALL:
            raise Unsuitable(plan.reason)
        if plan.action is Action.NOTHING:
            return self._use_as_loaded(run, compared.names)
        if plan.action is Action.PATCH:
            names = self._apply_patch(run, compared.tree, plan.patch or [])
            if rehearsed is not None and self._patchable is not None and compared.has_as_many_lines:
                self.rehearsed_examples = rehearsed.for_patched(self._patchable, self.context.recorder)
            return names
        return self._load_anew(run, compared.tree, plan)

    # --- nothing but the run is another one ---

    def _use_as_loaded(self, run: Run, names: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        context = self.context
        context.run = run
        context.trace.notes += [note for note, _ in self._notes]
        context.trace.mismatches += self._mismatches
        if self.is_rehearsal and self._patchable is not None:
            self._patchable.note_state()
        return names or {}

    # --- functions of the document get other code ---

    def _note_patchable(self, run: Run) -> None:
        """The document has been loaded, and nothing was run since."""
        context, last = self.context, self.context.finder.last
        modules = [sys.modules[name] for name in self.modules.of_document(run.file)]
        places = [found.span for found in context.trace.mismatches] + [span for _, span in context.evaluation.calls.defined]
        own = [span.file for span in places if span is not None] + [entry[0] for entry in absences.said]
        self._patchable = None
        if last is not None and len(modules) == 1 and run.file not in own:
            notes = [(note, _line(context, note)) for note in context.trace.notes]
            self._patchable = LoadedDocument(run.file, modules[0], last.body, context.recorder.always_reached(run.file), notes)
            self._set_by_document = _SetByDocument(list(absences.said), list(sys.path), torch.get_default_dtype())
            if self.is_rehearsal:
                self._patchable.note_state()

    def patch_for(self, run: Run, tree: ast.Module) -> Optional[Patch]:
        """Which functions of the document need which code for a run; None where that is not all that its text needs. Rewrites the tree."""
        finder, document = self.context.finder, self._patchable
        if document is None or not document.is_of(run.file):
            return None
        finder.document = run.file  # It may have been another one since.
        try:
            finder.rewrite_document(tree, run.text)
            return document.patch_for(tree)
        except (SyntaxError, ValueError, RecursionError):
            finder.last, tree.body = None, parse(run.text, run.file).body  # What is there may be half rewritten.
            return None

    def _apply_patch(self, run: Run, tree: ast.Module, patch: Patch) -> Dict[str, Any]:
        finder, document = self.context.finder, self._patchable
        assert document is not None
        self._watch(run, NO_NAMES, document.notes)
        unknown_sizes.start_run(self._holds_unknown(tree, document.module.__name__))
        absences.said[:], sys.path[:], dtype = self._set_by_document
        torch.set_default_dtype(dtype)
        finder.trees[run.file] = tree
        finder.show(run.file)
        document.apply(patch, tree)
        finder.states[run.file] = run.text
        self.is_outdated = False
        if self.is_rehearsal:
            document.note_state()
        return _names_of(document.module)

    def end_rehearsal(self, *, interrupted: bool = False) -> None:
        """Ends the run of what was loaded for its side effects. Where that has changed the document it has to be loaded anew."""
        self.is_rehearsal, document = False, self._patchable
        if document is not None and self._names is None:
            # Statements may have run as a name was asked for.
            document.fix(self.context.recorder.always_reached(self.context.run.file))
            self._patchable = document if document.is_as_it_was(at_once=interrupted) else None

    # --- modules are loaded anew ---

    def _load_anew(self, run: Run, tree: ast.Module, plan: ReloadPlan) -> Dict[str, Any]:
        context, finder = self.context, self.context.finder
        self.is_half_loaded, self._patchable, self.is_outdated = True, None, not plan.is_of_document_alone
        missed = self._forget_missing(tree)
        self._watch(run, plan.changed | {run.file}, [(note, text) for note, text in self._notes if note.message not in missed])
        documents = [sys.modules[name] for name in self.modules.of_document(run.file)]
        before = {name: sys.modules[name] for name in plan.modules}
        for name in before:
            self.modules.forget(name)
        unknown_sizes.start_run(self._holds_unknown(tree, package_of(run.file, relative_levels(tree))[1]))
        executing.forget_modules()  # As many may come as go: their number would not tell that others are there.
        finder.kept_modules = self.modules.names()
        finder.trees[run.file] = tree
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What registers itself is registered twice.
            module = load(run.file, run.root, finder)
        replace_modules(before, self.modules.files)
        users = plan.dependents if plan.is_of_document_alone else NO_NAMES
        for document in documents:
            replace_definitions(document, module, [sys.modules[name] for name in users if name in sys.modules])
        replace_imported_values(documents, module, {name: self.modules.imports[name] for name in users})
        if not _messages(context.trace.mismatches) <= _messages(self._mismatches):
            raise Unsuitable("a definition fails that did not fail the first time")
        context.evaluation.calls.definitions_ended()
        finder.loaded += [file for file in self._former_documents(run, tree, module) if file not in finder.loaded]
        finder.states[run.file] = run.text
        self.modules.note_loaded()
        self._note_what_was_said()
        self.is_half_loaded = False
        if self.is_rehearsal:
            self._note_patchable(run)
        return _names_of(module)

    def _holds_unknown(self, tree: ast.Module, document: str) -> bool:
        """True if a module that stays loaded may hold an unknown size: the document, or one that its tree imports, directly or not."""
        definitions = {name: getattr(sys.modules[name], "__dict__", {}).get(KEPT) for name in self.modules.files if name in sys.modules}
        holding = {name for name, each in definitions.items() if each is not None and each.holds_unknown}
        if not holding:
            return False
        all_imports: List[ast.stmt] = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        is_package = os.path.basename(self.context.run.file) == "__init__.py"
        reached = self.modules.reached(Imports(ast.Module(all_imports, []), document, is_package))
        return not holding.isdisjoint(reached | {document})

    def _forget_missing(self, tree: ast.Module) -> Set[str]:
        """Forget the missing packages that the document imports itself: its import tells of them. Returns what it says."""
        imported = Imports(tree, "", False).packages()
        missing = {name for name in self.modules.missing_packages if name.partition(".")[0] in imported}
        for name in missing:
            sys.modules.pop(name, None)
        return {missing_message(name) for name in missing}

    def _former_documents(self, run: Run, tree: ast.Module, module: ModuleType) -> List[str]:
        """The documents of earlier runs that this one imports, directly or not: they were loaded, so that no import of them was seen."""
        former = self._documents - {run.file}
        self._documents.add(run.file)
        names = self.modules.of_files(former)
        reached = self.modules.reached(Imports(tree, module.__name__, hasattr(module, "__path__"))) if names else set()
        return sorted({self.modules.files[name] for name in names & reached})

    def _watch(self, run: Run, anew: FrozenSet[str], notes: List[NoteOfLine]) -> None:
        """Make everything that watches ready for another run, which loads some files anew. notes: those that hold for it as well."""
        context, finder = self.context, self.context.finder
        context.run = run
        context.trace.mismatches += [found for found in self._mismatches if found.span is None or found.span.file not in anew]
        context.recorder.forget_files(anew)
        calls = context.evaluation.calls
        calls.defined = [(module, span) for module, span in calls.defined if span is None or span.file not in anew]
        calls.start_example(0)
        context.frames.adopt(run.file, run.root)
        context.missing.forget()
        before = finder.states.get(run.file)
        finder.adopt(run.file, {**run.overlays, run.file: run.text}, run.observe, anew)
        finder.followed_for = run.followed_for
        absences.said[:] = [entry for entry in absences.said if entry[0] not in anew]
        op_cache.state.off = False
        stand_ins.called.clear()  # What the text before used excuses nothing in this one.
        sys.path[:] = self._path
        if "set_default_" in str(before):  # It is for the new text to say.
            torch.set_default_dtype(self._dtype)
        sys.argv = CommandLine(run.file, run.root, run.followed_for)
        lines = run.text.splitlines()
        for note, text in notes:
            span = note.span
            if span is not None and span.file == run.file:
                places = [number for number, line in enumerate(lines, 1) if line.strip() == text] if text else []
                if not places:
                    continue
                finder.show(run.file)
                span = context.frames.line(run.file, places[0])
            context.trace.notes.append(Note(note.code, note.message, span))

    def may_miss_another_package(self, run: Run, levels: int) -> bool:
        """True if loading told of missing packages that another document may not ask for.

        It does ask for what its package asked for before that came to the documents.
        """
        if run.file == self._document or not self._notes:
            return False
        package = package_of(run.file, levels)[1].partition(".")[0]
        is_inside = package and package == self._package and package in self.modules.names()
        of_package = all(note.span is None or note.span.file not in (self._document, run.file) for note, _ in self._notes)
        return not (is_inside and of_package)


class _NextRun:
    """The next run, compared with what is loaded (`Comparison` in reload_plan.py). names: the document's, if nothing was run with them."""

    def __init__(self, project: LoadedProject, run: Run, names: Optional[Dict[str, Any]]) -> None:
        self.names = names
        self._project = project
        self._run = run
        self._text = project.context.finder.states.get(run.file)  # that the document was loaded with

    @property
    def is_of_another_root(self) -> bool:
        return self._run.root != self._project.context.run.root

    @property
    def is_half_loaded(self) -> bool:
        return self._project.is_half_loaded

    @property
    def is_the_loaded_run(self) -> bool:
        run, loaded = self._run, self._project.context.run
        same = (run.file, run.text, run.overlays, run.observe) == (loaded.file, loaded.text, loaded.overlays, loaded.observe)
        is_unused = self.names is not None and not self._project.is_moved
        same = same and run.followed_for == loaded.followed_for  # The command line is read anew for another file.
        return is_unused and same and not self._project.files.have_changed(run)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the document. Raises SyntaxError."""
        return self._project.context.finder.parse_document(self._run.file, self._run.text)

    @cached_property
    def _levels(self) -> int:
        return relative_levels(self.tree)

    @property
    def moved_imports(self) -> str:
        return self._project.files.moved_imports(self._run, self._levels)

    @cached_property
    def changed(self) -> FrozenSet[str]:
        return self._project.files.changed(self._run)

    @cached_property
    def patch(self) -> Optional[Patch]:
        if self._run.followed_for != self._project.context.run.followed_for:
            return None
        return self._project.patch_for(self._run, self.tree)

    @property
    def has_as_many_lines(self) -> bool:
        """True if the document has as many lines as the one that is loaded."""
        return isinstance(self._text, str) and self._text.count("\n") == self._run.text.count("\n")

    @cached_property
    def _modules(self) -> ModuleGraph:
        """Returns what takes values from what, once that is known of all modules: also of those that were imported as examples ran."""
        self._project.modules.note_loaded()
        self._project.modules.read_imports()
        return self._project.modules

    @property
    def monkeypatches(self) -> str:
        modules, name = self._modules, package_of(self._run.file, self._levels)[1]
        imports = Imports(self.tree, name, os.path.basename(self._run.file) == "__init__.py")
        return self._project.foreign_changes.are_seen_by(lambda: modules.packages_of(imports))

    @property
    def may_miss_another_package(self) -> bool:
        return self._project.may_miss_another_package(self._run, self._levels)

    @cached_property
    def documents(self) -> FrozenSet[str]:
        return self._modules.of_document(self._run.file)

    @cached_property
    def dependents(self) -> FrozenSet[str]:
        return self._modules.with_dependents(self.documents | self._modules.of_files(self.changed)) - self.documents

    @property
    def needed(self) -> FrozenSet[str]:
        return self._modules.sources_of(self.tree, self.documents - {NAME_OF_NO_FILE})

    def is_loaded_by_python(self, module: str) -> bool:
        return KEPT not in sys.modules[module].__dict__


def _names_of(module: ModuleType) -> Dict[str, Any]:
    names: Dict[str, Any] = module.__dict__.get(KEPT, module.__dict__)
    return names


def _messages(mismatches: List[Mismatch]) -> Set[str]:
    return {found.message for found in mismatches}


def _line(context: RunContext, note: Note) -> str:
    """The text of the line that a note is about."""
    if note.span is None or note.span.file != context.run.file:
        return ""
    lines = context.run.text.splitlines()
    return lines[note.span.line - 1].strip() if note.span.line <= len(lines) else ""
