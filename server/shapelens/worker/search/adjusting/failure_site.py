"""Where an exception came from: the statement that raised it, what its names held, and the arguments of a draft that they go back to."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import torch

from ....stated.syntax_trees import dotted, last_name
from ...locations import WORKER
from ...sandbox.exceptions import traceback_of
from ..code.callees import parameters_of
from ..code.sources import function_at, function_node, index_of, initialiser
from ..trials.trial import RefusedInput
from .expression_edit import Draft, EditableArgument

DEEPEST = 12
MOST_STEPS = 300  # of one expression: where many names depend on many, the ways back are without number


class Level:
    """One call on the way to an exception."""

    def __init__(self, frame: Any, line: int, node: Any) -> None:
        self.locals: Dict[str, Any] = frame.f_locals
        self.globals: Dict[str, Any] = frame.f_globals
        self.code = frame.f_code
        self.line = line
        self.function = node  # the `def`
        self.statement = _statement(node, line)
        self.owner = self.locals.get(self.code.co_varnames[0]) if self.code.co_argcount else None

    def evaluate(self, node: ast.AST) -> Any:
        """The value of an expression. Raises whatever evaluating it raises, ValueError where a layer refuses what it gets in it."""
        if any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for part in ast.walk(node)):
            raise ValueError("not an expression to repeat")
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval")  # type: ignore[arg-type]
        try:
            return eval(code, self.globals, dict(self.locals))
        except RefusedInput as refused:  # No `Exception`: nobody who asks for a value would catch it.
            raise ValueError(str(refused)) from None

    def parameters(self) -> List[str]:
        """The names of the function's parameters."""
        count = self.code.co_argcount + self.code.co_kwonlyargcount
        return list(self.code.co_varnames[:count])


class FailureSite:
    """The calls from a draft's expression to where it failed."""

    def __init__(self, draft: Draft, error: BaseException) -> None:
        self.draft = draft
        self.levels: List[Level] = []
        self.innermost: Dict[str, Any] = {}
        place = traceback_of(error)
        while place is not None:
            code = place.tb_frame.f_code
            if not code.co_filename.startswith((WORKER, "<")):
                node = function_at(code, place.tb_frame.f_globals)
                if node is not None:
                    self.levels.append(Level(place.tb_frame, place.tb_lineno, node))
            self.innermost = place.tb_frame.f_locals  # be it torch's own
            place = place.tb_next
        place = traceback_of(error.__cause__) if error.__cause__ is not None else None
        while place is not None:  # An attempt that a layer's constructor ended: what raised there is the cause.
            self.innermost = place.tb_frame.f_locals
            place = place.tb_next

    _steps = 0  # back from one expression

    def suspects(self) -> Iterator[Tuple[EditableArgument, Any, ast.expr]]:
        """(argument, what its name held, the expression) for what the failing statements mention, the innermost first."""
        seen: Set[Tuple[int, str, Optional[int]]] = set()
        for depth in range(len(self.levels) - 1, -1, -1):
            level = self.levels[depth]
            for node in names_read(level.statement):
                try:
                    value = level.evaluate(node)
                except Exception:  # Not bound yet, or gone.
                    continue
                self._steps = 0
                for argument in self.origins(node, depth):
                    key = (id(argument.holder), argument.name, argument.position)
                    if key not in seen:
                        seen.add(key)
                        yield argument, value, node

    def origins(self, node: ast.AST, depth: int, left: int = DEEPEST) -> List[EditableArgument]:
        """The arguments of the draft that an expression's value goes back to."""
        self._steps += 1
        if depth < 0 or left <= 0 or self._steps > MOST_STEPS:
            return []
        level = self.levels[depth]
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            key = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
            if isinstance(key, str) and dotted(node) != "self." + key:
                return self.draft.named(key)[:1] or self._of_record(node.value, key, level)
            if isinstance(node, ast.Subscript):
                return self.origins(node.value, depth, left - 1)
            return self._of_attribute(str(key), level, depth, left)
        if not isinstance(node, ast.Name):
            return []
        stores = index_of(level.function).stored.get(node.id, ())
        if node.id in level.parameters():
            above = [stored for stored in stores if stored.lineno < level.line]
            if not above:
                return self._of_parameter(node.id, level, depth, left)
            stores = above[-1:]  # It was given another value since.
        found: List[EditableArgument] = []
        for stored in stores:
            for source in _sources(stored, index_of(level.function).parents):
                for part in names_read(source):
                    if dotted(part) != node.id:
                        found += self.origins(part, depth, left - 2)
            if found:
                break
        if not found and node.id in level.parameters():
            return self._of_parameter(node.id, level, depth, left)
        return found[:2]

    def _of_record(self, node: ast.expr, name: str, level: Level) -> List[EditableArgument]:
        """`config.x`, where the draft builds the config object and leaves x to its default."""
        try:
            record = type(level.evaluate(node))
            parameters = inspect.signature(record).parameters.values()
        except Exception:  # Gone, or of a class that does not say.
            return []
        if not any(item.name == name or item.kind is item.VAR_KEYWORD for item in parameters):
            return []
        return [EditableArgument(self.draft, call, name) for call in self.draft.calls(record.__name__)[:1]]

    def _of_attribute(self, name: str, level: Level, depth: int, left: int) -> List[EditableArgument]:
        """`self.x`: what the constructor assigned to it."""
        for other in range(depth, -1, -1):
            place = self.levels[other]
            if place.owner is level.owner:
                for stored in index_of(place.function).stored.get("self." + name, ()):
                    for source in _sources(stored, index_of(place.function).parents):
                        for part in names_read(source):
                            found = self.origins(part, other, left - 2)
                            if found:
                                return found
        return self._of_finished(name, type(level.owner)) or self.draft.named(name)[:1]

    def _of_finished(self, name: str, cls: type) -> List[EditableArgument]:
        """`self.x` where the constructor has ended already: what its text says."""
        position = initialiser(cls)
        while position is not None and position[0] is not torch.nn.Module:
            node = function_node(position[1])
            index = index_of(node) if node is not None else None
            for stored in index.stored.get("self." + name, ()) if index is not None else ():
                for source in _sources(stored, index.parents) if index is not None else ():
                    for part in names_read(source):
                        if isinstance(part, ast.Name) and part.id in parameters_of(position[1]):
                            calls = self.draft.calls(cls.__name__)
                            return [EditableArgument(self.draft, calls[0], part.id)] if calls else self.draft.named(part.id)[:1]
            position = initialiser(cls, position[0])
        return []

    def _of_parameter(self, name: str, level: Level, depth: int, left: int) -> List[EditableArgument]:
        if name == level.parameters()[0] and name in ("self", "cls"):
            return []
        if level.code.co_name == "__init__":
            for base in type(level.owner).__mro__:
                for call in self.draft.calls(base.__name__):
                    if base is type(level.owner) or base is torch.nn.Module:
                        positional = self._position(call, name, level)
                        return [EditableArgument(self.draft, call, name, positional)]
        if depth == 0:
            return []
        caller = self.levels[depth - 1]
        given = self._given(name, level, caller)
        if given is not None:
            found = [argument for part in names_read(given) for argument in self.origins(part, depth - 1, left - 1)]
            if found:
                return found
        return self.draft.named(name)[:1]

    def _position(self, call: ast.Call, name: str, level: Level) -> Optional[int]:
        place = level.parameters().index(name) - 1
        return place if 0 <= place < len(call.args) else None

    def _builds(self, call: ast.Call, level: Level, caller: Level) -> bool:
        """True if a call of what a name of the caller's holds builds the object that `self` is: `self.block(dim)`."""
        try:
            return level.code.co_name == "__init__" and caller.evaluate(call.func) is type(level.owner)
        except Exception:  # It cannot be asked again.
            return False

    def _given(self, name: str, level: Level, caller: Level) -> Optional[ast.expr]:
        """The expression that the caller passes as a parameter."""
        names = {level.code.co_name, type(level.owner).__name__}
        for call in ast.walk(caller.statement):
            if isinstance(call, ast.Call) and (last_name(call.func) in names or self._builds(call, level, caller)):
                for keyword in call.keywords:
                    if keyword.arg == name:
                        return keyword.value
                place = level.parameters().index(name) - (1 if level.parameters()[:1] == ["self"] else 0)
                if 0 <= place < len(call.args) and not any(isinstance(part, ast.Starred) for part in call.args[: place + 1]):
                    return call.args[place]
        return None


def names_read(node: ast.AST) -> List[ast.expr]:
    """The names, attributes and items that are read in an expression or at the head of a statement; calls' functions come last."""
    heads: List[ast.AST] = [node]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        heads = [node.iter]
    elif isinstance(node, (ast.If, ast.While)):
        heads = [node.test]
    elif isinstance(node, (ast.With, ast.Try, ast.FunctionDef, ast.ClassDef)):
        heads = []
    found: List[ast.expr] = []
    functions: List[ast.expr] = []

    def visit(part: ast.AST, is_function: bool) -> None:
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Load):
            (functions if is_function else found).append(part)
        for child in ast.iter_child_nodes(part):
            visit(child, isinstance(part, ast.Call) and child is part.func)

    for head in heads:
        visit(head, False)
    return found + functions


def _sources(stored: ast.AST, parents: Dict[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """The expressions that a name gets its value from where it is bound."""
    parent: Optional[ast.AST] = parents.get(stored)
    place = -1
    while isinstance(parent, (ast.Tuple, ast.List, ast.Starred)):
        place = parent.elts.index(stored) if isinstance(parent, (ast.Tuple, ast.List)) and stored in parent.elts else place
        parent = parents.get(parent)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and parent.value is not None:
        yield parent.value
    elif isinstance(parent, (ast.For, ast.comprehension)):
        walked = parent.iter
        if isinstance(walked, ast.Call) and last_name(walked.func) == "zip" and 0 <= place < len(walked.args):
            walked = walked.args[place]
        yield walked


def _statement(function: Any, line: int) -> ast.AST:
    """The innermost statement of a function that a line belongs to."""
    found: ast.AST = function
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno) and node is not function:
            found = node if found is function or node.lineno >= found.lineno else found  # type: ignore[attr-defined]
    return found
