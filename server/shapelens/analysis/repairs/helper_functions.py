"""Fixes of the call of a function that constructs layers: `self.block(features, features)` of a `block(i, o)` with `nn.Conv2d(i, o, 3)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapelens.analysis.explanations.names_in_scope import scope_of
from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.places import ArgumentPlace, Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.analysis.repairs.size_expressions import replacement
from shapelens.analysis.repairs.sizes_in_scope import size_expressions
from shapelens.protocol import LayerSeen, Mismatch
from shapelens.source.position_map import TextEdit


def helper_fixes(places: Places, mismatch: Mismatch, place: ArgumentPlace) -> list[Fix]:
    """Candidates where a layer's argument is a parameter of the function that constructs it, and an attribute holds what that gives."""
    layer = places.trace.layers[mismatch.layer] if mismatch.layer is not None else None
    name = place.argument.text.strip() if place.argument is not None else ""
    scope = scope_of(place)
    if layer is None or scope is None or isinstance(scope.node, ast.Module) or scope.node.name == "__init__" or mismatch.got is None:
        return []
    parameters = [each.arg for each in scope.node.args.args if each.arg not in ("self", "cls")]
    if name not in parameters:
        return []
    found: list[Fix] = []
    for where in _calls(place, layer, scope.node.name, name, parameters.index(name)):
        text = where.argument.text.strip() if where.argument is not None else ""
        texts = size_expressions(places, where, [mismatch.got], None)
        whole = replacement(text, [(mismatch.need or 0, mismatch.got)])
        for new in dict.fromkeys([*([whole] if whole is not None and not whole.isdecimal() else []), *texts, str(mismatch.got)]):
            likelihood = Likelihood.EXPRESSION if not new.isdecimal() or text.isdecimal() else Likelihood.NUMBER_FOR_EXPRESSION
            title = f"Change {text} to {new} where {_attribute(layer)} is built"
            found.append(Fix(title, [TextEdit(where.span, new)], where.file, likelihood))
    return found


def _calls(place: ArgumentPlace, layer: LayerSeen, function: str, name: str, index: int) -> Iterator[ArgumentPlace]:
    """The calls of a function in what is assigned to the attribute that holds a layer, with the argument for one of its parameters."""
    whole = Place(place.file, place.module, place.span)
    tree = tree_of(whole)
    for node in ast.walk(tree) if tree is not None else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute) or target.attr != _attribute(layer):
            continue
        for called in ast.walk(node.value):
            if isinstance(called, ast.Call) and ast.unparse(called.func).rpartition(".")[2] == function:
                call = place.module.call_at(node_span(whole, called))
                argument = place.module.argument(call, [name], index) if call is not None else None
                if call is not None and argument is not None and not argument.star:
                    yield ArgumentPlace(place.file, place.module, call, argument)


def _attribute(layer: LayerSeen) -> str:
    """The attribute that holds a layer, or the Sequential that it is in."""
    return next((part for part in reversed(layer.path.split(".")) if not part.isdigit()), "")
