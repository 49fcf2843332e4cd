"""Tells from its text how much of a function does not run while a parameter is None."""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Optional, Sequence, Tuple

from ....stated.syntax_trees import last_name

_IS_GIVEN = re.compile(r"(exists?|is_?given|is_?some|is_?not_?none|present|is_tensor|isinstance)\Z", re.IGNORECASE)
_IS_NONE = re.compile(r"(not_?exists?|is_?none)\Z", re.IGNORECASE)
_ASKS = re.compile(r"(%s|%s|default|cast_tuple)" % (_IS_GIVEN.pattern, _IS_NONE.pattern), re.IGNORECASE)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def statements_without(function: Any, name: str) -> int:
    """The statements of a `def` that compute something and do not run while a parameter is None; 0 where the text tells of none."""
    return _missed(function.body, name, {})


def is_passed_on(function: Any, name: str) -> bool:
    """True if a parameter is an argument of a method or of a layer that the function calls, rather than of one that asks for it."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and _ASKS.match(node.func.id)):
            given = [*node.args, *[keyword.value for keyword in node.keywords]]
            if any(isinstance(value, ast.Name) and value.id == name for value in given):
                return True
    return False


def asks_whether_given(test: ast.expr) -> Optional[Tuple[ast.expr, bool]]:
    """Returns the expression that a condition compares with None, with the truth of the condition where that expression is not None; None
    for any other condition."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and other.value is None and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return test.left, isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
    if isinstance(test, ast.Call) and test.args:
        function = last_name(test.func)
        if _IS_GIVEN.match(function) or _IS_NONE.match(function):
            return test.args[0], _IS_GIVEN.match(function) is not None
    return None


def _missed(block: Sequence[ast.stmt], name: str, known: Dict[str, bool]) -> int:
    """known: what names hold that were assigned a condition on the parameter."""
    count = 0
    for index, statement in enumerate(block):
        if isinstance(statement, ast.If):
            truth = _truth(statement.test, name, known)
            if truth is False:
                count += _statements(statement.body) + _missed(statement.orelse, name, known)
            elif truth is True:
                count += _statements(statement.orelse)
                if statement.body and isinstance(statement.body[-1], _ENDS):
                    return count + _statements(block[index + 1 :])
                count += _missed(statement.body, name, known)
            else:
                count += _missed(statement.body, name, known) + _missed(statement.orelse, name, known)
            continue
        for part in ("body", "orelse", "finalbody"):
            count += _missed(getattr(statement, part, []), name, known)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            truth = _truth(statement.value, name, known)
            if truth is not None:
                known[statement.targets[0].id] = truth
        if not hasattr(statement, "body"):
            count += sum(1 for node in ast.walk(statement) if isinstance(node, ast.IfExp) and _computes(_not_taken(node, name, known)))
    return count


def _not_taken(node: ast.IfExp, name: str, known: Dict[str, bool]) -> Optional[ast.expr]:
    truth = _truth(node.test, name, known)
    return None if truth is None else node.orelse if truth else node.body


def _statements(block: Sequence[ast.stmt]) -> int:
    return sum(
        1
        for statement in block
        for node in ast.walk(statement)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)) and _computes(node.value)
    )


def _computes(value: Optional[ast.expr]) -> bool:
    return value is not None and any(isinstance(node, (ast.Call, ast.BinOp, ast.Subscript)) for node in ast.walk(value))


def _truth(test: ast.expr, name: str, known: Dict[str, bool]) -> Optional[bool]:
    """Returns the truth of a condition while the parameter is None; None where that depends on something else."""
    if isinstance(test, ast.Name):
        return False if test.id == name else known.get(test.id)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = _truth(test.operand, name, known)
        return None if truth is None else not truth
    asked = asks_whether_given(test)
    if asked is not None and isinstance(asked[0], ast.Name) and asked[0].id == name:
        return not asked[1]
    if isinstance(test, ast.BoolOp):
        truths = [_truth(value, name, known) for value in test.values]
        decides = isinstance(test.op, ast.Or)  # One true part makes an `or` true, one false part an `and` false.
        if decides in truths:
            return decides
        return None if None in truths else not decides
    return None
