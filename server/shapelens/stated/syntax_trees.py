"""Tells what a piece of code says by its syntax tree: names, numbers and parameters."""

import ast
from typing import Iterator, List, Optional, Tuple, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def program_of(text: Union[str, bytes]) -> ast.Module:
    """The tree of a program; one without statements where it does not parse."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def expression_of(text: Union[str, bytes]) -> Optional[ast.expr]:
    """The tree of an expression; None where it does not parse."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def last_name(node: Optional[ast.AST]) -> str:
    """`c` of `a.b.c`, `a` of `a`; "" of any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def root_name(node: ast.AST) -> str:
    """`self` of `self.mask[:T, :T]`: what attributes and items are taken of; "" where that is no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: Optional[ast.AST]) -> str:
    """`a.b.c` as text; "" for any other expression."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return inner and "%s.%s" % (inner, node.attr)
    return node.id if isinstance(node, ast.Name) else ""


def names_in(node: ast.AST) -> List[str]:
    """All names and attributes that stand in a piece of code."""
    return [last_name(part) for part in ast.walk(node) if isinstance(part, (ast.Attribute, ast.Name))]


def keyword(call: ast.Call, name: str) -> Optional[ast.expr]:
    """Returns what a call gives by a keyword."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def integer(node: Optional[ast.AST]) -> Optional[int]:
    """The whole number that an expression writes down, `-1` too; None where it is none."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = integer(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def is_none(node: Optional[ast.AST]) -> bool:
    """True if an expression is `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def is_docstring(statement: ast.stmt) -> bool:
    """True if a statement is nothing but a string."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def positional(function: Function) -> List[ast.arg]:
    """The parameters that may be given by their place."""
    return function.args.posonlyargs + function.args.args


def all_parameters(function: Function) -> List[ast.arg]:
    """The parameters that have a name to give them by, and those before `/`; not `*args` and `**kwargs`."""
    return positional(function) + function.args.kwonlyargs


def with_defaults(function: Function) -> Iterator[Tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, each with it, in the order of the text."""
    defaults, by_place = function.args.defaults, positional(function)
    yield from zip(by_place[len(by_place) - len(defaults) :], defaults)
    yield from ((each, default) for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults) if default is not None)


def unpacked_parts(statement: ast.Assign) -> Optional[int]:
    """The number of tensors that `a, b = x.chunk(2)` or `a, b = torch.split(x, [8, 8])` takes apart; None for any other assignment."""
    target, value = statement.targets[0], statement.value
    if not (isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    if any(isinstance(each, ast.Starred) for each in target.elts):
        return None
    arguments = value.args[1:] if isinstance(value.func.value, ast.Name) and value.func.value.id == "torch" else value.args
    name = value.func.attr
    asked = arguments[0] if arguments else keyword(value, "chunks" if name == "chunk" else "split_size_or_sections")
    if name == "chunk":
        return integer(asked)
    return len(asked.elts) if name == "split" and isinstance(asked, (ast.List, ast.Tuple)) else None
