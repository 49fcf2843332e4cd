"""The branches of a class or function that settings choose between: which value of which setting leads into each, as its text tells.

A setting is an argument of the constructor or an attribute of an object with settings: `mode`, `self.mode`, `configs.mode`, `opt["mode"]`.
A condition may ask for what a name or an attribute holds: `use_nearest = self.nearest > 0`, `self.gate = Gate() if gated else None`,
and for a size that is left out: `self.tokens = nn.Embedding(num_tokens, dim) if num_tokens is not None else None`.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import AbstractSet, Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from ....stated.syntax_trees import all_parameters, is_none, last_name, with_defaults
from .branches import asks_whether_given
from .sources import methods

COMPUTES = (ast.Call, ast.BinOp, ast.Subscript)
SOME_SIZE = 16  # for one that may be any but what the text compares it with
SOME_COUNT = 1024  # for a size that is left out and has to be a large one: that of a vocabulary, the longest sequence
SOME_DIM = 1  # for one that may be the number of a dim: `norm_dim`
DEEPEST = 4  # names that hold what other names hold
# Parameters that are sizes by their names.
_SIZE = re.compile(
    r"(.*_)?(n|num|dims?|axis|d|sizes?|channels?|chans?|ch|features?|feats|hidden|embed|width|units|planes|classes|projection)(_.*)?"
)


class OtherThan(NamedTuple):
    """A value that is none of these."""

    values: Tuple[Any, ...]


SOMETHING = OtherThan((None,))


class Layer(NamedTuple):
    """Some layer, where a setting is None by default and what it holds is called: `Block(downsample=None)`."""


LAYER = Layer()


class Size(NamedTuple):
    """Some size, where a setting is None or 0 by default: `Net(edge_dim=None)`."""


SIZE = Size()


class Branch(NamedTuple):
    """The branch that runs with one value of a setting."""

    name: str  # of the setting
    value: Any  # or OtherThan, LAYER, or SIZE
    lines: FrozenSet[int]  # of its statements that compute something
    around: FrozenSet[int] = frozenset()  # such lines of the blocks that it stands in


_Values = List[Tuple[str, Any]]  # (the name of a setting, a value of it)


def branches_by_settings(cls: type, file: str) -> List[Branch]:
    """The branches in a class's methods that stand in `file`, in the order of the text; inner ones after those around them."""
    all_found: List[Branch] = []
    own = [node for function, node in methods(cls) if function.__code__.co_filename == file]
    attributes: Dict[str, ast.expr] = {}
    layers: Dict[str, str] = {}
    sizes: FrozenSet[str] = frozenset()
    for node in own:
        if node.name == "__init__":
            sizes = _sizes_left_out(node)
            attributes.update({name: value for name, value in _held(node).items() if name.startswith("self.")})
            layers.update(_optional_layers(node, own))
    for node in own:
        found: List[Branch] = []
        resolve = _Resolver({**attributes, **_held(node)})
        for test, block, holds in _blocks(node):
            asked = asks_whether_given(test)
            if asked is not None and asked[1] is holds and ast.unparse(asked[0]) in layers:
                found.append(Branch(layers[ast.unparse(asked[0])], LAYER, _lines(block)))
                continue
            true, false = _values(resolve.visit(copy.deepcopy(test)), sizes)
            found += [Branch(name, value, _lines(block)) for name, value in (true if holds else false)]
        blocks = [block for _, block, _ in _blocks(node) if block]
        all_found += [branch._replace(around=_around(branch.lines, blocks)) for branch in found if branch.lines]
    return all_found


def branches_of_function(node: ast.FunctionDef) -> List[Branch]:
    """The branches in a function that its parameters choose between, those that ask whether one is given among them (`SOMETHING`)."""
    found: List[Branch] = []
    parameters = {each.arg for each in all_parameters(node)}
    for test, block, holds in _blocks(node):
        asked = asks_whether_given(test)
        if asked is not None and isinstance(asked[0], ast.Name):
            values: _Values = [(asked[0].id, SOMETHING if asked[1] is holds else None)]
        else:
            true, false = _values(test)
            values = true if holds else false
        found += [Branch(name, value, _lines(block)) for name, value in values if name in parameters]
    return [branch for branch in found if branch.lines]


def _blocks(node: ast.AST) -> Iterator[Tuple[ast.expr, List[ast.stmt], bool]]:
    """The blocks of the conditional statements in a node: the condition, the block, and whether the condition holds there.

    What comes after an `if` that returns is the block in which its condition does not hold.
    """
    for statement in ast.walk(node):
        if isinstance(statement, ast.If):
            yield statement.test, statement.body, True
            yield statement.test, statement.orelse, False
        for name in ("body", "orelse"):
            found = getattr(statement, name, ())
            block: List[ast.stmt] = found if isinstance(found, list) else []
            for number, each in enumerate(block):
                if isinstance(each, ast.If) and not each.orelse and isinstance(each.body[-1], ast.Return):
                    yield each.test, block[number + 1 :], False


def values_into(branch: Branch, branches: List[Branch]) -> List[Any]:
    """The values of its setting that lead into a branch, as far as the text names them; some sizes where it may be any other number."""
    if branch.value is SIZE:
        return [SOME_SIZE, SOME_DIM if branch.name.endswith(("dim", "axis")) else SOME_COUNT]
    if not isinstance(branch.value, OtherThan):
        return [branch.value]
    named: List[Any] = []
    for each in branches:
        if each.name == branch.name and each.value is not LAYER and each.value is not SIZE:
            named += each.value.values if isinstance(each.value, OtherThan) else (each.value,)
    values = [value for value in dict.fromkeys(named) if value not in branch.value.values]
    is_size = all(type(value) is int and value != SOME_SIZE for value in branch.value.values)
    return values or ([SOME_SIZE] if is_size else [])


def _held(function: Any) -> Dict[str, ast.expr]:
    """Returns the values of names and attributes (`self.mode`) that a function assigns once, as far as that is a setting or a condition."""
    values: Dict[str, List[ast.expr]] = {}
    instead = _instead_of_missing(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target, value in (pair for each in node.targets for pair in _pairs(each, node.value)):
                name = ast.unparse(target)
                if (name, node) not in instead:
                    values.setdefault(name, []).append(value)
    for name, value in _only_under_a_condition(function).items():
        rest = [each for each in values.get(name, ()) if not is_none(each)]
        if len(rest) == 1:
            values[name] = [value]
    return {name: held[0] for name, held in values.items() if len(held) == 1 and _says_setting(held[0]) and ast.unparse(held[0]) != name}


def _instead_of_missing(function: Any) -> Set[Tuple[str, ast.AST]]:
    """Returns the names and attributes that are assigned anew after a condition on them: `if self.width is None: self.width = 8`."""
    found: Set[Tuple[str, ast.AST]] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            asked = {ast.unparse(part) for part in ast.walk(node.test) if isinstance(part, (ast.Name, ast.Attribute))}
            inside = [part for each in (*node.body, *node.orelse) for part in ast.walk(each) if isinstance(part, ast.Assign)]
            found.update((ast.unparse(target), part) for part in inside for target in part.targets if ast.unparse(target) in asked)
    return found


def _only_under_a_condition(function: Any) -> Dict[str, ast.expr]:
    """Returns the values of attributes that `if condition:` assigns, as `value if condition else None`: else they are None, or are not
    there."""
    found: Dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.If):
            continue
        for each in node.body:
            if isinstance(each, ast.Assign) and not is_none(each.value):
                value = ast.IfExp(node.test, each.value, ast.Constant(None))
                found.update({ast.unparse(target): value for target in each.targets if isinstance(target, ast.Attribute)})
    return found


def _sizes_left_out(initialiser: ast.FunctionDef) -> FrozenSet[str]:
    """The parameters that are sizes by their annotations or names, and None or 0 by default."""
    return frozenset(
        parameter.arg
        for parameter, default in with_defaults(initialiser)
        if isinstance(default, ast.Constant) and (default.value is None or (type(default.value) is int and default.value == 0))
        if (
            re.search(r"\bint\b", ast.unparse(parameter.annotation)) if parameter.annotation is not None else _SIZE.fullmatch(parameter.arg)
        )
    )


def _optional_layers(initialiser: ast.FunctionDef, methods: List[ast.FunctionDef]) -> Dict[str, str]:
    """`self.downsample` → "downsample": the attributes that are called, and hold a parameter that is None by default, or a copy of it."""
    optional = {parameter.arg for parameter, default in with_defaults(initialiser) if is_none(default)}
    called = {ast.unparse(node.func) for method in methods for node in ast.walk(method) if isinstance(node, ast.Call)}
    held: Dict[str, List[ast.expr]] = {}
    for node in ast.walk(initialiser):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None or is_none(value):
            continue
        copied = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        for target in targets:
            held.setdefault(ast.unparse(target), []).append(copied)
    only = {name: values[0] for name, values in held.items() if len(values) == 1 and name.startswith("self.") and name in called}
    return {name: value.id for name, value in only.items() if isinstance(value, ast.Name) and value.id in optional}


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[Tuple[ast.expr, ast.expr]]:
    """A target with its value; of `a, b, c = *x.shape, self.mode` those behind the star, from the end."""
    if not isinstance(target, ast.Tuple):
        yield target, value
    elif isinstance(value, ast.Tuple):
        for one, other in zip(reversed(target.elts), reversed(value.elts)):
            if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                return
            yield one, other


def _says_setting(value: ast.expr) -> bool:
    """True if a value is a setting, a condition, or is there only under a condition."""
    is_condition = isinstance(value, (ast.Compare, ast.BoolOp)) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))
    return is_condition or _name(value) is not None or (isinstance(value, ast.IfExp) and _condition_of(value) is not None)


def _condition_of(value: ast.IfExp) -> Optional[ast.expr]:
    """The condition under which `x if condition else None` is something; None where both sides are."""
    if is_none(value.orelse):
        return value.test
    if is_none(value.body):
        return ast.UnaryOp(ast.Not(), value.test)
    return None


class _Resolver(ast.NodeTransformer):
    """Puts what names and attributes hold in their place."""

    def __init__(self, held: Mapping[str, ast.expr]) -> None:
        self._held = held
        self._depth = 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._resolved(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._resolved(node)

    def _resolved(self, node: ast.expr) -> ast.expr:
        held = self._held.get(ast.unparse(node))
        if held is None or self._depth == DEEPEST:
            return node
        self._depth += 1
        found: ast.expr = self.visit(copy.deepcopy(held))
        self._depth -= 1
        return found


def _name(node: ast.AST) -> Optional[str]:
    """The name of the setting that an expression reads; None where it is something else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "upper") and not node.args:
        return _name(node.func.value)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.slice.value
    return last_name(node) or None


def _values(test: ast.expr, sizes: AbstractSet[str] = frozenset()) -> Tuple[_Values, _Values]:
    """The values with which a condition is true, and those with which it is false, as far as one setting alone makes it so.

    sizes: settings that are sizes, and may be left out.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        true, false = _values(test.operand, sizes)
        return false, true
    if isinstance(test, ast.BoolOp):
        return _of_several(test, sizes)
    if isinstance(test, ast.IfExp):
        condition = _condition_of(test)
        return ([], []) if condition is None else _values(condition, sizes)
    asked = asks_whether_given(test)
    if asked is not None:
        value, is_given = asked
        true, false = _values(value, sizes) if isinstance(value, ast.IfExp) else _of_size(_name(value), sizes)
        return (true, false) if is_given else (false, true)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test.left, test.ops[0], test.comparators[0])
    name = _name(test) if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)) else None
    if name is None or name in sizes:
        return _of_size(name, sizes)
    return [(name, True)], [(name, False)]


def _of_several(test: ast.BoolOp, sizes: AbstractSet[str]) -> Tuple[_Values, _Values]:
    """The values with which one of several conditions is true, and those with which all are false; for `and` the other way round."""
    is_or = isinstance(test.op, ast.Or)
    parts = [_values(part, sizes)[:: 1 if is_or else -1] for part in test.values]
    one, every = ([value for part in parts for value in part[side]] for side in (0, 1))
    if len({name for name, _ in every}) == 1 and all(isinstance(value, OtherThan) for _, value in every):
        every = [(every[0][0], OtherThan(tuple(each for _, value in every for each in value.values)))]
    elif len(every) > 1:
        every = []
    return (one, every) if is_or else (every, one)


def _of_size(name: Optional[str], sizes: AbstractSet[str]) -> Tuple[_Values, _Values]:
    """The value with which a size is given that may be left out, and none with which it is not: that is so by default."""
    return ([(name, SIZE)], []) if name is not None and name in sizes else ([], [])


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Tuple[_Values, _Values]:
    if isinstance(left, ast.Constant):
        left, right = right, left
    name = _name(left)
    parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    values = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, (str, int))]
    if name is None or len(values) != len(parts) or not values:
        return [], []
    true: _Values
    false: _Values
    if isinstance(operator, (ast.Gt, ast.LtE)) and type(values[0]) is int:
        true, false = [(name, values[0] + 1)], [(name, values[0])]
    elif isinstance(operator, (ast.Lt, ast.GtE)) and type(values[0]) is int:
        true, false = [(name, values[0] - 1)], [(name, values[0] or 1)]  # What may not be negative is a size, which nobody sets to 0.
    elif isinstance(operator, (ast.Eq, ast.In, ast.NotEq, ast.NotIn)):
        true, false = [(name, value) for value in values], [(name, OtherThan(tuple(values)))]
    else:
        return [], []
    return (true, false) if isinstance(operator, (ast.Gt, ast.Lt, ast.Eq, ast.In)) else (false, true)


def _around(lines: FrozenSet[int], blocks: List[List[ast.stmt]]) -> FrozenSet[int]:
    """The lines that compute something in those blocks that hold all of these lines."""
    outer = [each for each in blocks if each[0].lineno <= min(lines) and max(lines) <= (each[-1].end_lineno or 0)]
    return frozenset(line for each in outer for line in _lines(each))


def _lines(block: List[ast.stmt]) -> FrozenSet[int]:
    """The lines of the statements in a block that compute something."""
    found: Dict[int, None] = {}
    for statement in block:
        for node in ast.walk(statement):
            if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)) or node.value is None:
                continue
            if any(isinstance(part, COMPUTES) for part in ast.walk(node.value)):
                found.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
    return frozenset(found)
