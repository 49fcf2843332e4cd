"""Rewrites one function as one that goes on: each of its statements which fails ends alone.

    x = self.drop(x)        →            try:
                                             x = self.drop(x)
                                         except Exception as __shapelens_error__:
                                             __shapelens_statement_failed__(__shapelens_error__)
                                             x = __shapelens_instead__(('x', 'self'))

Its values report themselves already. What a `try` of the user's guards may fail, as its handlers are there for that. Of a constructor only
assignments go on, conditions, and what is half typed: what it calls makes the object what it is.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, Dict, List, Optional, Union

from .resilient import ERROR, guard
from .scopes import targets_in

STATEMENT_FAILED = "__shapelens_statement_failed__"  # (error): raises it where it is to be raised
INSTEAD = "__shapelens_instead__"  # (names of which the first tensor has as many dims) -> a value for a target

_ASSIGNS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_SIMPLE = (*_ASSIGNS, ast.Expr, ast.Return, ast.Assert, ast.Delete)
_OURS = "__shapelens_"  # begins the names of what reports values
_OF_EACH_ELEMENT = (
    *("relu", "gelu", "silu", "elu", "leaky_relu", "sigmoid", "tanh"),
    *("softmax", "log_softmax", "dropout", "contiguous", "float"),
)
_OTHER_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_BLOCKS = ("body", "orelse", "finalbody")

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def guarded_function(statement: ast.stmt, name: str, first: int, moved: int) -> Optional[ast.stmt]:
    """A copy of a rewritten statement in which the function of that name and first line is guarded, and the only one of its class.

    moved: by how many lines the statement was moved since its inner nodes got theirs. None where that function is not in it.
    """
    path = _path_to(statement, name, first - moved, first)
    if path is None:
        return None
    function = ast.fix_missing_locations(_with_guards(copy.deepcopy(path[-1])))
    for node in ast.iter_child_nodes(function) if len(path) == 1 else (function,):
        ast.increment_lineno(node, moved)
    inner: ast.stmt = function
    for owner in reversed(path[:-1]):
        shell = copy.copy(owner)
        shell.body, shell.decorator_list, shell.bases, shell.keywords = [inner], [], [], []
        inner = shell
    return ast.fix_missing_locations(inner)


def _path_to(node: Any, name: str, first: int, first_of_outermost: int) -> Optional[List[Any]]:
    """The classes that lead to a function, and the function itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
        return [node] if node.name == name and (min(lines) == first or node.lineno == first_of_outermost) else None
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        path = _path_to(inner, name, first, first)
        if path is not None:
            return [node, *path]
    return None


def _with_guards(function: Function) -> Function:
    """The function, each of its statements guarded, in place."""
    kinds = _ASSIGNS if function.name == "__init__" else _SIMPLE
    function.body = [_guarded(statement, kinds) for statement in function.body]
    return function


def _guarded(node: Any, kinds: Any) -> Any:
    bound = _bound(node)
    if isinstance(node, kinds) or _is_half_typed(node):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node  # A docstring.
        return _guard(node, bound)
    if not isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)):
        return node  # Definitions, imports, what ends a block on purpose, and what a `try` guards.
    for name in _BLOCKS:
        statements = getattr(node, name, None)
        if statements:
            setattr(node, name, [_guarded(statement, kinds) for statement in statements])
    return node if kinds is _ASSIGNS and not isinstance(node, ast.If) else _guard(node, bound)


def _is_half_typed(node: ast.AST) -> bool:
    """True if a statement does nothing but name something: `super().__in`, of a call that somebody is typing."""
    return isinstance(node, ast.Expr) and isinstance(_plain(node.value), (ast.Name, ast.Attribute))


def _guard(node: ast.stmt, bound: Dict[str, ast.expr]) -> ast.stmt:
    """A `try` in the place of a statement; its handler gives what the statement would bind."""
    error = ast.Name(ERROR, ast.Load())
    handler: List[ast.stmt] = [ast.Expr(ast.Call(ast.Name(STATEMENT_FAILED, ast.Load()), [error], []))]
    value = getattr(node, "value", None)
    read = list(dict.fromkeys(name for name in _read(value) if not name.startswith(_OURS))) if isinstance(value, ast.AST) else []
    is_one = isinstance(node, _ASSIGNS) and len(bound) == 1
    for name in sorted(bound):
        keeps = is_one and (name in read or isinstance(node, ast.AugAssign) or _keeps_dims(value))
        order = [name, *[each for each in read if each != name]] if keeps else []
        names = ast.Tuple([ast.Constant(each) for each in order], ast.Load())
        handler.append(ast.Assign([bound[name]], ast.Call(ast.Name(INSTEAD, ast.Load()), [names], [])))
    if isinstance(node, ast.Return):
        handler.append(ast.Return(ast.Call(ast.Name(INSTEAD, ast.Load()), [ast.Tuple([], ast.Load())], [])))
    return guard(node, [node], handler, "Exception")


def _read(value: Any) -> List[str]:
    return [part.id for part in ast.walk(value) if isinstance(part, ast.Name)]


def _plain(node: Any) -> Any:
    """An expression without what reports its value."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(_OURS) and node.args:
        node = node.args[-1]
    return node


def _keeps_dims(value: Any) -> bool:
    """True if a value has as many dims as the tensor that it is made from, as a rule: `self.part(x)`, where the part is not there yet, what
    is added to that, and what works on each element of it."""
    value = _plain(value)
    if isinstance(value, ast.BinOp) and not isinstance(value.op, ast.MatMult):
        return any(isinstance(_plain(side), ast.Name) or _keeps_dims(side) for side in (value.left, value.right))
    function = _plain(value.func) if isinstance(value, ast.Call) else None
    if not isinstance(function, ast.Attribute):
        return False
    owner = _plain(function.value)
    if isinstance(owner, ast.Name) and owner.id == "self":
        return True
    return function.attr in _OF_EACH_ELEMENT and any(map(_keeps_dims, [owner, *value.args[:1]]))


def _bound(node: ast.AST) -> Dict[str, ast.expr]:
    """Returns what a statement, or those within it, would bind: names and attributes of names, each as a target to assign to."""
    found: Dict[str, ast.expr] = {}
    targets: List[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for target in targets:
        for inner in targets_in(target):
            owner = _plain(inner.value) if isinstance(inner, ast.Attribute) else None
            if isinstance(inner, ast.Name):
                found[inner.id] = ast.Name(inner.id, ast.Store())
            elif isinstance(inner, ast.Attribute) and isinstance(owner, ast.Name):
                found["%s.%s" % (owner.id, inner.attr)] = ast.Attribute(ast.Name(owner.id, ast.Load()), inner.attr, ast.Store())
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _OTHER_SCOPES):
            found.update(_bound(child))
    return found
