"""Goes through statements as running them would: what they assign, branch by branch; loops turn once."""

from __future__ import annotations

import ast
from typing import Dict, List, Sequence

from .....stated.syntax_trees import dotted, is_none
from .loops import AppendingLoop, empty_lists, first_element, turns_of
from .module_names import Function, ModuleNames, is_main_block
from .scope import ScriptScope
from .slices import ExpressionEvaluator
from .values import UNKNOWN, ScriptValue, constant, first_known

EXPECT_FAILURE = {"raises", "assertRaises", "assertRaisesRegex", "suppress"}
CHANGE_THEIR_LIST = {"append", "extend", "insert", "remove", "pop", "clear", "add", "update"}


class StatementEvaluator(ExpressionEvaluator):
    """Evaluates statements for the names of a scope."""

    def __init__(self, names: ModuleNames, classes: Sequence[str]) -> None:
        super().__init__(names, classes)
        self.module = ScriptScope(is_script=True)
        self._loops: List[AppendingLoop] = []  # those that are gone through, the innermost last
        self.unsure_places = 0  # of the code that is gone through: whether it runs, or with what, only running it would tell

    def kept(self, name: str, value: ScriptValue, scope: ScriptScope) -> ScriptValue:
        """Returns the value to keep for a name: the value, or a name of the document for it."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], scope: ScriptScope) -> bool:
        """Goes through a block. Whether it is left before its end."""
        for node in body:
            handler = getattr(self, "_do_" + type(node).__name__.lower(), None)
            if handler is not None:
                handler(node, scope)
            if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                return True
        return False

    def _do_expr(self, node: ast.Expr, scope: ScriptScope) -> None:
        value = self.value(node.value, scope)
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            changed = node.value.func.value  # `model.eval()`
            before = scope.find(dotted(changed)) if dotted(changed) else None
            if value.is_model and before is not None:
                self.assign(changed, value, scope)
            elif before is not None and isinstance(before.node, (ast.List, ast.ListComp)) and node.value.func.attr in CHANGE_THEIR_LIST:
                if self._loops:
                    self._loops[-1].appended(node, dotted(changed), self.value(node.value.args[0], scope) if node.value.args else UNKNOWN)
                self.assign(changed, UNKNOWN, scope)  # How often, a loop tells only when it runs.

    def _do_assign(self, node: ast.Assign, scope: ScriptScope) -> None:
        value = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, value, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: ScriptScope) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: ScriptScope) -> None:
        read = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else node.target
        self.assign(node.target, self.value(ast.BinOp(read, node.op, node.value), scope), scope)

    def _do_return(self, node: ast.Return, scope: ScriptScope) -> None:
        scope.returned.append(self.value(node.value, scope))

    def _do_assert(self, node: ast.Assert, scope: ScriptScope) -> None:
        self.value(node.test, scope)

    def _do_functiondef(self, node: Function, scope: ScriptScope) -> None:
        if scope is not self.module:
            scope.functions[node.name] = node

    _do_asyncfunctiondef = _do_functiondef

    def _do_if(self, node: ast.If, scope: ScriptScope) -> None:
        if is_main_block(node) and scope is self.module:
            scope.label = "__main__"
            self.block(node.body, scope)
            scope.label = ""
            return
        self.value(node.test, scope)
        before = scope.values
        scope.values = dict(before)
        leaves = self.block(node.body, scope)
        body, scope.values = scope.values, dict(before)
        left = self.block(node.orelse, scope)
        if left and not leaves:
            scope.values = body
        elif not leaves:
            self._merge(body, scope, prefer_body=bool(node.orelse))

    def _merge(self, body: Dict[str, ScriptValue], scope: ScriptScope, prefer_body: bool) -> None:
        for name, value in body.items():
            other = scope.values.get(name)
            if other is None or other is value:
                scope.values[name] = value
            else:
                scope.values[name] = first_known([value, other] if prefer_body or is_none(other.node) else [other, value])

    def _do_for(self, node: ast.For, scope: ScriptScope) -> None:
        items = self.value(node.iter, scope)
        loop = AppendingLoop(node.body, node.target, turns_of(items), empty_lists(scope.values))
        self.assign(node.target, first_element(items), scope)
        self._turn(loop, node.body, scope)
        self.block(node.orelse, scope)

    _do_asyncfor = _do_for

    def _turn(self, loop: AppendingLoop, body: Sequence[ast.stmt], scope: ScriptScope) -> None:
        self._loops.append(loop)
        self.block(body, scope)
        self._loops.pop()
        for name, layers in loop.lists_of_layers():
            if not any(name in outer.empty for outer in self._loops):  # Else it grows in each turn of that one.
                self._set(name, layers, scope)

    def _do_while(self, node: ast.While, scope: ScriptScope) -> None:
        self.value(node.test, scope)
        self._turn(AppendingLoop(node.body, None, None, empty_lists(scope.values)), node.body, scope)

    def _do_with(self, node: ast.With, scope: ScriptScope) -> None:
        fails = False  # on purpose
        for item in node.items:
            value = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, scope)
            manager = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            fails |= dotted(manager).rpartition(".")[2] in EXPECT_FAILURE
        self.unsure_places += fails
        self.block(node.body, scope)
        self.unsure_places -= fails

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try, scope: ScriptScope) -> None:
        self.unsure_places += bool(node.handlers)
        self.block(node.body, scope)
        self.unsure_places -= bool(node.handlers)
        self.block(node.orelse, scope)
        for handler in node.handlers:
            kept = scope.values
            scope.values = dict(kept)
            self.block(handler.body, scope)
            scope.values = {**scope.values, **kept}
        self.block(node.finalbody, scope)

    def assign(self, target: ast.AST, value: ScriptValue, scope: ScriptScope) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part, one in zip(target.elts, _unpacked(value, target.elts)):
                self.assign(part, one, scope)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value, scope)
            if base.attributes is not None and base.attributes is not self._options:
                base.attributes[target.attr] = value
            if dotted(target):
                self._set(dotted(target), value, scope)
        elif isinstance(target, ast.Name):
            self._set(target.id, self.kept(target.id, value, scope), scope)

    def _set(self, name: str, value: ScriptValue, scope: ScriptScope) -> None:
        for known in [known for known in scope.values if known.startswith(name + ".")]:
            del scope.values[known]
        scope.values[name] = value


def _unpacked(value: ScriptValue, targets: Sequence[ast.expr]) -> List[ScriptValue]:
    known = value.known()
    if value.items is not None and len(value.items) == len(targets):
        return list(value.items)
    if isinstance(known, (ast.Tuple, ast.List)) and len(known.elts) == len(targets):
        return [ScriptValue(part) for part in known.elts]
    if value.node is None or any(isinstance(target, ast.Starred) for target in targets):
        return [UNKNOWN] * len(targets)
    return [ScriptValue(ast.Subscript(value.node, constant(number), ast.Load())) for number in range(len(targets))]
