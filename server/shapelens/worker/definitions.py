"""Only definitions run: imports, classes and functions at once, the rest of a module when a name that it binds is first read.

A module's globals are a `Definitions`, a dict whose `__missing__` runs the statements that bind the missing name. Training loops, downloads
and `main()` calls bind nothing that a model needs, so they never run; neither does a `__main__` block, unless a model needs a name of it.
"""

from __future__ import annotations
import __future__

import ast
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from .standin import StandInModule

DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Calls at module level that are harmless and that later definitions may rely on.
HARMLESS = {
    "logging.getLogger", "getLogger", "TypeVar", "typing.TypeVar", "ParamSpec", "NewType", "namedtuple", "collections.namedtuple",
    "partial", "functools.partial", "dict", "list", "set", "tuple", "frozenset", "OrderedDict", "defaultdict", "Path", "range", "len",
    "int", "float", "str", "sys.path.append", "sys.path.insert", "warnings.filterwarnings", "warnings.simplefilter", "__all__.append",
    "__all__.extend", "__shapelens_value__",
}  # fmt: skip


class Definitions(Dict[str, Any]):
    """The globals of a module of which only definitions run."""

    def __init__(self, module: ModuleType, file: str, on_failure: Callable[[ast.stmt, BaseException], None]) -> None:
        super().__init__(module.__dict__)
        self._module = module
        self._file = file
        self._on_failure = on_failure
        self._waiting: List[ast.stmt] = []  # statements that did not run yet, in order
        self._last_resort: List[ast.stmt] = []  # those of `__main__` blocks
        self._held: Dict[str, Any] = {}  # values that waiting statements change, until they are read
        self._flags = 0

    def run(self, tree: ast.Module) -> None:
        """Run the definitions of a module, and keep the rest waiting."""
        self._flags = future_flags(tree)
        assigned: Set[str] = set()
        for node in tree.body:
            if _is_main_block(node):
                self._last_resort += node.body  # type: ignore[attr-defined]
            elif is_definition(node):
                if isinstance(node, (ast.Assign, ast.AnnAssign)):
                    assigned.update(bound_names(node))
                self._execute(node)
            else:
                self._waiting.append(node)
        self._module.__dict__.update(self)
        for name in {name for node in self._waiting for name in bound_names(node)} & assigned & set(self):
            self._held[name] = self.pop(name)
            self._module.__dict__.pop(name, None)

    def __missing__(self, name: str) -> Any:
        if name in self._held:
            self[name] = self._held.pop(name)
        self._run_those_that_bind(name, self._waiting)
        if name not in self:
            self._run_those_that_bind(name, self._last_resort)
        if name not in self:
            raise KeyError(name)
        value = self._module.__dict__[name] = dict.__getitem__(self, name)
        return value

    def _run_those_that_bind(self, name: str, statements: List[ast.stmt]) -> None:
        for node in [node for node in statements if name in set(bound_names(node))]:
            if node in statements:  # It may have run while an earlier one was run.
                statements.remove(node)
                self._execute(node)

    def _execute(self, node: ast.stmt) -> None:
        try:
            exec(compile(ast.Module([node], []), self._file, "exec", self._flags, dont_inherit=True), self)
        except Exception as error:
            if isinstance(node, (ast.Import, ast.ImportFrom)) and not isinstance(error, SyntaxError):
                self._stand_in(node, error)
            self._on_failure(node, error)

    def _stand_in(self, node: Any, error: BaseException) -> None:
        """Bind the names of an import that failed, so that what does not need them goes on."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                dict.setdefault(self, name, sys.modules.get(name) or StandInModule(alias.name))
            elif alias.name != "*":
                module = sys.modules.get(node.module or "")
                found = getattr(module, alias.name, None) if node.level == 0 and module is not None else None
                dict.setdefault(self, alias.asname or alias.name, found or getattr(StandInModule(node.module or "."), alias.name))


def future_flags(tree: ast.Module) -> int:
    """The compiler flags of a module's `from __future__` imports."""
    names = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__" for alias in node.names}
    return sum({getattr(__future__, name).compiler_flag for name in names if hasattr(__future__, name)})


def is_definition(node: ast.stmt) -> bool:
    """Whether a statement at module level runs at once."""
    if isinstance(node, DEFINES + (ast.Pass, ast.Global)):
        return True
    if isinstance(node, (ast.If, ast.Try)):
        inner = [child for field in ("body", "orelse", "finalbody") for child in getattr(node, field, [])]
        inner += [child for handler in getattr(node, "handlers", []) for child in handler.body]
        return (not isinstance(node, ast.If) or is_plain(node.test)) and all(map(is_definition, inner))
    if isinstance(node, ast.Assign):
        return is_plain(node.value) and all(map(is_plain, node.targets))
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return (node.value is None or is_plain(node.value)) and is_plain(node.target)
    if isinstance(node, ast.Expr):
        # One without a call does nothing, but a name that is being typed would be an unknown one.
        return isinstance(node.value, ast.Call) and is_plain(node.value)
    return type(node).__name__ == "TypeAlias"


def is_plain(node: ast.AST) -> bool:
    """Whether evaluating an expression does no work: nothing in it is called but what is known to be harmless."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, ast.Call) and ast.unparse(part.func) not in HARMLESS:
            return False
        if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        todo.extend(ast.iter_child_nodes(part))
    return True


def _is_main_block(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left] + node.test.comparators
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds, or whose value it changes: `x = …`, `x[…] = …`, `x.append(…)`."""
    todo: List[ast.AST] = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
            continue
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in part.names)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            yield from _owner(part)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and isinstance(part.value.func, ast.Attribute):
            yield from _owner(part.value.func)
        todo.extend(ast.iter_child_nodes(part))


def _owner(node: Optional[ast.AST]) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
