"""Rewrites a module's `ast` so that values report themselves while its functions run.

Each place of interest becomes a `Site` with a number k, and the code there hands its value to a reporter on the way:

    def forward(self, x):                def forward(self, x):
                                             __shapelens_names__(0, x)
        x = self.fc(x)          →            x = __shapelens_value__(4, __shapelens_value__(3, …self.fc…(__shapelens_value__(2, x))))
        return x                             return __shapelens_value__(6, __shapelens_value__(5, x))

Line numbers and columns stay those of the source, so that tracebacks, breakpoints and `inspect.getsource` are right.
Sites are numbered in the order of evaluation within a statement.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Set, Tuple

VALUE = "__shapelens_value__"  # (k, value) -> value
ASSUMED = "__shapelens_assumed__"  # (value) -> value, or True where its truth depends on data
TURNS = "__shapelens_turns__"  # (range) -> range, a short one where its length depends on data
TURN = "__shapelens_turn__"  # (line) -> whether a `while` goes on, as far as that does not depend on its condition
NAMES = "__shapelens_names__"  # (k, *values): values of sites k, k + 1, ...

Place = Tuple[int, int, int, int]  # line, column, end line, end column; columns in UTF-8 bytes

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONGEST_CHAIN = 100  # operators in a row that report themselves
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Site:
    """A place whose values are recorded."""

    place: Place
    kind: str  # "parameter" | "assign" | "return" | "expression"
    name: str
    function: str
    statement: Optional[Place] = None
    is_call: bool = False  # the expression is a call: where it returns a new module, that is the module's constructor
    operation: bool = False  # the expression computes (call, operator, subscript), so that it can fail


def place_of(node: ast.AST) -> Place:
    """Where a node stands."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


class Rewriter(ast.NodeTransformer):
    """Rewrites every function of a module; module level and class bodies stay as they are, except for lambdas in them."""

    def __init__(self, sites: List[Site]) -> None:
        self.sites = sites
        self.qualified: List[str] = []
        self.locals: List[Set[str]] = []  # names bound in the enclosing functions
        self.statement: Optional[Place] = None

    # --- scopes ---

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.qualified.append(node.name)
        outer, self.locals = self.locals, []
        node.body = [self.visit(child) for child in node.body]
        self.locals = outer
        self.qualified.pop()
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        """Rewrite the body, after a report of the parameters; `self` is none."""
        in_class = bool(self.qualified) and not self.locals
        arguments = _arguments(node.args)
        if in_class and arguments and arguments[0].arg in ("self", "cls", "mcs"):
            arguments = arguments[1:]
        self.qualified.append(node.name)
        self.locals.append(set(_bound(node)))
        statement, self.statement = self.statement, None
        reports = self._report_names([(argument.arg, place_of(argument)) for argument in arguments], "parameter", node)
        body: List[ast.stmt] = []
        for child in node.body:
            self._statement(child, body)
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body = body[:start] + reports + body[start:]
        self.statement = statement
        self.locals.pop()
        self.qualified.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.qualified.append("<lambda>")
        self.locals.append({argument.arg for argument in _arguments(node.args)})
        node.body = self.visit(node.body)
        self.locals.pop()
        self.qualified.pop()
        return node

    # --- statements ---

    def _statement(self, node: ast.stmt, out: List[ast.stmt]) -> None:
        """Append the rewritten statement, and what reports the names that it binds."""
        outer, self.statement = self.statement, place_of(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            out.append(node)
            out.extend(self._assignment(node))
        elif isinstance(node, ast.AugAssign):
            if not isinstance(node.target, ast.Name):
                self.generic_visit(node.target)
            node.value = self.visit(node.value)
            out.append(node)
            out.extend(self._report_targets([node.target], node))
        elif isinstance(node, ast.Assert):
            # What an assertion says of data cannot be known: it is taken to hold.
            node.test = _called(ASSUMED, [self.visit(node.test)], node.test)
            out.append(node)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                place = place_of(node.value)
                node.value = self._wrap(self.visit(node.value), place, "return", "return")
            out.append(node)
        else:
            out.append(self._compound(node))
        self.statement = outer

    def _compound(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            return self.visit(node)  # type: ignore[no-any-return]
        bound: List[ast.stmt] = []
        if isinstance(node, (ast.For, ast.AsyncFor)):
            bound = self._report_targets([node.target], node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            bound = self._report_targets([item.optional_vars for item in node.items if item.optional_vars is not None], node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                body: List[ast.stmt] = []
                for child in value:
                    self._statement(child, body)
                setattr(node, field, bound + body if field == "body" else body)
            elif isinstance(value, list):
                setattr(node, field, [self._part(child) for child in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self._part(value))
        if isinstance(node, ast.While):
            turn = _called(TURN, [ast.copy_location(ast.Constant(node.lineno), node.test)], node.test)
            node.test = ast.copy_location(ast.BoolOp(ast.And(), [node.test, turn]), node.test)
        return node

    def _part(self, node: object) -> object:
        if isinstance(node, (ast.ExceptHandler, getattr(ast, "match_case", ast.ExceptHandler))):
            return self._compound(node)  # type: ignore[arg-type]
        return self.visit(node) if isinstance(node, ast.AST) else node

    def _assignment(self, node: Any) -> List[ast.stmt]:
        """The reports that follow an assignment; a single plain target is reported by its value instead."""
        if node.value is None:
            return []
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = self.visit(node.value)
        for target in targets:
            if not isinstance(target, ast.Name):
                self._visit_target(target)
        if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute)):
            target = targets[0]
            name = target.id if isinstance(target, ast.Name) else target.attr
            value = self._wrap(value, place_of(target), "assign", name)
            node.value = value
            return []
        node.value = value
        return self._report_targets(targets, node)

    def _visit_target(self, target: ast.expr) -> None:
        for field, value in ast.iter_fields(target):
            if isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                if isinstance(getattr(value, "ctx", None), ast.Store):
                    self._visit_target(value)  # type: ignore[arg-type]
                else:
                    setattr(target, field, self.visit(value))
            elif isinstance(value, list):
                for child in value:
                    if not isinstance(child, ast.Name):
                        self._visit_target(child)

    def _report_targets(self, targets: List[ast.expr], statement: ast.stmt) -> List[ast.stmt]:
        names = [(name.id, place_of(name)) for target in targets for name in _plain_names(target)]
        return self._report_names(names, "assign", statement)

    def _report_names(self, names: List[Tuple[str, Place]], kind: str, at: ast.AST) -> List[ast.stmt]:
        if not names:
            return []
        first = len(self.sites)
        statement = place_of(at) if kind == "assign" else None
        for name, place in names:
            self.sites.append(Site(place, kind, name, self._qualname(), statement))
        values: List[ast.expr] = [ast.Name(name, ast.Load()) for name, _ in names]
        call = ast.Call(ast.Name(NAMES, ast.Load()), [ast.Constant(first)] + values, [])
        report = ast.copy_location(ast.Expr(call), at)
        for node in ast.walk(report):
            if "lineno" in getattr(node, "_attributes", ()):
                ast.copy_location(node, at)
        return [report]

    # --- expressions ---

    def visit_Call(self, node: ast.Call) -> ast.AST:
        place = place_of(node)
        if isinstance(node.func, ast.Attribute):
            # The attribute may be a layer (self.conv1); a method of something else says nothing by itself.
            if isinstance(_root(node.func), ast.Name) and _root(node.func).id == "self":  # type: ignore[attr-defined]
                node.func = self.visit(node.func)
            else:
                node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name) or node.func.id in self._local_names():
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if isinstance(node.func, ast.Name) and node.func.id == "range" and self.locals:
            return _called(TURNS, [node], node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "print", "isinstance", "len", "range"):
            return node
        return self._wrap(node, place, "expression", "", is_call=True, operation=True)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        # A long chain (a + b + c + ...) is walked with a loop: recursion would end at a few hundred links.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        left = self.visit(chain[-1].left)
        for link in reversed(chain):
            place = place_of(link)
            link.left, link.right = left, self.visit(link.right)
            # Each report nests the code once more, and the compiler's depth has a limit.
            left = self._wrap(link, place, "expression", "", operation=True) if len(chain) < LONGEST_CHAIN else link
        return left  # type: ignore[no-any-return]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        place = place_of(node)
        self.generic_visit(node)
        return self._wrap(node, place, "expression", "", operation=True) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        place = place_of(node)
        self.generic_visit(node)
        return self._wrap(node, place, "expression", node.attr) if isinstance(node.ctx, ast.Load) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        place = place_of(node)
        self.generic_visit(node)
        return node if isinstance(node.operand, ast.Constant) else self._wrap(node, place, "expression", "", operation=True)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        place = place_of(node)
        self.generic_visit(node)
        return self._wrap(node, place, "expression", "", operation=True)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id not in ("self", "cls", "super", "__class__") and node.id in self._local_names():
            return self._wrap(node, place_of(node), "expression", node.id)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        target = place_of(node.target)
        node.value = self._wrap(self.visit(node.value), target, "assign", node.target.id)
        return node

    def _comprehension(self, node: Any) -> Any:
        names = {name.id for generator in node.generators for name in ast.walk(generator.target) if isinstance(name, ast.Name)}
        self.locals.append(names)
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            generator.ifs = [self.visit(condition) for condition in generator.ifs]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self.locals.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # Texts hold no shapes, and their columns are wrong before Python 3.12.

    visit_TemplateStr = visit_JoinedStr

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return node  # Reached at module and class level only.

    def _wrap(self, value: ast.expr, place: Place, kind: str, name: str, is_call: bool = False, operation: bool = False) -> ast.expr:
        if not self.locals:
            return value  # Not in a function.
        statement = self.statement
        self.sites.append(Site(place, kind, name, self._qualname(), statement, is_call, operation))
        function, number = ast.Name(VALUE, ast.Load()), ast.Constant(len(self.sites) - 1)
        call = ast.Call(function, [number, value], [])
        for node in (call, function, number):
            node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
        return call

    def _local_names(self) -> Set[str]:
        return set().union(*self.locals) if self.locals else set()

    def _qualname(self) -> str:
        return ".".join(self.qualified)


def _called(function: str, arguments: List[ast.expr], at: ast.expr) -> ast.expr:
    """A call of one of our functions, in the place of an expression."""
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name(function, ast.Load()), at), arguments, []), at)


def _arguments(arguments: ast.arguments) -> List[ast.arg]:
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    return every + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def _plain_names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _plain_names(element)
    elif isinstance(target, ast.Starred):
        yield from _plain_names(target.value)


def _bound(function: Any) -> Iterator[str]:
    """Names that a function binds: parameters, assignments, loops, imports; not those of functions inside it."""
    for argument in _arguments(function.args):
        yield argument.arg
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            yield node.name
            continue
        if isinstance(node, (ast.Lambda,) + COMPREHENSIONS):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        todo.extend(ast.iter_child_nodes(node))


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def rewrite(tree: ast.Module, sites: List[Site]) -> ast.Module:
    """The tree, rewritten in place, its sites appended to `sites`."""
    rewriter = Rewriter(sites)
    tree.body = [rewriter.visit(node) for node in tree.body]
    return tree
