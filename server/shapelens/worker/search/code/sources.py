"""The syntax trees of functions and classes that are loaded: what a constructor does with its parameters is read there."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from types import CodeType
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ....stated.syntax_trees import dotted
from ...loading.importer import parse
from ...locations import TORCH

LARGEST = 1 << 19  # characters of a file that is worth parsing to know what a function of it does
_KEPT = "shapelens_index"  # an attribute of function nodes


class Index:
    """A function's nodes, by what leads to them."""

    def __init__(self, node: ast.AST) -> None:
        self.parents: Dict[ast.AST, ast.AST] = {}
        self.loads: Dict[str, List[ast.expr]] = {}  # the places where a name, or an attribute of `self` ("self.x"), is read
        self.stored: Dict[str, List[ast.expr]] = {}
        self._replaced: Dict[str, int] = {}  # the lines after which a name holds a part of what a call gave
        for statement in getattr(node, "body", ()) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and isinstance(statement.targets[0], ast.Tuple):
                for target in statement.targets[0].elts:
                    self._replaced.setdefault(dotted(target), statement.end_lineno or statement.lineno)
        for part in ast.walk(node):
            for child in ast.iter_child_nodes(part):
                self.parents[child] = part
            name = dotted(part)
            if name and name.count(".") <= 1:
                read = isinstance(part.ctx, ast.Load)  # type: ignore[attr-defined]
                (self.loads if read else self.stored).setdefault(name, []).append(part)  # type: ignore[arg-type]

    def loads_of_first(self, name: str) -> List[ast.expr]:
        """The places where a name is read before it holds something else in any case: `x, mask = self.prepare(x, mask)`."""
        last = self._replaced.get(name)
        return [node for node in self.loads.get(name, ()) if last is None or node.lineno <= last]


def is_table(node: ast.AST) -> bool:
    """True if what is subscripted is a constant of the module by its name: `ACT2FN`, `NORMS`."""
    name = dotted(node)
    return name.isupper() and len(name) > 1


def index_of(node: ast.AST) -> Index:
    """The index of a function; it is made once."""
    found: Optional[Index] = node.__dict__.get(_KEPT)
    if found is None:
        found = node.__dict__[_KEPT] = Index(node)
    return found


def is_torch(item: Any) -> bool:
    """True if a class or function is torch's own."""
    return str(getattr(item, "__module__", "")).partition(".")[0] == "torch"


def function_of(item: Any) -> Any:
    """The plain function behind decorators, bound methods and partials; None where there is none."""
    while isinstance(item, functools.partial):
        item = item.func
    try:
        item = inspect.unwrap(getattr(item, "__func__", item))
    except ValueError:
        return None
    return item if hasattr(item, "__code__") else None


def function_node(item: Any) -> Optional[Any]:
    """The `def` of a function; None for torch's own, and for what has no text."""
    function = function_of(item)
    return None if function is None else function_at(function.__code__, function.__globals__)


def function_at(code: CodeType, names: Dict[str, Any]) -> Optional[Any]:
    """The `def` that code was compiled from, in the module whose globals are `names`; None as for function_node."""
    file = code.co_filename
    if file.startswith((TORCH, "<")):
        return None
    lines = linecache.getlines(file, names)
    known = _known.get(file)
    if known is None or known[0] is not lines:
        known = _known[file] = (lines, _definitions("".join(lines)))
    return known[1].get((code.co_name, code.co_firstlineno))


_known: Dict[str, Tuple[List[str], Mapping[Tuple[str, int], Any]]] = {}  # by file; a text that was changed has other lines


def _definitions(text: str) -> Mapping[Tuple[str, int], Any]:
    """The functions of a text by their names and first lines."""
    if len(text) > LARGEST:
        return {}
    try:
        tree = parse(text, "<text>")
    except SyntaxError:
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
            found[node.name, first] = node
    return found


@functools.lru_cache(maxsize=256)
def methods(cls: type) -> List[Tuple[Any, Any]]:
    """(function, its `def`) of a class's own and inherited methods, without those that are overridden and torch's."""
    found = []
    seen = set()
    for base in cls.__mro__:
        if base is object or is_torch(base):
            continue
        for name, value in list(vars(base).items()):
            function = function_of(value) if callable(value) or hasattr(value, "__func__") else None
            if function is None or name in seen:
                continue
            seen.add(name)
            node = function_node(function)
            if node is not None:
                found.append((function, node))
    return found


def initialiser(cls: type, after: Optional[type] = None) -> Optional[Tuple[type, Any]]:
    """(the class that has it, the function) of the `__init__` that building `cls` calls, or that `super()` in `after` means."""
    order = cls.__mro__
    for base in order[order.index(after) + 1 :] if after in order else order:
        if base is not object and "__init__" in vars(base):
            return base, vars(base)["__init__"]
    return None


def look_up(node: ast.AST, function: Any) -> Any:
    """Returns the object that a name, or an attribute of a module or class, stands for in a function's text; None where only running it
    tells.

    Statements of the file that did not run yet are not run for it.
    """
    if isinstance(node, ast.Name):
        names = getattr(function, "__globals__", {})
        if node.id in names:
            return names[node.id]
        behind = names.get("__builtins__", {})
        return behind.get(node.id) if isinstance(behind, dict) else getattr(behind, node.id, None)
    if isinstance(node, ast.Attribute):
        owner = look_up(node.value, function)
        if inspect.ismodule(owner) or isinstance(owner, type):
            return getattr(owner, node.attr, None)
    return None
