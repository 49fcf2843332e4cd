"""Lints of loops that train: optimizers over nothing, sums that keep graphs, gradients that nothing sets back, layers in plain lists."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from shapelens.analysis.explanations.statements import indentation_at, inserted, node_span, statement_at
from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.programs.registration import wrapped_list
from shapelens.protocol import FileSpan, LayerSeen, Remark


def _optimizer_parameters(places: Places, remark: Remark, place: Place) -> Lint | None:
    call = place.module.call_at(place.span)
    span = call.arguments[0].span if call is not None and call.arguments else place.span
    message = "no module that holds these parameters is called: the optimizer changes nothing that the loss depends on"
    return Lint("optimizer-parameters", "warning", message, span)


def _kept_graph(places: Places, remark: Remark, place: Place) -> Lint | None:
    """`total += loss`, where `total` is only looked at. A name that each turn assigns anew keeps no more than one."""
    if not _adds_to(statement_at(place), remark.given):
        return None
    message = f"{remark.given} keeps the graph of each turn, as it adds up losses that lead back to parameters: add loss.item()"
    return Lint("kept-graph", "warning", message, place.span, fix=_item_fix(place, remark.given))


def _adds_to(node: ast.stmt | None, name: str) -> bool:
    """True if a statement adds something to a name."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name) and node.target.id == name
    value = node.value if isinstance(node, ast.Assign) else None
    sides = (value.left, value.right) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else ()
    return any(isinstance(each, ast.Name) and each.id == name for each in sides)


def _item_fix(place: Place, name: str) -> Fix | None:
    """Adds the number of the loss: `total += loss.item()`."""
    node = statement_at(place)
    value: ast.expr | None = None
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        value = node.value
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        value = next((each for each in (node.value.left, node.value.right) if not (isinstance(each, ast.Name) and each.id == name)), None)
    if not isinstance(value, ast.Name | ast.Call | ast.Attribute):
        return None
    span = node_span(place, value)
    return Fix("Add the number alone", [inserted(span.end, ".item()")], place.file)


def _no_zero_grad(places: Places, remark: Remark, place: Place) -> Lint | None:
    message = "nothing sets the gradients back to zero: backward() adds those of each turn to those of all turns before"
    text = place.module.lines.text_of(place.span)
    fix = None
    node = statement_at(place)
    if isinstance(node, ast.Expr) and text.endswith(".step()"):
        indentation, end = indentation_at(place), node_span(place, node).end
        edit = inserted(end, f"\n{indentation}{text.removesuffix('.step()')}.zero_grad()")
        fix = Fix("Set the gradients back after each step", [edit], place.file)
    return Lint("no-zero-grad", "warning", message, place.span, fix=fix)


def _unregistered_layers(places: Places, remark: Remark, place: Place) -> Lint | None:
    if remark.span is not None and any(_lies_in(layer, remark.span) for layer in _on_other_devices(places)):
        return None  # That these layers stay where they are says so.
    message = f"{remark.given} is no ModuleList: the module does not know these layers, so that its parameters() and to() leave them out"
    return Lint("unregistered-layers", "warning", message, place.span, fix=wrapped_list(place, remark.given))


def _on_other_devices(places: Places) -> list[LayerSeen]:
    """The layers that meet tensors of another device."""
    found = [places.layer_of(each) for each in places.trace.mismatches if each.code == "device"]
    return [layer for layer in found if layer is not None]


def _lies_in(layer: LayerSeen, span: FileSpan) -> bool:
    """True if a layer is constructed in the lines of a span."""
    made = layer.span
    return made is not None and made.file == span.file and span.line <= made.line and made.end_line <= span.end_line


TRAINING: Mapping[str, Callable[[Places, Remark, Place], Lint | None]] = {
    "optimizer-parameters": _optimizer_parameters,
    "kept-graph": _kept_graph,
    "no-zero-grad": _no_zero_grad,
    "unregistered-layers": _unregistered_layers,
}
