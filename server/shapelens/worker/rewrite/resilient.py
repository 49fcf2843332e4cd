"""Rewrites a whole module as a program that goes on: a statement that fails ends alone, and a loop takes as many turns as its steps say.

    for x, y in loader:                  try:
        loss = f(model(x), y)                __shapelens_iterable__ = loader
                                         except __shapelens_errors__ as __shapelens_error__:
                              →              __shapelens_iterable__ = __shapelens_failed__(__shapelens_error__, 1)
                                         for x, y in __shapelens_steps__(__shapelens_iterable__, (1, 2), 2, True):
                                             try:
                                                 loss = f(model(x), y)
                                             except __shapelens_errors__ as __shapelens_error__:
                                                 __shapelens_failed__(__shapelens_error__, 2)
                                                 loss = __shapelens_missing__('loss')
                                         else:
                                             try:
                                                 for x, y in __shapelens_further_turns__(1):
                                                     loss = f(model(x), y)
                                             except __shapelens_errors__ as __shapelens_error__:
                                                 __shapelens_further_failed__(__shapelens_error__, 1)

A loop that meets no tensor in its first turns takes the others as they are written. Values report themselves as in every rewritten file.
What a `try` of the user's guards may fail, as its handlers are there for that; so may `forward` and `__init__`, whose failures belong to
the statement that calls them.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import Any, List, Optional, Set, Tuple, Union

from .device_choices import assume_accelerators
from .instrument import Rewriter, may_be_plain
from .scopes import ScopeSurvey, is_size, targets_in
from .sites import FURTHER_TURNS, UNKNOWN_AT, NodePlace, Site, place_of
from .tensor_expressions import computes_tensors

ERRORS = "__shapelens_errors__"  # the classes of exceptions that end a statement, not the program
FAILED = "__shapelens_failed__"  # (error, line) -> what takes the place of the value; raises where the code expects the error
MISSING = "__shapelens_missing__"  # (name) -> what takes the place of a value that was not made
STEPS = "__shapelens_steps__"  # (iterable, first and last lines of the loop, pattern, may switch to further turns) -> what a `for` takes
FURTHER_FAILED = "__shapelens_further_failed__"  # (error, line of the loop): a turn without reports has failed
ITEMS = "__shapelens_items__"  # (iterable, pattern) -> the items that a comprehension takes
MARK = "__shapelens_mark__"  # () -> how many comprehensions went through something unknown until now
KEYWORDS = "__shapelens_keywords__"  # (mapping) -> what `**mapping` gives a call
SPREAD = "__shapelens_spread__"  # (value) -> what `*value` puts into a tuple or list
LISTED = "__shapelens_listed__"  # (mark, what a comprehension made) -> that, of unknown length if it was made of something unknown
COUNTS = "__shapelens_counts__"  # (function, *arguments) -> what `len`, `list` and their like make of them
BRANCH = "__shapelens_branch__"  # (the lines of its two branches, value) -> which of them is taken
NEXT = "__shapelens_next__"  # (iterator) -> its next item, for the `iterator.next()` that loaders of older torch had
ENTERED = "__shapelens_entered__"  # (context, line) -> a context that has been entered, or that stands in for one which cannot be
GOES_ON = "__shapelens_goes_on__"  # (line) -> whether a `while` takes another turn with reports
GOES_FURTHER = "__shapelens_goes_further__"  # (line) -> whether it takes another one without

ERROR = "__shapelens_error__"  # the exception, in a handler
_ITERABLE = "__shapelens_iterable__"
_CONTEXT = "__shapelens_context__"
_VALUED = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
# Methods of classes that are no modules whose statements can fail alone. Others are called by Python, which waits for what they raise.
_OF_STATEMENTS = ("__init__", "__call__", "__getitem__")
# Builtins that say how many items there are, or list them.
_COUNTING = ("len", "list", "tuple", "sorted", "set", "dict")
# What draws a number by chance.
CHANCE = re.compile(r"(random|rand|rng|(np|numpy)\.random)\.(random|rand|uniform|random_sample|randint|randrange)")
# What does nothing that can fail, or ends a block on purpose.
_BARE = (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Raise)

Pattern = Union[int, Tuple[Any, ...]]  # 1: one target; a tuple: a pattern for each part of it


class ResilientRewriter(Rewriter):
    """Rewrites the statements of a module as those of one function, each of them on its own."""

    def __init__(self, sites: List[Site], body: List[ast.stmt]) -> None:
        survey = ScopeSurvey(body)
        super().__init__(sites, survey.names)
        self.inside, self.functions = "function", 1
        self.sizes = survey.sizes(set())
        self._fragile = False  # in `forward` or `__init__` of what may be a module, or guarded by the user
        self._plain: Set[str] = {"object", "ABC", "Dataset", "IterableDataset", "Sampler"}  # classes that are no modules
        self._is_plain = False  # in one of them

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer = self._fragile, self._is_plain
        self._fragile = True  # What stands in the body of a class makes the class.
        self._is_plain = all(ast.unparse(base).rpartition(".")[2] in self._plain for base in node.bases)
        self._is_plain = self._is_plain and not any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body)
        if self._is_plain:
            self._plain.add(node.name)
        result = super().visit_ClassDef(node)
        self._fragile, self._is_plain = outer
        return result

    def visit_FunctionDef(self, node: Any) -> Any:
        outer = self._fragile
        is_special = self.inside == "class" and node.name.startswith("__") and not (self._is_plain and node.name in _OF_STATEMENTS)
        self._fragile = is_special or (self.of_model and node.name == "forward")
        result = super().visit_FunctionDef(node)
        self._fragile = outer
        return result

    visit_AsyncFunctionDef = visit_FunctionDef

    def _statement(self, node: ast.stmt, out: List[ast.stmt]) -> None:
        unrewritten, gathered = _targets(node), _gathered(node)
        pattern = _pattern(node.target) if isinstance(node, ast.For) else 1
        branches = _branches(node) if isinstance(node, ast.If) and is_setting(node.test, self.sizes) else None
        moves = isinstance(node, ast.If) and _only_moves(node, branches is not None)
        while_further = self._while_further(node) if isinstance(node, ast.While) and not self.of_model else None
        group: List[ast.stmt] = []
        tensor = computes_tensors(node.value) if isinstance(node, _VALUED) and node.value is not None else False
        first, place = len(self.sites), place_of(node)
        super()._statement(node, group)
        unknown = self._unknown_tensors(node, first, place) if tensor else []
        if self._fragile or isinstance(node, _BARE):
            out.extend(group)
            return
        if isinstance(node, ast.If):
            _open_branches(node, branches, moves=moves)
        if isinstance(node, ast.For) and not self.of_model:
            out.extend(_guarded_for(node, pattern))
        elif isinstance(node, ast.While) and not self.of_model:
            out.append(_guarded_while(node, while_further))
        elif isinstance(node, ast.With):
            out.extend(self._with(node))
        elif isinstance(node, ast.Return):
            instead_of_it: ast.stmt = ast.Return(_failed(node))
            out.append(guard(node, group, [*unknown, instead_of_it]) if node.value is not None else node)
        else:
            handler: List[ast.stmt] = [ast.Expr(_failed(node))]
            handler += [_bind(target) for target in unrewritten] + gathered + unknown
            handler += [_bind_attribute(node, name) for name in _attributes(node)] if self._is_plain else []
            out.append(guard(node, group, handler))

    def _unknown_tensors(self, node: ast.stmt, first: int, place: NodePlace) -> List[ast.stmt]:
        """Returns what says of the tensors that a statement computes that they are unknown. first: the number of its first site."""
        sites = [number for number, site in enumerate(self.sites[first:], first) if _is_of(site, place, node)]
        for number in sites:
            self.sites[number].tensor = True
        return [_unknown_at(number) for number in sites]

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        """A tuple into which something unknown may be spread: of such a one not even the length is known."""
        found = self.generic_visit(node)
        for part in node.elts if isinstance(node.ctx, ast.Load) and not self._fragile else ():
            if isinstance(part, ast.Starred):
                part.value = ast.copy_location(ast.Call(ast.Name(SPREAD, ast.Load()), [part.value], []), part.value)
        return found

    visit_List: Any = visit_Tuple

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call whose `**mapping` may be unknown, that counts what may be unknown, or that asks an iterator for its next item by a method
        that it may lack."""
        if not self._fragile:
            asked = node.func
            if isinstance(asked, ast.Attribute) and asked.attr == "next" and not node.args and not node.keywords:
                node.func, node.args = ast.copy_location(ast.Name(NEXT, ast.Load()), asked), [asked.value]
            for keyword in node.keywords:
                if keyword.arg is None:
                    keyword.value = ast.copy_location(ast.Call(ast.Name(KEYWORDS, ast.Load()), [keyword.value], []), keyword.value)
        is_counting = not self._fragile and isinstance(node.func, ast.Name) and node.func.id in _COUNTING and len(node.args) == 1
        found = super().visit_Call(node)
        if is_counting:
            node.func, node.args = ast.copy_location(ast.Name(COUNTS, ast.Load()), node.func), [node.func, *node.args]
        return found

    def _compound(self, node: Any) -> Any:
        if not (isinstance(node, ast.Try) and node.handlers):
            return super()._compound(node)
        outer, self._fragile = self._fragile, True
        body, node.body = self._body(node.body), []
        self._fragile = outer
        node = super()._compound(node)
        node.body = body
        return node

    def _observed(self, node: Any) -> Any:
        """A comprehension whose items are stand-ins, once, where nothing is known of what it goes through."""
        patterns = [_pattern(generator.target) for generator in node.generators]
        node = super()._observed(node)
        if not (self.of_model and self._fragile):
            for generator, pattern in zip(node.generators, patterns):
                generator.iter = ast.Call(ast.Name(ITEMS, ast.Load()), [generator.iter, _constant(pattern)], [])
        return node

    def _finished(self, node: ast.expr, made: ast.expr) -> ast.expr:
        if (self.of_model and self._fragile) or isinstance(node, ast.GeneratorExp):
            return made
        mark = ast.Call(ast.Name(MARK, ast.Load()), [], [])
        return ast.copy_location(ast.Call(ast.Name(LISTED, ast.Load()), [mark, made], []), node)

    def _first_turns(self, node: ast.For, may_switch: bool) -> ast.expr:
        return super()._first_turns(node, may_switch) if self._fragile else node.iter  # STEPS says.

    def _while_further(self, node: ast.While) -> Optional[ast.While]:
        """The turns of a `while` without reports, as of a `for`."""
        if self._fragile or not may_be_plain(node.body):
            return None
        turn = ast.Call(ast.Name(GOES_FURTHER, ast.Load()), [ast.Constant(node.lineno)], [])
        test = ast.BoolOp(ast.And(), [turn, copy.deepcopy(node.test)])
        return ast.copy_location(ast.While(test, copy.deepcopy(node.body), []), node)

    def _with(self, node: ast.With) -> List[ast.stmt]:
        """A `with` whose contexts are made and entered first, each on its own: where that fails, the body runs all the same."""
        if len(node.items) > 1:
            nested = ast.copy_location(ast.With(node.items[1:], node.body), node)
            node.items, node.body = node.items[:1], self._with(nested)
        entered = ast.Call(ast.Name(ENTERED, ast.Load()), [node.items[0].context_expr, ast.Constant(node.lineno)], [])
        value = ast.Assign([ast.Name(_CONTEXT, ast.Store())], entered)
        instead = ast.Assign([ast.Name(_CONTEXT, ast.Store())], _failed(node))
        node.items[0].context_expr = ast.Name(_CONTEXT, ast.Load())
        return [guard(node, [value], [instead]), guard(node, [node], [ast.Expr(_failed(node))])]


def resilient(tree: ast.Module, sites: List[Site]) -> ast.Module:
    """The tree of a whole module, rewritten in place, its sites appended to `sites`.

    Raises RecursionError for code that is nested too deeply.
    """
    assume_accelerators(tree)
    rewriter = ResilientRewriter(sites, tree.body)
    tree.body = rewriter._body(tree.body)
    return ast.fix_missing_locations(tree)


def _failed(node: ast.stmt) -> ast.Call:
    return ast.Call(ast.Name(FAILED, ast.Load()), [ast.Name(ERROR, ast.Load()), ast.Constant(node.lineno)], [])


def _is_further(node: ast.stmt) -> bool:
    """True if it is a loop over the turns without reports."""
    iterable = node.iter if isinstance(node, ast.For) else None
    return isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == FURTHER_TURNS


def _open_branches(node: ast.If, branches: Optional[ast.expr], *, moves: bool) -> None:
    """Have an `if` take its branch where that only moves tensors, and where a setting decides."""
    if moves:
        node.test = ast.BoolOp(ast.Or(), [node.test, ast.Constant(True)])
    elif branches is not None:
        node.test = ast.Call(ast.Name(BRANCH, ast.Load()), [branches, node.test], [])


def _guarded_for(node: ast.For, pattern: Pattern) -> List[ast.stmt]:
    """A `for` that goes through what its iterable gives, whatever that is; and what fails in its iterable or in its further turns."""
    iterable = ast.Assign([ast.Name(_ITERABLE, ast.Store())], node.iter)
    instead = ast.Assign([ast.Name(_ITERABLE, ast.Store())], _failed(node))
    further = node.orelse[0] if node.orelse and _is_further(node.orelse[0]) else None
    steps = [ast.Name(_ITERABLE, ast.Load()), _lines(node), _constant(pattern), ast.Constant(further is not None)]
    node.iter = ast.Call(ast.Name(STEPS, ast.Load()), steps, [])
    if further is not None:
        node.orelse = [_guarded_further(node, further)]
    return [guard(node, [iterable], [instead]), node]


def _guarded_while(node: ast.While, further: Optional[ast.While]) -> ast.stmt:
    """A `while` that ends where its turns are not to go on. further: its turns without reports, if it has such."""
    turn = ast.Call(ast.Name(GOES_ON, ast.Load()), [ast.Constant(node.lineno)], [])
    node.test = ast.BoolOp(ast.And(), [turn, node.test])
    if further is not None:
        further.orelse, node.orelse = node.orelse, [_guarded_further(node, further)]
    return guard(node, [node], [ast.Expr(_failed(node))])


def _guarded_further(node: ast.stmt, further: ast.stmt) -> ast.stmt:
    """The turns of a loop without reports: what fails in one ends the loop."""
    failed = ast.Call(ast.Name(FURTHER_FAILED, ast.Load()), [ast.Name(ERROR, ast.Load()), ast.Constant(node.lineno)], [])
    return guard(node, [further], [ast.Expr(failed)])


def guard(node: ast.stmt, body: List[ast.stmt], handler: List[ast.stmt], errors: str = ERRORS) -> ast.Try:
    """A `try` in the place of a statement, which keeps the lines of tracebacks true. errors: the name of the classes that it is for."""
    handlers = [ast.ExceptHandler(ast.Name(errors, ast.Load()), ERROR, handler)]
    return ast.copy_location(ast.Try(body, handlers, [], []), node)


def _targets(node: ast.stmt) -> List[str]:
    """The names that a simple statement binds, or that a definition does."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*"]
    targets: List[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    names: Set[str] = set()
    for target in targets:
        names.update(part.id for part in targets_in(target) if isinstance(part, ast.Name))
    return sorted(names)


def _is_of(site: Site, place: NodePlace, node: ast.stmt) -> bool:
    """True if a site holds what a statement assigns or returns."""
    return (site.kind == "assign" and site.statement == place) or (site.kind == "return" and isinstance(node, ast.Return))


def _gathered(node: ast.stmt) -> List[ast.stmt]:
    """For an `items.append(…)` that failed: something unknown is appended, so that the list is as long as it would be."""
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute) or method.attr != "append" or not isinstance(method.value, ast.Name):
        return []
    holder = method.value.id
    missing = ast.Call(ast.Name(MISSING, ast.Load()), [ast.Constant(holder)], [])
    append = ast.Expr(ast.Call(ast.Attribute(ast.Name(holder, ast.Load()), "append", ast.Load()), [missing], []))
    return [guard(node, [append], [ast.Pass()])]


def _unknown_at(number: int) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(UNKNOWN_AT, ast.Load()), [ast.Constant(number)], []))


def _bind(name: str) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name(MISSING, ast.Load()), [ast.Constant(name)], []))


def _attributes(node: ast.stmt) -> List[str]:
    """The attributes of `self` that an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.attr for target in targets if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"]


def _bind_attribute(node: ast.stmt, name: str) -> ast.stmt:
    """An attribute of `self` that a statement failed to make is something unknown, where it can be bound."""
    missing = ast.Call(ast.Name(MISSING, ast.Load()), [ast.Constant(name)], [])
    bound = ast.Assign([ast.Attribute(ast.Name("self", ast.Load()), name, ast.Store())], missing)
    return guard(node, [bound], [ast.Pass()])


def _pattern(target: Optional[ast.expr]) -> Pattern:
    """The form of what a `for` is given: `i, (x, y)` is (1, (1, 1)); 1 where a starred part takes what there is."""
    if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(part, ast.Starred) for part in target.elts):
        return tuple(_pattern(part) for part in target.elts)
    return 1


def is_setting(test: ast.expr, sizes: Set[str]) -> bool:
    """True if a condition is one on settings, counts and chance alone (`step % 100 == 0`, `random.random() < eps`), so that it may go
    another way elsewhere.

    What a shape, a type or a call decides fits the values that are there: the other branch is for others.
    """
    for part in ast.walk(test):
        if isinstance(part, ast.Call) and CHANCE.fullmatch(ast.unparse(part.func)):
            continue
        if isinstance(part, (ast.Call, ast.Subscript, ast.Lambda, ast.NamedExpr, ast.IfExp)) or is_size(part, sizes):
            return False
        if isinstance(part, ast.Compare) and any(isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in part.ops):
            return False
        if isinstance(part, ast.Name) and part.id == "__name__":
            return False
    return True


def _only_moves(node: ast.If, is_setting: bool) -> bool:
    """True if an `if` only moves values to an accelerator if there is one: `if train_on_gpu: x = x.cuda()`. Shapes stay as they are."""
    return (is_setting or asks_for_accelerator(node)) and only_moves(node)


def asks_for_accelerator(node: ast.If) -> bool:
    """`if torch.cuda.is_available():`"""
    return isinstance(node.test, ast.Call) and isinstance(node.test.func, ast.Attribute) and node.test.func.attr == "is_available"


def only_moves(node: ast.If) -> bool:
    """True if all that an `if` does is to move values to an accelerator."""
    return not node.orelse and all(_is_move(statement) for statement in node.body)


def _is_move(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value.func.attr == "cuda" and not node.value.args and isinstance(node.value.func.value, (ast.Name, ast.Attribute))
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
        return False
    pairs = [(node.targets[0], node.value)]
    if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = list(zip(node.targets[0].elts, node.value.elts))
    return all(
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "cuda"
        and not value.args
        and isinstance(target, ast.Name)
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id == target.id
        for target, value in pairs
    )


def _branches(node: ast.If) -> ast.expr:
    """The first and last lines of each branch, and whether it leaves the block; None for one that is not there."""
    parts: List[ast.expr] = []
    for body in (node.body, node.orelse):
        leaves = any(isinstance(each, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for each in body)
        told = (body[0].lineno, body[-1].end_lineno, leaves) if body else None
        parts.append(ast.Tuple([ast.Constant(each) for each in told], ast.Load()) if told is not None else ast.Constant(None))
    return ast.Tuple(parts, ast.Load())


def _lines(node: ast.stmt) -> ast.expr:
    return ast.Tuple([ast.Constant(node.lineno), ast.Constant(node.end_lineno)], ast.Load())


def _constant(pattern: Pattern) -> ast.expr:
    return ast.Constant(pattern) if isinstance(pattern, int) else ast.Tuple([_constant(part) for part in pattern], ast.Load())
