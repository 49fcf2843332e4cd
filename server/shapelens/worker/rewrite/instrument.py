"""Rewrites a module's `ast` so that values report themselves while its code runs.

Each place of interest becomes a `Site` with a number k, and the code there hands its value to a reporter on the way:

    def forward(self, x):                def forward(self, x):
                                             __shapelens_names__(0, x)
        x = self.fc(x)          →            x = __shapelens_scalar__(4, __shapelens_value__(3, …self.fc…(__shapelens_value__(2, x))))
        return x                             return __shapelens_scalar__(6, __shapelens_value__(5, x))

Line numbers and columns stay those of the source, so that tracebacks, breakpoints and `inspect.getsource` are right.
Sites are numbered in the order of evaluation within a statement. No name is added to a scope, nothing is evaluated twice
but plain targets (`self.h`, `out[i]`) after they were assigned to, and nothing in another order than before.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, List, Optional, Set

from ...stated.syntax_trees import dotted, last_name, names_in
from .device_choices import assume_accelerators
from .expressions import ExpressionRewriter
from .package_checks import assume_package
from .scopes import FUNCTIONS, ScopeSurvey, arguments_of, is_pure, is_size, pattern_captures, targets_in
from .sites import (
    ASSUMED,
    BOUND,
    FIRST_TURNS,
    FURTHER_TURNS,
    MODEL_TURNS,
    NAMES,
    NUMBERS,
    READ,
    SCALAR,
    TURN,
    TURNS,
    UNWATCHED,
    VALUE,
    WINDOW,
    NodePlace,
    Site,
    place_of,
)
from .tensor_expressions import computes_tensors

__all__ = [
    "ASSUMED",
    "BOUND",
    "FIRST_TURNS",
    "FURTHER_TURNS",
    "MODEL_TURNS",
    "NAMES",
    "NUMBERS",
    "READ",
    "SCALAR",
    "TURN",
    "TURNS",
    "VALUE",
    "WINDOW",
    "NodePlace",
    "Rewriter",
    "Site",
    "place_of",
    "rewrite",
]

_ASKS_FOR_FILES = {"exists", "lexists", "isfile", "isdir", "is_file", "is_dir"}

# Methods of models whose loops are part of what the model computes.
_OF_TORCH = {"torch", "nn", "F", "functional"}
_AS_A_WHOLE = {"forward", "__init__"}

# Compilers of Python's bytecode, which know nothing of reporters.
COMPILED = {"numba", "nb", "njit", "vectorize", "guvectorize", "triton", "taichi", "ti"}


class Rewriter(ExpressionRewriter):
    """Rewrites every function of a module, and what module level and class bodies assign."""

    # --- scopes ---

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.inside, statement = (self.inside, self.of_model), "class", self.statement
        self.of_model = any(isinstance(child, ast.FunctionDef) and child.name == "forward" for child in node.body)
        self.qualified.append(node.name)
        node.body = [self.visit(child) for child in node.body]
        self.qualified.pop()
        (self.inside, self.of_model), self.statement = outer, statement
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        """Rewrite the body, after a report of the parameters; `self` is none."""
        if any(part in COMPILED for decorator in node.decorator_list for part in _words(decorator)):
            self.sites.append(Site(place_of(node), "entry", UNWATCHED, ".".join([*self.qualified, node.name])))
            return node
        if self.functions:
            self._defaults(node.args)
        arguments = arguments_of(node.args)
        if self.inside == "class" and arguments and arguments[0].arg in ("self", "cls", "mcs"):
            arguments = arguments[1:]
        survey = ScopeSurvey(node.body)
        own = survey.names.union([argument.arg for argument in arguments])
        outer = self.inside, self.names, self.sizes, self.statement, self.guarded
        self.qualified.append(node.name)
        self.inside, self.names, self.statement, self.guarded = "function", self.names | own, None, False
        self.sizes = survey.sizes(self.sizes - own)
        self.functions += 1
        reports = self._report_names(NAMES, [(argument.arg, place_of(argument)) for argument in arguments], "parameter", node)
        if not reports:
            self.sites.append(Site(place_of(node), "entry", "", ".".join(self.qualified)))
            entry = ast.Expr(self._call(NAMES, [ast.Constant(len(self.sites) - 1)], place_of(node)))
            reports = [ast.copy_location(entry, node)]
        body = self._body(node.body)
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body = body[:start] + reports + body[start:]
        self.functions -= 1
        self.qualified.pop()
        self.inside, self.names, self.sizes, self.statement, self.guarded = outer
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if self.functions:
            self._defaults(node.args)
        arguments = arguments_of(node.args)
        own = {argument.arg for argument in arguments}
        outer = self.inside, self.names, self.sizes
        self.qualified.append("<lambda>")
        self.inside, self.names, self.sizes = "function", self.names | own, self.sizes - own
        self.functions += 1
        reports = self._report_names(NAMES, [(argument.arg, place_of(argument)) for argument in arguments], "parameter", node.body)
        node.body = self.visit(node.body)
        if reports:  # A report is true.
            report = reports[0].value  # type: ignore[attr-defined]
            node.body = ast.copy_location(ast.BoolOp(ast.And(), [report, node.body]), node.body)
        self.functions -= 1
        self.qualified.pop()
        self.inside, self.names, self.sizes = outer
        return node

    def _defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]

    def _definition(self, node: Any) -> Any:
        """An assignment at module level or in a class: only a single plain name reports itself."""
        if self.inside == "function" or node.value is None:
            return node
        node.value = self.visit(node.value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name) and _computes(targets[0], node.value):
            name = targets[0].id
            self.statement = place_of(node)
            self.sites.append(
                Site(place_of(targets[0]), "assign", name, ".".join(self.qualified), self.statement, defining=not self.functions)
            )
            node.value = self._call(VALUE, [ast.Constant(len(self.sites) - 1), node.value], place_of(targets[0]))
        return node

    visit_Assign = visit_AnnAssign = _definition

    def visit_For(self, node: ast.For) -> ast.AST:
        """A loop at module level or in a class, whose turns are taken as those of loops in functions are."""
        further = self._further(node)
        self.generic_visit(node)
        if self.inside != "class":
            node.iter = self._first_turns(node, further is not None)
        if further is not None:
            further.orelse, node.orelse = node.orelse, [further]
        return node

    # --- statements ---

    def _body(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        out: List[ast.stmt] = []
        for child in statements:
            self._statement(child, out)
        return out

    def _statement(self, node: ast.stmt, out: List[ast.stmt]) -> None:
        """Append the rewritten statement, and what reports the names that it binds."""
        outer, self.statement = self.statement, place_of(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            reports = self._assignment(node) if node.value is not None else []
            out.extend([node, *reports])
        elif isinstance(node, ast.AugAssign):
            size = is_size(node.value, self.sizes) or is_size(node.target, self.sizes)
            reports = self._report_targets(NAMES, [node.target], node, size)
            if not isinstance(node.target, ast.Name):
                self._inside_target(node.target)
            node.value = self.visit(node.value)
            out.extend([node, *reports])
        elif isinstance(node, ast.Assert):
            # What an assertion says of data, or of a file of another machine, cannot be known: it is taken to hold.
            node.test = self._assumed(_without_files(node.test))
            out.append(node)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                node.value = self._result(node.value, "return")
            out.append(node)
        elif isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            out.append(self.visit(node))
        else:
            out.append(self._compound(node))
        self.statement = outer

    def _assumed(self, test: ast.expr, *, holds: bool = True) -> ast.expr:
        """An asserted expression, rewritten, that is what it has to be (`holds`) where its truth depends on data: `not isnan(x).any()`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._assumed(test.operand, holds=not holds)
            return test
        if isinstance(test, ast.BoolOp):
            test.values = [self._assumed(part, holds=holds) for part in test.values]
            return test
        return self._call(ASSUMED, [self.visit(test), ast.Constant(holds)], place_of(test))

    def _compound(self, node: Any) -> Any:
        further = self._further(node) if isinstance(node, ast.For) else None
        reports = self._reports_of_body(node)
        ends = self._assume(node) if isinstance(node, ast.If) and not node.orelse else False
        outer = self.guarded
        for field, value in ast.iter_fields(node):
            if ends and field == "test":
                continue
            self.guarded = outer or (isinstance(node, ast.Try) and field == "body")
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                body = self._body(value)
                setattr(node, field, reports + body if field == "body" else body)
            elif isinstance(value, list):
                setattr(node, field, [self._part(child) for child in value])
            elif isinstance(value, ast.AST) and field not in ("pattern", "type"):
                setattr(node, field, self._part(value))
        self.guarded = outer
        if isinstance(node, ast.For) and self.functions and self.inside != "class":
            if not self.of_model:
                node.iter = self._first_turns(node, further is not None)
            elif self.qualified[-1] not in _AS_A_WHOLE:
                node.iter = self._call(MODEL_TURNS, [node.iter], place_of(node.iter))
        if further is not None:
            further.orelse, node.orelse = node.orelse, [further]
        if isinstance(node, ast.While):
            turn = self._call(TURN, [ast.Constant(node.lineno)], place_of(node.test))
            node.test = ast.copy_location(ast.BoolOp(ast.And(), [node.test, turn]), node.test)
            ended = self._call(TURN, [ast.Constant(node.lineno), ast.Constant(False)], place_of(node.test))
            node.orelse = [ast.copy_location(ast.Expr(ended), node), *node.orelse]
        return node

    def _reports_of_body(self, node: Any) -> List[ast.stmt]:
        """The reports of what a statement binds before its body."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._report_targets(BOUND, [node.target], node)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self._report_targets(BOUND, [item.optional_vars for item in node.items if item.optional_vars is not None], node)
        if type(node).__name__ == "match_case":
            return self._report_names(NAMES, list(pattern_captures(node.pattern)), "assign", node.pattern)
        return []

    def _assume(self, node: ast.If) -> bool:
        """Have an `if` that refuses something assume what it asks for. Returns whether it ends the program: then its test is rewritten."""
        if isinstance(node.body[-1], ast.Raise):
            if isinstance(node.test, ast.UnaryOp):
                node.test.operand = _without_files(node.test.operand)  # `if not path.exists(): raise …` asserts that it is there.
            if not self.guarded:
                assume_package(node)
        ends = _ends_program(node.body[-1])
        if ends:  # `if not torch.isfinite(loss): sys.exit(1)`
            node.test = self._assumed(node.test, holds=False)
        return ends

    def _further(self, node: ast.For) -> Optional[ast.For]:
        """The turns of a `for` without reports, after those with them: a loop in the `else` of the loop. None where all have them."""
        if self.inside == "class" or self.of_model:
            return None
        if not may_be_plain(node.body):
            return None
        turns = self._call(FURTHER_TURNS, [ast.Constant(node.lineno)], place_of(node.iter))
        return ast.copy_location(ast.For(copy.deepcopy(node.target), turns, copy.deepcopy(node.body), []), node)

    def _first_turns(self, node: ast.For, may_switch: bool) -> ast.expr:
        """Returns what a `for` in a function goes through with reports, in the place of what the text says. may_switch: there are further
        turns.
        """
        return self._call(FIRST_TURNS, [node.iter, ast.Constant(node.lineno if may_switch else 0)], place_of(node.iter))

    def _part(self, node: object) -> object:
        if type(node).__name__ in ("ExceptHandler", "match_case"):
            return self._compound(node)
        return self.visit(node) if isinstance(node, ast.AST) else node

    def _assignment(self, node: Any) -> List[ast.stmt]:
        """The reports that follow an assignment; where its value is the one of a single target, that one is reported in it."""
        targets: List[Any] = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and not isinstance(targets[0], (ast.Tuple, ast.List, ast.Starred)):
            node.value = self._assigned(targets[0], node.value)
            return []
        size = is_size(node.value, self.sizes)
        left: List[ast.expr] = targets
        if len(targets) == 1 and isinstance(node.value, (ast.Tuple, ast.List)) and _side_by_side(targets[0], node.value):
            # `self.a, b = x, y`: what has no name is reported in its value.
            left = [target for target in targets[0].elts if isinstance(target, ast.Name)]
            for index, (target, value) in enumerate(zip(targets[0].elts, node.value.elts)):
                unnamed = not isinstance(target, ast.Name)
                node.value.elts[index] = self._assigned(target, value) if unnamed else self.visit(value)
        else:
            node.value = self.visit(node.value)
        reports = self._report_targets(NAMES, left, node, size)
        for target in targets:
            self._inside_target(target)
        return reports

    def _assigned(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value of a target, with a report; what the target itself reads reports as well."""
        size = is_size(value, self.sizes)
        name = last_name(target) or ast.unparse(target)
        place = place_of(target)
        value = self.visit(value)
        self._inside_target(target)
        return self._wrap(value, place, "assign", name, reporter=SCALAR, size=size)

    def _inside_target(self, target: ast.AST) -> None:
        """Rewrite what a target reads: `self` in `self.x`, both `out` and `i` in `out[i]`."""
        for part in targets_in(target):  # type: ignore[arg-type]
            if isinstance(part, (ast.Attribute, ast.Subscript)):
                part.value = self.visit(part.value)
            if isinstance(part, ast.Subscript):
                part.slice = self._index(part.slice)

    def _report_targets(self, reporter: str, targets: List[ast.expr], statement: ast.stmt, size: bool = False) -> List[ast.stmt]:
        parts = [part for target in targets for part in targets_in(target)]
        names = [(part.id, place_of(part)) for part in parts if isinstance(part, ast.Name)]
        reports = self._report_names(reporter, names, "assign", statement, size)
        for part in parts:
            if not isinstance(part, ast.Name) and is_pure(part):
                reports.append(self._read(part, statement, size))
        return reports

    def _read(self, target: Any, statement: ast.stmt, size: bool) -> ast.stmt:
        """A report that reads an attribute or subscript that was just assigned to."""
        again = copy.deepcopy(target)
        again.ctx = ast.Load()
        name = last_name(target) or ast.unparse(target)
        self.sites.append(Site(place_of(target), "assign", name, ".".join(self.qualified), place_of(statement), size=size))
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        call = self._call(READ, [ast.Constant(len(self.sites) - 1), ast.Lambda(nothing, again)], place_of(statement))
        return ast.copy_location(ast.Expr(call), statement)


def may_be_plain(body: List[ast.stmt]) -> bool:
    """True if the statements of a loop may be there twice, with reports and without: none of its branches computes a tensor."""
    parts = [part for statement in body for part in ast.walk(statement)]
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) for part in parts):
        return False  # Such a statement stands before all others that speak of its names.
    return not any(isinstance(part, ast.Name) and part.id in _OF_TORCH for part in parts) and not any(map(computes_tensors, body))


def _words(decorator: ast.expr) -> Set[str]:
    """The names in what a decorator calls: {"numba", "jit"} of `@numba.jit(parallel=True)`."""
    return set(names_in(decorator.func if isinstance(decorator, ast.Call) else decorator))


def _computes(target: ast.Name, value: ast.expr) -> bool:
    """True if an assignment at module or class level may give a tensor: it calls something, or computes."""
    return not target.id.startswith("__") and any(isinstance(part, (ast.Call, ast.BinOp, ast.Subscript)) for part in ast.walk(value))


def _side_by_side(target: Any, value: Any) -> bool:
    """True if each part of a target is assigned the part of the value that stands in the same place."""
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != len(value.elts):
        return False
    return not any(isinstance(part, (ast.Starred, ast.Tuple, ast.List)) for part in [*target.elts, *value.elts])


def rewrite(tree: ast.Module, sites: List[Site]) -> ast.Module:
    """The tree, rewritten in place, its sites appended to `sites`. Raises RecursionError for code that is nested too deeply."""
    assume_accelerators(tree)
    rewriter = Rewriter(sites, computed_names(tree.body))
    tree.body = [rewriter.visit(node) for node in tree.body]
    return tree


def computed_names(body: List[ast.stmt]) -> Set[str]:
    """The names that statements at module level compute, of which functions may read tensors."""
    assignments = ScopeSurvey(body).assignments
    single = [(targets[0], value) for targets, value in assignments if len(targets) == 1 and isinstance(targets[0], ast.Name)]
    return {target.id for target, value in single if isinstance(target, ast.Name) and _computes(target, value)}


def _ends_program(statement: ast.stmt) -> bool:
    """True if a statement ends the program on purpose."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func) in ("sys.exit", "exit", "quit", "os._exit")


def _without_files(test: ast.expr) -> ast.expr:
    """An expression that code relies on, in which each file that is asked for is there: `os.path.exists(path)` is made, not looked at."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test.values = [_without_files(part) for part in test.values]
    elif isinstance(test, ast.Call) and last_name(test.func) in _ASKS_FOR_FILES:
        return ast.copy_location(ast.BoolOp(ast.Or(), [test, ast.copy_location(ast.Constant(True), test)]), test)
    return test
