"""Loads the document and the user's modules that it imports, as what they are in the user's project, with only their definitions run.

The text of an open document is the editor's.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from types import ModuleType
from typing import AbstractSet, Any, Callable, Dict, Hashable, Iterator, List, Optional, Sequence, Set, Tuple, Union

from ...regular_files import read_regular
from ..rewrite.device_choices import ACCELERATOR, DEVICE
from ..rewrite.instrument import ASSUMED, NUMBERS, TURN, TURNS, WINDOW, rewrite
from ..rewrite.package_checks import MAY_REFUSE, assume_packages
from ..sandbox.monkeypatches import BUILT_IN
from ..trace.devices import device_of, standing_for
from ..trace.module_names import package_of, search_path
from ..trace.recorder import Recorder
from ..unknown.conditions import assumed
from ..unknown.unknown_sizes import of_numbers, turn, turns
from ..unknown.windows import window
from .compile_cache import PREPARED, CompiledFile, state_of
from .definitions import KEPT, Definitions
from .incremental_parse import SITES, Parsed, level_of, reparsed, rewrite_new
from .missing_packages import MissingFinder
from .unobserved import Unobserved

# A file's text in the editor, or its time of change and size on disk; None where it is not there.
FileState = Union[str, Tuple[int, int], None]
OnFailure = Callable[[str, ast.stmt, BaseException], None]

NAME_OF_NO_FILE = "__shapelens_document__"  # the name of a document that cannot have the one that its file gives it
MOST_REWRITTEN = 1 << 18  # bytes of text in a run, open documents not counted: some 400 ms
MOST_PARSED = 1 << 20  # bytes of text in a run; what is beyond is left to Python, which may have it compiled


class _ModuleOfDefinitions(ModuleType):
    """A module whose missing names are looked for among the statements that did not run."""

    def __getattr__(self, name: str) -> Any:
        definitions = self.__dict__.get(KEPT)
        if definitions is not None:
            try:
                return definitions[name]
            except KeyError:
                pass
        raise AttributeError("module %r has no attribute %r" % (self.__name__, name))


class _UserModuleLoader(importlib.machinery.SourceFileLoader):
    """Python's own loader, but for how it executes a text, and which one."""

    def __init__(self, finder: "UserFinder", name: str, file: str) -> None:
        super().__init__(name, file)
        self.finder = finder

    def create_module(self, spec: Any) -> ModuleType:
        return _ModuleOfDefinitions(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        self.finder.execute(module, self.path)

    def get_source(self, fullname: str) -> Optional[str]:
        """For inspect and linecache."""
        return self.finder.text_of(self.path)


class UserFinder(importlib.abc.MetaPathFinder):
    """Finds modules where Python would, and loads those of the user."""

    def __init__(
        self,
        document: str,
        texts: Dict[str, str],
        observe: Sequence[str],
        is_user_file: Callable[[str], bool],
        recorder: Recorder,
        on_failure: OnFailure,
    ) -> None:
        self.document = document
        self.texts = texts  # of open documents, by absolute path
        self.observe = {*texts, *observe}
        self.followed_for = ""  # Run.followed_for
        self.is_user_file = is_user_file
        self.recorder = recorder
        self.on_failure = on_failure
        self.unobserved = Unobserved(recorder)
        self.trees: Dict[str, ast.Module] = {}  # rewritten once, as a file may be loaded under two names
        self.asked: Set[str] = set()  # top-level names that the finders behind Python's own were asked for
        self.programs: Dict[str, Optional[CompiledFile]] = {}
        self.loaded: List[str] = []  # the user's files, in the order in which they were imported
        self.last: Optional[Parsed] = None  # the document, once it is rewritten
        self.former: Dict[Hashable, ast.stmt] = {}  # statements of earlier texts of it
        self.states: Dict[str, FileState] = {}  # of the user's files, as they were before they were read
        self.kept_modules: Set[str] = set()  # the names of those of earlier runs that are not loaded anew
        self.rewritten = self.parsed = 0

    def adopt(self, document: str, texts: Dict[str, str], observe: Sequence[str], anew: AbstractSet[str]) -> None:
        """Another run with what is loaded: its document and texts, and the files that are loaded anew."""
        self.document, self.texts, self.observe = document, texts, {*texts, *observe}
        self.loaded = [file for file in self.loaded if file not in anew]
        for file in anew:
            self.trees.pop(file, None)
            self.programs.pop(file, None)
            self.states.pop(file, None)
        self.asked.clear()
        self.rewritten = self.parsed = 0

    def tree_of(self, file: str) -> Optional[ast.Module]:
        """The syntax tree of a file that was loaded, or would be; None where it has none."""
        program = self.programs.get(file)
        tree = program.tree if program is not None else self.trees.get(file)
        if tree is None:
            with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
                tree = parse(self.text_of(file), file)
        return tree

    def rewritten_statements(self, file: str) -> List[ast.stmt]:
        """The statements of a file that was loaded, as they were rewritten; none where it was not."""
        if file not in self.recorder.rewritten:
            return []
        if file == self.document and self.last is not None:
            return self.last.body
        program = self.programs.get(file)
        tree = program.tree if program is not None else self.trees.get(file)
        return tree.body if tree is not None else []

    def find_spec(self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if fullname in sys.builtin_module_names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) or _elsewhere(self, fullname, path)
        if spec is None or spec.origin is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        file = os.path.abspath(spec.origin)
        if file not in self.texts and not self.is_user_file(file):
            return None
        if file != self.document:
            self.loaded.append(file)
        if file not in self.states:
            self.states[file] = self.texts[file] if file in self.texts else state_of(file)
        return self.spec(fullname, file) if file in self.texts or self._is_worth_it(file) else None

    def _program(self, file: str) -> Optional[CompiledFile]:
        """Returns what was prepared for a file, if that will do."""
        if file not in self.programs:
            self.programs[file] = None if file in self.texts else PREPARED.program(file)
        program = self.programs[file]
        return None if program is not None and program.first is None and file in self.observe else program

    def _is_worth_it(self, file: str) -> bool:
        """True if a run can afford to parse a file."""
        if self._program(file) is not None:
            return True
        try:
            size = os.stat(file).st_size
        except OSError:
            return False
        self.parsed += size
        return self.parsed <= MOST_PARSED or file in self.observe

    def spec(self, name: str, file: str) -> Any:
        """The spec of a module that is the user's."""
        folders = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, file, loader=_UserModuleLoader(self, name, file), submodule_search_locations=folders
        )

    def text_of(self, file: str) -> str:
        """A file's text in the editor, or else on disk. Raises OSError, SyntaxError and UnicodeDecodeError."""
        if file in self.texts:
            return self.texts[file]
        return importlib.util.decode_source(read_regular(file))

    def execute(self, module: ModuleType, file: str) -> None:
        """Run a text's definitions in a module. Raises SyntaxError, and OSError where there is no text."""
        tree = self._tree(file)
        names = module.__dict__
        names.update(self.recorder.reporters())
        names[ASSUMED], names[TURNS], names[TURN], names[WINDOW] = assumed, turns, turn, window
        names[ACCELERATOR], names[DEVICE] = standing_for, device_of
        names.update(self.unobserved.reporters())
        for name, own in NUMBERS.items():
            names[own] = of_numbers[name]
        if self.kept_modules and hasattr(module, "__path__"):  # A package that is loaded again gets those of its modules that are not.
            for name in [name for name in self.kept_modules if name.rpartition(".")[0] == module.__name__ and name in sys.modules]:
                names.setdefault(name.rpartition(".")[2], sys.modules[name])
        # The modules of a package are made to be imported: what one does at module level (registering, loading others) the rest relies on.
        all_of_it = file != self.document and (hasattr(module, "__path__") or "." in module.__name__)
        definitions = names[KEPT] = Definitions(module, file, all_of_it, lambda node, error: self.on_failure(file, node, error))
        definitions.run(tree)

    def show(self, file: str) -> None:
        """Let tracebacks and `inspect` have the editor's text of a file."""
        text = self.texts[file]
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)

    def _tree(self, file: str) -> ast.Module:
        program = self._program(file)
        if program is not None:
            if program.first is not None:
                self.recorder.add_file(file, program.first)
            return program.tree
        text = self.text_of(file)
        tree = self.trees.get(file) or parse(text, file)
        self.trees[file] = tree
        if file in self.texts:
            self.show(file)
        if file not in self.recorder.rewritten and self._is_worth_rewriting(file, text):
            first = len(self.recorder.sites)
            try:
                if file == self.document:
                    self.rewrite_document(tree, text)
                else:
                    self.recorder.add_file(file)
                    rewrite(tree, self.recorder.sites)
            except RecursionError:  # Nested deeper than we can follow: the file runs as it is.
                del self.recorder.sites[first:]
                tree = self.trees[file] = parse(text, file)
        elif file not in self.recorder.rewritten and MAY_REFUSE.search(text):
            assume_packages(tree)
        return tree

    def parse_document(self, file: str, text: str) -> ast.Module:
        """The syntax tree of the document, with what it has in common with the last one that was loaded. Raises SyntaxError."""
        before = self.last if file == self.document else None
        self.last = None
        tree = reparsed(before, text, file, self.recorder.sites) if before is not None else None
        self.former = before.former if before is not None and tree is not None else {}
        return tree or parse(text, file)

    def rewrite_document(self, tree: ast.Module, text: str) -> None:
        """Rewrite what is new in the document's tree. Raises RecursionError."""
        self.recorder.add_file(self.document)
        self.last = rewrite_new(tree, text, self.recorder.sites, self.former)
        self.recorder.pieces = self.document, [node.__dict__[SITES] for node in tree.body]

    def _is_worth_rewriting(self, file: str, text: str) -> bool:
        if file not in self.observe:
            self.rewritten += len(text)
        return file in self.observe or self.rewritten <= MOST_REWRITTEN


@contextlib.contextmanager
def executed_once() -> Iterator[None]:
    """A module that was loaded as ours stays so: packages that load all their modules themselves would execute it again as it is."""
    execute = importlib.machinery.SourceFileLoader.exec_module

    def exec_module(loader: Any, module: ModuleType) -> None:
        if KEPT not in module.__dict__:
            execute(loader, module)

    importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del importlib.machinery.SourceFileLoader.exec_module


def _elsewhere(own: UserFinder, fullname: str, path: Optional[Sequence[str]]) -> Any:
    """Returns what the finders of editable installations know: they stand behind Python's own."""
    if "." in fullname or fullname in own.asked:
        return None  # A finder may itself ask for what it is asked for.
    own.asked.add(fullname)
    for finder in sys.meta_path:
        is_editable = "editable" in getattr(finder, "__name__", "").lower()  # setuptools'; other build tools' are instances.
        if is_editable or not (finder is own or isinstance(finder, (type, MissingFinder))):
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path) if find is not None else None
            if spec is not None:
                return spec
    return None


def parse(text: str, file: str) -> ast.Module:
    """The syntax tree of a text. A byte order mark is not part of the program. Raises SyntaxError."""
    try:
        return ast.parse(text[1:] if text.startswith("\ufeff") else text, file)
    except (ValueError, RecursionError) as error:  # A NUL byte, before Python 3.12; or nested past what Python itself can take.
        raise SyntaxError(str(error)) from error


def relative_levels(tree: ast.Module) -> int:
    """Returns how many packages the relative imports of a module climb: 1 for `from . import x`, 2 for `from .. import x`."""
    return max(map(level_of, tree.body), default=0)


def load(file: str, root: str, finder: UserFinder) -> ModuleType:
    """Load the document. Its package comes first, as for any import; a package that fails to load is replaced by a bare one.

    Raises SyntaxError; what definitions raise goes to `on_failure`.
    """
    tree = finder.trees[file] = finder.trees.get(file) or parse(finder.texts[file], file)
    levels = relative_levels(tree)
    sys.path[:0] = search_path(file, root, levels)
    folder, name = package_of(file, levels)
    if "." not in name and (not name.isidentifier() or _is_taken(name, file)):
        name = NAME_OF_NO_FILE
    parent = name.rpartition(".")[0]
    if parent:
        _forget_another_package(folder, name.partition(".")[0])
        _import_package(parent, file)
        loaded = sys.modules.get(name)
        if loaded is not None and getattr(loaded, "__file__", None) == file and KEPT in loaded.__dict__:
            return loaded  # The package imports the document itself.
    module = importlib.util.module_from_spec(finder.spec(name, file))
    sys.modules[name] = module
    finder.execute(module, file)
    if parent and parent in sys.modules:  # As after any import: others may ask the package for it.
        setattr(sys.modules[parent], name.rpartition(".")[2], module)
    return module


def _is_taken(name: str, file: str) -> bool:
    """True if a top-level name belongs to another module: a document called `token.py` must not stand in the standard library's place."""
    if name in sys.modules:
        return True
    try:
        spec = importlib.machinery.PathFinder.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and os.path.abspath(spec.origin) != file


def _forget_another_package(folder: str, name: str) -> None:
    """Where a package was loaded from somewhere else than this folder, as a library, it is imported from here."""
    folders = getattr(sys.modules.get(name), "__path__", None)
    if folders is None or name in BUILT_IN or os.path.realpath(os.path.join(folder, name)) in map(os.path.realpath, folders):
        return
    for part in [part for part in sys.modules if part == name or part.startswith(name + ".")]:
        del sys.modules[part]


def _import_package(name: str, file: str) -> None:
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        package = ".".join(parts[:count])
        if package in sys.modules:
            continue
        try:
            importlib.import_module(package)
        except Exception:  # A missing dependency of some other module of the package need not concern this file.
            bare = ModuleType(package)
            folder = os.path.dirname(file)
            for _ in range(len(parts) - count):
                folder = os.path.dirname(folder)
            bare.__path__ = [folder]
            bare.__package__ = package
            sys.modules[package] = bare
