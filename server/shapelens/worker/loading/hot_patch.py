"""An edit inside of functions, done to what is loaded: the functions get their new code, and no definition is executed again.

What a definition executes (decorators, defaults, annotations, the body of a class) is code of its own, beside that of the functions that it
makes. Where that is the same as before, and the functions that changed can be found, executing the document once more would give what is
there, unless running it has changed that.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple

from ...protocol import Note
from .code_objects import functions_in
from .incremental_parse import SITES
from .module_snapshot import MOST_AT_ONCE, NOT_READ, OPAQUE, PLAIN, ModuleSnapshot, TooMuch, only_imported
from .statements import CODE, DEFINES, compiled, future_flags, global_assignments

Patch = List[Tuple[FunctionType, CodeType]]
Difference = Tuple[Tuple[str, ...], CodeType, CodeType]  # the names that lead to a function, its code before and now

_WITH_CONSTANT = frozenset(dis.hasconst)
# What is executed where it stands, and is gone after that; and, since Python 3.14, what gives the annotations.
_OVER = {"<listcomp>", "<setcomp>", "<dictcomp>", "__annotate__"}


class LoadedDocument:
    """A document as it was loaded.

    fixed: functions that have to stay as they are, as its definitions have called them, say. notes: what loading said, with the text of the
    line that it is about.
    """

    def __init__(
        self, file: str, module: ModuleType, body: List[ast.stmt], fixed: Optional[List[str]], notes: List[Tuple[Note, str]]
    ) -> None:
        self.module = module
        self.notes = notes
        self._file = file
        self._fixed: Set[str] = set()
        self.fix(fixed)
        self._note_code(body)
        self._state: Optional[ModuleSnapshot] = None
        self._replaced: FrozenSet[int] = frozenset()  # the sites of statements that the last patch has replaced
        self._functions: List[Tuple[CodeType, CodeType, range, range]] = []  # in these: their code and sites before, and now

    def _note_code(self, body: List[ast.stmt]) -> None:
        self._statements = [(node, node.__dict__.get(CODE)) for node in body]
        self._imported = NOT_READ | only_imported(self.module, body)

    def fix(self, functions: Optional[List[str]]) -> None:
        """These functions have to stay as they are."""
        self._fixed.update(functions or ())

    def is_of(self, file: str) -> bool:
        """True if this is what is loaded of a file."""
        return file == self._file and sys.modules.get(self.module.__name__) is self.module

    def note_state(self) -> None:
        """Notes the state of what is loaded, which is about to be run."""
        self._state = self._state_now()

    def is_as_it_was(self, *, at_once: bool) -> bool:
        """True if the names of the module hold what they did, once caches that were empty are so again; statements that have run since, as
        something asked for a name, may have added some.

        at_once: the answer is waited for; it is no where it would take as long as to load the document anew.
        """
        if self._state is None or (at_once and self._state.size > MOST_AT_ONCE):
            return False
        for cache in self._state.empty_caches:
            cache.cache_clear()
        before, now = self._state.held, self._state_now()
        if now is None or any(now.held.get(name) != held for name, held in before.items()):
            return False
        return all(isinstance(self.module.__dict__[name], (*PLAIN, *OPAQUE)) for name in now.held.keys() - before.keys())

    def _state_now(self) -> Optional[ModuleSnapshot]:
        try:
            return ModuleSnapshot(self.module, self._imported)
        except TooMuch:
            return None

    def patch_for(self, tree: ast.Module) -> Optional[Patch]:
        """Which functions need which code for the document to be another one, which is rewritten; None where that is not all.

        Raises what compiling raises.
        """
        if len(self._statements) != len(tree.body):
            return None
        patch: Patch = []
        replaced: Set[int] = set()
        functions: List[Tuple[CodeType, CodeType, range, range]] = []
        flags = future_flags(tree)
        for (node, code), new in zip(self._statements, tree.body):
            if code is None:  # It did not run yet.
                if node is not new:
                    return None
                continue
            is_new = node is not new
            replaced.update(node.__dict__.get(SITES, ()) if is_new else ())
            if is_new and (type(node) is not type(new) or not isinstance(new, DEFINES) or _sets_globals(node) or _sets_globals(new)):
                return None
            found: List[Difference] = []
            if not _same_definition(code, compiled(new, self._file, flags), (), found):
                return None
            for path, before, now in found:
                function = _find(self.module, path, before)
                if function is None or (is_new and ".".join(path) in self._fixed):
                    return None
                patch.append((function, now))
                if is_new and SITES in node.__dict__ and SITES in new.__dict__:
                    functions.append((before, now, node.__dict__[SITES], new.__dict__[SITES]))
        self._replaced, self._functions = frozenset(replaced), functions
        return patch

    def replaced(self) -> FrozenSet[int]:
        """The sites of the functions that the last patch has made others."""
        return self._replaced.difference(*(_sites_of_same(*versions) for versions in self._functions))

    def apply(self, patch: Patch, tree: ast.Module) -> None:
        """Make the document that of a tree."""
        for function, code in patch:
            function.__code__ = code
        self._note_code(tree.body)


# --- what differs between two versions of a definition ---


def _sets_globals(node: ast.stmt) -> bool:
    """True if a definition is one of a function that assigns names of the module: these assignments may be run by themselves."""
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and bool(global_assignments(node))


def _same_definition(before: CodeType, now: CodeType, path: Tuple[str, ...], found: List[Difference]) -> bool:
    """True if two pieces of code make the same definitions; the functions that these make go to `found` where their code is another."""
    if before is now:
        return True
    if len(before.co_consts) != len(now.co_consts) or _as_executed(before) != _as_executed(now):
        return False
    for old, new in zip(before.co_consts, now.co_consts):
        if old is new:
            continue
        if not (isinstance(old, CodeType) and isinstance(new, CodeType)):
            if type(old) is not type(new) or repr(old) != repr(new):
                return False
        elif not old.co_flags & inspect.CO_OPTIMIZED:  # The body of a class.
            if not _same_definition(old, new, (*path, old.co_name), found):
                return False
        elif old.co_name in _OVER:
            inner: List[Difference] = []
            if not _same_definition(old, new, path, inner) or inner:
                return False
        elif _as_called(old) != _as_called(new):
            return False
        else:
            found.append(((*path, old.co_name), old, new))
    return True


def _as_executed(code: CodeType) -> Any:
    """Returns what executing code does, but for its constants."""
    return _names_of(code), code.co_code


def _names_of(code: CodeType) -> Any:
    return _as_called(code), code.co_varnames, code.co_names, code.co_cellvars


def _as_called(code: CodeType) -> Any:
    """Returns what a function that is made of code looks like from outside."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_varnames[:count]
    return code.co_name, code.co_flags, code.co_freevars, arguments


def _sites_of_same(before: CodeType, now: CodeType, sites: range, new_sites: range) -> Set[int]:
    """The sites of a function that is the same in two versions of a statement, but for the numbers of its sites; none where it is not."""
    numbers: Dict[int, int] = {}
    if not _is_same(before, now, sites, new_sites, numbers) or len({now - before for before, now in numbers.items()}) > 1:
        return set()
    return set(numbers)


def _is_same(before: CodeType, now: CodeType, sites: range, new_sites: range, numbers: Dict[int, int]) -> bool:
    if _names_of(before) != _names_of(now):
        return False
    (steps, constants), (new_steps, new_constants) = _steps(before), _steps(now)
    if steps != new_steps:
        return False
    for old, new in zip(constants, new_constants):
        if isinstance(old, CodeType) and isinstance(new, CodeType):
            if not _is_same(old, new, sites, new_sites, numbers):
                return False
        elif type(old) is int and type(new) is int and old in sites and new in new_sites:
            numbers[old] = new
        elif type(old) is not type(new) or repr(old) != repr(new):
            return False
    return True


def _steps(code: CodeType) -> Tuple[List[Tuple[int, int]], List[Any]]:
    """The instructions of code without the numbers of its constants, and these in the order in which they are used: a literal that is the
    number of a site, too, is one constant with it.
    """
    steps: List[Tuple[int, int]] = []
    constants: List[Any] = []
    more = 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2]):
        if operation == dis.EXTENDED_ARG:
            more = (more | argument) << 8
            continue
        argument, more = argument | more, 0
        if operation in _WITH_CONSTANT:
            constants.append(code.co_consts[argument])
            argument = 0
        steps.append((operation, argument))
    return steps, constants


def _find(module: ModuleType, path: Tuple[str, ...], code: CodeType) -> Optional[FunctionType]:
    """The function that a definition has made of its code, wherever decorators have put it."""
    names: Any = module.__dict__
    for name in path[:-1]:
        owner = names.get(name)
        if not isinstance(owner, type):
            return None
        names = owner.__dict__
    name = path[-1]
    if len(path) > 1 and name.startswith("__") and not name.endswith("__"):  # As Python calls it.
        name = "_%s%s" % (path[-2].lstrip("_"), name)
    return next((function for function in functions_in(names.get(name)) if function.__code__ is code), None)
