"""Only definitions run: imports, classes and functions at once, the rest of a module when a name that it binds is first read.

Behind a module's globals stand builtins of its own, whose `__missing__` runs the statements that bind the missing name. Downloads and
`main()` calls bind nothing that a model needs, so they never run; neither does a `__main__` block, unless a model needs a name of it. Of a
training loop, what a name needs that it binds is run once: `x, y = get_batch()`, and not the model.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Set, Tuple, Union

from ...notebooks import UNKNOWN
from ...timeouts import TIMEOUTS
from ..meta import op_cache
from ..sandbox.draws import may_draw, of_statement
from ..sandbox.exceptions import ProcessEnded
from ..sandbox.limits import TooLong, half_of_what_is_left, within
from ..sandbox.originals import time
from ..trace.definition_time import executing
from ..trace.mutable_defaults import mutable_defaults
from ..unknown import stand_ins, unknown_sizes
from ..unknown.stand_ins import StandInModule, absent, cause_of, unknown_value
from . import load_progress
from .statements import (
    DEFINES,
    binds_by_computed_name,
    bound_names,
    compiled,
    computes,
    filled_by,
    first_turn,
    future_flags,
    global_assignments,
    imports,
    is_main_block,
    read_names,
    runs_at_once,
    stored_into,
    trains,
    with_parts,
)

KEPT = "__shapelens_definitions__"  # in a module's globals: its `Definitions`

LONGEST = 2.0  # seconds that a statement of a module may take that is no definition
SHORTEST = 0.1  # seconds: where less is left, it is whatever wants the statement that has no time any more

left_out: Dict[Tuple[str, int], str] = {}  # statements that are not executed, by file and line: what is said of them


class LeftOutError(Exception):
    """A statement was not executed, or not to its end: the code has raised nothing."""


class _Builtins(Dict[str, Any]):
    """Holds what stands behind a module's globals: Python's builtins, then the statements that did not run."""

    def __init__(self, definitions: "Definitions") -> None:
        super().__init__(builtins.__dict__)
        self._definitions = definitions

    def __missing__(self, name: str) -> Any:
        try:
            return self._definitions[name]
        except KeyError:
            return builtins.__dict__[name]  # User code may have put it there since.


class Definitions:
    """The globals of a module of which only definitions run: its own `__dict__`, which others read and set as well."""

    def __init__(self, module: ModuleType, file: str, all_of_it: bool, on_failure: Callable[[ast.stmt, BaseException], None]) -> None:
        self._names = module.__dict__
        self._file = file
        self._all_of_it = all_of_it  # but for the `__main__` block
        self._on_failure = on_failure
        self._waiting: List[ast.stmt] = []  # statements that did not run yet, in order
        self._last_resort: List[ast.stmt] = []  # those of `__main__` blocks, then what functions assign to globals
        self._branches: List[ast.stmt] = []  # assignments and imports in branches: where none of them was taken, the first one is
        self._held: Dict[str, Any] = {}  # values that waiting statements change, until they are read
        self._assigned: Set[str] = set()
        self._starred: List[str] = []  # modules of which all names were imported
        self._lacking = ""  # a module of which all names would have been imported, were it there
        self._builtins = _Builtins(self)
        self._flags = 0
        self._body: List[ast.stmt] = []
        self._taken: Set[Tuple[ast.stmt, str]] = set()  # loops that train, and what their first turns were asked for
        self._running: List[ast.stmt] = []  # statements that run inside of each other, as one reads what another binds
        self._early: Set[str] = set()  # names that were read while a statement ran that comes before some which bind them
        self._longest, self._longest_definition = LONGEST, TIMEOUTS.definition
        self.holds_unknown = False  # whether one of the names may hold an unknown size, or what stands in for one
        self._names["__builtins__"] = self._builtins

    def run(self, tree: ast.Module) -> None:
        """Run the definitions of a module, and keep the rest waiting."""
        self._flags = future_flags(tree)
        self._body = tree.body
        for node in tree.body:
            if is_main_block(node):
                self._last_resort += node.body  # type: ignore[attr-defined]
            elif self._all_of_it or (runs_at_once(node) and not self._reads_what_changes(node)):
                self._execute(node)
            else:
                self._waiting.append(node)
            if isinstance(node, (ast.If, ast.Try)) and not is_main_block(node):
                self._branches += [part for part in ast.walk(node) if isinstance(part, (ast.Assign, ast.Import, ast.ImportFrom))]
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._last_resort += global_assignments(node)
        for name in {name for node in self._waiting for name in bound_names(node)}:
            self._builtins.pop(name, None)  # It would hide the module's own: `input = torch.randn(…)`.
            if name in self._assigned and name in self._names:
                self._held[name] = self._names.pop(name)

    def _reads_what_changes(self, node: ast.stmt) -> bool:
        """True if a statement reads a name that has another value once those that wait have run: `best = None` above a loop."""
        if isinstance(node, DEFINES) or not self._waiting:
            return False
        read = self._assigned.intersection(read_names(node))
        return any(not read.isdisjoint(bound_names(waiting)) for waiting in self._waiting) if read else False

    def __getitem__(self, name: str) -> Any:
        """The value of a name. Raises KeyError where no statement of the module binds it."""
        if name in self._names:
            return self._names[name]
        if name == UNKNOWN:
            return unknown_value()
        if name in self._held:
            self._names[name] = self._held.pop(name)
        self._run_earlier(name)
        for statements in (self._waiting, self._last_resort):
            # What is known may be changed by those that wait, unless it is wanted as it was before them.
            if name not in self._names or (statements is self._waiting and name not in self._early):
                names = with_parts(name, statements)
                self._run_those(statements, lambda node: not names.isdisjoint(bound_names(node)), name)  # noqa: B023
        if name not in self._names:
            self._take_branch(name)
        if name not in self._names and not name.startswith("_"):
            self._take_starred(name)
        if name not in self._names and not name.startswith("__"):
            self._run_those(self._waiting, binds_by_computed_name)
        return self._names[name]

    def of_branch(self, name: str) -> Any:
        """The value of a name that is bound in branches alone, none of which was taken. Raises KeyError for another name."""
        if name not in self._names:
            self._take_branch(name)
        return self._names[name] if any(name in bound_names(node) for node in self._branches) else builtins.__dict__[name]

    def _take_branch(self, name: str) -> None:
        """Bind a name as the first branch would. Of a package that is not there nothing is said: the code asks for it by itself."""
        node = next((node for node in self._branches if name in bound_names(node)), None)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not all(map(_is_installed, _packages(node))):
            self._stand_in(node)
        elif node is not None:
            self._run_those([node], lambda node: True)

    def _run_earlier(self, name: str) -> None:
        """Where a statement reads a name: run those above it that bind the name. Those below it wait until the name is read again."""
        if not self._running:
            return
        line = self._running[-1].lineno
        names = with_parts(name, self._waiting)
        binding = [node for node in self._waiting if not names.isdisjoint(bound_names(node))]
        if any(node.lineno > line for node in binding):
            self._run_those(self._waiting, lambda node: node.lineno < line and node in binding, name)
            if name in self._names:
                self._early.add(name)

    def _run_those(self, statements: List[ast.stmt], wanted: Callable[[ast.stmt], bool], name: str = "") -> None:
        """name: for which they run, where that is known."""
        for node in [node for node in statements if wanted(node)]:
            if name and isinstance(node, (ast.For, ast.While)) and trains(node):
                self._take_turn(node, name)
            elif node in statements:  # It may have run while an earlier one was run.
                place = statements.index(node)
                del statements[place]
                try:
                    self._execute(node)
                except TooLong:  # It may have the time when it is asked for again.
                    statements.insert(place, node)
                    raise

    def _take_turn(self, loop: Union[ast.For, ast.While], name: str) -> None:
        """Run what a loop that trains needs for a name, once."""
        if (loop, name) in self._taken:
            return
        self._taken.add((loop, name))
        try:
            self._execute(first_turn(loop, {name}))
        except TooLong:
            self._taken.discard((loop, name))
            raise

    def _take_starred(self, name: str) -> None:
        """`from x import *` brought the names that x had then; one that x finds on demand is asked for now."""
        for module in map(sys.modules.get, self._starred):
            behind = getattr(module, "__dict__", {})
            if KEPT in behind and "__all__" not in behind and name not in self._names:
                try:
                    self._names[name] = behind[KEPT][name]
                except KeyError:
                    pass

    def _execute(self, node: ast.stmt) -> None:
        why = left_out.get((self._file, node.lineno))
        if why is not None:
            self._failed(node, LeftOutError(why))
            return
        start = time.perf_counter()
        is_definition = isinstance(node, DEFINES)
        longest = half_of_what_is_left(self._longest_definition if is_definition else self._longest)
        unknown_before = self._begin(node)
        try:
            self._run(node, longest)
        except TooLong as stop:
            if longest < SHORTEST or time.perf_counter() - start < longest:
                raise  # Somebody else's time is up.
            self._leave_out(node, stop, longest)
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and not (self._all_of_it or is_definition or isinstance(error, ProcessEnded)):
                raise
            self._failed(node, error)
        finally:
            self._end(unknown_before)

    def _begin(self, node: ast.stmt) -> Tuple[bool, int]:
        """Note that a statement is executed. Returns what was known of unknown sizes before."""
        if load_progress.shared.progress is not None:
            load_progress.shared.progress.begin(executing.depth, self._file, node.lineno, node.end_lineno or node.lineno, imports(node))
        if not executing.depth:
            executing.note_modules()
        executing.depth += 1
        executing.count += 1
        self._running.append(node)
        return unknown_sizes.start_definition()

    def _run(self, node: ast.stmt, longest: float) -> None:
        """Execute a statement, in so many seconds at most, and note what it bound."""
        limit = within(longest) if longest >= SHORTEST and computes(node) else contextlib.nullcontext()
        used = len(stand_ins.called)
        code = compiled(node, self._file, self._flags)
        draws = of_statement(self._file, bound_names(node)) if may_draw(node, code) else contextlib.nullcontext()
        with draws, limit, mutable_defaults.executing(), op_cache.assuming_gradients():  # It may train what a name is bound to.
            exec(code, self._names)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            mutable_defaults.note(self._names.get(node.name))
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            self._assigned.update(bound_names(node))
            if len(stand_ins.called) > used:
                self._leave_open(node)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            self._starred.append(importlib.util.resolve_name("." * node.level + (node.module or ""), self._names.get("__package__")))
        elif isinstance(node, ast.For) and len(stand_ins.called) > used:
            self._not_made(node, "missing-file")  # It may have gone through what is not known, and taken no turn.

    def _leave_out(self, node: ast.stmt, stop: TooLong, longest: float) -> None:
        """A statement did not come to its end in its time: what it would define is missing, what it works out is not known."""
        if isinstance(node, DEFINES):
            self._longest_definition = TIMEOUTS.definition / 4  # One such statement is seldom the only one.
            message = "this did not come to an end within %g s while the file was loaded" % longest
            self._failed(node, LeftOutError(message).with_traceback(stop.__traceback__))
            return
        self._longest = LONGEST / 4
        self._on_failure(node, stop)
        for name in bound_names(node):  # What it works out is of the data: not known, as what is in a file is not.
            self._names[name] = absent(name, "missing-file")

    def _end(self, unknown_before: Tuple[bool, int]) -> None:
        """Note that a statement is executed no more."""
        if unknown_sizes.end_definition(unknown_before):
            self.holds_unknown = True
        executing.depth -= 1
        if load_progress.shared.progress is not None:
            load_progress.shared.progress.go_on(executing.depth)
        self._running.pop()
        if not executing.depth:
            executing.restore_modules()
        if not self._running:
            self._held.update((name, self._names.pop(name)) for name in self._early if name in self._names)
            self._early.clear()

    def _comes_too_early(self, error: BaseException) -> bool:
        """True if a name is missing that the module binds: statements that bind one name several times do not run in their order."""
        name = getattr(error, "name", None)
        return isinstance(error, NameError) and any(name in bound_names(node) for node in self._body)

    def _lacks_what_a_loop_gathers(self, failed: ast.stmt, error: BaseException) -> bool:
        """True if a statement reads what a loop above it fills: one that trains does not run for that, and others may be left early."""
        loops = [node for node in self._body if node.lineno < failed.lineno and trains(node)]
        filled = {name for loop in loops for part in ast.walk(loop) for name in filled_by(part)}
        if isinstance(error, KeyError):
            others = [node for node in self._body if node.lineno < failed.lineno and isinstance(node, (ast.For, ast.While))]
            filled |= {name for loop in others for part in ast.walk(loop) for name in stored_into(part)}
        return any(isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in filled for part in ast.walk(failed))

    def _failed(self, node: ast.stmt, error: BaseException) -> None:
        lacking = self._module_not_imported(set()) if type(error) is NameError else ""
        if lacking:
            said = "%s, which %s may have that could not be imported" % (error, lacking)
            error = ImportError(said).with_traceback(error.__traceback__)
        cause = cause_of(error)
        if not self._comes_too_early(error) and not self._lacks_what_a_loop_gathers(node, error):
            self._on_failure(node, error)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not isinstance(error, SyntaxError):
                self._stand_in(node)
        else:
            self._not_made(node, cause[0] if cause is not None else "definition")

    def _module_not_imported(self, seen: Set[int]) -> str:
        """The module of a `from … import *` that could not be imported, here or in a module that all is imported from; "" for none."""
        seen.add(id(self))
        found = self._lacking
        for name in self._starred:
            module = sys.modules.get(name)
            behind = getattr(module, KEPT, None)
            if found or isinstance(module, StandInModule):
                return found or name
            if isinstance(behind, Definitions) and id(behind) not in seen:
                found = behind._module_not_imported(seen)
        return found

    def _not_made(self, node: ast.stmt, code: str) -> None:
        """Bind the names that a statement has not made: what depends on them has not been made wrong by its own text.

        A `best = None` above a loop is no value either that anything is made of.
        """
        for name in bound_names(node):
            if self._names.get(name) is None:
                self._names[name] = absent(name, code)

    def _leave_open(self, node: ast.stmt) -> None:
        """Bind the names that a statement has made nothing for, with no items: it may have gone through what is not known."""
        for name in bound_names(node):
            made = self._names.get(name)
            if type(made) in (list, tuple, dict, set) and not made:
                self._names[name] = absent(name, "missing-file")

    def _stand_in(self, node: Any) -> None:
        """Bind the names of an import that failed, so that what does not need them goes on."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                self._names.setdefault(name, sys.modules.get(name) or StandInModule(alias.name))
            elif alias.name == "*":
                self._lacking = self._lacking or node.module or "."
            else:
                module = sys.modules.get(node.module or "")
                found = getattr(module, alias.name, None) if node.level == 0 and module is not None else None
                self._names.setdefault(alias.asname or alias.name, found or getattr(StandInModule(node.module or "."), alias.name))


def _packages(node: Union[ast.Import, ast.ImportFrom]) -> List[str]:
    """The packages that an import asks for; [] for the module's own."""
    named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""] if not node.level else []
    return [name.partition(".")[0] for name in named]


def _is_installed(package: str) -> bool:
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
