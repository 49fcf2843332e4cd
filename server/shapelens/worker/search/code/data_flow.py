"""Follows a parameter through the code: assignments, `self.x = x` into the other methods, loops over it, and calls of the user's own
functions and classes. What is found is evidence, never proof: a wrong guess costs a try.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any, Callable, Dict, NamedTuple, Optional, Set, Tuple

import torch

from ....stated.syntax_trees import all_parameters, dotted, integer, last_name
from .callees import callee, keys_of, parameters_of
from .sources import function_node, function_of, index_of, initialiser, is_table, is_torch, look_up, methods
from .uses import (
    ALSO_OF_OTHERS,
    COPIES,
    DICT_METHODS,
    KINDS_OF_TYPES,
    LIST_METHODS,
    MODULE_METHODS,
    NUMBERS_OF,
    SAME_SHAPE,
    SIZES_OF,
    TENSOR_METHODS,
    TENSORS_OF,
    TEXT_METHODS,
    Uses,
)

DEEPEST = 5  # calls that a value is followed through
MOST = 400  # places looked at for one value
_SAYS: Dict[type, str] = {
    ast.Starred: "list",
    ast.AugAssign: "number",
    ast.If: "bool",
    ast.While: "bool",
    ast.Assert: "bool",
}  # of what stands in it


class Follower:
    """Follows values through the code of a class, or of a function."""

    def __init__(self) -> None:
        self.looked = 0
        self.under_way: Set[Tuple[int, str]] = set()

    def parameter(
        self,
        function: Any,
        name: str,
        uses: Uses,
        cls: Optional[type] = None,
        owner: Optional[type] = None,
        depth: int = 0,
        building: bool = True,
    ) -> None:
        """Add what a function does with a parameter.

        cls: what `self` is; owner: the class whose text the function is of; building: it runs while a module is built.
        """
        node = function_node(function)
        if node is None or depth > DEEPEST or (id(node), name) in self.under_way:
            return
        self.under_way.add((id(node), name))
        _Function(self, function_of(function), node, cls, owner, depth, building).names({name: uses})
        self.under_way.discard((id(node), name))


class _Passed(NamedTuple):
    """An argument of a call: by its position, or by its keyword."""

    call: ast.Call
    name: str  # of the function
    position: Optional[int]
    keyword: Optional[str]


class _Function:
    def __init__(
        self, follower: Follower, function: Any, node: Any, cls: Optional[type], owner: Optional[type], depth: int, building: bool
    ) -> None:
        self.follower = follower
        self.function = function
        self.cls = cls
        self.owner = owner
        self.depth = depth
        self.index = index_of(node)
        self.node = node
        self.parameters = {each.arg for each in all_parameters(node)}
        self.waiting: Dict[str, Uses] = {}
        self.done: Set[Tuple[str, int]] = set()
        self.building = building

    def names(self, waiting: Dict[str, Uses]) -> None:
        self.waiting = dict(waiting)
        while self.waiting:
            name, uses = self.waiting.popitem()
            if (name, id(uses)) in self.done:
                continue
            self.done.add((name, id(uses)))
            for node in self.index.loads_of_first(name) if name in self.parameters else self.index.loads.get(name, ()):
                self.node_used(node, uses)
            if name.startswith("self.") and self.cls is not None and self.depth <= DEEPEST:
                self._in_other_methods(name, uses)

    def _in_other_methods(self, name: str, uses: Uses) -> None:
        assert self.cls is not None
        for function, node in methods(self.cls):
            key = (id(node), name)
            if node is not self.node and key not in self.follower.under_way and name in index_of(node).loads:
                self.follower.under_way.add(key)
                other = _Function(self.follower, function, node, self.cls, self.owner, self.depth + 1, node.name == "__init__")
                for place in other.index.loads[name]:
                    other.node_used(place, uses)
                waiting = {alias: found for alias, found in other.waiting.items() if not alias.startswith("self.")}
                other.names(waiting)
                self.follower.under_way.discard(key)

    def track(self, target: ast.AST, uses: Uses) -> None:
        """Follow what a value is assigned to."""
        if isinstance(target, (ast.Tuple, ast.List)):
            uses.add("list")
            if not any(isinstance(part, ast.Starred) for part in target.elts):
                uses.exactly = uses.exactly or len(target.elts)
            for part in target.elts:
                self.track(part, uses.items())
            return
        name = dotted(target)
        if name and (name.count(".") == 0 or (name.count(".") == 1 and name.startswith("self."))):
            self.waiting[name] = uses

    def node_used(self, node: ast.AST, uses: Uses) -> None:
        """Add what the expression around a node does with it."""
        self.follower.looked += 1
        if self.follower.looked > MOST:
            return
        parent = self.index.parents.get(node)
        if type(parent) in _SAYS:
            uses.add(_SAYS[type(parent)])
        elif type(parent) in _AROUND:
            _AROUND[type(parent)](self, parent, node, uses)

    def _call(self, call: ast.Call, used: ast.AST, uses: Uses) -> None:
        if call.func is not used:
            self._argument(call, used, None, uses)
        elif not self._may_be_no_function(used):
            uses.add("class" if self.building else "called", 2)
            uses.calls.append((len(call.args), tuple(part.arg or "**" for part in call.keywords)))

    def _keyword(self, node: ast.keyword, used: ast.AST, uses: Uses) -> None:
        call = self.index.parents.get(node)
        if isinstance(call, ast.Call) and node.arg is None:
            uses.add("dict")
            self._unpacked(call, uses)
        elif isinstance(call, ast.Call):
            self._argument(call, None, node.arg, uses)

    def _assigned(self, node: Any, used: ast.AST, uses: Uses) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.track(target, uses)

    def _loop(self, node: Any, used: ast.AST, uses: Uses) -> None:
        if node.iter is used:
            uses.add("list")
            self.track(node.target, uses.items())
        elif isinstance(node, ast.comprehension):
            uses.add("bool")

    def _one_of_two(self, node: ast.IfExp, used: ast.AST, uses: Uses) -> None:
        if node.test is used:
            uses.add("bool")
        else:
            self.node_used(node, uses)

    def _one_of_several(self, node: ast.BoolOp, used: ast.AST, uses: Uses) -> None:
        if node.values[-1] is not used:
            uses.add("bool")
        self.node_used(node, uses)

    def _negated(self, node: ast.UnaryOp, used: ast.AST, uses: Uses) -> None:
        uses.add("bool" if isinstance(node.op, ast.Not) else "number")

    def _item(self, node: ast.AST, used: ast.AST, uses: Uses) -> None:
        around = self.index.parents.get(node)
        if isinstance(around, ast.Subscript) or (isinstance(around, ast.Call) and around.func is not node):
            uses.add("number", 0)

    def _may_be_no_function(self, called: ast.AST) -> bool:
        """True if the code asks whether what it calls can be called: `d() if callable(d) else d`, or by a predicate of its own."""
        name, node = dotted(called), self.index.parents.get(called)
        while name is not None and node is not None and not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for asked in ast.walk(node.test) if isinstance(node, (ast.If, ast.IfExp)) else ():
                if isinstance(asked, ast.Call) and asked.args and dotted(asked.args[0]) == name:
                    either_way = isinstance(node, ast.IfExp) and name in (dotted(node.body), dotted(node.orelse))
                    if either_way or dotted(asked.func) == "callable":
                        return True
            node = self.index.parents.get(node)
        return False

    # --- each form ---

    def _is_asked_for(self, node: ast.Subscript, key: str) -> bool:
        """True if an `if` around the item of a dict asks whether the item is there: `if "masks" in targets: … targets["masks"]`."""
        asked = "%r in %s" % (key, ast.unparse(node.value))
        around = self.index.parents.get(node)
        while around is not None:
            if isinstance(around, ast.If) and ast.unparse(around.test) == asked:
                return True
            around = self.index.parents.get(around)
        return False

    def _attribute(self, node: ast.Attribute, used: ast.AST, uses: Uses) -> None:
        around = self.index.parents.get(node)
        call = around if isinstance(around, ast.Call) and around.func is node else None
        name = node.attr
        if call is not None and self._method(call, name, uses):
            return
        if (call is not None and name in TENSOR_METHODS) or name in ("shape", "dtype", "device", "size", "ndim"):
            uses.add("tensor")
            uses.rank = max(uses.rank, self._dims_read(node, around))
            if name in ("device", "dtype"):  # Of settings too.
                uses.part(name)
            if call is not None and name in SAME_SHAPE:
                self._made_tensor(call, uses)
        elif call is not None and name == "astype":
            self._made_tensor(call, uses)
        elif call is not None and name == "copy":
            self.node_used(call, uses)
        elif not (name.startswith("__") and name.endswith("__")):
            uses.add("object")
            uses.optional.discard(name)
            self.node_used(node, uses.part(name))

    def _method(self, call: ast.Call, name: str, uses: Uses) -> bool:
        """True if a method is one of dicts, texts, lists or modules."""
        if name in DICT_METHODS:
            key = call.args[0] if call.args and name in ("get", "pop", "setdefault") else None
            uses.add("dict")
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                if key.value not in uses.parts:
                    uses.optional.add(key.value)
                self.node_used(call, uses.part(key.value))
        elif name in TEXT_METHODS and (name not in ALSO_OF_OTHERS or _is_given_texts(call)):
            uses.add("text")
            if name in ("lower", "upper", "strip"):
                self.node_used(call, uses)
        elif name in LIST_METHODS:
            uses.add("list")
        elif name in MODULE_METHODS:
            uses.add("module", 3)
        else:
            return False
        return True

    def _dims_read(self, node: ast.Attribute, around: Optional[ast.AST]) -> int:
        """Returns the number of dims that `x.shape[1]`, `x.size(1)` or `rows, width = x.shape` say that a tensor has; 0 where they say
        nothing."""
        place: Optional[int] = None
        if node.attr == "shape" and isinstance(around, ast.Subscript) and around.value is node:
            place = integer(around.slice)
        elif node.attr == "size" and isinstance(around, ast.Call) and around.func is node and around.args:
            place = integer(around.args[0])
        elif node.attr == "shape" and isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Tuple):
            return len(around.targets[0].elts)
        return 0 if place is None else place + 1 if place >= 0 else -place

    def _made_tensor(self, made: ast.AST, uses: Uses) -> None:
        """A tensor of the same numbers: its rank is that of what it is made of."""
        behind = Uses()
        self.node_used(made, behind)
        if behind.kinds.get("tensor") and behind.rank:
            uses.add("tensor")
            uses.rank = max(uses.rank, behind.rank)

    def _subscript(self, node: ast.Subscript, used: ast.AST, uses: Uses) -> None:
        if node.value is not used:
            keys = keys_of(node.value, self.index, self.function, self.cls)
            if keys:
                uses.choices += [key for key in keys if key not in uses.choices]
                if isinstance(keys[0], str):
                    uses.add("text", 2)
            else:
                uses.add("text" if is_table(node.value) else "int")
            return
        key: Any = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            uses.add("dict")
            if not self._is_asked_for(node, key.value):
                uses.optional.discard(key.value)
            elif key.value not in uses.parts:
                uses.optional.add(key.value)
            self.node_used(node, uses.part(key.value))
        elif isinstance(key, ast.Slice):
            uses.add("list")
            self.node_used(node, uses)
        else:
            number = integer(key)
            if number is not None:
                uses.least = max(uses.least, number + 1 if number >= 0 else -number)
            uses.add("list")
            self.node_used(node, uses.items())

    def _operator(self, node: ast.BinOp, used: ast.AST, uses: Uses) -> None:
        other = node.right if node.left is used else node.left
        if isinstance(other, (ast.List, ast.Tuple, ast.ListComp)):
            uses.add("list" if isinstance(node.op, ast.Add) else "int", 2)
            if isinstance(node.op, ast.Add):
                self.node_used(node, uses)
        elif isinstance(other, (ast.JoinedStr,)) or (isinstance(other, ast.Constant) and isinstance(other.value, str)):
            uses.add("text")
        elif isinstance(node.op, ast.Mod) and node.left is not used and isinstance(other, ast.Constant) and isinstance(other.value, str):
            uses.add("text", 0)
        elif isinstance(node.op, ast.Add) and uses.kinds.get("list") and isinstance(self.index.parents.get(node), (ast.Call, ast.keyword)):
            self.node_used(node, uses)  # Two lists, one behind the other.
        else:
            uses.add("int" if isinstance(node.op, (ast.FloorDiv, ast.Mod, ast.LShift)) else "number")

    def _formatted(self, node: ast.FormattedValue, used: ast.AST, uses: Uses) -> None:
        """`getattr(nn, f"Conv{rank}d")`"""
        text = self.index.parents.get(node)
        parts = text.values if isinstance(text, ast.JoinedStr) else []
        after = parts[parts.index(node) + 1 :]
        if after and isinstance(after[0], ast.Constant) and str(after[0].value).rstrip("(").lower() == "d" and parts.index(node) > 0:
            uses.add("int")
            uses.choices += [2, 1, 3]

    def _compared(self, node: ast.Compare, used: ast.AST, uses: Uses) -> None:
        others = [part for part in [node.left] + node.comparators if part is not used]
        for other in others:
            parts = other.elts if isinstance(other, (ast.Tuple, ast.List, ast.Set)) else [other]
            values = [part.value for part in parts if isinstance(part, ast.Constant)]
            if isinstance(node.ops[0], (ast.In, ast.NotIn)) and used is node.left and not values:
                values = keys_of(other, self.index, self.function, self.cls)
            for value in values:
                if isinstance(value, str):
                    if used is node.left or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
                        uses.add("text", 2)
                        if value not in uses.choices:
                            uses.choices.append(value)
                    else:  # "x" in config
                        uses.add("dict", 0)
                        uses.optional.add(value)
                elif isinstance(value, bool):
                    uses.add("bool")
                elif isinstance(value, (int, float)):
                    uses.add("number")
                    if isinstance(node.ops[0], (ast.In, ast.Eq)) and value not in uses.choices:
                        uses.choices.append(value)

    def _argument(self, call: ast.Call, node: Optional[ast.AST], keyword: Optional[str], uses: Uses) -> None:
        """The value is an argument of a call."""
        passed = _Passed(call, last_name(call.func), call.args.index(node) if node in call.args else None, keyword)
        if any(rule(self, passed, uses) for rule in _CALLS):
            return
        target, skip, cls, owner = callee(call.func, self.function, self.cls, self.owner)
        if target is not None:
            self._passed_on(call, target, skip, cls, owner, passed.position, keyword, uses)
        elif keyword is not None and keyword != "dtype":
            uses.roles.append(keyword)

    # --- what calls of known functions say, in the order of _CALLS: each tells whether that is all ---

    def _fills_in(self, passed: _Passed, uses: Uses) -> bool:
        """`"Conv{}d".format(rank)` takes a number of dims, any other text nothing that is told."""
        function = passed.call.func
        if passed.name != "format" or not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Constant):
            return False
        if re.search(r"[a-z]\{\w*\}d", str(function.value.value)):
            uses.add("int")
            uses.choices += [2, 1, 3]
        return True

    def _asks_for_type(self, passed: _Passed, uses: Uses) -> bool:
        """`isinstance` names the types that a value may be of."""
        if passed.name == "isinstance" and passed.position == 0:
            types = passed.call.args[1]
            uses.guarded.update(part.id for part in ast.walk(types) if isinstance(part, ast.Name))
            asked = types.elts if isinstance(types, ast.Tuple) else [types]
            uses.types += [kind for kind in (look_up(part, self.function) for part in asked) if isinstance(kind, type)]
        return passed.name == "isinstance"

    def _asks_for_attribute(self, passed: _Passed, uses: Uses) -> bool:
        """`getattr` and `hasattr` name a part, which may be missing where there is a default for it."""
        call = passed.call
        if passed.name not in ("getattr", "hasattr") or passed.position != 0:
            return False
        key = call.args[1] if len(call.args) > 1 else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            uses.add("object")
            if (passed.name == "hasattr" or len(call.args) > 2) and key.value not in uses.parts:
                uses.optional.add(key.value)
            if passed.name == "getattr":
                self.node_used(call, uses.part(key.value))
        return True

    def _is_table(self, passed: _Passed, uses: Uses) -> bool:
        """`nn.Embedding.from_pretrained` takes the table of an embedding."""
        is_first = passed.position == 0 or passed.keyword == "embeddings"
        if passed.name != "from_pretrained" or not is_first or not _is_embedding(passed.call.func, self.function):
            return False
        uses.add("tensor")
        uses.rank = 2
        return True

    def _becomes_tensor(self, passed: _Passed, uses: Uses) -> bool:
        """Notes the rank of a value that becomes a tensor; what else the call says of it is still to be seen."""
        if passed.name in TENSORS_OF and passed.position == 0 and len(passed.call.args) == 1:
            if passed.name == "from_numpy":
                uses.add("tensor")
                uses.is_array = True
            self._made_tensor(passed.call, uses)
        return False

    def _is_taken_by_builtin(self, passed: _Passed, uses: Uses) -> bool:
        """True if a function of Python's or torch's own takes the argument: the uses of such an argument are known."""
        function = passed.call.func
        is_own = isinstance(function, ast.Name) or dotted(getattr(function, "value", function)) in ("torch", "np", "numpy", "math", "copy")
        return is_own and passed.position is not None and self._builtin(passed.call, passed.name, passed.position, uses)

    def _builtin(self, call: ast.Call, name: str, position: int, uses: Uses) -> bool:
        """True if it is a call of Python's or torch's own, of which is known what it takes."""
        if name in ("len", "sum", "enumerate", "zip", "any", "all") or (name in ("max", "min", "prod") and len(call.args) == 1):
            uses.add("list")
            around = self.index.parents.get(call)
            if name in ("enumerate", "zip") and isinstance(around, (ast.For, ast.comprehension)):
                place = 1 if name == "enumerate" else position
                target = around.target
                if isinstance(target, ast.Tuple) and place < len(target.elts):
                    self.track(target.elts[place], uses.items())
                elif name == "enumerate":
                    uses.items()
            elif name in ("sum", "prod", "max", "min"):
                uses.items().add("number")
        elif name in ("filter", "map") and position == 1 and isinstance(call.args[0], ast.Lambda):
            uses.add("list")
            inside = set(ast.walk(call.args[0].body))
            for argument in call.args[0].args.args[:1]:
                for load in self.index.loads.get(argument.arg, ()):
                    if load in inside:
                        self.node_used(load, uses.items())
            if name == "filter":
                self.node_used(call, uses)
        elif name in COPIES and position == 0:
            if name in ("list", "tuple", "reversed", "sorted", "set"):
                uses.add("list")
            self.node_used(call, uses)
        elif name in SIZES_OF:
            uses.add("int", 2)
        elif name in NUMBERS_OF:
            uses.add("number")
            uses.is_power_of_two = uses.is_power_of_two or name == "log2"
        elif name in ("str", "print", "repr", "format", "id", "type", "issubclass", "callable", "super"):
            pass
        else:
            return False
        return True

    def _unpacked(self, call: ast.Call, uses: Uses) -> None:
        """`Encoder(**config)`: it has what that requires."""
        target, skip, cls, owner = callee(call.func, self.function, self.cls, self.owner)
        if target is None or is_torch(target) or self.depth > 1:
            return
        given = {keyword.arg for keyword in call.keywords}
        for parameter in list(parameters_of(target, cls).values())[skip + len(call.args) :]:
            named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if named and parameter.default is parameter.empty and parameter.name not in given:
                part = uses.part(parameter.name)
                if parameter.annotation is not parameter.empty:
                    part.annotations.append((parameter.annotation, function_of(target)))
                self.follower.parameter(target, parameter.name, part, cls, owner, self.depth + 1)

    def _passed_on(
        self,
        call: ast.Call,
        target: Any,
        skip: int,
        cls: Optional[type],
        owner: Optional[type],
        position: Optional[int],
        keyword: Optional[str],
        uses: Uses,
    ) -> None:
        parameters = parameters_of(target, cls)
        names = list(parameters)
        star = next((place for place, item in enumerate(parameters.values()) if item.kind is item.VAR_POSITIONAL), len(names))
        if keyword is None and position is not None:
            if any(isinstance(part, ast.Starred) for part in call.args[:position]):
                return
            if position + skip >= star:  # `super().__init__(*args, **kwargs)`: it is what the base makes of it.
                behind = initialiser(cls, owner) if cls is not None and getattr(target, "__name__", "") == "__init__" else None
                if behind is not None and star < len(names):
                    self._passed_on(call, behind[1], 1 - star + skip, cls, behind[0], position, None, uses)
                return
            keyword = names[position + skip]
        if keyword is None or keyword not in parameters or parameters[keyword].kind is inspect.Parameter.VAR_KEYWORD:
            return
        uses.roles.append(keyword)
        annotation = parameters[keyword].annotation
        if annotation is not inspect.Parameter.empty:
            uses.annotations.append((annotation, function_of(target)))
        default = parameters[keyword].default
        kind = KINDS_OF_TYPES.get(type(default).__name__)
        if is_torch(owner or target) and kind in ("int", "bool", "text"):
            uses.add(kind)
        building = self.building or getattr(target, "__name__", "") == "__init__"
        self.follower.parameter(target, keyword, uses, cls, owner, self.depth + 1, building)


# What stands around a value, and what follows of that.
_AROUND: Dict[type, Callable[[_Function, Any, ast.AST, Uses], None]] = {
    ast.Attribute: _Function._attribute,
    ast.Subscript: _Function._subscript,
    ast.Call: _Function._call,
    ast.keyword: _Function._keyword,
    ast.Assign: _Function._assigned,
    ast.AnnAssign: _Function._assigned,
    ast.NamedExpr: _Function._assigned,
    ast.For: _Function._loop,
    ast.comprehension: _Function._loop,
    ast.BinOp: _Function._operator,
    ast.UnaryOp: _Function._negated,
    ast.Compare: _Function._compared,
    ast.IfExp: _Function._one_of_two,
    ast.BoolOp: _Function._one_of_several,
    ast.FormattedValue: _Function._formatted,
    ast.Tuple: _Function._item,
    ast.List: _Function._item,
}
# What a call of a known function says of its argument: the first that says all ends the question.
_CALLS: Tuple[Callable[[_Function, _Passed, Uses], bool], ...] = (
    _Function._fills_in,
    _Function._asks_for_type,
    _Function._asks_for_attribute,
    _Function._is_table,
    _Function._becomes_tensor,
    _Function._is_taken_by_builtin,
)


def _is_embedding(function: ast.AST, where: Any) -> bool:
    """True if it is a method of torch's embeddings: `nn.Embedding.from_pretrained`."""
    owner = look_up(function.value, where) if isinstance(function, ast.Attribute) else None
    return isinstance(owner, type) and issubclass(owner, (torch.nn.Embedding, torch.nn.EmbeddingBag))


def _is_given_texts(call: Any) -> bool:
    """True if each argument of a call is a text: `sentence.split(" ")`, and not `logits.split(64)`."""
    return all(isinstance(argument, ast.Constant) and isinstance(argument.value, str) for argument in call.args)
