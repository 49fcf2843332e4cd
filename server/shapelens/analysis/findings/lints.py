"""Lints: code that runs, but hardly does what its author meant, as far as shapes tell. The setting `lints` switches each on or off."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from shapelens.analysis.explanations.operands import operands
from shapelens.analysis.explanations.related_places import related_place, variable_assignments
from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.findings.axis_lints import OF_AXES
from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.findings.shape_annotations import shape_annotations
from shapelens.analysis.findings.shape_comments import shape_comments
from shapelens.analysis.findings.shape_docstrings import shape_docstrings
from shapelens.analysis.findings.torn_views import torn_view
from shapelens.analysis.findings.training_lints import TRAINING
from shapelens.analysis.findings.unused_layers import unused_layers
from shapelens.analysis.places import Place, Places, layer_name
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.targets import appended
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import ExampleRun, Remark, Value
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

_SIGNS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/", "truediv": "/",
    "pow": "**", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_LOSSES = {
    "cross_entropy": "cross_entropy takes logits and applies log_softmax itself",
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits takes logits and applies sigmoid itself",
    "binary_cross_entropy": "binary_cross_entropy takes probabilities, as sigmoid gives them",
    "nll_loss": "nll_loss takes log-probabilities, as log_softmax gives them",
}
_LEAVES_ONE = re.compile(r"(?i)adaptive|mean|sum|max$|min$|norm|view|reshape|unsqueeze|__getitem__|linear")
# Of these it matters where the tensors were made.
_OF_TWO_TENSORS = ("outer-product", "loss-broadcast", "class-index")


def lints(places: Places, wanted: Mapping[str, bool]) -> Iterator[Lint]:
    """The lints of a trace, in no order, each place once: `wanted` says of each code whether it is on."""
    said = set[tuple[str, Span]]()  # A program comes to what the example of a class has shown.
    for remark in places.trace.remarks:
        place = places.locate(remark.span) if remark.span is not None and remark.span.file == places.trace.file else None
        rule = _RULES.get(remark.code)
        if place is not None and rule is not None and wanted.get(remark.code, False):
            lint = rule(places, remark, place)
            run = places.trace.examples[remark.example] if 0 <= remark.example < len(places.trace.examples) else None
            is_guess = run is not None and (run.doubtful or _is_of_guess(run, remark))
            if lint is not None and not is_guess and (lint.code, lint.span) not in said:
                said.add((lint.code, lint.span))
                # What a found example makes of the code need not be what its author does with it.
                found = run is not None and run.evidence != "" and lint.severity == "error"
                if remark.code in _OF_TWO_TENSORS and remark.span is not None:
                    lint = replace(
                        lint, related=[*lint.related, *variable_assignments(places, [remark.span], remark.example, lint.related)]
                    )
                yield replace(lint, severity="information", guessed=True) if found else lint
    if wanted.get("shape-comment", False):
        yield from shape_comments(places)
        yield from shape_annotations(places)
        yield from shape_docstrings(places)
    if wanted.get("unused-layer", False):
        for layer, place in unused_layers(places):
            message = f"{layer_name(layer)} is constructed but never used: no code of the class reads it, and no example called it"
            yield Lint("unused-layer", "hint", message, place.span)


def _is_of_guess(run: ExampleRun, remark: Remark) -> bool:
    """True if the guess brought it about: a picture so small that it left a single value, an input whose dims are in another order."""
    if run.evidence != "inferred":
        return False
    if remark.code == "torn-view":
        return remark.given == "input"
    if remark.code != "norm-single-value" or remark.dim is None:
        return False
    return not any(_LEAVES_ONE.search(origin.operation) for origin in remark.origins[:1])


# --- broadcasts ---


def _outer_product(places: Places, remark: Remark, place: Place) -> Lint | None:
    first, second = remark.inputs
    high, low = (first, second) if remark.dim == 0 else (second, first)
    if high.named is not None and low.named is not None and high.named[:-1] != low.named:
        return None  # Two sizes of different meaning, which happen to be equal.
    result = _broadcast(high, low)
    sign = _SIGNS.get(remark.operation.strip("_").removeprefix("r"), _SIGNS.get(remark.operation.strip("_"), ""))
    given = (
        f"{dims_text(first)} {sign} {dims_text(second)}" if sign else f"{remark.operation} of {dims_text(first)} and {dims_text(second)}"
    )
    message = f"{given} makes an outer product {result}: the last dim of {dims_text(high)} is stretched along {dims_text(low)}"
    return Lint("outer-product", "warning", message, place.span, fix=_squeezed_operand(remark, place))


def _broadcast(high: Value, low: Value) -> str:
    """The dims that a tensor and one of a dim more broadcast to."""
    sizes = high.named if high.named is not None and low.named is not None else [str(size) for size in high.shape or []]
    other = low.named if high.named is not None and low.named is not None else [str(size) for size in low.shape or []]
    return "[" + ", ".join([sizes[0], *[a if b == "1" else b for a, b in zip(sizes[1:], other, strict=True)]]).replace("*", "·") + "]"


def _squeezed_operand(remark: Remark, place: Place) -> Fix | None:
    """Takes the dim of size 1 from the operand that has it, or gives the argument of a library's method one (`log_prob`)."""
    call = place.module.call_at(place.span)
    name = call.function.rpartition(".")[2] if call is not None and call.span == place.span else ""
    if call is not None and name and name not in {remark.operation, *_SIGNS} and len(call.arguments) == 1 and remark.dim == 1:
        return appended(place, call.arguments[0].span, "unsqueeze(-1)", "Add a last dim")
    found = operands(place.module.lines.text_of(place.span))
    number = remark.dim or 0
    if remark.operation.startswith("__r"):
        number = 1 - number
    if len(found) != 2:
        return None
    start, end, _ = found[number]
    base = place.module.lines.offset(place.span.start)
    return appended(place, place.module.lines.span(base + start, base + end), "squeeze(-1)", "Take the last dim away")


# --- squeeze ---


def _squeeze(places: Places, remark: Remark, place: Place) -> Lint | None:
    value = remark.inputs[0]
    batch = _batch_dim(places, remark, value)
    if batch is None:
        return None
    dims, shape = value.named or [str(size) for size in value.shape or []], value.shape or []
    single = [dim for dim, size in enumerate(dims) if size == "1" and dim != batch]
    if shape[batch] == 1:
        left = "[" + ", ".join(dims[dim] for dim, size in enumerate(shape) if size != 1) + "]"
        message = f"squeeze() drops the batch too, as it has size 1: {dims_text(value)} becomes {left}"
    else:
        name = value.named[batch] if value.named is not None else "the batch"
        message = f"squeeze() of {dims_text(value)} drops every dim of size 1: with a batch of 1 {name} would go too"
    fix = _squeeze_dims(place, single, len(dims)) if single else None
    return Lint("squeeze-batch", "warning" if shape[batch] == 1 else "information", message, place.span, fix=fix)


def _batch_dim(places: Places, remark: Remark, value: Value) -> int | None:
    """The dim that is the batch's: the one of that name, or without names the first, if it has the size of the first input's first dim."""
    model = next((layer for layer in places.trace.layers if layer.example == remark.example and layer.path == "" and layer.calls), None)
    given = model.calls[0].inputs if model is not None else []
    first = next((each for each in given if each.kind == "tensor" and each.shape), None)
    if first is None or not first.shape or not value.shape or len(first.shape) < 2:
        return None
    if value.named is not None and first.named is not None:
        name = first.named[0]
        return value.named.index(name) if name in value.named and not name.isdigit() else None
    return 0 if value.shape[0] == first.shape[0] else None


def _squeeze_dims(place: Place, dims: list[int], rank: int) -> Fix | None:
    """Says which dims to take away: all of size 1 but the batch."""
    call = place.module.call_at(place.span)
    if call is None or call.function.rpartition(".")[2] != "squeeze":
        return None
    text = "-1" if dims == [rank - 1] else str(dims[0]) if len(dims) == 1 else "(" + ", ".join(map(str, dims)) + ")"
    edit = replace_argument(place.module, call, None, "dim", text)
    return Fix(f"Take only dim {text} away", [edit], place.file)


# --- dims ---


_EXCHANGE = re.compile(r"\.(?:transpose|swapaxes|swapdims)\(\s*(-?\d)\s*,\s*(-?\d)\s*\)")


def _same_dim(places: Places, remark: Remark, place: Place) -> Lint | None:
    call = place.module.call_at(place.span)
    written = [argument.text.strip() for argument in call.arguments[-2:]] if call is not None else []
    if call is None or written != [str(remark.dim)] * 2:
        return None  # Dims that are computed may be the same where a tensor has few of them.
    others = Counter(pair for pair in _EXCHANGE.findall(place.module.lines.text) if pair[0] != pair[1] and written[0] in pair)
    fix = None
    if others:
        dims = others.most_common(1)[0][0]
        span = Span.of(call.arguments[-2].span.start, call.arguments[-1].span.end)
        fix = Fix(f"Exchange dims {dims[0]} and {dims[1]}", [TextEdit(span, ", ".join(dims))], place.file)
    message = f"{remark.operation}({', '.join(written)}) leaves {dims_text(remark.inputs[0])} as it is: it exchanges a dim with itself"
    return Lint("same-dim", "warning", message, place.span, fix=fix)


# --- normalisations ---


def _norm(places: Places, remark: Remark, place: Place) -> Lint | None:
    name, shape = _name_of_layer(places, remark), dims_text(remark.inputs[0])
    if remark.operation == "batch_norm":
        message = f"{name} gets one value per channel ({shape}): in training mode this fails, as a batch norm needs more of them"
        return Lint("norm-single-value", "information", message, place.span)
    group = "feature" if remark.operation == "layer_norm" else "group"
    message = f"{name} normalises one value per {group} ({shape}): its result is its bias, whatever the input"
    return Lint("norm-single-value", "warning", message, place.span)


def _name_of_layer(places: Places, remark: Remark) -> str:
    """A layer by its name in the user's code, a function by its own."""
    return layer_name(places.trace.layers[remark.layer]) if remark.layer is not None else remark.operation


# --- the batch ---


# --- softmax and losses ---


def _softmax_single(places: Places, remark: Remark, place: Place) -> Lint | None:
    origin = remark.origins[0] if remark.origins else None
    producer = places.layer_of(origin)
    given = "1" if remark.operation == "softmax" else "0"
    message = f"{remark.operation} over a dim of size 1 ({dims_text(remark.inputs[0])}) gives {given} everywhere"
    related = []
    if origin is not None and producer is not None and origin.argument:
        message += f": {origin.argument} of {layer_name(producer)} is 1"
        argument = places.argument(producer, origin.argument)
        if argument is not None:
            where = Place(argument.file, argument.module, argument.span)
            related.append(related_place(places, where, f"{origin.argument} of {layer_name(producer)}"))
    return Lint("softmax-single-value", "warning", message, place.span, related)


def _softmax_dim(places: Places, remark: Remark, place: Place) -> Lint | None:
    value = remark.inputs[0]
    if len(value.shape or []) != 3:
        return None  # For other ranks torch takes dim 1, or the only one there is.
    layer = places.layer_of(remark)
    target = places.locate(layer.span) if layer is not None else place
    call = target.module.call_at(target.span) if target is not None else None
    fix = None
    if target is not None and call is not None and not any(argument.star for argument in call.arguments):
        fix = Fix("Take the softmax over the last dim", [replace_argument(target.module, call, None, "dim", "-1")], target.file)
    message = f"{remark.operation} without dim normalises {dims_text(value)} over dim 0, across the batch: say which dim is meant"
    return Lint("softmax-dim", "warning", message, place.span, fix=fix)


_NORMALISE = ("softmax", "sigmoid")


def _loss_input(places: Places, remark: Remark, place: Place) -> Lint | None:
    given = {"linear": "a linear layer", "relu": "a ReLU"}.get(remark.given.lower(), f"a {remark.given.lower().strip('_')}")
    fix = _with_logits(places, remark, place) if remark.operation == "binary_cross_entropy" and remark.given.lower() == "linear" else None
    fix = fix or _without_normalisation(places, remark)
    return Lint("loss-input", "warning", f"{_LOSSES[remark.operation]}, but gets the result of {given}", place.span, fix=fix)


def _without_normalisation(places: Places, remark: Remark) -> Fix | None:
    """A softmax or sigmoid that the loss takes itself is left out; what gives probabilities to one of their logarithms gives these."""
    made = places.locate(remark.origins[0].span) if remark.origins else None
    call = made.module.call_at(made.span) if made is not None else None
    if made is None or call is None or call.span != made.span or not call.arguments or call.arguments[0].star:
        return None
    receiver, _, name = call.function.rpartition(".")
    lines = made.module.lines
    end = lines.offset(call.open_bracket) - 1
    if remark.operation == "nll_loss":
        written = lines.span(end - len(name), end)
        return Fix("Take the logarithm: log_softmax", [TextEdit(written, "log_softmax")], made.file) if name == "softmax" else None
    if "entropy" not in remark.operation or remark.operation == "binary_cross_entropy":
        return None
    if receiver == "self":
        return _without_layer(made, name)
    is_method = call.qualified is None and receiver not in ("torch", "F")
    text = receiver if is_method else call.arguments[0].text
    return Fix(f"Leave out {name}", [TextEdit(made.span, text)], made.file) if name in _NORMALISE and text else None


def _without_layer(place: Place, name: str) -> Fix | None:
    """An attribute that is a softmax is a layer that changes nothing."""
    for node in ast.walk(tree_of(place)):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        made = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
        if made is not None and isinstance(target, ast.Attribute) and target.attr == name:
            written = ast.unparse(made.func)
            if written.rpartition(".")[2] in ("Softmax", "Softmax2d", "Sigmoid"):
                text = f"{written.rpartition('.')[0]}.Identity()".lstrip(".")
                return Fix(f"Make {name} change nothing: {text}", [TextEdit(node_span(place, made), text)], place.file)
    return None


def _with_logits(places: Places, remark: Remark, place: Place) -> Fix | None:
    """The loss that takes what a layer gives: where it is made, or as a function."""
    layer = places.layer_of(remark)
    target = places.locate(layer.span) if layer is not None else place
    call = target.module.call_at(target.span) if target is not None else None
    name = "BCEWithLogitsLoss" if layer is not None else "binary_cross_entropy_with_logits"
    former = "BCELoss" if layer is not None else "binary_cross_entropy"
    if target is None or call is None or not call.function.endswith(former):
        return None
    end = target.module.lines.offset(call.open_bracket) - 1
    return Fix(f"Use {name}", [TextEdit(target.module.lines.span(end - len(former), end), name)], target.file)


def _loss_broadcast(places: Places, remark: Remark, place: Place) -> Lint | None:
    first, second = remark.inputs
    message = f"{remark.operation} of {dims_text(first)} and {dims_text(second)} stretches one to the other's shape: torch warns of this"
    return Lint("loss-broadcast", "warning", message, place.span)


_LOOKUPS: Mapping[str, Callable[[Places, Remark, Value], str]] = {
    "embedding": lambda places, remark, table: f"{_name_of_layer(places, remark)} has {(table.shape or [0])[0]} rows",
    "one_hot": lambda places, remark, result: f"there are {(result.shape or [0])[-1]} classes",
    "gather": lambda places, remark, tensor: f"it picks from {dims_text(tensor)}",
    "index_select": lambda places, remark, tensor: f"it picks from {dims_text(tensor)}",
}


def _class_index(places: Places, remark: Remark, place: Place) -> Lint | None:
    scores, target = remark.inputs
    if remark.operation in _LOOKUPS:
        size = _LOOKUPS[remark.operation](places, remark, scores)
        message = f"{dims_text(target)} of random numbers goes up to {remark.largest}, but {size}, counted from 0"
        return Lint("class-index", "warning", message, place.span)
    classes = (scores.shape or [])[1 if len(scores.shape or []) > 1 else 0]
    said = f"the target {dims_text(target)} holds classes up to {remark.largest}"
    message = f"{said}, but the scores {dims_text(scores)} are of {classes} classes, counted from 0"
    return Lint("class-index", "warning", message, place.span)


_RULES: Mapping[str, Callable[[Places, Remark, Place], Lint | None]] = {
    "outer-product": _outer_product,
    "squeeze-batch": _squeeze,
    "same-dim": _same_dim,
    "norm-single-value": _norm,
    "softmax-single-value": _softmax_single,
    "softmax-dim": _softmax_dim,
    "loss-input": _loss_input,
    "class-index": _class_index,
    "loss-broadcast": _loss_broadcast,
    "torn-view": torn_view,
    **OF_AXES,
    **TRAINING,
}
