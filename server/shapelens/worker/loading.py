"""Loads the document as the module that it is in the user's project, from its text in the editor, with only its definitions run."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .definitions import Definitions
from .meta import assumed
from .recorder import Recorder
from .rewrite import ASSUMED, TURN, TURNS, rewrite
from .unknown import turn, turns

OnFailure = Callable[[str, ast.stmt, BaseException], None]


class _ModuleOfDefinitions(ModuleType):
    """A module whose missing names are looked for among the statements that did not run."""

    def __getattr__(self, name: str) -> Any:
        definitions = self.__dict__.get("__shapelens_definitions__")
        if definitions is None or name.startswith("__"):
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name))
        try:
            return definitions[name]
        except KeyError:
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name)) from None


class _Loader(importlib.abc.Loader):
    """Executes a text in place of a file's."""

    def __init__(self, finder: "DocumentFinder", file: str) -> None:
        self.finder = finder
        self.file = file

    def create_module(self, spec: Any) -> ModuleType:
        return _ModuleOfDefinitions(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        self.finder.execute(module, self.file)

    def get_source(self, name: str) -> str:
        """For inspect and linecache."""
        return self.finder.texts[self.file]


class DocumentFinder(importlib.abc.MetaPathFinder):
    """Finds modules where Python would, but takes the text of open documents from the editor."""

    def __init__(self, texts: Dict[str, str], recorder: Recorder, on_failure: OnFailure) -> None:
        self.texts = texts  # by absolute path
        self.recorder = recorder
        self.on_failure = on_failure
        self.trees: Dict[str, ast.Module] = {}

    def find_spec(self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or os.path.abspath(spec.origin) not in self.texts:
            return None
        return self.spec(fullname, os.path.abspath(spec.origin))

    def spec(self, name: str, file: str) -> Any:
        """The spec of a module that is one of the texts."""
        folders = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
        return importlib.util.spec_from_file_location(name, file, loader=_Loader(self, file), submodule_search_locations=folders)

    def execute(self, module: ModuleType, file: str) -> None:
        """Run a text's definitions in a module. Raises SyntaxError."""
        text = self.texts[file]
        tree = self.trees.pop(file, None) or parse(text, file)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        if not any(file == known for _, known in self.recorder.files):
            first = len(self.recorder.sites)
            self.recorder.files.append((first, file))
            try:
                rewrite(tree, self.recorder.sites)
            except RecursionError:  # Nested deeper than we can follow: the file runs as it is.
                del self.recorder.sites[first:]
                tree = parse(text, file)
        module.__dict__.update(self.recorder.reporters())
        module.__dict__[ASSUMED] = assumed
        module.__dict__[TURNS], module.__dict__[TURN] = turns, turn
        definitions = Definitions(module, file, lambda node, error: self.on_failure(file, node, error))
        module.__dict__["__shapelens_definitions__"] = definitions
        definitions.run(tree)


def parse(text: str, file: str) -> ast.Module:
    """The syntax tree of a text. A byte order mark is not part of the program. Raises SyntaxError."""
    try:
        return ast.parse(text[1:] if text.startswith("\ufeff") else text, file)
    except (ValueError, RecursionError) as error:  # A NUL byte, before Python 3.12; or nested past what Python itself can take.
        raise SyntaxError(str(error)) from error


def package_of(file: str, levels: int = 0) -> Tuple[str, str]:
    """(import root, dotted module name) of a file: the folders above it that have an `__init__.py` are its packages.

    A folder without one is a package too where its parent has one, or where relative imports of `levels` dots reach above it.
    """
    folder, base = os.path.split(file)
    parts = [] if base == "__init__.py" else [os.path.splitext(base)[0]]
    while folder != os.path.dirname(folder):
        parent, name = os.path.split(folder)
        is_package = any(os.path.isfile(os.path.join(place, "__init__.py")) for place in (folder, parent))
        if not name.isidentifier() or not (is_package or len(parts) < levels):
            break
        folder = parent
        parts.insert(0, name)
    return folder, ".".join(parts)


def relative_levels(tree: ast.Module) -> int:
    """How many packages the relative imports of a module climb: 1 for `from . import x`, 2 for `from .. import x`."""
    return max([node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)] or [0])


def search_path(file: str, root: str, levels: int = 0) -> List[str]:
    """What goes in front of sys.path: where the file's own imports start, then the workspace and its `src`."""
    folders = [package_of(file, levels)[0], root, os.path.join(root, "src") if root else "", os.path.dirname(file)]
    return [folder for index, folder in enumerate(folders) if folder and os.path.isdir(folder) and folder not in folders[:index]]


def load(file: str, root: str, finder: DocumentFinder) -> ModuleType:
    """Load the document. Its package comes first, as for any import; a package that fails to load is replaced by a bare one.

    Raises SyntaxError; what definitions raise goes to `on_failure`.
    """
    tree = finder.trees[file] = parse(finder.texts[file], file)
    levels = relative_levels(tree)
    sys.path[:0] = search_path(file, root, levels)
    name = package_of(file, levels)[1]
    if "." not in name and (not name.isidentifier() or _is_taken(name, file)):
        name = "__shapelens_document__"
    parent = name.rpartition(".")[0]
    if parent:
        _import_package(parent, file)
        loaded = sys.modules.get(name)
        if loaded is not None and getattr(loaded, "__file__", None) == file:
            return loaded  # The package imports the document itself.
    module = importlib.util.module_from_spec(finder.spec(name, file))
    sys.modules[name] = module
    finder.execute(module, file)
    return module


def _is_taken(name: str, file: str) -> bool:
    """Whether a top-level name belongs to another module: a document called `token.py` must not stand in the standard library's place."""
    if name in sys.modules:
        return True
    try:
        spec = importlib.machinery.PathFinder.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and os.path.abspath(spec.origin) != file


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
