"""Rewrites the expressions of a function so that their values report themselves; see instrument.py."""

from __future__ import annotations

import ast
import copy
from typing import Any, List, Optional, Set, Tuple

from .scopes import is_size, targets_in
from .sites import BOUND, COMPREHENDED, GENERATED, NUMBERS, SCALAR, TURNS, VALUE, WINDOW, NodePlace, Site, place_of
from .windows import length_of

LONGEST_CHAIN = 100  # operators in a row that report themselves
# Functions that look at the frame that calls them, or whose results hold no tensors.
SILENT_CALLS = {
    "super", "locals", "globals", "vars", "dir", "print", "isinstance", "issubclass", "hasattr", "callable", "id", "repr", "range",
}  # fmt: skip
_GIVEN = "__shapelens_given__"  # the items of a comprehension, in a function that holds it
# What means another thing, or nothing, in a function of its own.
_BOUND_TO_SCOPE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_NAMES_OF_SCOPE = {"super", "__class__", "locals", "vars", "dir", "eval", "exec"}


class ExpressionRewriter(ast.NodeTransformer):
    """Hands each name, attribute, subscript, call and operator of a function to a reporter."""

    def __init__(self, sites: List[Site], names: Set[str]) -> None:
        self.sites = sites
        self.qualified: List[str] = []
        self.inside = ""  # what the code is directly in: "" for the module, "class" or "function"
        self.functions = 0  # enclosing ones
        self.names = names  # that hold values which are known to change or to be computed: those of the functions around
        self.sizes: Set[str] = set()  # those of them that are given sizes
        self.statement: Optional[NodePlace] = None
        self.of_model = False  # in a class of a module: its loops are part of what it computes
        self.guarded = False  # in a `try` of this function

    def visit_Call(self, node: ast.Call) -> ast.AST:
        place, size = place_of(node), is_size(node, self.sizes)
        if isinstance(node.func, ast.Attribute):
            # The attribute may be a layer (self.conv1); a method of something else says nothing by itself.
            if isinstance(_root(node.func), ast.Name) and _root(node.func).id == "self":  # type: ignore[attr-defined]
                node.func = self.visit(node.func)
            else:
                node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name) or node.func.id in self.names:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if isinstance(node.func, ast.Name) and node.func.id == "range" and self.functions:
            return self._call(TURNS, [node], place)
        if isinstance(node.func, ast.Name) and node.func.id in SILENT_CALLS:
            return node
        if isinstance(node.func, ast.Name) and node.func.id in NUMBERS and node.func.id not in self.names:
            node.func = ast.copy_location(ast.Name(NUMBERS[node.func.id], ast.Load()), node.func)
        return self._wrap(node, place, "expression", "", is_call=True, operation=True, size=size)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        # A long chain (a + b + c + ...) is walked with a loop: recursion would end at a few hundred links.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        size = is_size(chain[-1].left, self.sizes)
        left = self.visit(chain[-1].left)
        for link in reversed(chain):
            place, size = place_of(link), size or is_size(link.right, self.sizes)
            link.left, link.right = left, self.visit(link.right)
            # Each report nests the code once more, and the compiler's depth has a limit.
            left = self._wrap(link, place, "expression", "", operation=True, size=size) if len(chain) < LONGEST_CHAIN else link
        return left  # type: ignore[no-any-return]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        place, size = place_of(node), is_size(node, self.sizes)
        node.value, node.slice = self.visit(node.value), self._index(node.slice)
        return self._wrap(node, place, "expression", "", operation=True, size=size) if isinstance(node.ctx, ast.Load) else node

    def _index(self, index: Any) -> Any:
        # Slices stand in subscripts only: a tuple of them is no value of its own.
        if isinstance(index, ast.Tuple):
            index.elts = [self._index(part) for part in index.elts]
            return index
        length = length_of(index) if isinstance(index, ast.Slice) else None
        if length is None:
            return self.generic_visit(index) if isinstance(index, ast.Slice) else self.visit(index)
        bounds = [self.visit(index.lower), self.visit(index.upper), length]
        return self._call(WINDOW, bounds, place_of(index))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        place, size = place_of(node), is_size(node, self.sizes)
        self.generic_visit(node)
        return self._wrap(node, place, "expression", node.attr, size=size) if isinstance(node.ctx, ast.Load) else node

    def _operator(self, node: Any) -> ast.AST:
        place, size = place_of(node), is_size(node, self.sizes)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return node
        self.generic_visit(node)
        computes = isinstance(node, (ast.UnaryOp, ast.Compare))
        return self._wrap(node, place, "expression", "", operation=computes, size=size)

    visit_UnaryOp = visit_Compare = visit_IfExp = visit_BoolOp = visit_Await = _operator

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.names and node.id not in ("self", "cls", "super", "__class__"):
            return self._wrap(node, place_of(node), "expression", node.id, size=node.id in self.sizes)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        size, target = is_size(node.value, self.sizes), place_of(node.target)
        node.value = self._wrap(self.visit(node.value), target, "assign", node.target.id, reporter=SCALAR, size=size)
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        if node.value is not None:
            node.value = self._result(node.value, "yield")
        return node

    def _result(self, value: ast.expr, name: str) -> ast.expr:
        """Returns what a function returns or yields, with a report."""
        place, size = place_of(value), is_size(value, self.sizes)
        return self._wrap(self.visit(value), place, "return", name, reporter=SCALAR, size=size)

    def _comprehension(self, node: Any) -> Any:
        """With reports, and without: one that has met no tensor in its first turns goes on without (loading/unobserved.py)."""
        plain = copy.deepcopy(node) if self.functions and self.inside != "class" and _stands_alone(node) else None
        observed = self._observed(node)
        return self._finished(node, observed if plain is None else self._switching(observed, plain))

    def _switching(self, observed: Any, plain: Any) -> ast.expr:
        """A comprehension that begins with reports and may go on without."""
        place, items = place_of(observed), observed.generators[0].iter
        functions: List[ast.expr] = []
        for version in (observed, plain):
            version.generators[0].iter = ast.copy_location(ast.Name(_GIVEN, ast.Load()), items)
            given = ast.arguments([], [ast.copy_location(ast.arg(_GIVEN), items)], None, [], [], None, [])
            functions.append(ast.copy_location(ast.Lambda(given, version), observed))
        return self._call(GENERATED if isinstance(observed, ast.GeneratorExp) else COMPREHENDED, [items, *functions], place)

    def _finished(self, node: ast.expr, made: ast.expr) -> ast.expr:
        """Returns what stands in the place of a comprehension, of whose versions `made` is made."""
        return made

    def _observed(self, node: Any) -> Any:
        outer = self.names, self.sizes
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            targets = [name for name in targets_in(generator.target) if isinstance(name, ast.Name)]
            names = {name.id for name in targets}
            self.names = self.names | names
            # A tuple of names may hold sizes; what `range` and `enumerate` count, or a list holds, is none.
            self.sizes = self.sizes | names if isinstance(generator.iter, ast.Attribute) else self.sizes - names
            conditions = [self.visit(condition) for condition in generator.ifs]
            if self.functions and self.inside != "class":
                reports = self._report_names(BOUND, [(name.id, place_of(name)) for name in targets], "assign", generator.target)
                conditions = [report.value for report in reports] + conditions  # type: ignore[attr-defined]
            generator.ifs = conditions
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self.names, self.sizes = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # Texts hold no shapes, and their columns are wrong before Python 3.12.

    visit_TemplateStr = visit_JoinedStr

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node

    # --- reports ---

    def _report_names(
        self, reporter: str, names: List[Tuple[str, NodePlace]], kind: str, at: ast.AST, size: bool = False
    ) -> List[ast.stmt]:
        if not names:
            return []
        first = len(self.sites)
        statement = place_of(at) if kind == "assign" else None
        for name, place in names:
            self.sites.append(Site(place, kind, name, ".".join(self.qualified), statement, size=size))
        values: List[ast.expr] = [ast.Name(name, ast.Load()) for name, _ in names]
        return [ast.copy_location(ast.Expr(self._call(reporter, [ast.Constant(first), *values], place_of(at))), at)]

    def _wrap(
        self,
        value: ast.expr,
        place: NodePlace,
        kind: str,
        name: str,
        *,
        is_call: bool = False,
        operation: bool = False,
        size: bool = False,
        reporter: str = VALUE,
    ) -> ast.expr:
        """The expression, handed to a reporter on the way; outside of functions, as it is."""
        if not self.functions or self.inside == "class":
            return value
        self.sites.append(Site(place, kind, name, ".".join(self.qualified), self.statement, is_call, operation, size))
        return self._call(SCALAR if size else reporter, [ast.Constant(len(self.sites) - 1), value], place)

    def _call(self, function: str, arguments: List[ast.expr], place: NodePlace) -> ast.Call:
        call = ast.Call(ast.Name(function, ast.Load()), arguments, [])
        for node in (call, call.func, *arguments):
            if not hasattr(node, "lineno"):  # What is in it of the source stays where it is.
                node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
        return call


def _stands_alone(node: Any) -> bool:
    """True if a comprehension does the same in a function of its own."""
    parts = list(ast.walk(node))
    if any(isinstance(part, _BOUND_TO_SCOPE) or (isinstance(part, ast.Name) and part.id in _NAMES_OF_SCOPE) for part in parts):
        return False
    return not any(isinstance(part, ast.comprehension) and part.is_async for part in parts)


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node
