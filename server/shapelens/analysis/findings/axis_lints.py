"""Lints of axes that meet though every shape fits: attention over the wrong axis, samples of a batch that depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shapelens.analysis.explanations.related_places import related_place
from shapelens.analysis.explanations.statements import inserted
from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Place, Places, layer_name
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.targets import with_method
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import Remark
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit


def batch_first(places: Places, remark: Remark, place: Place) -> Lint | None:
    """A layer that takes the samples of a batch for the steps of a sequence, at its constructor."""
    layer = places.layer_of(next(iter(remark.origins), None))
    target = places.locate(layer.span) if layer is not None else None
    call = target.module.call_at(target.span) if target is not None else None
    if layer is None or target is None or call is None or target.file != places.trace.file:
        return None
    if any(mismatch.layer == layer.index for mismatch in places.trace.mismatches):
        return None  # That is told already.
    shape = _dims(remark)
    message = f"{layer_name(layer)} takes dim 0 of {shape} for the time, and dim 1 for the batch: {remark.given} has batch_first=False"
    related = [related_place(places, place, "dim 0 is the batch here")]
    # An encoder has it from its layers.
    inner = next((each for each in places.trace.layers if (each.example, each.path) == (layer.example, f"{layer.path}.layers.0")), layer)
    said = places.argument(inner, "batch_first")
    fix = None
    if said is not None and not said.hidden:
        edit = replace_argument(said.module, said.call, said.argument, "batch_first", "True")
        fix = Fix("Set batch_first=True", [edit], said.file)
    return Lint("batch-first", "warning", message, target.span, related, fix)


def attention_axis(places: Places, remark: Remark, place: Place) -> Lint | None:
    """Attention of heads with each other, at each position by itself, or with weights that add up to 1 along another dim than is summed."""
    if remark.dim is not None:
        return _weights_of_another_dim(places, remark, place)
    value = remark.inputs[0]
    names = value.named or [str(size) for size in value.shape or []]
    message = f"{dims_text(value)}: each of the {names[1]} positions attends to its own {names[-2]} heads: transpose(1, 2) is missing"
    call, fix = place.module.call_at(place.span), None
    if remark.operation == "scaled_dot_product_attention" and call is not None and call.span == place.span:
        given = [each for each in call.arguments if each.index in (0, 1, 2) or each.keyword in ("query", "key", "value")]
        edits = [TextEdit(each.span, with_method(each.text, "transpose(1, 2)")) for each in given]
        if len(given) == 3 and not any(each.star for each in call.arguments):
            fix = Fix("Transpose heads and positions, and back", [*edits, inserted(call.span.end, ".transpose(1, 2)")], place.file)
    return Lint("attention-axis", "warning", message, place.span, fix=fix)


def _weights_of_another_dim(places: Places, remark: Remark, place: Place) -> Lint:
    """A softmax over the queries or the heads, where the product sums over the keys."""
    rank = len(remark.inputs[0].shape or [])
    message = f"the softmax is over dim {remark.dim} of {_dims(remark)}, but the product sums over dim {rank - 1}"
    return _of_dim(places, remark, place, "attention-axis", f"{message}: the weights of a sum do not add up to 1")


def batch_mix(places: Places, remark: Remark, place: Place) -> Lint:
    """An operation over the batch, whose result still has a row for each sample."""
    message = f"{remark.operation} over dim {remark.dim} of {_dims(remark)}, the batch: each sample of the result depends on the others"
    return _of_dim(places, remark, place, "batch-mix", message)


def _dims(remark: Remark) -> str:
    return "[" + ", ".join(remark.axes) + "]" if remark.axes else dims_text(remark.inputs[0])


def _of_dim(places: Places, remark: Remark, place: Place, code: str, message: str) -> Lint:
    """A lint of a wrong dim: where it is called, or where the layer that has the dim is constructed."""
    layer = places.layer_of(remark)
    target = places.locate(layer.span) if layer is not None else None
    if target is None or target.file != places.trace.file:
        return Lint(code, "warning", message, place.span, fix=_last_dim(remark, place, is_layer=False) if layer is None else None)
    related = [related_place(places, place, "it is called here")]
    return Lint(code, "warning", message, target.span, related, _last_dim(remark, target, is_layer=True))


def _last_dim(remark: Remark, target: Place, *, is_layer: bool) -> Fix | None:
    """The softmax over the last dim."""
    call = target.module.call_at(target.span)
    if "softmax" not in remark.operation or call is None or any(argument.star for argument in call.arguments):
        return None
    owner, _, name = call.function.rpartition(".")
    if not name.lower().endswith("softmax"):
        return None
    index = 0 if is_layer or owner not in ("F", "torch", "nn.functional", "torch.nn.functional") else 1
    given = next((each for each in call.arguments if each.keyword == "dim" or each.index == index), None)
    return Fix("Take the softmax over the last dim", [replace_argument(target.module, call, given, "dim", "-1")], target.file)


OF_AXES: Mapping[str, Callable[[Places, Remark, Place], Lint | None]] = {
    "attention-axis": attention_axis,
    "batch-first": batch_first,
    "batch-mix": batch_mix,
}
