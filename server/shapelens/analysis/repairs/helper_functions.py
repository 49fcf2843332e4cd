"""Fixes of the call of a function that constructs layers: `self.block(features, features)` of a `block(i, o)` with `nn.Conv2d(i, o, 3)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

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
    layer = places.layer_of(mismatch)
    name = place.argument.text.strip() if place.argument is not None else ""
    scope = scope_of(place)
    if layer is None or scope is None or isinstance(scope.node, ast.Module) or scope.node.name == "__init__" or mismatch.got is None:
        return []
    parameters = [each.arg for each in scope.node.args.args if each.arg not in ("self", "cls")]
    if name not in parameters:
        return []
    found: list[Fix] = []
    for where in _calls(place, layer, scope.node.name, name, parameters.index(name)):
        found += _resized(places, where, mismatch.need or 0, mismatch.got, _attribute(layer))
    return found


def passed_fixes(places: Places, mismatches: Sequence[Mismatch], given: ArgumentPlace) -> list[Fix]:
    """Candidates where a module of the user's passes an argument on to the layers that do not fit: it is given another size."""
    sizes = {(mismatch.need or 0, mismatch.got) for mismatch in mismatches if mismatch.got is not None}
    made = given.call.function.rpartition(".")[2]
    return [fix for need, got in sizes for fix in _resized(places, given, need, got, made)] if len(sizes) == 1 else []


def _resized(places: Places, where: ArgumentPlace, need: int, got: int, made: str) -> Iterator[Fix]:
    text = where.argument.text.strip() if where.argument is not None else ""
    texts = size_expressions(places, where, [got], None)
    whole = replacement(text, [(need, got)])
    written = re.sub(rf"(?<![\w.]){need}(?![\w.])", str(got), text)  # `int(512 * scale)` for `int(256 * scale)`
    kept = [each for each in (whole, written) if each is not None and not each.isdecimal() and each != text]
    for new in dict.fromkeys([*kept, *texts, str(got)]):
        likelihood = Likelihood.EXPRESSION if not new.isdecimal() or text.isdecimal() else Likelihood.NUMBER_FOR_EXPRESSION
        yield Fix(f"Change {text} to {new} where {made} is built", [TextEdit(where.span, new)], where.file, likelihood)


def _calls(place: ArgumentPlace, layer: LayerSeen, function: str, name: str, index: int) -> Iterator[ArgumentPlace]:
    """The calls of a function in what is assigned to the attribute that holds a layer, with the argument for one of its parameters."""
    whole = Place(place.file, place.module, place.span)
    tree = tree_of(whole)
    for node in ast.walk(tree):
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
