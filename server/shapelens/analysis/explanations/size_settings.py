"""Where the sizes of a model's parameters are set: followed from a layer's argument out through the constructors around it.

`nn.Linear(512, num_classes)` in the `__init__` of a class leads to `Net(num_classes=10)`, or to the default that this call leaves it at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapelens.analysis.explanations.names_in_scope import Scope, scope_of
from shapelens.analysis.explanations.passed_arguments import outer_argument
from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.layer_arguments import parameter_size
from shapelens.analysis.places import ArgumentPlace, Place, Places
from shapelens.protocol import LayerSeen, Mismatch, Origin
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import expression_of, integer, last_name, positional, with_defaults

DEEPEST = 6  # constructors inside of each other
MOST_NAMES = 8  # assignments that are followed for one name


@dataclass(frozen=True)
class SizeSetting:
    """A size that is written somewhere, by the name that it has there, and what it should be.

    place: of the text; edit: None where it is known what it is called, but not where it is written.
    """

    name: str
    now: int
    wanted: int
    place: Place
    edit: TextEdit | None

    @property
    def text(self) -> str:
        """`num_classes=80`"""
        return f"{self.name}={self.wanted}"


def differing_sizes(mismatch: Mismatch) -> list[tuple[Origin, list[int]]]:
    """The sizes that differ between a state and a module, with the module that has each and those around it, inner ones first."""
    found: list[tuple[Origin, list[int]]] = []
    for origin in mismatch.origins:
        if origin.operation:
            found.append((origin, []))
        if origin.layer is not None and found:
            found[-1][1].append(origin.layer)
    return found


def size_settings(places: Places, mismatch: Mismatch) -> tuple[list[SizeSetting], bool]:
    """The settings that sizes which differ come from, each once; and whether these are all of the sizes. [] where one needs two values."""
    found: dict[tuple[str, object], SizeSetting] = {}
    sizes = differing_sizes(mismatch)
    is_all = mismatch.state is not None and mismatch.state.sizes == len(sizes)
    for origin, chain in sizes:
        layers = [places.trace.layers[index] for index in chain]
        if not layers or len(origin.shape) != len(origin.result):
            is_all = False
            continue
        for dim, (there, here) in enumerate(zip(origin.shape, origin.result, strict=True)):
            if there == here:
                continue
            said = parameter_size(layers[0], origin.operation.rpartition(".")[2], dim)
            setting = None
            if said is not None and there is not None and here is not None and there % said[1] == 0:
                setting = _followed(places, layers, said[0], here // said[1], there // said[1])
            if setting is None:
                is_all = False
                continue
            key = (setting.name, (setting.place.file, setting.place.span))
            if found.setdefault(key, setting).wanted != setting.wanted:
                return [], False
    return list(found.values()), is_all


def _followed(places: Places, layers: Sequence[LayerSeen], argument: str, now: int, wanted: int) -> SizeSetting | None:
    """Where the size is written that a layer was given; None where it is computed. layers: the layer, and the modules around it."""
    index, place, where = 0, places.argument(layers[0], argument), None
    for _ in range(DEEPEST):
        if place is None and where is not None:  # What no text calls, as an example does, still has a parameter of this name.
            return SizeSetting(argument, now, wanted, where, None)
        if place is None or place.hidden:
            return None
        if place.argument is None:
            return _added(place, argument, now, wanted) if index else None
        text, where = place.argument.text.strip(), Place(place.file, place.module, place.argument.span)
        if text.isdecimal():
            return SizeSetting(argument, now, wanted, where, TextEdit(where.span, str(wanted))) if int(text) == now else None
        outer = outer_argument(places, layers, index, place)
        if outer is None:
            return _named(places, where, scope_of(place), text, now, wanted)
        index, argument, place = outer
    return None


def _added(place: ArgumentPlace, argument: str, now: int, wanted: int) -> SizeSetting:
    """An argument that a call leaves at its default."""
    end = place.call.last_argument_end
    at, text = (end, f", {argument}={wanted}") if end is not None else (place.call.open_bracket, f"{argument}={wanted}")
    span = type(place.call.span).of(at, at)
    return SizeSetting(argument, now, wanted, Place(place.file, place.module, place.call.span), TextEdit(span, text))


# --- what has a name ---


def settings_named(places: Places, where: Place, text: str, now: int, wanted: int) -> Iterator[SizeSetting]:
    """The places where the number is written that an expression stands for, by the names that it has on its way there.

    They are in the expression's file or in that of the trace: a default, an argument of a call, a field of a class, an assignment. Names
    alone are followed, so that a place may be of another thing of the same name and number.
    """
    node = expression_of(text.strip())
    if integer(node) == now:
        yield SizeSetting(text, now, wanted, where, TextEdit(where.span, str(wanted)))
        return
    names, seen = [_last_name(node)], set[tuple[str, Span]]()
    files = {where.file: where.module, places.trace.file: places.module}
    for name in names:
        for file, module in files.items() if name else ():
            whole = Place(file, module, where.span)
            for value in _values_of(tree_of(whole), name):
                span = node_span(whole, value)
                if integer(value) == now and (file, span) not in seen:
                    seen.add((file, span))
                    yield SizeSetting(name, now, wanted, Place(file, module, span), TextEdit(span, str(wanted)))
                elif (other := _last_name(value)) and other not in names and len(names) < MOST_NAMES:
                    names.append(other)


def _last_name(node: ast.expr | None) -> str:
    """`heads` of `self.heads`, and of `config["heads"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return last_name(node)


def _values_of(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """Yields the expressions that a file gives a name: arguments first, then defaults and assignments."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    indices = _places_of_parameter(tree, functions, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _given_by(node, name, indices.get(last_name(node.func), -1))
    for function in functions:
        yield from (value for parameter, value in with_defaults(function) if parameter.arg == name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _assigned(target, node.value, name)
        elif isinstance(node, ast.Dict):
            yield from (
                value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant) and key.value == name
            )


def _places_of_parameter(tree: ast.Module, functions: Sequence[ast.FunctionDef | ast.AsyncFunctionDef], name: str) -> dict[str, int]:
    """Which argument a parameter of that name is, by the names of the functions and classes that have it."""
    constructors = {each: node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body}
    indices: dict[str, int] = {}
    for function in functions:
        parameters = [each.arg for each in positional(function)]
        if name in parameters:
            called = constructors.get(function, function.name) if function.name == "__init__" else function.name
            indices[called] = parameters.index(name) - (parameters[0] in ("self", "cls"))
    return indices


def _given_by(call: ast.Call, name: str, index: int) -> Iterator[ast.expr]:
    """Yields the expressions that a call gives a name: as a keyword, at its place, or as the default of an option. index: of the place; -1
    for none."""
    keywords = {each.arg: each.value for each in call.keywords}
    options = [str(each.value).lstrip("-").replace("-", "_") for each in call.args if isinstance(each, ast.Constant)]
    if name in keywords:
        yield keywords[name]
    elif 0 <= index < len(call.args) and not any(isinstance(each, ast.Starred) for each in call.args[: index + 1]):
        yield call.args[index]
    elif name in options and "default" in keywords:
        yield keywords["default"]


def _assigned(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, other, name)
    elif _last_name(target) == name:
        yield value


def _named(places: Places, where: Place, scope: Scope | None, text: str, now: int, wanted: int) -> SizeSetting | None:
    """The number that a name or an attribute stands for, where the file says it in one place; its name alone where it does not."""
    if not all(part.isidentifier() for part in text.split(".")):
        return None
    name = text.rpartition(".")[2]
    tree = tree_of(where)
    nodes = list(_numbers(tree, scope, text, name, now))
    if len(nodes) == 1:
        span = node_span(where, nodes[0])
        return SizeSetting(name, now, wanted, Place(where.file, where.module, span), TextEdit(span, str(wanted)))
    return SizeSetting(name, now, wanted, where, None)


def _numbers(tree: ast.Module, scope: Scope | None, text: str, name: str, now: int) -> Iterator[ast.expr]:
    """The numbers of a file that a name is given: `N = 10`, `Config(n=10)`, `n: int = 10` of a class, `add_argument("--n", default=10)`."""
    for node in ast.walk(tree):
        value: ast.expr | None = None
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            is_field = isinstance(target, ast.Name) and target.id == name and (text == name or isinstance(node, ast.AnnAssign))
            value = node.value if is_field or ast.unparse(target) == text else None
        elif isinstance(node, ast.Call) and "." in text:
            keywords = {each.arg: each.value for each in node.keywords}
            is_option = any(isinstance(each, ast.Constant) and str(each.value).lstrip("-").replace("-", "_") == name for each in node.args)
            value = keywords.get("default") if is_option else keywords.get(name)
        if isinstance(value, ast.Constant) and type(value.value) is int and value.value == now:
            yield value
