"""Fixes that change how something is set up or called, where no size is at fault: `eval()`, another loss, another name."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from shapelens.analysis.explanations.operation_messages import OF_CLASSES
from shapelens.analysis.explanations.statements import calls_named, indentation_at, inserted, node_span, statement_at, tree_of
from shapelens.analysis.layer_arguments import ARGUMENTS
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import Mismatch
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

_OF_RANK = re.compile(r"expected [2-5]D(?: or [2-5]D)? input \(got ([2-5])D input\)")
_NORM = re.compile(r"(?:BatchNorm|InstanceNorm|SyncBatchNorm)(\d)d")
_DIMS = {2: 1, 3: 1, 4: 2, 5: 3}  # of the normalisation for an input of a rank
WITHOUT_RETURN = re.compile(r"(\w+)\(\) has no return\Z")
_OF_NUMBERS = {"mse_loss": "MSELoss", "l1_loss": "L1Loss", "smooth_l1_loss": "SmoothL1Loss", "huber_loss": "HuberLoss"}


def call_setting_fixes(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """Candidates, the likeliest first."""
    place = places.here(mismatch)
    if place is None:
        return
    if mismatch.meant:
        yield from _meant_name(place, mismatch)
    if without := WITHOUT_RETURN.search(mismatch.message):
        yield from _returning(place, without[1])
    if mismatch.code == "norm-single-value" and not mismatch.remainder:
        yield from _evaluating(places, mismatch)
    if "enforce_sorted" in mismatch.message:
        yield from _unsorted(place)
    if mismatch.code == "dtype" and mismatch.operation in OF_CLASSES and len(mismatch.inputs) > 2:
        yield from _weight_of_loss(place)
    yield from _norm_of_rank(places, mismatch)
    yield from _loss_of_classes(place, mismatch)


def _meant_name(place: Place, mismatch: Mismatch) -> Iterator[Fix]:
    """The name that is missing at a place, as the one that was meant."""
    lines, text = place.module.lines, place.module.lines.text_of(place.span)
    quoted = [each.rpartition(".")[2] for each in re.findall(r"'([\w.]+)'", mismatch.message)]
    wrong = next(iter(difflib.get_close_matches(mismatch.meant, quoted, 1, 0.5)), mismatch.meant)
    found = [each.start() for each in re.finditer(rf"\b{re.escape(wrong)}\b", text)]
    if found and wrong != mismatch.meant:
        start = lines.offset(place.span.start) + found[-1]
        span = Span.of(lines.position(start), lines.position(start + len(wrong)))
        yield Fix(f"Change to {mismatch.meant}", [TextEdit(span, mismatch.meant)], place.file, Likelihood.PART)


def _returning(place: Place, name: str) -> Iterator[Fix]:
    """A function without `return` that gives the name that its last statement binds."""
    for node in ast.walk(tree_of(place)):
        last = node.body[-1] if isinstance(node, ast.FunctionDef) and node.name == name else None
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target if isinstance(last, ast.AugAssign) else None
        if last is None or not isinstance(target, ast.Name) or any(isinstance(each, ast.Return) for each in ast.walk(node)):
            continue
        end, indentation = node_span(place, last).end, " " * last.col_offset
        text = f"return {target.id}"
        yield Fix(f"Add {text}", [TextEdit(Span.of(end, end), f"\n{indentation}{text}")], place.file, Likelihood.LAYOUT)


def _evaluating(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """A model that gets a single sample, set to evaluate before it is called."""
    called = places.locate(mismatch.trail[0]) if mismatch.trail else None
    statement = statement_at(called) if called is not None else None
    for node in ast.walk(statement) if statement is not None else ():
        if called is not None and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node_span(called, node) == called.span:
            text = f"{node.func.id}.eval()"
            start = node_span(called, statement).start if statement is not None else called.span.start
            edit = inserted(start, f"{text}\n{indentation_at(called)}")
            yield Fix(f"Evaluate it: {text}", [edit], called.file, Likelihood.LAYOUT)


def _unsorted(place: Place) -> Iterator[Fix]:
    call = place.module.call_at(place.span)
    if call is not None and not any(each.star or each.keyword == "enforce_sorted" for each in call.arguments):
        edit = replace_argument(place.module, call, None, "enforce_sorted", "False")
        yield Fix("Set enforce_sorted=False", [edit], place.file, Likelihood.LAYOUT)


def _weight_of_loss(place: Place) -> Iterator[Fix]:
    """A loss whose weights of the classes have the dtype of the scores."""
    for node, _ in calls_named(place, "CrossEntropyLoss", "NLLLoss", *OF_CLASSES):
        for keyword in node.keywords:
            if keyword.arg == "weight" and isinstance(keyword.value, ast.Name | ast.Attribute | ast.Call):
                yield Fix("Make the weight float32", [inserted(node_span(place, keyword.value).end, ".float()")], place.file)


def _norm_of_rank(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """`BatchNorm1d` for `BatchNorm2d` where the input has no picture."""
    rank = _OF_RANK.search(mismatch.message)
    layer = places.trace.layers[mismatch.layer] if mismatch.layer is not None else None
    norm = _NORM.fullmatch(layer.class_name) if layer is not None else None
    place = places.locate(layer.span) if layer is not None else None
    call = place.module.call_at(place.span) if place is not None else None
    if rank is None or norm is None or place is None or call is None or layer is None or not call.function.endswith(layer.class_name):
        return
    name = f"{layer.class_name[: norm.start(1)]}{_DIMS[int(rank[1])]}d"
    end = place.module.lines.offset(call.open_bracket) - 1
    span = Span.of(place.module.lines.position(end - len(layer.class_name)), place.module.lines.position(end))
    if name in ARGUMENTS and place.module.lines.text_of(span) == layer.class_name:
        yield Fix(f"Use {name}", [TextEdit(span, name)], place.file)


def _loss_of_classes(place: Place, mismatch: Mismatch) -> Iterator[Fix]:
    """Cross entropy for scores of classes whose target holds the numbers of the classes."""
    tensors = [value for value in mismatch.inputs if value.kind == "tensor" and value.shape is not None]
    if mismatch.operation not in _OF_NUMBERS or len(tensors) < 2 or tensors[1].dtype != "int64":
        return
    sizes, wanted = list(tensors[0].shape or []), list(tensors[1].shape or [])
    if len(sizes) != len(wanted) + 1 or [*sizes[:1], *sizes[2:]] != wanted:
        return
    layer = _OF_NUMBERS[mismatch.operation]
    made = [span for _, span in calls_named(place, layer)]
    for name, spans in (("CrossEntropyLoss", made), ("cross_entropy", [span for _, span in calls_named(place, mismatch.operation)])):
        if len(spans) == 1:
            yield Fix(f"Use {name} for the numbers of classes", [TextEdit(spans[0], name)], place.file, Likelihood.LAYOUT)
