"""Values of a script's expressions, written in names of the document alone."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Tuple, Union

LARGEST = 300  # nodes of an expression: what is longer says nothing that somebody would write down
_SIZE = "shapelens_size"
SPELLED = "shapelens_spelled"  # an attribute of a constant: the name that the script has for it
_GUESSED = "shapelens_guessed"  # an attribute of an expression of which only running the script would tell whether it holds


class Unresolved(Exception):
    """An expression needs something that only running the script would tell."""


@dataclass(frozen=True)
class ScriptValue:
    """node: in the document's namespace, or None where it cannot be said there."""

    node: Optional[ast.expr] = None
    literal: Optional[ast.expr] = None  # what a name that stands in `node` holds
    model: str = ""  # the class that it is an object of
    is_model: bool = False  # a model, of whichever class
    function: str = ""  # of the script's module
    is_evaluated: bool = False  # `model.eval()` was said
    items: Optional[Tuple["ScriptValue", ...]] = None  # of a tuple or list
    element: Optional["ScriptValue"] = None  # what a loop over it gives
    attributes: Optional[Dict[str, "ScriptValue"]] = field(default=None, hash=False)  # of an object whose fields are known
    others: Tuple["ScriptValue", ...] = ()  # what it would be in other branches

    def resolved(self) -> ast.expr:
        """The expression. Raises Unresolved."""
        if self.node is None:
            raise Unresolved
        return self.node

    def known(self) -> Optional[ast.expr]:
        """Returns its value, as far as the text says."""
        return self.literal if self.literal is not None else self.node


UNKNOWN = ScriptValue()


def first_known(values: List[ScriptValue]) -> ScriptValue:
    """One of several: the first that is known, and the rest where they may be models too."""
    values = [value for value in values if value is not UNKNOWN]
    if not values:
        return UNKNOWN
    first = next((value for value in values if value.is_model), next((value for value in values if value.node is not None), values[0]))
    if len({"" if value.node is None else ast.dump(value.node) for value in values}) > 1:
        first = guessed(first)
    others = [value for value in values if value is not first and value.is_model]
    return replace(first, others=tuple(others[:3])) if others else first


def guessed(value: ScriptValue) -> ScriptValue:
    """The value, marked as one of which only running the script would tell whether it holds."""
    if value.node is None:
        return value
    node = copy.copy(value.node)
    node.__dict__[_GUESSED] = True
    return replace(value, node=node)


def is_guessed(node: ast.AST) -> bool:
    """True if some part of an expression was marked so."""
    return any(_GUESSED in part.__dict__ for part in ast.walk(node))


def constant(value: Union[str, int, float, bool, None]) -> ast.expr:
    """A literal."""
    return ast.Constant(value)


def size_of(node: ast.AST) -> int:
    """Returns the number of nodes of a tree. Parts are shared between trees, so that it is kept with each."""
    known = node.__dict__.get(_SIZE)
    if known is None:
        known = node.__dict__[_SIZE] = 1 + sum(map(size_of, ast.iter_child_nodes(node)))
    return int(known)


def checked(node: ast.expr) -> ast.expr:
    """The tree, unless it has grown too large. Raises Unresolved."""
    if size_of(node) > LARGEST:
        raise Unresolved
    return node


def integer(node: Optional[ast.AST], literals: Optional[Dict[str, ast.expr]] = None, depth: int = 0) -> Optional[int]:
    """The whole number that an expression of literals comes to, if it does."""
    if node is None or depth > 20:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return integer((literals or {}).get(node.id), literals, depth + 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = integer(node.operand, literals, depth + 1)
        return None if inner is None else -inner
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and len(node.args) == 1:
        return integer(node.args[0], literals, depth + 1)
    if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTES:
        left, right = integer(node.left, literals, depth + 1), integer(node.right, literals, depth + 1)
        return _COMPUTES[type(node.op)](left, right) if left is not None and right is not None else None
    return None


# What operators make of two whole numbers; None for what is too large, or for nothing.
_COMPUTES: Dict[type, Callable[[int, int], Optional[int]]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right if right else None,
    ast.Mod: lambda left, right: left % right if right else None,
    ast.Pow: lambda left, right: int(left**right) if abs(left) < 10**6 and 0 <= right < 16 else None,
}


def is_literal(node: ast.AST, known: Optional[Dict[str, ast.expr]] = None) -> bool:
    """True if an expression is made of constants, and of names that are known to hold literals."""
    if isinstance(node, ast.Dict):
        return all(part is not None and is_literal(part, known) for part in node.keys + node.values)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(is_literal(part, known) for part in node.elts)
    if isinstance(node, ast.BinOp):
        return is_literal(node.left, known) and is_literal(node.right, known)
    if isinstance(node, ast.UnaryOp):
        return is_literal(node.operand, known)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in (known or {}))


def dotted_node(name: str) -> ast.expr:
    """`a.b.c` as an expression."""
    first, *rest = name.split(".")
    node: ast.expr = ast.Name(first, ast.Load())
    for part in rest:
        node = ast.Attribute(node, part, ast.Load())
    return node


def part_of(whole: Optional[ast.expr], key: Optional[ast.expr], number: Optional[int]) -> Optional[ast.expr]:
    """An element of a literal."""
    if isinstance(whole, ast.Dict) and isinstance(key, ast.Constant):
        for name, part in zip(whole.keys, whole.values):
            if isinstance(name, ast.Constant) and name.value == key.value:
                return part
    if isinstance(whole, (ast.Tuple, ast.List)) and number is not None and -len(whole.elts) <= number < len(whole.elts):
        return whole.elts[number]
    return None


def with_spelling(value: ScriptValue, name: str) -> ScriptValue:
    """A number remembers what the script calls it."""
    if isinstance(value.node, ast.Constant) and type(value.node.value) is int:
        number = constant(value.node.value)
        number.__dict__[SPELLED] = name
        return replace(value, node=number)
    return value
