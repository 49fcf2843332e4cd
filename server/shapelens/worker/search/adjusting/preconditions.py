"""Conditions that code puts on its arguments: `assert dim % heads == 0`, or an `if` that raises. Which other values would meet them."""

from __future__ import annotations

import ast
import itertools
import re
from types import CodeType
from typing import Any, Iterator, List, Optional, Tuple

from ..code.sources import index_of
from .expression_edit import EditableArgument
from .failure_site import FailureSite, Level, names_read

NUMBERS = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 24, 25, 27, 28, 30, 32, 36, 40, 48, 49, 56, 60, 64, 72, 80, 84, 90, 96, 100,
    112, 120, 128, 144, 160, 192, 196, 224, 256, 320, 384, 512, 768, 1024,
)  # fmt: skip
MOST = 3  # values for one argument
LEAST_WIDTH = 8  # smaller numbers are counts
_NEW = "__shapelens_new__"

NO_VALUE = object()  # None, where it is what the code wants

Condition = Tuple[ast.expr, bool]  # and what it has to be


def values_that_pass(failure: FailureSite, elsewhere: bool = False) -> Iterator[Tuple[EditableArgument, Any]]:
    """(argument, a value with which the code would go on), closest to the value that it had first.

    The value None stands for one that is not None, NO_VALUE for None, a class for an instance of it. elsewhere: the code is broken there
    (it reads a name that does not exist), and goes on only where it does not come to that place.
    """
    for depth in range(len(failure.levels) - 1, max(len(failure.levels) - 3, -1), -1):
        level = failure.levels[depth]
        for condition, needed in conditions(level, elsewhere):
            yield from _solutions(failure, depth, level, condition, needed)


def unequal_widths(failure: FailureSite) -> Iterator[Tuple[int, int]]:
    """Two widths that the code that raised wants to be equal."""
    for level in failure.levels[:-3:-1]:
        for test, needed in conditions(level):
            for part in test.values if isinstance(test, ast.BoolOp) else [test]:
                if not (isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq if needed else ast.NotEq)):
                    continue
                try:
                    first, second = level.evaluate(part.left), level.evaluate(part.comparators[0])
                except Exception:  # It cannot be asked again.
                    continue
                if type(first) is int and type(second) is int and first != second and min(first, second) >= LEAST_WIDTH:
                    yield first, second


def texts_in_message(failure: FailureSite, message: str) -> Iterator[Tuple[EditableArgument, str]]:
    """(argument, another text for it) where what was raised names a text that the code compares the argument with on its way there."""
    for depth in range(len(failure.levels) - 1, -1, -1):
        level = failure.levels[depth]
        compared: List[Tuple[ast.expr, str]] = []
        for part in ast.walk(level.function):
            if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
                right = part.comparators[0]
                if isinstance(right, ast.Constant) and isinstance(right.value, str) and right.value:
                    compared += [(node, right.value) for node in names_read(part.left)[:1]]
        for node, text in compared:
            if re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(text), message):
                same = ast.dump(node)
                others = [other for known, other in compared if ast.dump(known) == same and other != text]
                yield from ((argument, other) for argument in failure.origins(node, depth) for other in others)


def conditions(level: Level, elsewhere: bool = False) -> List[Condition]:
    """Returns the conditions that keep a run from the statement that raised. elsewhere: whatever kind of statement it is."""
    statement = level.statement
    if isinstance(statement, ast.Assert) and not elsewhere:
        return _parts(statement.test, True)
    if not isinstance(statement, ast.Raise) and not elsewhere:
        return []
    parents = index_of(level.function).parents
    found: List[Condition] = []
    node: ast.AST = statement
    while node in parents and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parent = parents[node]
        if isinstance(parent, ast.If):
            found += _parts(parent.test, node not in parent.body)
        node = parent
        if len(found) > 12:
            break
    return found


def _parts(test: ast.expr, needed: bool) -> List[Condition]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _parts(test.operand, not needed)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if needed else ast.Or):
        return [part for value in test.values for part in _parts(value, needed)] + [(test, needed)]
    return [(test, needed)]


def _solutions(failure: FailureSite, depth: int, level: Level, test: ast.expr, needed: bool) -> Iterator[Tuple[EditableArgument, Any]]:
    try:
        if bool(level.evaluate(test)) is needed:
            return
    except Exception:  # It cannot be asked again.
        return
    seen = set()
    for node in names_read(test):
        text = ast.unparse(node)
        if text in seen:
            continue
        seen.add(text)
        try:
            value = level.evaluate(node)
        except Exception:
            continue
        code = _asking(test, text)
        for argument in failure.origins(node, depth):
            others = (other for other in _others(level, test, node, value) if other is not value)
            fitting = (other for other in others if _holds(level, code, other) is needed)
            yield from ((argument, other) for other in itertools.islice(fitting, MOST))
            yield from ((argument, kind) for kind in _instances(level, test, text, needed))
            if value is None:
                yield argument, None
            elif _asks_for_none(test, needed) and ast.unparse(test.left) == text:  # type: ignore[attr-defined]
                yield argument, NO_VALUE


def _asks_for_none(test: ast.expr, needed: bool) -> bool:
    """True if a condition wants a value to be None."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Is if needed else ast.IsNot):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None


def _instances(level: Level, test: ast.expr, text: str, needed: bool) -> Iterator[type]:
    """The classes that the code wants an instance of."""
    if not (needed and isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"):
        return
    if len(test.args) == 2 and ast.unparse(test.args[0]) == text:
        try:
            wanted = level.evaluate(test.args[1])
        except Exception:
            return
        yield from (kind for kind in (wanted if isinstance(wanted, tuple) else (wanted,)) if isinstance(kind, type))


def _others(level: Level, test: ast.expr, node: ast.expr, value: Any) -> Iterator[Any]:
    yield from _as_sequence(test, value)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from sorted(NUMBERS, key=lambda number: abs(number - value) if value else number)
        yield from (number for number in range(value + 1, value + 40) if number not in NUMBERS)
    elif isinstance(value, (list, tuple)):
        for length in range(1, 9) if value else ():
            yield type(value)((list(value) + [value[-1]] * length)[:length])
        if value and all(isinstance(item, float) for item in value):
            yield from (type(value)([number] * len(value)) for number in (0.1, 0.5, 0.0, 1.0, 2.0))
    elif isinstance(value, float):
        yield from (0.0, 0.1, 0.5, 1.0, 2.0)
    if value is None or isinstance(value, (str, int)):
        for part in ast.walk(test):
            if isinstance(part, ast.Constant) and isinstance(part.value, (str, int)) and not isinstance(part.value, bool):
                yield part.value
            elif isinstance(part, (ast.Name, ast.Attribute)) and part is not node:
                yield from _members(level, part)


def _as_sequence(test: ast.expr, value: Any) -> Iterator[Any]:
    """A number or sequence as the one that a condition asks for: `isinstance(kernel_size, tuple)`."""
    asked = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
    for kind in (tuple, list):
        if kind.__name__ in asked and isinstance(value, (int, list, tuple)) and not isinstance(value, (bool, kind)):
            several = [value, value] if isinstance(value, int) else list(value)
            if len(several) > 2 and several.count(several[0]) == len(several):  # So many were a guess; most often there are two.
                yield kind(several[:2])
            yield kind(several)


def _members(level: Level, node: ast.expr) -> List[Any]:
    """Returns the members of a table in the condition: `mode in MODES`."""
    try:
        table = level.evaluate(node)
    except Exception:
        return []
    if not isinstance(table, (list, tuple, dict, set, frozenset)):
        return []
    return [item for item in list(table)[:6] if isinstance(item, (str, int))]


def _asking(test: ast.expr, text: str) -> CodeType:
    """A condition in which a name stands for one of its parts."""
    changed = _Replaced(text).visit(ast.parse(ast.unparse(test), mode="eval").body)
    return compile(ast.fix_missing_locations(ast.Expression(changed)), "<condition>", "eval")


def _holds(level: Level, code: CodeType, value: Any) -> Optional[bool]:
    """Returns whether a condition holds with another value for that part; None where it cannot be asked."""
    try:
        return bool(eval(code, level.globals, {**level.locals, _NEW: value}))
    except Exception:
        return None


class _Replaced(ast.NodeTransformer):
    def __init__(self, text: str) -> None:
        self.text = text

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.text:
            return ast.copy_location(ast.Name(_NEW, ast.Load()), node)
        return self.generic_visit(node)
