"""The tests of a file as pytest and unittest call them: each with the first of its cases and what its fixtures make, after what sets it up.

Source: https://docs.pytest.org/en/stable/how-to/parametrize.html and https://docs.python.org/3/library/unittest.html
"""

from __future__ import annotations

import ast
import copy
import os
import re
from typing import Dict, List, Optional, Sequence

from .....stated.syntax_trees import dotted
from .module_names import FUNCTIONS, Function, ModuleNames, inherited, method, required
from .parameters import from_decorators
from .statements import EXPECT_FAILURE

DEEPEST = 5  # fixtures that ask for fixtures
_TESTS = re.compile(r"test_.*\.py|.*_test\.py")
_SET_UP = ("setUpClass", "setup_class", "setUp", "setup_method")
_CASE = "__shapelens_case__"


class CalledTests:
    """The calls of the tests in a module. Its tree is changed: what pytest's decorators say is in the calls, and what has to fail is left
    out.
    """

    def __init__(self, tree: ast.Module, file: str) -> None:
        self.calls: List[ast.stmt] = []  # that are to follow the module's statements
        if _TESTS.fullmatch(os.path.basename(file)) is None:
            return
        self._names = ModuleNames(tree)
        self._fixtures: Dict[str, Function] = {
            name: node for name, node in self._names.functions.items() if any(_ends(each, "fixture") for each in node.decorator_list)
        }
        for node in self._names.functions.values():
            if node.name.startswith("test"):
                self._call(ast.Name(node.name, ast.Load()), node)
        for owner in self._names.classes.values():
            if owner.name.startswith("Test") or owner.name.endswith(("Test", "Tests", "TestCase")):
                self._call_methods(owner)
        for function in (each for each in ast.walk(tree) if isinstance(each, FUNCTIONS)):
            _WithoutExpectedFailures().visit(function)
            function.decorator_list = [each for each in function.decorator_list if not (_ends(each, "fixture") or _is_mark(each))]

    def _call_methods(self, owner: ast.ClassDef) -> None:
        is_case = self._is_case(owner)
        for node in owner.body:
            if isinstance(node, FUNCTIONS) and node.name.startswith("test"):
                made = ast.Call(ast.Name(owner.name, ast.Load()), [ast.Constant(node.name)] if is_case else [], [])
                before: List[ast.stmt] = [ast.Assign([ast.Name(_CASE, ast.Store())], made)]
                for name in _SET_UP:
                    set_up = inherited(self._names, owner, name)
                    if set_up is not None and not required(set_up):
                        before.append(ast.Expr(ast.Call(_of_case(name), [], [])))
                self._call(_of_case(node.name), node, owner, before)

    def _is_case(self, owner: ast.ClassDef, depth: int = 0) -> bool:
        """True if a class derives from `unittest.TestCase`, whose objects are made for one method each."""
        bases = [dotted(base) for base in owner.bases]
        parents = [self._names.classes[base] for base in bases if base in self._names.classes and depth < DEEPEST]
        return any(base.endswith("TestCase") for base in bases) or any(self._is_case(parent, depth + 1) for parent in parents)

    def _call(self, callee: ast.expr, function: Function, owner: Optional[ast.ClassDef] = None, before: Sequence[ast.stmt] = ()) -> None:
        """Add the call of a test, unless it is left out or asks for what only pytest has."""
        of_class = owner.decorator_list if owner is not None else []
        is_skipped = any(_ends(each, "skip", "xfail") for each in [*function.decorator_list, *of_class])
        cases = {**from_decorators(of_class), **from_decorators(function.decorator_list)}
        given = self._arguments(function, cases, owner, 0)
        if given is not None and not is_skipped and not isinstance(function, ast.AsyncFunctionDef):
            self.calls += [_at(statement, function) for statement in [*before, ast.Expr(ast.Call(callee, [], given))]]

    def _arguments(
        self, function: Function, cases: Dict[str, ast.expr], owner: Optional[ast.ClassDef], depth: int
    ) -> Optional[List[ast.keyword]]:
        found: List[ast.keyword] = []
        is_bound = owner is not None and "staticmethod" not in map(dotted, function.decorator_list)
        for name in sorted({*required(function, is_bound), *cases}):
            value = copy.deepcopy(cases[name]) if name in cases else self._fixture(name, owner, depth)
            if value is None:
                return None
            found.append(ast.keyword(name, value))
        return found

    def _fixture(self, name: str, owner: Optional[ast.ClassDef], depth: int) -> Optional[ast.expr]:
        """Returns the expression that a fixture makes; None for those of pytest itself and of other files."""
        own = method(owner, name) if owner is not None else None
        function = own if own is not None and any(_ends(each, "fixture") for each in own.decorator_list) else self._fixtures.get(name)
        if function is None or depth > DEEPEST:
            return None
        given = self._arguments(function, {}, owner if function is own else None, depth + 1)
        if given is None:
            return None
        callee = _of_case(name) if function is own else ast.Name(function.name, ast.Load())
        made = ast.Call(callee, [], given)
        yields = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function))
        return ast.Call(ast.Name("next", ast.Load()), [made], []) if yields else made


def _of_case(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(_CASE, ast.Load()), name, ast.Load())


def _at(statement: ast.stmt, place: ast.stmt) -> ast.stmt:
    """A statement that stands in the first line of another one."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.stmt, ast.expr, ast.keyword)):
            node.lineno = node.end_lineno = place.lineno
            node.col_offset, node.end_col_offset = place.col_offset, place.col_offset + 1
    return statement


def _ends(decorator: ast.expr, *names: str) -> bool:
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2] in names


def _is_mark(decorator: ast.expr) -> bool:
    return ".mark." in dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) + "."


class _WithoutExpectedFailures(ast.NodeTransformer):
    """Code that a test expects to fail is no example; and `pytest.raises` ends a test in which nothing fails."""

    def visit_With(self, node: ast.With) -> ast.stmt:
        """A `with` that stays has none inside of it."""
        if any(_ends(item.context_expr, *EXPECT_FAILURE) for item in node.items):
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node
