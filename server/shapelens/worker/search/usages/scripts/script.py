"""Goes through the statements of a script, as running it would, and notes each call of a model of the document on the way.

Functions are gone through where they are called, so that `train(Net(), loader)` tells what is called in `train`; those that nothing calls
come last, with their arguments by default. Loops turn once, all branches are taken.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .....stated.syntax_trees import dotted, is_none, positional, with_defaults
from . import batches, tools
from .loops import first_of, iterated
from .module_names import (
    FUNCTIONS,
    Function,
    ModuleNames,
    free_names,
    inherited,
    main_class,
    method,
    module_classes,
    required,
    statements,
    stored,
)
from .parameters import from_decorators
from .scope import CallArguments, ScriptScope
from .statements import StatementEvaluator
from .tensors import Tensors
from .values import UNKNOWN, ScriptValue, Unresolved, checked, first_known, is_guessed, is_literal

MOST_CALLS = 400  # of functions that are gone through
DEEPEST = 6
OF_LOADERS = ("dataset", "batch_size", "collate_fn", "drop_last")  # what a batch depends on
SET_UP = ("setUpClass", "setup_class", "setUp", "setup_method", "setup")
MODEL_NAMES = {"model", "net", "network"}
ARGUMENTS = {"args", "opt", "opts", "hparams", "flags", "FLAGS", "config", "cfg", "params", "options"}


@dataclass(frozen=True)
class ModelUse:
    """A model is built, and perhaps called."""

    target: str
    constructor: Optional[ast.expr]
    given: Optional[CallArguments]  # None: it is only built
    is_evaluated: bool
    label: str  # the function that does it; "" for the module itself
    call: ast.Call
    is_sure: bool  # nothing of it had to be guessed, and the script does not expect it to fail


class Script(StatementEvaluator):
    """One module, with what it does with models of the document."""

    def __init__(self, names: ModuleNames, classes: Sequence[str], document: ModuleNames) -> None:
        super().__init__(names, classes)
        self.document = document
        self.tensors = Tensors(names)
        self.uses: List[ModelUse] = []
        self.function_calls: List[Tuple[str, CallArguments]] = []  # another file's, of functions of the document
        self.loaders: List[ScriptValue] = []
        self.models = module_classes(names) | self.classes
        self._main_class: Optional[str] = None
        self._calls = 0
        self._active: List[Function] = []
        self._gone_through: Set[int] = set()
        self._owners = {id(part): node for node in names.classes.values() for part in node.body}
        self._fixtures = {name: node for name, node in names.functions.items() if any(map(_is_fixture, node.decorator_list))}

    def read(self) -> List[ModelUse]:
        """All uses, in the order in which running the script would come to them."""
        words = {name.rpartition(".")[2] for name in self.names.known} | self.classes | MODEL_NAMES | {"get_inputs"}
        if not self.names.speaks_of(words, self.models):
            return []
        if self.names.own:
            self._find_literals()
        self.block(self.names.tree.body, self.module)
        called = {dotted(node.func) for node in ast.walk(self.names.tree) if isinstance(node, ast.Call)}
        for function in sorted(self.names.functions.values(), key=lambda function: function.name in called):
            self._unless_gone_through(function, self.module)
        for node in self.names.classes.values():
            if node.name not in self.models:
                self._class(node)
        return self.uses

    def _find_literals(self) -> None:
        for node in statements(self.names.tree.body):
            if isinstance(node, ast.Assign) and is_literal(node.value, self.names.literals):
                for target in node.targets:
                    self._find_literal(target, node.value)

    def _find_literal(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and self.names.assigned[target.id] == 1:
            self.names.literals[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for part, literal in zip(target.elts, value.elts):
                self._find_literal(part, literal)

    def _class(self, node: ast.ClassDef) -> None:
        """The methods of a class that is no model: a test case, a trainer."""
        attributes = self.made(node, CallArguments([], []))
        owner = ScriptValue(attributes=attributes if attributes is not None else {})
        methods = [part for part in node.body if isinstance(part, FUNCTIONS)]
        for function in sorted(methods, key=lambda part: SET_UP.index(part.name) if part.name in SET_UP else len(SET_UP)):
            self._unless_gone_through(function, self.module, owner)

    def _unless_gone_through(self, function: Function, scope: ScriptScope, owner: Optional[ScriptValue] = None) -> None:
        if id(function) not in self._gone_through:
            self.run(function, CallArguments([], []), scope, owner)

    # --- what calls do ---

    def run(self, function: Function, given: CallArguments, scope: ScriptScope, owner: Optional[ScriptValue] = None) -> ScriptValue:
        if function in self._active or self._calls > MOST_CALLS or len(self._active) > DEEPEST:
            return UNKNOWN
        self._calls += 1
        self._active.append(function)
        self._gone_through.add(id(function))
        outer = scope if function is not self.names.functions.get(function.name) and owner is None else self.module
        local = {name for part in statements(function.body) for name in stored(part)}
        inner = ScriptScope(function.name + "()", local=local, parent=outer, owner=self._owners.get(id(function)))
        unsure_places = self.unsure_places
        self._bind_parameters(function, given, inner, owner)
        self.block(function.body, inner)
        self.unsure_places = unsure_places
        self._active.pop()
        return first_known(inner.returned)

    def _bind_parameters(self, function: Function, given: CallArguments, inner: ScriptScope, owner: Optional[ScriptValue]) -> None:
        parameters = positional(function)
        by_decorator = from_decorators(function.decorator_list)
        is_entry = len(self._active) == 1 and not given.positional and not given.keywords  # Callers may give what is None by default.
        decorators = {dotted(part) for part in function.decorator_list}
        if self._owners.get(id(function)) is not None and parameters and "staticmethod" not in decorators:
            is_of_class = "classmethod" in decorators
            itself = ScriptValue(ast.Name(self._owners[id(function)].name, ast.Load())) if is_of_class else ScriptValue(attributes={})
            inner.values[parameters[0].arg] = owner if owner is not None and not is_of_class else itself
            parameters = parameters[1:]
        defaults = {each.arg: default for each, default in with_defaults(function) if not (is_entry and is_none(default))}
        for position, parameter in enumerate(parameters + function.args.kwonlyargs):
            value = given.by_name(parameter.arg, position if position < len(parameters) else None)
            if value is None:
                value = self._unless_given(parameter.arg, by_decorator, defaults)
            value = self._model_annotated(parameter, value)
            if value is None and parameter.arg in ARGUMENTS and self.options:
                value = ScriptValue(attributes=self.options)
            if value is None and is_entry:
                value = self._likely(parameter.arg)
                self.unsure_places += value is not None
            inner.values[parameter.arg] = value if value is not None else UNKNOWN
        self._bind_rest(function, parameters, given, inner)

    def _bind_rest(self, function: Function, parameters: Sequence[ast.arg], given: CallArguments, inner: ScriptScope) -> None:
        """Bind `**kwargs` and `*args` to what no other parameter takes."""
        if function.args.kwarg is not None:
            taken = {parameter.arg for parameter in [*parameters, *function.args.kwonlyargs]}
            rest = {name: value for name, value in given.keywords if name is not None and name not in taken}
            inner.values[function.args.kwarg.arg] = ScriptValue(ast.Dict([], []) if not rest else None, attributes=rest)
        if function.args.vararg is not None:
            inner.values[function.args.vararg.arg] = ScriptValue(items=tuple(given.positional[len(parameters) :]))

    def _unless_given(self, name: str, by_decorator: Mapping[str, ast.expr], defaults: Mapping[str, ast.expr]) -> Optional[ScriptValue]:
        """Returns the value of a parameter that no call gives: that of a decorator, else its default, else a fixture of that name."""
        for said in (by_decorator, defaults):
            if name in said:
                return self.value(said[name], self.module)
        return self.run(self._fixtures[name], CallArguments([], []), self.module) if name in self._fixtures else None

    def _model_annotated(self, parameter: ast.arg, value: Optional[ScriptValue]) -> Optional[ScriptValue]:
        """The value of a parameter; the model that its annotation says where nothing is known of it."""
        annotated = dotted(self.value(parameter.annotation, self.module).node) if parameter.annotation is not None else ""
        if annotated not in self.classes or not (value is None or value is UNKNOWN):
            return value
        self.unsure_places += 1
        return ScriptValue(model=annotated, is_model=True)

    def _likely(self, name: str) -> Optional[ScriptValue]:
        """Returns the value of a parameter of a function that nothing calls: by its name, if there is just one thing of the kind."""
        words = set(name.lower().split("_"))
        if words & {"loader", "dataloader", "dl"} and self.loaders:
            return self.loaders[0]
        if name in MODEL_NAMES:
            if self._main_class is None:
                self._main_class = main_class(self.document, self.classes)
            return ScriptValue(model=self._main_class, is_model=True) if self._main_class else None
        return None

    def made(self, node: ast.ClassDef, given: CallArguments) -> Optional[Dict[str, ScriptValue]]:
        if node.name in self.models:
            return None
        attributes: Dict[str, ScriptValue] = {}
        self._class_attributes(node, attributes, given, 0)
        attributes["__class__"] = ScriptValue(ast.Name(node.name, ast.Load()))
        initialiser = method(node, "__init__")
        if initialiser is not None:
            self.run(initialiser, given, self.module, ScriptValue(attributes=attributes))
        return attributes

    def _class_attributes(self, node: ast.ClassDef, attributes: Dict[str, ScriptValue], given: CallArguments, depth: int) -> None:
        for base in node.bases if depth < 5 else ():
            if dotted(base) in self.names.classes:
                self._class_attributes(self.names.classes[dotted(base)], attributes, given, depth + 1)
        fields = []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                fields.append(part.target.id)
                if part.value is not None:
                    attributes[part.target.id] = self.value(part.value, self.module)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                attributes[part.targets[0].id] = self.value(part.value, self.module)
        if method(node, "__init__") is None:  # A dataclass or a named tuple.
            attributes.update(zip(fields, given.positional))
            attributes.update((name, value) for name, value in given.keywords if name in fields)

    def prefers_result(self, found: ScriptValue) -> bool:
        parts = [part.node for part in (found.items if found.items is not None else (found,))]
        are_made = [self.tensors.is_made(part) for part in parts]
        return any(are_made) and all(made or (part is not None and is_literal(part)) for made, part in zip(are_made, parts))

    def called(self, model: ScriptValue, given: CallArguments, node: ast.Call, scope: ScriptScope) -> ScriptValue:
        for one in (model,) + model.others:
            if one.model:
                said = None if self._misses(one.model, "forward", given) else given
                values = [one, *given.positional, *[value for _, value in given.keywords]]
                sure = not (model.others or self.unsure_places or said is None or _is_guess(values))
                self.uses.append(ModelUse(one.model, one.node, said, one.is_evaluated, scope.label, node, sure))
        try:
            positional, keywords = given.nodes()
            return ScriptValue(checked(ast.Call(model.resolved(), positional, keywords)))
        except Unresolved:
            return UNKNOWN

    def built(self, target: str, callee: ast.expr, given: CallArguments, node: ast.Call) -> ScriptValue:
        made = super().built(target, callee, given, node)
        if self._misses(target, "__init__", given):
            made = replace(made, node=None)
        label = self._active[-1].name + "()" if self._active else self.module.label
        sure = not (self.unsure_places or _is_guess([made]))
        self.uses.append(ModelUse(target, made.node, None, False, label, node, sure))
        return made

    def _misses(self, target: str, name: str, given: CallArguments) -> bool:
        """True if a method of a class needs a keyword argument whose value is not known: others are left out."""
        left_out = {keyword for keyword, value in given.keywords if value.node is None and keyword is not None}
        owner = self.document.classes.get(target)
        function = inherited(self.document, owner, name) if owner is not None and left_out else None
        return bool(left_out) and (function is None or not required(function).isdisjoint(left_out))

    def special(self, name: str, given: CallArguments, node: ast.Call, scope: ScriptScope) -> Optional[ScriptValue]:
        tail = name.rpartition(".")[2]
        if tail in ("parse_args", "parse_known_args", "parse_args_into_dataclasses") and self.options:
            found = ScriptValue(attributes=self.options)
            return found if tail == "parse_args" else ScriptValue(items=(found, UNKNOWN))
        if tail == "vars" and given.positional and given.positional[0].attributes is self._options:
            return given.positional[0]
        model = next((value for value in given.positional[:2] if value.is_model), given.by_name("model"))
        if model is not None and model.is_model:
            inputs = tools.inputs_of_tool(name, given)
            if inputs is not None:
                self.called(model, inputs, node, scope)
                return replace(model, node=None) if tail == "trace" else UNKNOWN
            if tail == "prepare" and len(given.positional) > 1:
                return ScriptValue(items=tuple(given.positional))
        made = self._made_by_document(given, node, scope)
        if made is not None:
            return made
        in_loop = iterated(name, given.positional) if name not in self.names.functions else None
        return in_loop if in_loop is not None else self._of_data(tail, given, node)

    def _made_by_document(self, given: CallArguments, node: ast.Call, scope: ScriptScope) -> Optional[ScriptValue]:
        """Another file calls a function of the document that returns a model."""
        if self.names.own or dotted(node.func) not in self.names.known or scope.find(dotted(node.func)) is not None:
            return None
        name = self.names.known[dotted(node.func)]
        if name not in self.document.functions:
            return None
        self.function_calls.append((name, given))
        script = Script(self.document, sorted(self.classes), self.document)
        found = script.run(self.document.functions[name], given, script.module)
        try:
            positional, keywords = given.nodes()
            made: Optional[ast.expr] = checked(ast.Call(ast.Name(name, ast.Load()), positional, keywords))
        except Unresolved:
            made = None
        return replace(found, node=made) if found.is_model else None

    def _of_data(self, tail: str, given: CallArguments, node: ast.Call) -> Optional[ScriptValue]:
        """Data sets and loaders, with what iterating them gives; None for anything else."""
        if tail == "DataLoader":
            found = self._loader(given, node)
            self.loaders.append(found)
            return found
        if tail == "TensorDataset":
            made = self._again(node, given)
            shorthands = [self.tensors.shorthand(value.node) if value.node is not None else None for value in given.positional]
            return replace(made, element=batches.sample(shorthands))
        if tail == "random_split" and len(given.positional) > 1:
            parts = given.positional[1].items
            return ScriptValue(items=(given.positional[0],) * (len(parts) if parts else 2))
        if tail in ("Subset", "ConcatDataset") and given.positional:
            whole = given.positional[0]
            return whole.items[0] if whole.items else whole
        return batches.data_set(tail, given)

    def _again(self, node: ast.Call, given: CallArguments) -> ScriptValue:
        """The call itself, in the document's words."""
        try:
            positional, keywords = given.nodes()
            return ScriptValue(checked(ast.Call(self.value(node.func, self.module).resolved(), positional, keywords)))
        except Unresolved:
            return UNKNOWN

    def _loader(self, given: CallArguments, node: ast.Call) -> ScriptValue:
        data = given.by_name("dataset", 0)
        if data is not None and data.element is None and data.attributes is not None:
            owner = self.names.classes.get(dotted(data.attributes.get("__class__", UNKNOWN).node))
            getter = inherited(self.names, owner, "__getitem__") if owner is not None else None
            if getter is not None:
                items = self.run(getter, CallArguments([UNKNOWN], []), self.module, ScriptValue(attributes=data.attributes))
                data = replace(data, element=self.tensors.item(items))
        known = batches.loader(given, data)
        if known is not None:
            return known
        kept: List[Tuple[Optional[str], ScriptValue]] = [(name, value) for name, value in given.keywords if name in OF_LOADERS]
        return batches.first_batch(self._again(node, CallArguments(given.positional[:2], kept)))

    def kept(self, name: str, value: ScriptValue, scope: ScriptScope) -> ScriptValue:
        """A name of the document stays one, unless what it holds says more: a model, tensors, what a model gave."""
        if not self.names.own or scope is not self.module or self.names.assigned.get(name) != 1:
            return value
        says_more = any(part.is_model for part in (value, *(value.items or ()))) or self.prefers_result(value)
        if value.node is None:
            says_more |= value.element is not None or (value.attributes is not None and value.attributes is self._options)
        elif says_more or scope.label or free_names(value.node) & self.classes:
            return value
        if says_more:
            return value
        items = value.items if value.node is not None and is_literal(value.node) else None
        node = ast.Name(name, ast.Load())
        element = value.element
        if element is not None and not self.prefers_result(element):
            element = ScriptValue(first_of(node))
        return replace(value, node=node, literal=value.known(), items=items, element=element)


def _is_guess(values: Sequence[ScriptValue]) -> bool:
    return any(value.node is None or is_guessed(value.node) for value in values)


def _is_fixture(node: ast.expr) -> bool:
    """`@pytest.fixture`, with or without arguments."""
    return dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2] == "fixture"
