"""Missing packages: an import that nothing guards gets a stand-in module, so that what does not need it goes on.

A model file often needs a small part of a package whose `__init__` wants more than is installed. An import in a `try` that expects it to
fail, here or in whatever imports this module, fails as it would, and so does a question whether the package is there.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ...stated.syntax_trees import names_in, program_of
from ..locations import TORCH, WORKER
from ..unknown.stand_ins import StandInModule

EXPECT_FAILURE = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
# Packages that have gone on under another name: where only that one is installed, it stands in, and says that the old one is there.
SUCCESSORS = {"gym": "gymnasium"}
LAST_VERSIONS = {"gym": "0.21.0"}


class _StandInLoader(importlib.abc.Loader):
    def create_module(self, spec: Any) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


class _SuccessorLoader(importlib.abc.Loader):
    """A package of which only the successor is installed, as far as that has what is asked for; its modules are those of the successor."""

    def create_module(self, spec: Any) -> ModuleType:
        return _Successor(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        old, _, inner = module.__name__.partition(".")
        real = importlib.import_module(SUCCESSORS[old] + "." * bool(inner) + inner)
        if inner:
            sys.modules[module.__name__] = real
        else:
            module.__dict__.update({name: value for name, value in real.__dict__.items() if not name.startswith("__")})
            module.__dict__["__version__"] = LAST_VERSIONS[old]


class _Successor(StandInModule):
    """Stands in for a package: what the successor does not have is not known."""


class MissingFinder(importlib.abc.MetaPathFinder):
    """The last finder: it is asked for what no other one has found."""

    def __init__(self, on_missing: Callable[[str, List[FrameType]], None]) -> None:
        self._on_missing = on_missing
        self._guards: Dict[str, List[Tuple[int, int]]] = {}

    def forget(self) -> None:
        """The texts that are imported from may be others now."""
        self._guards.clear()

    def find_spec(self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        parent = fullname.rpartition(".")[0]
        successor = self._by_successor(fullname)
        if successor is not None:
            return successor
        if parent and not isinstance(sys.modules.get(parent), StandInModule):
            return None  # A module that its package does not have is a mistake, or the file's own.
        if not parent:
            frames = self._importers()
            if not frames or any(self._expects_failure(frame) for frame in frames):
                return None
            self._on_missing(fullname, frames)
        return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)

    def _by_successor(self, fullname: str) -> Any:
        """The specification of a module that its package's successor has, whoever asks; None where it has none."""
        old, _, inner = fullname.partition(".")
        new = SUCCESSORS.get(old)
        if new is None or (inner and not isinstance(sys.modules.get(old), _Successor)):
            return None
        try:
            is_there = importlib.util.find_spec(new + "." * bool(inner) + inner) is not None
        except (ImportError, ValueError):
            return None
        if not is_there:
            return None
        frames = [] if inner else self._importers()
        if frames and not any(self._expects_failure(frame) for frame in frames):
            self._on_missing(fullname, frames)
        return importlib.machinery.ModuleSpec(fullname, _SuccessorLoader(), is_package=True)

    def is_guarded(self) -> bool:
        """True if an import that is under way may fail: some `try` of those that led to it expects that."""
        return any(self._expects_failure(frame) for frame in self._importers())

    def _importers(self) -> List[FrameType]:
        """The frames whose imports led here, innermost first; [] for a mere question, and for what torch tries."""
        frames = []
        frame: Optional[FrameType] = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            # importlib.util is a frozen module since Python 3.11.
            if file.endswith((os.path.join("importlib", "util.py"), "<frozen importlib.util>", "pkgutil.py")) or file.startswith(TORCH):
                return []
            if not file.startswith(("<frozen", WORKER)) and os.path.join("importlib", "__init__.py") not in file:
                frames.append(frame)
            frame = frame.f_back
        return frames

    def _expects_failure(self, frame: FrameType) -> bool:
        file = frame.f_code.co_filename
        if file not in self._guards:
            self._guards[file] = guarded_lines("".join(linecache.getlines(file, frame.f_globals)))
        return any(first <= frame.f_lineno <= last for first, last in self._guards[file])


def guarded_lines(text: str, failures: Set[str] = EXPECT_FAILURE) -> List[Tuple[int, int]]:
    """The lines (first, last) of the bodies of `try` statements, and of `suppress` blocks, that expect one of `failures`."""
    tree = program_of(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(
            handler.type is None or failures.intersection(names_in(handler.type)) for handler in node.handlers
        ):
            found.append((node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno))
        elif isinstance(node, ast.With) and any("suppress" in ast.dump(item.context_expr) for item in node.items):
            found.append((node.lineno, node.end_lineno or node.lineno))
    return found
