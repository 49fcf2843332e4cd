"""Fixes of a loss or a comparison whose input and target do not fit, and of a loss that is more than one number.

The input or the target gets a dim more or less or another dtype, the classes are moved to where the loss looks for them, scores become the
class that is chosen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapelens.analysis.explanations.expression_parts import ExpressionPart, parts_of
from shapelens.analysis.explanations.operation_messages import LOSSES, OF_CLASSES, failed_at
from shapelens.analysis.explanations.related_places import reduction_argument
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import Mismatch, Value
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

Shape = Sequence[int | None]

COMPARISONS = ("eq", "ne", "__eq__", "__ne__")
RECURRENT = ("RNN", "LSTM", "GRU")
LONGEST_TITLE = 60
_UNDONE = {"squeeze": ("unsqueeze",), "unsqueeze": ("squeeze",), "float": ("long", "int"), "long": ("float",)}
_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def target_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates, the likeliest first; [] for any other mismatch."""
    place = places.here(mismatch)
    if place is None or place != places.locate(mismatch.span):
        return []
    if mismatch.code == "backward-scalar":
        return [*_with_reduction(places, mismatch), *_reduced(place)]
    name = mismatch.operation
    parts = failed_at(mismatch, parts_of(place)).parts
    operands = parts.operands() if parts is not None else []
    tensors = [value for value in mismatch.inputs if value.kind == "tensor" and value.shape is not None]
    if len(operands) < 2 or len(tensors) < 2 or any(isinstance(each.node, ast.Starred) for each in operands[:2]):
        return []
    if name in LOSSES:
        return [*_of_one_step(places, mismatch, place, operands, tensors), *_of_loss(place, name, operands, tensors)]
    return list(_of_comparison(place, operands, tensors)) if name in COMPARISONS else []


def appended(place: Place, span: Span, method: str, title: str) -> Fix:
    """The expression at a span with a method called on its value: `target.squeeze(1)`. A call that it undoes is taken away instead."""
    text = place.module.lines.text_of(span)
    new = with_method(text, method)
    shown = f"{title}: {new}" if len(new) <= LONGEST_TITLE and "\n" not in new else f"{title} with {method}"
    return Fix(shown, [TextEdit(span, new)], place.file)


def with_method(text: str, method: str) -> str:
    """Returns the text of an expression with a method called on its value; a call that the method undoes is taken away instead."""
    node = ast.parse(f"({text})", mode="eval").body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, _, arguments = method.partition("(")
        if node.func.attr in _UNDONE.get(name, ()) and "\n" not in text:
            inner = ast.get_source_segment(f"({text})", node.func.value)
            if inner is not None and (name in ("float", "long") or text.endswith((f"({arguments}", "(-1)"))):
                return inner
    return f"{text}.{method}" if isinstance(node, _PRIMARY) else f"({text}).{method}"


def _of_loss(place: Place, name: str, operands: Sequence[ExpressionPart], tensors: Sequence[Value]) -> Iterator[Fix]:
    given, target = operands[0].span, operands[1].span
    sizes, wanted = list(tensors[0].shape or []), list(tensors[1].shape or [])
    whole = not tensors[1].dtype.startswith(("float", "bfloat"))
    if name not in OF_CLASSES:
        yield from _of_alike(place, given, target, sizes, wanted, whole=whole)
        return
    classes_second, classes_last = [*sizes[:1], *sizes[2:]], sizes[:-1]
    if wanted in (classes_second, classes_last) and tensors[1].dtype != "int64":
        yield appended(place, target, "long()", "Make the target int64" if whole else "Make the target the numbers of classes")
    if len(sizes) > 2 and wanted == classes_last:
        method = "transpose(1, 2)" if len(sizes) == 3 else "movedim(-1, 1)"
        yield appended(place, given, method, "Move the classes to dim 1")
    elif sizes == wanted and whole:
        yield appended(place, target, "argmax(1)", "Take the number of the class")
        yield appended(place, target, "float()", "Make the target probabilities")
    elif len(sizes) == 2 and _count(wanted) == sizes[0] and 1 not in wanted:
        yield appended(place, target, "flatten()", "Put the target into one dim")
    elif len(wanted) == len(classes_second) + 1:
        for dim, size in enumerate(wanted):
            if size == 1 and wanted[:dim] + wanted[dim + 1 :] == classes_second:
                yield appended(place, target, f"squeeze({dim})", "Take the dim of size 1 from the target")
    elif len(sizes) > 2 and len(wanted) == 1 and _count(sizes[:-1]) == wanted[0]:
        yield appended(place, given, "flatten(0, -2)", "Put all but the classes into one dim")


def _of_alike(place: Place, given: Span, target: Span, sizes: list[int | None], wanted: list[int | None], *, whole: bool) -> Iterator[Fix]:
    """Of a loss that takes a target of the form of what is given. whole: the target holds whole numbers."""
    if sizes == wanted:
        yield from [appended(place, target, "float()", "Make the target floating point")] if whole else []
        return
    yield from _with_equal_dims(place, given, target, sizes, wanted)
    if len(sizes) < len(wanted) and sizes[:1] == wanted[:1] and len(sizes) == 2 and _count(sizes) == _count(wanted):
        yield appended(place, target, "flatten(1)", "Flatten the target")
    elif _count(sizes) == _count(wanted):
        yield appended(place, target, f"reshape_as({place.module.lines.text_of(given)})", "Give the target the same shape")


def _of_one_step(
    places: Places, mismatch: Mismatch, place: Place, operands: Sequence[ExpressionPart], tensors: Sequence[Value]
) -> Iterator[Fix]:
    """A loss of all steps of a sequence, or of the states of all layers, whose target is of one: the last layer gets that one alone."""
    sizes, wanted = list(tensors[0].shape or []), list(tensors[1].shape or [])
    if len(sizes) != 3 or len(wanted) not in (1, 2):
        return
    of_class = mismatch.operation in OF_CLASSES
    ways: list[tuple[str, str]] = []
    if wanted == ([sizes[0]] if of_class else [sizes[0], sizes[2]]):
        recurrent = any(
            suspect.layer is not None and places.trace.layers[suspect.layer].class_name in RECURRENT for suspect in mismatch.suspects
        )
        steps = [("[:, -1]", "Take the last step"), ("[:, 0]", "Take the first step")]
        ways += steps if recurrent else steps[::-1]
    if wanted == ([sizes[1]] if of_class else sizes[1:]):
        ways.append(("[-1]", "Take the state of the last layer"))
    maker = next((places.trace.layers[each.layer] for each in mismatch.origins if each.layer is not None and each.argument), None)
    called = places.locate(maker.call_span) if maker is not None else None
    parts = parts_of(called) if called is not None else None
    for suffix, title in ways:
        if called is not None and parts is not None and len(parts.arguments) == 1 and isinstance(parts.arguments[0].node, _PRIMARY):
            end = parts.arguments[0].span.end
            yield Fix(title, [TextEdit(Span.of(end, end), suffix)], called.file, Likelihood.LAYOUT)
        if isinstance(operands[0].node, _PRIMARY):
            end = operands[0].span.end
            yield Fix(f"{title} for the loss", [TextEdit(Span.of(end, end), suffix)], place.file, Likelihood.HERE)


def _of_comparison(place: Place, operands: Sequence[ExpressionPart], tensors: Sequence[Value]) -> Iterator[Fix]:
    """Scores that are compared with the numbers of classes."""
    for scores, numbers in ((0, 1), (1, 0)):
        sizes, wanted = list(tensors[scores].shape or []), list(tensors[numbers].shape or [])
        floating = tensors[scores].dtype.startswith(("float", "bfloat"))
        if len(sizes) == len(wanted) + 1 and len(sizes) > 1 and floating:
            if [*sizes[:1], *sizes[2:]] == wanted:
                yield appended(place, operands[scores].span, "argmax(1)", "Compare the class that is chosen")
            elif sizes[:-1] == wanted:
                yield appended(place, operands[scores].span, "argmax(-1)", "Compare the class that is chosen")


def _with_equal_dims(place: Place, given: Span, target: Span, sizes: Shape, wanted: Shape) -> Iterator[Fix]:
    """`[B, 1]` against `[B]`: the dim of size 1 taken from the one that has it, or given to the other."""
    high, low, more, fewer = (given, target, sizes, wanted) if len(sizes) > len(wanted) else (target, given, wanted, sizes)
    if len(more) != len(fewer) + 1:
        return
    fitting = [dim for dim, size in enumerate(more) if size == 1 and [*more[:dim], *more[dim + 1 :]] == list(fewer)]
    if fitting:
        dim = fitting[-1]
        yield appended(place, high, f"squeeze({dim})", "Take the dim of size 1 away")
        yield appended(place, low, f"unsqueeze({dim})", "Add the dim of size 1")


def _with_reduction(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    argument = reduction_argument(places, mismatch)
    if argument is not None and argument.argument is not None:
        edit = replace_argument(argument.module, argument.call, argument.argument, "reduction", '"mean"')
        yield Fix('Change reduction to "mean"', [edit], argument.file)


def _reduced(place: Place) -> Iterator[Fix]:
    """The mean or the sum of what `backward()` is called on."""
    parts = parts_of(place)
    if parts is not None and parts.function == "backward" and parts.receiver is not None and not parts.arguments:
        yield appended(place, parts.receiver.span, "mean()", "Go back from the mean")
        yield appended(place, parts.receiver.span, "sum()", "Go back from the sum")
    elif parts is not None and parts.function.rpartition(".")[2] == "grad" and parts.arguments:
        yield appended(place, parts.arguments[0].span, "mean()", "Go back from the mean")
        yield appended(place, parts.arguments[0].span, "sum()", "Go back from the sum")


def _count(shape: Shape) -> int | None:
    product = 1
    for size in shape:
        if size is None:
            return None
        product *= size
    return product
