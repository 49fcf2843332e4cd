"""Expressions of a script with everything that is local to it put in, so that what is left can be evaluated in the document.

`cfg = Config(); net = Net(cfg.dim).to(device); y = net(torch.randn(1, 3))` uses `Net(Config().dim)` with `torch.randn(1, 3)`. Nothing runs:
what only running would tell is unknown.
"""

from __future__ import annotations

import ast
import builtins
import copy
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence

from .....stated.syntax_trees import dotted
from ....evaluation.dtype_names import BY_NAME
from .folding import lists_written_out, slice_of_literal
from .loops import first_element
from .module_names import Function, ModuleNames, free_names, method
from .parameters import command_line
from .scope import CallArguments, ScriptScope
from .values import UNKNOWN, ScriptValue, Unresolved, checked, constant, dotted_node, first_known, guessed, integer, part_of, with_spelling

# What a model or a tensor is after these is shaped as before.
SAME_TENSOR = {"to", "cuda", "cpu", "clone", "detach", "contiguous", "pin_memory", "requires_grad_", "xpu", "to_device"}
SAME_MODEL = {"to", "cuda", "cpu", "eval", "train", "requires_grad_", "apply", "share_memory", "to_empty", "xpu", "module", "compile"}
CAST_MODEL = {"half", "double", "bfloat16", "float"}
WRAPPERS = {
    "DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "compile", "script", "freeze", "deepcopy",
    "convert_sync_batchnorm", "init_model", "init_weights", "optimize", "prepare_model", "setup_module", "SyncBatchNorm", "to_device",
    "BalancedDataParallel", "watch",
}  # fmt: skip
NOT_OF_SHAPE = {"device", "requires_grad", "generator", "pin_memory", "non_blocking", "memory_format"}
DEVICES = {"device", "dev", "DEVICE", "cuda_device"}


class ExpressionEvaluator:
    """Evaluates the expressions of one module. `Script` adds what calls and statements do."""

    def __init__(self, names: ModuleNames, classes: Sequence[str]) -> None:
        self.names = names
        self.classes = set(classes)  # as the document calls them
        self._options: Optional[Dict[str, ScriptValue]] = None

    @property
    def options(self) -> Dict[str, ScriptValue]:
        """The defaults of the command line."""
        if self._options is None:
            self._options = {}
            for name, default in command_line(self.names.tree):
                self._options.setdefault(name, ScriptValue(default))
        return self._options

    def value(self, node: Optional[ast.AST], scope: ScriptScope) -> ScriptValue:
        """Returns the value of an expression. Never raises."""
        if node is None:
            return UNKNOWN
        method = getattr(self, "_read_" + type(node).__name__.lower(), self._rebuilt)
        try:
            found: ScriptValue = method(node, scope)
        except (Unresolved, RecursionError):  # Data may be written as one very long expression.
            return UNKNOWN
        return found

    def called(self, model: ScriptValue, given: CallArguments, node: ast.Call, scope: ScriptScope) -> ScriptValue:
        """A model is called."""
        raise NotImplementedError

    def special(self, name: str, given: CallArguments, node: ast.Call, scope: ScriptScope) -> Optional[ScriptValue]:
        """A call that means more than its result. name: its full name."""
        raise NotImplementedError

    def run(self, function: Function, given: CallArguments, scope: ScriptScope, owner: Optional[ScriptValue] = None) -> ScriptValue:
        """A function of this module is called."""
        raise NotImplementedError

    def made(self, node: ast.ClassDef, given: CallArguments) -> Optional[Dict[str, ScriptValue]]:
        """An object of a class of this module is made: its attributes."""
        raise NotImplementedError

    # --- names ---

    def _read_name(self, node: ast.Name, scope: ScriptScope) -> ScriptValue:
        found = scope.find(node.id)
        if found is not None:
            if found is UNKNOWN and node.id in DEVICES:
                return ScriptValue(constant("cpu"))
            return with_spelling(found, node.id)
        return self._global(node.id)

    def _global(self, name: str) -> ScriptValue:
        if name in self.names.known:
            return ScriptValue(ast.Name(self.names.known[name], ast.Load()))
        function = name if name in self.names.functions else ""
        if self.names.own and name in self.names:
            return ScriptValue(ast.Name(name, ast.Load()), self.names.literals.get(name), function=function)
        if function:
            return ScriptValue(function=function)
        if name in self.names.imports:
            return ScriptValue(dotted_node(self.names.imports[name].replace("..", ".").lstrip(".") or name))
        if name in DEVICES:
            return ScriptValue(constant("cpu"))
        if name not in self.names and hasattr(builtins, name):
            return ScriptValue(ast.Name(name, ast.Load()))
        return UNKNOWN

    def _read_attribute(self, node: ast.Attribute, scope: ScriptScope) -> ScriptValue:
        name = dotted(node)
        found = scope.find(name) if name else None
        if found is not None:
            return with_spelling(found, node.attr)
        if name in self.names.known and scope.find(name.partition(".")[0]) is None:
            return ScriptValue(ast.Name(self.names.known[name], ast.Load()))
        base = self.value(node.value, scope)
        if base.is_model and node.attr == "module":
            return base
        part = (base.attributes or {}).get(node.attr)
        if base.node is None or (part is not None and not self.names.own):
            return part or (ScriptValue(constant("cpu")) if node.attr == "device" else UNKNOWN)
        made = ScriptValue(ast.Attribute(base.node, node.attr, ast.Load()))
        if part is None:
            return made
        return replace(part, node=made.node if not part.is_model else part.node, literal=part.known())

    def _read_subscript(self, node: ast.Subscript, scope: ScriptScope) -> ScriptValue:
        base = self.value(node.value, scope)
        index = self.value(node.slice, scope)
        number = integer(index.known())
        if number is not None and base.items is not None and -len(base.items) <= number < len(base.items):
            return base.items[number]
        part = slice_of_literal(base.known(), index.node) if index.node is not None else None
        if part is not None:
            return ScriptValue(part)
        known = index.known()
        named = (base.attributes or {}).get(str(known.value)) if isinstance(known, ast.Constant) else None
        if named is not None and (base.node is None or isinstance(base.node, ast.Dict) or named.is_model):
            return named
        made = ast.Subscript(base.resolved(), index.resolved(), ast.Load())
        part = part_of(base.known(), known, number)
        if part is not None and not isinstance(base.node, ast.Name):
            return ScriptValue(part)
        return ScriptValue(checked(made), part)

    # --- what has parts ---

    def _read_tuple(self, node: ast.AST, scope: ScriptScope) -> ScriptValue:
        parts: List[ScriptValue] = []
        for part in node.elts:  # type: ignore[attr-defined]
            parts += self._spread(part, scope)
        nodes = [value.node for value in parts if value.node is not None]
        made = (ast.Tuple if isinstance(node, ast.Tuple) else ast.List)(nodes, ast.Load()) if len(nodes) == len(parts) else None
        starred = any(isinstance(part, ast.Starred) for part in nodes)
        return ScriptValue(checked(made) if made is not None else None, items=None if starred else tuple(parts))

    _read_list = _read_tuple

    def _read_dict(self, node: ast.Dict, scope: ScriptScope) -> ScriptValue:
        attributes: Dict[str, ScriptValue] = {}
        for key, part in zip(node.keys, node.values):
            value = self.value(part, scope)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                attributes[key.value] = value
            elif key is None:
                attributes.update(value.attributes or {})
        whole = ScriptValue()
        if all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in node.keys):
            if all(value.node is not None for value in attributes.values()):
                whole = ScriptValue(ast.Dict([constant(key) for key in attributes], [value.resolved() for value in attributes.values()]))
        else:
            whole = self._quietly(node, scope)
        return replace(whole, attributes=attributes)

    def _read_ifexp(self, node: ast.IfExp, scope: ScriptScope) -> ScriptValue:
        test, parts = self.value(node.test, scope), [self.value(node.body, scope), self.value(node.orelse, scope)]
        if isinstance(test.node, ast.Constant):
            return parts[0 if test.node.value else 1]
        if test.node is not None and not any(part.is_model for part in parts) and all(part.node is not None for part in parts):
            return ScriptValue(checked(ast.IfExp(test.node, parts[0].resolved(), parts[1].resolved())))
        return first_known(parts)

    def _read_namedexpr(self, node: ast.NamedExpr, scope: ScriptScope) -> ScriptValue:
        scope.values[node.target.id] = value = self.value(node.value, scope)
        return value

    def _read_lambda(self, node: ast.Lambda, scope: ScriptScope) -> ScriptValue:
        bound = [part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        return self._rebuilt(node, _binding(scope, bound))

    def _lambda_called(self, function: ast.Lambda, given: CallArguments, scope: ScriptScope) -> ScriptValue:
        """The body of a lambda with its arguments put in; UNKNOWN where these are not given one by one."""
        names = [part.arg for part in function.args.args]
        if len(names) != len(given.positional) or given.keywords or function.args.vararg or function.args.kwonlyargs:
            return UNKNOWN
        inner = ScriptScope(scope.label, dict(zip(names, given.positional)), parent=scope, owner=scope.owner, is_script=scope.is_script)
        return self.value(function.body, inner)

    def _read_listcomp(self, node: ast.AST, scope: ScriptScope) -> ScriptValue:
        inner = ScriptScope(scope.label, parent=scope, owner=scope.owner, is_script=scope.is_script)
        for loop in node.generators:  # type: ignore[attr-defined]
            self.assign(loop.target, first_element(self.value(loop.iter, inner)), inner)
        for part in ("elt", "key", "value"):
            self.value(getattr(node, part, None), inner)
        return self._quietly(node, scope)

    _read_generatorexp = _read_setcomp = _read_dictcomp = _read_listcomp

    def _quietly(self, node: ast.AST, scope: ScriptScope) -> ScriptValue:
        """An expression whose calls were seen already."""
        bound = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        if free_names(node) & set(bound):
            return UNKNOWN
        try:
            return self._rebuilt(node, _binding(scope, bound))
        except Unresolved:
            return UNKNOWN

    def _read_await(self, node: ast.AST, scope: ScriptScope) -> ScriptValue:
        for part in ast.iter_child_nodes(node):
            self.value(part, scope)
        return UNKNOWN

    def _read_yield(self, node: ast.Yield, scope: ScriptScope) -> ScriptValue:
        scope.returned.append(self.value(node.value, scope))
        return UNKNOWN

    _read_yieldfrom = _read_await

    def _rebuilt(self, node: ast.AST, scope: ScriptScope) -> ScriptValue:
        made = copy.copy(node)
        made.__dict__.pop("shapelens_size", None)
        parts: Dict[str, Any] = {}
        for name, part in ast.iter_fields(node):  # All of them, as there may be calls in each.
            if isinstance(part, ast.AST) and not isinstance(part, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
                parts[name] = self._part(part, scope)
            elif isinstance(part, list) and any(isinstance(item, ast.AST) for item in part):
                parts[name] = [self._part(item, scope) if isinstance(item, ast.AST) else item for item in part]
        for name, new in parts.items():
            if new is None or (isinstance(new, list) and any(item is None for item in new)):
                raise Unresolved
            setattr(made, name, new)
        return ScriptValue(lists_written_out(checked(made)))  # type: ignore[arg-type]

    def _read_joinedstr(self, node: ast.JoinedStr, scope: ScriptScope) -> ScriptValue:
        """An f-string: a text, where all of its parts are known."""
        found = self._rebuilt(node, scope)
        parts = [_text_of(part) for part in found.node.values] if isinstance(found.node, ast.JoinedStr) else [None]
        return found if None in parts else ScriptValue(constant("".join(map(str, parts))))

    def _part(self, node: ast.AST, scope: ScriptScope) -> Optional[ast.AST]:
        if isinstance(node, (ast.cmpop, ast.arguments)) or isinstance(getattr(node, "ctx", None), ast.Store):
            return node
        if isinstance(node, ast.expr):
            return self.value(node, scope).node
        try:
            return self._rebuilt(node, scope).node
        except Unresolved:
            return None

    # --- calls ---

    def arguments(self, node: ast.Call, scope: ScriptScope) -> CallArguments:
        """Returns the arguments of a call, with `*` and `**` of known values written out."""
        given = CallArguments([], [])
        for part in node.args:
            given.positional += self._spread(part, scope)
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            known = value.known()
            if keyword.arg is None and value.attributes is not None and (value.node is None or isinstance(known, ast.Dict)):
                given.keywords += list(value.attributes.items())
            else:
                given.keywords.append((keyword.arg, value))
        return given

    def _spread(self, node: ast.expr, scope: ScriptScope) -> Iterator[ScriptValue]:
        if not isinstance(node, ast.Starred):
            yield self.value(node, scope)
            return
        value = self.value(node.value, scope)
        known = value.known()
        if value.items is not None:
            yield from value.items
        elif isinstance(known, (ast.Tuple, ast.List)) and not any(isinstance(part, ast.Starred) for part in known.elts):
            yield from map(ScriptValue, known.elts)
        else:
            yield ScriptValue(ast.Starred(value.node, ast.Load())) if value.node is not None else UNKNOWN

    def _read_call(self, node: ast.Call, scope: ScriptScope) -> ScriptValue:
        function = node.func
        base = self.value(function.value, scope) if isinstance(function, ast.Attribute) else UNKNOWN
        given = self.arguments(node, scope)
        if base.is_model and isinstance(function, ast.Attribute):
            return self._model_method(base, function.attr, given, node, scope)
        head = dotted(function).partition(".")[0]
        full = self.names.canonical(function) if head and scope.find(head) is None else ""
        found = self.special(full or "." + getattr(function, "attr", ""), given, node, scope)
        if found is not None:
            return found
        if isinstance(function, ast.Attribute) and function.attr in SAME_TENSOR and full.partition(".")[0] not in self.names.imports:
            return _same_tensor(base, function.attr, given)
        callee = self.value(function, scope)
        if callee.is_model:
            return self.called(callee, given, node, scope)
        if isinstance(callee.node, ast.Lambda):
            written_out = self._lambda_called(callee.node, given, scope)
            if written_out.node is not None:
                return written_out
        target = dotted(callee.node)
        if target in self.classes:
            return self.built(target, callee.resolved(), given, node)
        own = self._function(function, base, scope) or self.names.functions.get(callee.function)
        if own is not None:
            return self._returned(self.run(own, given, scope, base if base.attributes is not None else None), callee, given)
        return self._other_call(function, callee, full, given)

    def _other_call(self, function: ast.expr, callee: ScriptValue, full: str, given: CallArguments) -> ScriptValue:
        tail = (full or dotted(function)).rpartition(".")[2]
        if tail in WRAPPERS:
            wrapped = next((value for value in given.positional if value.is_model), None)
            if wrapped is not None:
                return wrapped
        if full.startswith("torch.") and full.count(".") == 1:
            given = CallArguments(given.positional, [(name, value) for name, value in given.keywords if name not in NOT_OF_SHAPE])
        attributes = self._attributes_made(function, tail, given)
        try:
            positional, keywords = given.nodes()
            made = checked(ast.Call(callee.resolved(), positional, keywords))
        except Unresolved:
            return replace(UNKNOWN, attributes=attributes) if attributes else UNKNOWN
        if tail == "dict" and not positional and all(keyword.arg for keyword in keywords):
            made = ast.Dict([constant(keyword.arg) for keyword in keywords], [keyword.value for keyword in keywords])
        return ScriptValue(made, attributes=attributes)

    def _attributes_made(self, function: ast.expr, tail: str, given: CallArguments) -> Optional[Dict[str, ScriptValue]]:
        """The attributes of what a call makes: an object of a class of the module, or a namespace of what it is given."""
        definition = self.names.classes.get(dotted(function))
        if definition is not None:
            return self.made(definition, given)
        is_namespace = tail in ("SimpleNamespace", "Namespace", "EasyDict", "edict", "AttrDict")
        if given.keywords and not given.positional and (is_namespace or tail == "dict"):
            return {name: value for name, value in given.keywords if name is not None}
        if given.positional and (is_namespace or tail in ("DictConfig", "create")):
            return given.positional[0].attributes
        return None

    def _function(self, node: ast.expr, base: ScriptValue, scope: ScriptScope) -> Optional[Function]:
        """The function of this module that a call runs."""
        if isinstance(node, ast.Name):
            return scope.function(node.id)
        if isinstance(node, ast.Attribute):
            name = dotted(node.value)
            owner = scope.owner if name in ("self", "cls") else self.names.classes.get(name)
            if owner is None and base.attributes is not None and isinstance(base.attributes.get("__class__", UNKNOWN).node, ast.Name):
                owner = self.names.classes.get(dotted(base.attributes["__class__"].node))
            return method(owner, node.attr) if owner is not None else None
        return None

    def _returned(self, found: ScriptValue, callee: ScriptValue, given: CallArguments) -> ScriptValue:
        """The result of a call of a function of this module: the call itself where the document can make it."""
        if not self.names.own or callee.node is None or self.prefers_result(found):
            return found
        try:
            positional, keywords = given.nodes()
            return replace(found, node=checked(ast.Call(callee.node, positional, keywords)))
        except Unresolved:
            return found

    def prefers_result(self, found: ScriptValue) -> bool:
        """True if what a function returns says more than its call does."""
        raise NotImplementedError

    def built(self, target: str, callee: ast.expr, given: CallArguments, node: ast.Call) -> ScriptValue:
        """A model of a class of the document is built. Keywords whose values are not known are left out."""
        kept = [(name, value) for name, value in given.keywords if value.node is not None or name is None]
        try:
            positional, keywords = CallArguments(given.positional, kept).nodes()
            made: Optional[ast.expr] = checked(ast.Call(callee, positional, keywords))
        except Unresolved:
            made = None
        model = ScriptValue(made, model=target, is_model=True)
        return model if len(kept) == len(given.keywords) else guessed(model)

    def _model_method(self, model: ScriptValue, name: str, given: CallArguments, node: ast.Call, scope: ScriptScope) -> ScriptValue:
        if name in ("forward", "__call__"):
            return self.called(model, given, node, scope)
        cast = next((_dtype(value) for value in given.positional + [value for _, value in given.keywords] if _dtype(value)), "")
        if name in CAST_MODEL or (name == "to" and cast):
            if name == "float" or cast in ("float32", "float"):
                return model
            if name == "to":
                name = {"float16": "half", "float64": "double"}.get(cast, cast)
            made = ast.Call(ast.Attribute(model.node, name, ast.Load()), [], []) if model.node is not None else None
            return replace(model, node=made if name in CAST_MODEL else model.node)
        if name in SAME_MODEL:
            return replace(model, is_evaluated=model.is_evaluated or name == "eval")
        callee = ScriptValue(ast.Attribute(model.node, name, ast.Load())) if model.node is not None else UNKNOWN
        positional, keywords = given.nodes()
        return ScriptValue(checked(ast.Call(callee.resolved(), positional, keywords)))

    def assign(self, target: ast.AST, value: ScriptValue, scope: ScriptScope) -> None:
        """`target = value`"""
        raise NotImplementedError


def _binding(scope: ScriptScope, names: Sequence[str]) -> ScriptScope:
    values = {name: ScriptValue(ast.Name(name, ast.Load())) for name in names}
    return ScriptScope(scope.label, values, parent=scope, owner=scope.owner, is_script=scope.is_script)


def _dtype(value: ScriptValue) -> str:
    """The dtype that an expression names: "float16"."""
    name = dotted(value.node)
    return name.rpartition(".")[2] if name.startswith("torch.") and name.rpartition(".")[2] in BY_NAME else ""


def _same_tensor(base: ScriptValue, name: str, given: CallArguments) -> ScriptValue:
    """`x.to(device)`, `x.cuda()`: x, but for a change of dtype."""
    cast = [value for value in given.positional + [value for _, value in given.keywords] if _dtype(value)] if name == "to" else []
    if cast and base.node is not None:
        return ScriptValue(ast.Call(ast.Attribute(base.node, "to", ast.Load()), [cast[0].resolved()], []))
    return base


def _text_of(part: ast.expr) -> Optional[str]:
    """Returns the text of a part of an f-string; None where nobody knows the text."""
    is_plain = isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None
    held = part.value if is_plain else part  # type: ignore[attr-defined]
    return str(held.value) if isinstance(held, ast.Constant) else None
