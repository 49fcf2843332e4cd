"""Shapes of parameters as the body of a function says them before it reassigns them: unpacking, checks of the rank, einops, indices.

`B, T, C = x.shape` tells rank and names, `x.permute(0, 2, 1)` the rank, `x.shape[2]` and `x[:, :, 0]` a lower bound of it. What stands
under a condition on the parameter's own rank is one possibility of several.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Set, Tuple

from ....stated.shape_words import REST, Dim, Dims
from ....stated.syntax_trees import integer
from .einops_patterns import applied_layer, pattern_uses
from .layer_ranks import Layers, Preserving, applied_to, wanted_rank
from .local_names import ParameterNames, forget_assigned, pairs, walk
from .tensor_calls import ranks_of_call

# How sure it is that a fact holds of every value that the parameter can have.
SURE = 3  # it holds whenever the function runs to its end
USUAL = 2  # it holds of nearly every function that is written so: `x.repeat(1, n, 1)`
MAYBE = 1  # it stands under a condition, on the parameter's rank or on something else
ASKED = 0  # it is no more than asked for: `if x.dim() == 3`


@dataclass
class Fact:
    """A fact that one place says of a parameter. dims where it fixes the rank, pattern where it leaves it open."""

    line: int
    strength: int  # SURE, USUAL, MAYBE or ASKED
    dims: Optional[Dims] = None
    pattern: Dims = ()
    min_rank: int = 0


def facts(function: ast.FunctionDef, parameters: Sequence[str], layers: Layers) -> Dict[str, List[Fact]]:
    """The facts of each parameter, in the order of the text."""
    reader = _ShapeReader(parameters, layers)
    reader.block(function.body, ParameterNames({name: name for name in parameters}), frozenset())
    return reader.found


class _ShapeReader:
    def __init__(self, parameters: Sequence[str], layers: Layers) -> None:
        self.found: Dict[str, List[Fact]] = {name: [] for name in parameters}
        self.conditions = 0  # how many surround what is read
        self.layers = layers
        self.preserving = Preserving(layers)

    # Statements

    def block(self, statements: Sequence[ast.stmt], names: ParameterNames, doubted: "frozenset[str]") -> bool:
        """Reads statements in order. Returns whether they leave the function or loop. doubted: parameters whose rank was asked for."""
        for statement in statements:
            if not names.tensors and not names.shapes:
                return False
            if isinstance(statement, (ast.Return, ast.Raise)):
                self._expressions(statement, names, doubted)
                return True
            if isinstance(statement, (ast.Continue, ast.Break)):
                return True
            if isinstance(statement, ast.If):
                doubted = self._branches(statement, names, doubted)
            elif isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
                self._loop(statement, names, doubted)
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                self.block(statement.body, names, doubted)
            elif isinstance(statement, ast.Try):
                self.block(statement.body, names, doubted)
                forget_assigned(names, [*statement.handlers, *statement.orelse, *statement.finalbody])
            elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._simple(statement, names, doubted)
        return False

    def _branches(self, statement: ast.If, names: ParameterNames, doubted: "frozenset[str]") -> "frozenset[str]":
        asked = self._asked(statement.test, names)
        self._expressions(statement.test, names, doubted | asked)
        within, other = names.copy(), names.copy()
        raises = bool(statement.body) and isinstance(statement.body[-1], ast.Raise)
        if asked and not raises:
            self._asserted(statement.test, names, doubted, asked=True)
        # `if mask is not None:` holds whenever there is a mask to speak of.
        given = self._given(statement.test)
        self.conditions += not given
        before = {name: len(found) for name, found in self.found.items()}
        leaves = self.block(statement.body, within, doubted | asked)
        between = {name: len(found) for name, found in self.found.items()}
        leaves_too = self.block(statement.orelse, other, doubted | asked)
        self.conditions -= not given
        if not self.conditions and statement.orelse:
            self._agreed(before, between, asked)
        if raises and not statement.orelse:
            self._refused(statement.test, names, doubted)
        default = self._default_for(statement)
        for branch, left in ((within, leaves), (other, leaves_too)):
            for name in list(names.tensors):
                # `if mask is None: mask = …` leaves a mask that was given as it is, `if x.dim() == 3: x = x[None]` an x of the usual rank.
                lost = not left and name not in branch.tensors
                if lost and name not in default and names.tensors[name] not in asked:
                    names.forget(name)
            if not left:
                names.shapes = {name: parameter for name, parameter in names.shapes.items() if name in branch.shapes}
        return doubted

    def _loop(self, statement: ast.stmt, names: ParameterNames, doubted: "frozenset[str]") -> None:
        for part in (getattr(statement, "iter", None), getattr(statement, "test", None)):
            if part is not None:
                self._expressions(part, names, doubted)
        within = names.copy()
        forget_assigned(within, [target for target in [getattr(statement, "target", None)] if target is not None])
        self.block(statement.body, within, doubted)  # type: ignore[attr-defined]
        forget_assigned(names, [statement])

    def _simple(self, statement: ast.stmt, names: ParameterNames, doubted: "frozenset[str]") -> None:
        if isinstance(statement, ast.Assert):
            self._asserted(statement.test, names, doubted)
        self._expressions(statement, names, doubted)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assigned([statement.target], statement.value, names, doubted)
        elif isinstance(statement, ast.Assign):
            self._assigned(statement.targets, statement.value, names, doubted)
        elif isinstance(statement, ast.AugAssign):
            pass  # x += y leaves rank and sizes as they are, or fails
        else:
            forget_assigned(names, [statement])

    def _assigned(self, targets: Sequence[ast.expr], value: ast.expr, names: ParameterNames, doubted: "frozenset[str]") -> None:
        for target in targets:
            self._unpacked(target, value, names, doubted)
        held = [(target, self.parameter(value, names)) for target in targets if isinstance(target, ast.Name)]
        shape, asked = self._shape_of(value, names), self._asked(value, names)
        parts = [
            (target, self.parameter(one, names))
            for target in targets
            for target, one in pairs(target, value)
            if isinstance(target, ast.Name)
        ]
        forget_assigned(names, targets)
        for target, parameter in held + parts:
            if parameter is not None:
                names.tensors[target.id] = parameter
        for target, _ in held:
            if shape is not None:
                names.shapes[target.id] = shape
            if asked:
                names.questions[target.id] = asked

    # Expressions

    def parameter(self, node: ast.AST, names: ParameterNames) -> Optional[str]:
        """The parameter whose shape an expression's value has: the name itself, and what keeps the shape (`x.float()`, `self.norm(x)`)."""
        if isinstance(node, ast.Name):
            return names.tensors.get(node.id)
        kept = self.preserving.argument(node)
        return self.parameter(kept, names) if kept is not None else None

    def _shape_of(self, node: ast.AST, names: ParameterNames) -> Optional[str]:
        """The parameter whose shape an expression is: `x.shape`, `x.size()`, `list(x.shape)`, `map(int, x.shape)`."""
        if isinstance(node, ast.Name):
            return names.shapes.get(node.id)
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            value = node.value.value if isinstance(node.value, ast.Attribute) and node.value.attr == "data" else node.value
            return self.parameter(value, names)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args and not node.keywords:
                return self.parameter(node.func.value, names)
            if isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "map") and node.args:
                return self._shape_of(node.args[-1], names)
        return None

    def _say(
        self,
        parameter: Optional[str],
        line: int,
        doubted: "frozenset[str]",
        dims: Optional[Dims] = None,
        pattern: Dims = (),
        rank: int = 0,
        otherwise: int = SURE,
    ) -> None:
        """otherwise: how sure it is where no condition and no doubt stands against it."""
        if parameter is not None:
            least = len(dims) if dims is not None else max(rank, len(pattern) - 1)
            strength = MAYBE if self.conditions or parameter in doubted else otherwise
            self.found[parameter].append(Fact(line, strength, dims, pattern, least))

    def _say_dims(self, parameter: Optional[str], line: int, doubted: "frozenset[str]", dims: Dims) -> None:
        if REST in dims:
            self._say(parameter, line, doubted, pattern=dims)
        else:
            self._say(parameter, line, doubted, dims=dims)

    def _unpacked(self, target: ast.expr, value: ast.expr, names: ParameterNames, doubted: "frozenset[str]") -> None:
        line = target.lineno
        if isinstance(target, ast.Name):
            index = self._index(value, names)
            if index is not None and index[1] >= 0:
                self._say(index[0], line, doubted, pattern=(None,) * index[1] + (target.id, REST))
            elif index is not None:
                self._say(index[0], line, doubted, pattern=(REST, target.id) + (None,) * (-index[1] - 1))
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            return
        dims = tuple(_target_dim(element) for element in target.elts)
        if dims.count(REST) > 1:
            return
        parameter = self._shape_of(value, names)
        if parameter is not None:
            self._say_dims(parameter, line, doubted, dims)
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            sliced = _of_slice(value.slice, dims)
            if sliced is not None:
                self._say_dims(self._shape_of(value.value, names), line, doubted, sliced)
        elif isinstance(value, ast.Tuple) and value.elts and isinstance(value.elts[0], ast.Starred):
            # b, n, device = *x.shape, x.device
            others = len(value.elts) - 1
            if not any(isinstance(element, ast.Starred) for element in value.elts[1:]) and len(dims) > others:
                self._say_dims(self._shape_of(value.elts[0].value, names), line, doubted, dims[: len(dims) - others])
        else:
            for one, part in pairs(target, value):
                self._unpacked(one, part, names, doubted)

    def _index(self, node: ast.AST, names: ParameterNames) -> Optional[Tuple[str, int]]:
        """The parameter and the dim of `x.shape[1]` and `x.size(1)`."""
        index = None
        parameter = None
        if isinstance(node, ast.Subscript):
            parameter, index = self._shape_of(node.value, names), integer(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            parameter, index = self.parameter(node.func.value, names), integer(node.args[0])
        return (parameter, index) if parameter is not None and index is not None else None

    def _rank_of(self, node: ast.AST, names: ParameterNames) -> Optional[str]:
        """The parameter whose rank an expression is: `x.ndim`, `x.dim()`, `len(x.shape)`."""
        if isinstance(node, ast.Attribute) and node.attr == "ndim":
            return self.parameter(node.value, names)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("dim", "ndimension") and not node.args:
                return self.parameter(node.func.value, names)
            if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
                return self._shape_of(node.args[0], names)
        return None

    def _asked(self, test: ast.expr, names: ParameterNames) -> "frozenset[str]":
        """The parameters whose rank or type a condition asks for."""
        asked: Set[str] = set()
        for node in ast.walk(test):
            parameter = self._rank_of(node, names)
            if parameter is not None:
                asked.add(parameter)
            if isinstance(node, ast.Name):
                asked.update(names.questions.get(node.id, ()))
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("isinstance", "hasattr", "type")
                and node.args
            ):
                name = node.args[0]
                if isinstance(name, ast.Name) and name.id in names.tensors:
                    asked.add(names.tensors[name.id])
        return frozenset(asked)

    def _agreed(self, before: Dict[str, int], between: Dict[str, int], asked: "frozenset[str]") -> None:
        """Returns the facts on which both branches of a condition agree: these need no condition."""
        for name, found in self.found.items():
            first, second = found[before[name] : between[name]], found[between[name] :]
            common = {len(fact.dims) for fact in first if fact.dims is not None} & {
                len(fact.dims) for fact in second if fact.dims is not None
            }
            for fact in first + second:
                if fact.dims is not None and len(fact.dims) in common and name not in asked and fact.strength == MAYBE:
                    fact.strength = SURE

    def _given(self, test: ast.expr) -> bool:
        """True if a condition asks no more than whether a parameter was given."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
            return isinstance(test.left, ast.Name) and test.left.id in self.found
        if isinstance(test, ast.Call) and getattr(test.func, "id", "") == "exists" and len(test.args) == 1:
            return isinstance(test.args[0], ast.Name) and test.args[0].id in self.found
        return False

    def _default_for(self, statement: ast.If) -> "frozenset[str]":
        """The names that a branch sets only where they are None."""
        test = statement.test
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Is):
            return frozenset((test.left.id,))
        call = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "exists" and call.args and isinstance(call.args[0], ast.Name):
            return frozenset((call.args[0].id,))
        return frozenset()

    def _asserted(self, test: ast.expr, names: ParameterNames, doubted: "frozenset[str]", asked: bool = False) -> None:
        """`assert x.ndim == 4`, `assert x.shape[1] == 3`. asked: it is the condition of an `if` rather."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for value in test.values:
                self._asserted(value, names, doubted, asked)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return
        parameter, right = self._rank_of(test.left, names), test.comparators[0]
        if parameter is not None and isinstance(test.ops[0], (ast.Eq, ast.In)):
            several = isinstance(test.ops[0], ast.In)
            ranks = [integer(one) for one in getattr(right, "elts", ())] if several else [integer(right)]
            for rank in ranks:
                if rank is not None:
                    strength = ASKED if asked else MAYBE if several or self.conditions or parameter in doubted else SURE
                    self.found[parameter].append(Fact(test.lineno, strength, (None,) * rank, min_rank=rank))
        elif isinstance(test.ops[0], ast.Eq) and not asked:
            index, size = self._index(test.left, names), _size(right)
            if index is not None and size is not None and index[1] >= 0:
                self._say(index[0], test.lineno, doubted, pattern=(None,) * index[1] + (size, REST))
            elif index is not None and size is not None:
                self._say(index[0], test.lineno, doubted, pattern=(REST, size) + (None,) * (-index[1] - 1))

    def _refused(self, test: ast.expr, names: ParameterNames, doubted: "frozenset[str]") -> None:
        """`if x.dim() != 3: raise …`: what goes on has rank 3."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.NotEq, ast.NotIn)):
            passing = ast.Compare(test.left, [ast.Eq() if isinstance(test.ops[0], ast.NotEq) else ast.In()], test.comparators)
            self._asserted(ast.copy_location(passing, test), names, doubted)

    def _expressions(self, root: ast.AST, names: ParameterNames, doubted: "frozenset[str]") -> None:
        """Facts from everything that a statement or expression reads."""
        for node in walk(root):
            index = self._index(node, names)
            if index is not None:
                self._say(index[0], node.lineno, doubted, rank=index[1] + 1 if index[1] >= 0 else -index[1])  # type: ignore[attr-defined]
            elif isinstance(node, ast.Call):
                self._call(node, names, doubted)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                taken = [one for one in node.slice.elts if not (isinstance(one, ast.Constant) and one.value in (None, Ellipsis))]
                if not any(isinstance(one, ast.Starred) for one in taken):
                    self._say(self.parameter(node.value, names), node.lineno, doubted, rank=len(taken))

    def _call(self, node: ast.Call, names: ParameterNames, doubted: "frozenset[str]") -> None:
        for argument, dims in pattern_uses(node) or applied_layer(node, self.layers):
            self._say_dims(self.parameter(argument, names), node.lineno, doubted, dims)
        layer = applied_to(node, self.layers)
        rank = wanted_rank(layer) if layer is not None else None
        if rank is not None:
            self._say(self.parameter(node.args[0], names), node.lineno, doubted, dims=(None,) * rank)
        for told in ranks_of_call(node):
            parameter = self.parameter(told.tensor, names)
            if told.exact is not None:
                row: Dims = (None,) * told.exact
                row = ("T", *row[1:]) if told.is_shared and told.exact > 1 else row
                self._say(parameter, node.lineno, doubted, dims=row, otherwise=SURE if told.is_sure else USUAL)
            elif told.least > 1:
                self._say(parameter, node.lineno, doubted, rank=told.least)


def _target_dim(node: ast.expr) -> Dim:
    if isinstance(node, ast.Starred):
        return REST
    if isinstance(node, ast.Name):
        return node.id if node.id.strip("_") else None
    return node.attr if isinstance(node, ast.Attribute) else None


def _of_slice(part: ast.Slice, dims: Dims) -> Optional[Dims]:
    """The pattern of a tensor whose `shape[part]` was unpacked into dims."""
    lower, upper = integer(part.lower) if part.lower is not None else 0, integer(part.upper) if part.upper is not None else None
    if lower is None or (part.upper is not None and upper is None) or part.step is not None or REST in dims:
        return None
    if upper is None:
        return (None,) * lower + dims if lower >= 0 else (REST,) + dims + (None,) * (-lower - len(dims))
    if upper < 0:
        return (None,) * lower + dims + (None,) * -upper if lower >= 0 else (REST,) + dims + (None,) * -upper
    return (None,) * lower + dims + (REST,) if lower >= 0 else None


def _size(node: ast.AST) -> Dim:
    """The size that a dim is compared with: a number, or an attribute that names it."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr
    return integer(node)
