"""Files of the workspace that were parsed, rewritten and compiled ahead of a run, which is most of what importing them costs.

The host does it between runs, as nothing of a file is executed by that, and its children inherit the result. A file is known by its time of
change and its size; the document itself and unsaved texts change with each run and are never kept.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...regular_files import read_regular
from ..rewrite.instrument import rewrite
from ..rewrite.package_checks import MAY_REFUSE, assume_packages
from ..rewrite.site_table import SiteTable
from .statements import DEFINES, compiled, future_flags, is_main_block

MOST_REWRITTEN = 1 << 21  # bytes of text that are kept rewritten, with some 300 bytes for each of their sites
MOST_COMPILED = 1 << 23  # bytes of text that are kept at all


class CompiledFile(NamedTuple):
    """A file whose statements are compiled. first: its first site; None where it is not rewritten."""

    state: Tuple[int, int]
    tree: ast.Module
    first: Optional[int]


class Prepared:
    """Holds what is kept. There is one in a process; the sites of a run are numbered on from its own."""

    def __init__(self) -> None:
        self.table = SiteTable()
        self.unprepared: List[str] = []  # what runs of this process would have liked to find
        self._programs: Dict[str, CompiledFile] = {}
        self._rewritten = self._compiled = 0

    def program(self, file: str) -> Optional[CompiledFile]:
        """The program of a file as it is on disk now; None where there is none."""
        program = self._programs.get(file)
        if program is not None and program.state == state_of(file):
            return program
        self.unprepared.append(file)
        return None

    def forget_run(self) -> None:
        """Drop what a run that happened in this process has added."""
        self.table.forget_run()
        self.unprepared = []

    def keep(self) -> None:
        """Keeps what the run of this process has loaded for those that are forked from it."""
        self.table.keep()
        self.unprepared = []

    def prepare(self, file: str) -> bool:
        """Parse, rewrite and compile a file; whether there is something new. A file that cannot be is left to the run, which reports it."""
        state = state_of(file)
        known = self._programs.get(file)
        if state is None or (known is not None and known.state == state) or self._compiled + state[1] > MOST_COMPILED:
            return False
        if self._rewritten > 2 * MOST_REWRITTEN:
            self.__init__()  # type: ignore[misc]  # Mostly older versions: what is still in use comes back with the next run.
        try:
            text = importlib.util.decode_source(read_regular(file))
            tree = ast.parse(text, file)
            first = len(self.table.sites) if self._rewritten + state[1] <= MOST_REWRITTEN else None
            if first is not None:
                rewrite(tree, self.table.sites)
            elif MAY_REFUSE.search(text):
                assume_packages(tree)
            compile_all(tree, file)
            _strip(tree)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            self.table.forget_run()
            return False
        if first is not None:
            self.table.files.append((first, file))
            self._rewritten += state[1]
        self.table.keep()
        self._compiled += state[1]
        self._programs[file] = CompiledFile(state, tree, first)
        return True


def compile_all(tree: ast.Module, file: str) -> None:
    """Compile the statements of a module. Raises SyntaxError, ValueError and RecursionError."""
    flags = future_flags(tree)
    for node in tree.body:
        if not is_main_block(node):
            compiled(node, file, flags)


def _strip(tree: ast.Module) -> None:
    for node in tree.body:
        if isinstance(node, DEFINES):
            for field in ("body", "decorator_list", "bases", "keywords"):
                if hasattr(node, field):
                    setattr(node, field, [])  # The code has it all: the tree is kept for the names that statements bind.


def state_of(file: str) -> Optional[Tuple[int, int]]:
    """A file's time of change (ns) and size (bytes); None where it is not there."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


PREPARED = Prepared()
