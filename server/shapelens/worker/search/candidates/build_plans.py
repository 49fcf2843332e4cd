"""Ways to build a class: with its defaults, or with values for what it requires, the most credible first."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import torch

from ...unknown.stand_ins import is_absent
from ..code.callees import parameters_of
from ..code.data_flow import Follower
from ..code.sources import function_node, initialiser, is_torch
from ..code.uses import Uses
from ..evidence import BuildPlan, sizes_in
from .abstract_classes import is_abstract
from .annotated_kinds import AnnotatedKind, annotated_kind
from .document_scope import DocumentScope
from .parameter_values import ParameterValues

MOST = 6
DEEPEST = 4
PARTS = (
    "Block", "Layer", "Unit", "Attention", "Conv", "Module", "Head", "Cell", "Stage", "Bottleneck", "Residual", "Norm", "Pool", "Pooling",
    "Transition", "Path", "Branch", "Downsample", "Upsample", "Down", "Up", "Fusion", "Gate", "MLP", "Mlp", "FeedForward",
)  # fmt: skip
CLEAR = ("of", "choice", "enum", "bool", "dtype", "device")  # annotations that say all there is to know

# (name, its annotation as read, what is done with it, whether it has to be given by position)
Parameter = Tuple[str, AnnotatedKind, Uses, bool]


def build_plans(cls: type, names: Mapping[str, Any], tree: ast.Module) -> Iterator[BuildPlan]:
    """Ways to build a class of the document, the most credible first. names: its namespace; tree: its text, as it was written."""
    scope = DocumentScope(names, tree)
    text = scope.expression(cls) or cls.__name__
    parameters = required_parameters(cls)
    if not parameters:
        yield BuildPlan(text + "()")
        return
    if _config_class(cls) is not None and [name for name, *_ in parameters] == ["config"]:
        yield BuildPlan("%s(%s.config_class())" % (text, text))
    given = literals(cls, scope)
    seen: Set[str] = set()
    for variant in range(MOST):
        values = ParameterValues(scope, lambda *asked: None, is_whole(cls, tree), cls)
        values.build = Building(values).build
        values.first_only = variant == 0
        values.beside = {name: uses for name, _, uses, _ in parameters}
        template = _written(text, parameters, values, given, variant)
        if template is not None and template not in seen:
            seen.add(template)
            yield BuildPlan(template, {name: values.sizes[name] for name in sizes_in(template)})


def _written(text: str, parameters: List[Parameter], values: ParameterValues, given: Mapping[str, str], variant: int) -> Optional[str]:
    """The first way, or that with another value for one parameter; None where there are not so many."""
    written: List[str] = []
    left = variant
    for name, asked, uses, by_position in parameters:
        if name in given:
            choices = [_as_sizes(given[name], name, values)]
        else:
            choices = values.values(name, asked, uses)
        chosen = 0
        if left > 0:
            chosen = min(left, len(choices) - 1)
            left -= chosen
        written.append(choices[chosen] if by_position else "%s=%s" % (name, choices[chosen]))
    return None if left > 0 else "%s(%s)" % (text, ", ".join(written))


class Building:
    """Writes the constructions of the classes that parameters ask for."""

    def __init__(self, values: ParameterValues) -> None:
        self.values = values
        self.under_way: List[type] = []

    def build(self, cls: type, prefix: str, depth: int) -> Optional[str]:
        """A template that builds a class; None where the document has no name for it, or it is being written already."""
        text = self.values.scope.expression(cls)
        if text is None or cls in self.under_way or depth > DEEPEST or inspect.isabstract(cls):
            return None
        if issubclass(cls, torch.nn.Module) and not is_torch(cls) and is_abstract(cls, self.values.scope.tree):
            return None
        self.under_way.append(cls)
        try:
            written = []
            if _config_class(cls) is not None:
                return "%s(%s.config_class())" % (text, text)
            parameters = required_parameters(cls)
            before, self.values.beside = self.values.beside, {name: uses for name, _, uses, _ in parameters}
            for name, asked, uses, by_position in parameters:
                value = self.values.values(name, asked, uses, _shared(prefix, name), depth)[0]
                written.append(value if by_position else "%s=%s" % (name, value))
            self.values.beside = before
            return "%s(%s)" % (text, ", ".join(written))
        finally:
            self.under_way.pop()


def _config_class(cls: type) -> Optional[type]:
    """The class of the configuration that a model of `transformers` or the like is made from, where its defaults will do."""
    found = getattr(cls, "config_class", None)
    return found if isinstance(found, type) and hasattr(cls, "from_pretrained") and not is_absent(found) else None


def _shared(prefix: str, name: str) -> str:
    """The prefix of a size inside of a part: widths are the same everywhere, what comes in and goes out is not."""
    return prefix if name.startswith(("in", "out")) else ""


def required_parameters(cls: type) -> List[Parameter]:
    """Returns the parameters that are required to build a class, by its own `__init__` and by those that it hands `**kwargs` on to."""
    if is_record(cls):
        return _fields(cls)
    found: List[Parameter] = []
    position = initialiser(cls)
    passed: Set[str] = set()
    while position is not None:
        owner, init = position
        if owner is torch.nn.Module:
            break
        try:
            parameters = list(inspect.signature(init).parameters.values())[1:]
        except (TypeError, ValueError):
            break
        # `def __init__(self, width=[], depth=[])`: no class is built of nothing but empty lists.
        stand_for_nothing = len(parameters) > 1 and all(item.default == [] for item in parameters)
        for item in parameters:
            if item.default is True and "pretrained" in item.name and item.name not in passed:
                found.append(
                    (item.name, AnnotatedKind("bool"), Uses(), False)
                )  # Weights make no difference to shapes, but take long to fetch.
            is_required = item.default is item.empty or stand_for_nothing
            if item.kind in (item.VAR_KEYWORD, item.VAR_POSITIONAL) or not is_required or item.name in passed:
                continue
            found.append((item.name, *_asked(item, init, cls, owner), item.kind is item.POSITIONAL_ONLY))
        passed |= {item.name for item in parameters}
        handed_on = _handed_on(init, [item for item in parameters if item.kind in (item.VAR_KEYWORD, item.VAR_POSITIONAL)])
        if handed_on is None:
            break
        position = initialiser(cls, owner)
        if position is not None:
            try:
                names = list(inspect.signature(position[1]).parameters)[1:]
            except (TypeError, ValueError):
                names = []
            passed |= set(names[: handed_on[0]]) | handed_on[1]
    return found


def _asked(item: inspect.Parameter, init: Any, cls: type, owner: type) -> Tuple[AnnotatedKind, Uses]:
    uses, asked = Uses(), annotated_kind(item.annotation, init)
    if asked.kind not in CLEAR:
        Follower().parameter(init, item.name, uses, cls, owner)
    return asked, uses


def parameter_of(cls: type, name: str) -> Optional[Tuple[AnnotatedKind, Uses]]:
    """Returns the kind of value that a parameter of a class's constructor asks for, and its uses, be it required or not."""
    if is_record(cls):
        return next(((asked, uses) for field, asked, uses, _ in _fields(cls, True) if field == name), None)
    position = initialiser(cls)
    while position is not None and position[0] is not torch.nn.Module:
        owner, init = position
        try:
            parameters = inspect.signature(init).parameters
        except (TypeError, ValueError):
            return None
        if name in parameters:
            return _asked(parameters[name], init, cls, owner)
        position = initialiser(cls, owner)
    return None


def uses_of(cls: type, name: str) -> Optional[Uses]:
    """Returns the uses of a parameter of a class's constructor, whatever it is annotated with; None where there is none of that name."""
    position = initialiser(cls)
    while position is not None and position[0] is not torch.nn.Module:
        if name in parameters_of(position[1]):
            uses = Uses()
            Follower().parameter(position[1], name, uses, cls, position[0])
            return uses
        position = initialiser(cls, position[0])
    return None


def _handed_on(init: Any, open_ended: List[inspect.Parameter]) -> Optional[Tuple[int, Set[str]]]:
    """(positional arguments, keywords) besides `*args` and `**kwargs` in the call of the base's `__init__` that gets those too."""
    node = function_node(init)
    if node is None or not open_ended:
        return None
    names = {item.name for item in open_ended}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
            stars = [part.value for part in call.args if isinstance(part, ast.Starred)]
            stars += [keyword.value for keyword in call.keywords if keyword.arg is None]
            if any(isinstance(star, ast.Name) and star.id in names for star in stars):
                count = sum(1 for part in call.args if not isinstance(part, ast.Starred))
                return count, {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    return None


def is_record(cls: type) -> bool:
    """True if the class's constructor is made from its fields: a dataclass, a NamedTuple, or one of pydantic's or attrs'."""
    if "__init__" in vars(cls) and hasattr(vars(cls)["__init__"], "__code__") and not hasattr(cls, "__dataclass_fields__"):
        return False
    return (
        hasattr(cls, "_fields") or hasattr(cls, "model_fields") or hasattr(cls, "__attrs_attrs__") or hasattr(cls, "__dataclass_fields__")
    )


def unset_sizes(cls: type) -> List[str]:
    """The fields of a config class whose default is a negative number, which stands for a size to be given."""
    if not is_record(cls):
        return []
    defaults = {name: item.default for name, item in inspect.signature(cls).parameters.items()}
    return [name for name, default in defaults.items() if type(default) is int and default < 0 and not name.startswith("_")]


def _fields(cls: type, optional_too: bool = False) -> List[Parameter]:
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        return []
    return [
        (item.name, annotated_kind(item.annotation, cls), Uses(), item.kind is item.POSITIONAL_ONLY)
        for item in parameters
        if (item.default is item.empty or optional_too) and item.kind not in (item.VAR_KEYWORD, item.VAR_POSITIONAL)
    ]


def is_whole(cls: type, tree: ast.Module) -> bool:
    """True if a class is a network, as far as the document tells: none of its other classes builds it."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name != cls.__name__:
            for part in ast.walk(node):
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == cls.__name__:
                    return False
    return not cls.__name__.rstrip("0123456789dD").endswith(PARTS)


def literals(cls: type, scope: DocumentScope) -> Dict[str, str]:
    """Arguments that some call of the class in the document writes down, as text: those of the call that writes down most of them."""
    try:
        names = list(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        return {}
    best: Dict[str, str] = {}
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == cls.__name__:
            given = dict(zip(names, _before_star(node.args)))
            given.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None})
            found = {name: ast.unparse(value) for name, value in given.items() if _is_literal(value, scope)}
            if len(found) > len(best):
                best = found
    return best


def _before_star(args: List[ast.expr]) -> List[ast.expr]:
    stars = [place for place, part in enumerate(args) if isinstance(part, ast.Starred)]
    return args[: stars[0]] if stars else args


def _is_literal(node: ast.expr, scope: DocumentScope) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts) and all(_is_literal(part, scope) for part in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand, scope)
    if isinstance(node, ast.BinOp):  # `2 * 17`
        return isinstance(node.left, (ast.Constant, ast.BinOp)) and _is_literal(node.left, scope) and _is_literal(node.right, scope)
    if isinstance(node, ast.Name):
        return isinstance(scope.bound.get(node.id), type)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nn"


def _as_sizes(text: str, name: str, values: ParameterValues) -> str:
    """Numbers of a call elsewhere are guesses here."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return values.size(name, node.value)
    if isinstance(node, (ast.Tuple, ast.List)) and all(isinstance(part, ast.Constant) and type(part.value) is int for part in node.elts):
        inner = ", ".join(values.size("%s[%d]" % (name, place), part.value) for place, part in enumerate(node.elts))  # type: ignore[attr-defined]
        return (
            "(%s,)" if isinstance(node, ast.Tuple) and len(node.elts) == 1 else "(%s)" if isinstance(node, ast.Tuple) else "[%s]"
        ) % inner
    return text
