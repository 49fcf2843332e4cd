"""Reads what the `ast` of a function says about its names: which it binds, which targets bind what, which numbers follow from shapes."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List, Set, Tuple

from .sites import NodePlace, place_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PURE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.BinOp)

_SIZE_ATTRIBUTES = {"shape", "ndim"}
_SIZE_METHODS = {"size", "dim", "ndimension", "numel", "nelement"}
_KEEPS_SIZES = {"int", "float", "min", "max", "sum", "abs", "round", "pow", "divmod", "tuple", "list", "sorted", "reversed"}
_LIBRARIES = {"math", "np", "numpy"}  # whose functions of sizes give sizes


def arguments_of(arguments: ast.arguments) -> List[ast.arg]:
    """All parameters of a function, in the order of its text but for `*args` and `**kwargs`, which come last."""
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    return every + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def targets_in(target: ast.expr) -> Iterator[ast.expr]:
    """The names, attributes and subscripts that a target of an assignment binds."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from targets_in(element)
    elif isinstance(target, ast.Starred):
        yield from targets_in(target.value)
    else:
        yield target


def pattern_captures(pattern: ast.AST) -> Iterator[Tuple[str, NodePlace]]:
    """The names that a pattern of a `match` binds, with their places; `**rest` has none in the tree."""
    for node in ast.walk(pattern):
        name = getattr(node, "name", None)
        if isinstance(name, str):  # The name ends its pattern: `[_, other] as name`, `*name`.
            _, _, line, end = place_of(node)
            yield name, (line, end - len(name.encode()), line, end)


def is_pure(node: ast.AST) -> bool:
    """True if an expression can be evaluated once more without doing anything."""
    return all(isinstance(part, PURE + (ast.expr_context, ast.operator, ast.unaryop)) for part in ast.walk(node))


class ScopeSurvey:
    """Holds what a function (or a module) binds: its names, and which expressions are assigned to which targets.

    What is inside the functions, classes and comprehensions in it is theirs.
    """

    def __init__(self, body: List[ast.stmt]) -> None:
        self.names: Set[str] = set()
        self.assignments: List[Tuple[List[ast.expr], Any]] = []
        todo: List[Any] = list(body)
        while todo:  # On the path of every run, so that nothing is asked twice of the many nodes.
            node = todo.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Store:
                    self.names.add(node.id)
                continue
            if kind in _LEAVES:
                continue
            if kind in _NAMED and isinstance(node.name, str):
                self.names.add(node.name)
            if kind in _SCOPES:
                continue
            if kind is ast.Assign:
                self.assignments.append((node.targets, node.value))
            elif kind in _ASSIGN and node.value is not None:
                self.assignments.append(([node.target], node.value))
            for field in node._fields:
                value = getattr(node, field, None)
                if type(value) is list:
                    todo.extend(value)
                elif value is not None:
                    todo.append(value)

    def sizes(self, known: Set[str]) -> Set[str]:
        """`known`, and the names that sizes are assigned to, or numbers computed from them."""
        found = set(known)
        count = -1
        while len(found) != count:  # A name may be used above the line that assigns it, in a loop.
            count = len(found)
            for targets, value in self.assignments:
                for target in targets:
                    found.update(_sized(target, value, found))
        return found


_SCOPES = {*FUNCTIONS, ast.ClassDef, ast.Lambda, *COMPREHENSIONS}
_NAMED = {*FUNCTIONS, ast.ClassDef, ast.ExceptHandler} | {getattr(ast, name) for name in ("MatchAs", "MatchStar") if hasattr(ast, name)}
_ASSIGN = {ast.AnnAssign, ast.AugAssign, ast.NamedExpr}
_LEAVES = {str, int, bool, type(None), ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom, ast.alias}
_LEAVES |= {ast.Load, ast.Store, ast.Del, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.cmpop.__subclasses__()}


def _sized(target: ast.expr, value: ast.expr, sizes: Set[str]) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for part, its_value in zip(target.elts, value.elts):
            yield from _sized(part, its_value, sizes)
    elif is_size(value, sizes):
        for name in targets_in(target):
            if isinstance(name, ast.Name):
                yield name.id


def is_size(node: ast.AST, sizes: Set[str]) -> bool:
    """True if a number that an expression gives follows from a shape: `x.shape[0]`, `x.size(1) // 2`, `h * w` where `h` is one."""
    while isinstance(node, ast.BinOp):  # A loop, as such a chain may be long.
        if is_size(node.right, sizes):
            return True
        node = node.left
    if isinstance(node, ast.Name):
        return node.id in sizes
    if isinstance(node, ast.Attribute):
        return node.attr in _SIZE_ATTRIBUTES
    if isinstance(node, ast.Call):
        return _is_size_call(node, sizes)
    if isinstance(node, (ast.UnaryOp, ast.Subscript, ast.Starred, ast.NamedExpr)):
        return is_size(node.operand if isinstance(node, ast.UnaryOp) else node.value, sizes)
    if isinstance(node, ast.IfExp):
        return is_size(node.body, sizes) or is_size(node.orelse, sizes)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(is_size(part, sizes) for part in node.elts)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        first = node.generators[0]
        names = {name.id for name in targets_in(first.target) if isinstance(name, ast.Name)} if is_size(first.iter, sizes) else set()
        return is_size(node.elt, sizes | names)
    return False


def _is_size_call(node: ast.Call, sizes: Set[str]) -> bool:
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr in _SIZE_METHODS:
            return True
        if not isinstance(function.value, ast.Name) or function.value.id not in _LIBRARIES:
            return False
    elif not isinstance(function, ast.Name):
        return False
    elif function.id == "len":
        # The length of what a module keeps (`len(self.blocks)`) is no size.
        return bool(node.args) and not (isinstance(node.args[0], ast.Attribute) and node.args[0].attr not in _SIZE_ATTRIBUTES)
    elif function.id not in _KEEPS_SIZES:
        return False
    return any(is_size(argument, sizes) for argument in node.args)
