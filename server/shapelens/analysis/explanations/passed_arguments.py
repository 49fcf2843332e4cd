"""Where a layer's argument comes from that a module of the user's passes on: 256 of `Block(256, 512)`, for its `nn.Conv2d(width, …)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from shapelens.analysis.explanations.names_in_scope import Scope, scope_of
from shapelens.analysis.places import ArgumentPlace, Places, is_constructor
from shapelens.protocol import LayerSeen, Mismatch
from shapelens.stated.syntax_trees import all_parameters, positional

MOST_STEPS = 4  # from constructor to constructor
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def passed_argument(places: Places, mismatches: Sequence[Mismatch], place: ArgumentPlace | None) -> ArgumentPlace | None:
    """Returns the argument of the user's constructor call that gave the layers of `mismatches` what does not fit, if other layers which are
    made in the same place fit: then the place is right, and what it was given is wrong. None where that is not so, or cannot be told.

    place: the layers' own argument.
    """
    failing = {mismatch.layer for mismatch in mismatches if mismatch.layer is not None}
    layers = [places.trace.layers[index] for index in failing]
    if place is None or not layers or not _others_fit(places, layers, failing):
        return None
    found = {(given.file, given.span): given for layer in layers if (given := _passed(places, layer, place)) is not None}
    return next(iter(found.values())) if len(found) == 1 else None


def _others_fit(places: Places, layers: Sequence[LayerSeen], failing: set[int]) -> bool:
    made = layers[0].span
    return any(each.span == made and each.calls and each.index not in failing for each in places.trace.layers)


def _passed(places: Places, layer: LayerSeen, place: ArgumentPlace) -> ArgumentPlace | None:
    inner_first = sorted(places.trace.layers, key=lambda each: -len(each.path))
    around = [each for each in inner_first if each.example == layer.example and (not each.path or layer.path.startswith(f"{each.path}."))]
    layers, index, found = [layer, *around], 0, None
    for _ in range(MOST_STEPS):
        outer = outer_argument(places, layers, index, place)
        given = outer[2] if outer is not None else None
        if outer is None or given is None or given.argument is None or given.hidden:
            break
        index, place, found = outer[0], given, given
    return found


def outer_argument(
    places: Places, layers: Sequence[LayerSeen], index: int, place: ArgumentPlace
) -> tuple[int, str, ArgumentPlace | None] | None:
    """The module whose constructor passes an argument on as it is: its number in `layers`, its parameter, and what it is given for that.

    layers: a layer, and the modules around it, inner ones first; index: the one that is given `place`. None where nothing is passed on.
    """
    scope, text = scope_of(place), place.argument.text.strip() if place.argument is not None else ""
    name = _parameter(scope, text)
    owner = _around(layers, index, scope) if name else None
    if owner is None or scope is None:
        return None
    return owner, name, _argument(places, layers[owner], name, _position(scope, name))


def _argument(places: Places, layer: LayerSeen, argument: str, position: int) -> ArgumentPlace | None:
    found = places.argument(layer, argument)
    if found is None or found.argument is not None or not is_constructor(found.call, layer):
        return found
    return ArgumentPlace(found.file, found.module, found.call, found.module.argument(found.call, [argument], position))


def _parameter(scope: Scope | None, text: str) -> str:
    """The parameter of a constructor that an expression is: `hidden`, or `self.hidden` where that was assigned to it; "" for others."""
    if scope is None or not isinstance(scope.node, _FUNCTIONS) or scope.node.name != "__init__":
        return ""
    parameters = {each.arg for each in all_parameters(scope.node)}
    if text.startswith("self."):
        given = [
            node.value.id
            for node in ast.walk(scope.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and ast.unparse(node.targets[0]) == text
        ]
        text = given[0] if len(set(given)) == 1 else ""
    return text if text in parameters and not _is_rebound(scope.node, text) else ""


def _is_rebound(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store) for each in ast.walk(node))


def _position(scope: Scope, name: str) -> int:
    """Where the call of a class takes a parameter of its constructor."""
    assert isinstance(scope.node, _FUNCTIONS)
    names = [each.arg for each in positional(scope.node)]
    return names.index(name) - 1 if name in names else -1


def _around(layers: Sequence[LayerSeen], index: int, scope: Scope | None) -> int | None:
    """The module in whose constructor a layer was made."""
    cls = scope.qualified_name.rpartition(".")[0] if scope is not None else ""
    for number in range(index + 1, len(layers)):
        if cls and layers[number].qualified_name.endswith(f".{cls}"):
            return number
    return None
