"""Fixes that a mismatch speaks for: the smallest edit that gives a layer the size that it got, or has the one before give what it needs.

They are candidates: which of them is offered, the `repair` package finds out by running them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.layer_arguments import fits, normalized_shape
from shapelens.analysis.places import ArgumentPlace, Place, Places, layer_name
from shapelens.analysis.repairs.size_expressions import Sizes, flattened_dims, replacement, with_factors
from shapelens.analysis.repairs.sizes_in_scope import of_other_layers, size_expressions
from shapelens.protocol import LayerSeen, Mismatch, Suspect, Value
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.stated.syntax_trees import expression_of

_COUNTED_FROM_THE_FRONT = (
    "num_features",
    "num_channels",
    "num_parameters",
)  # dim 1, whatever the number of dims; all else counts from the back

_JOINS = ("cat", "concat", "concatenate")


class Likelihood(IntEnum):
    """The likelihood that the author meant a repair, the likeliest first.

    An expression that holds the right size is likelier to be what was mistyped than a number that merely fits its surroundings.
    """

    PART = 0  # a part of the expression that was written
    LAYOUT = 1  # the dims of what arrives in another order, or one more or less: no layer learns anything else
    EXPRESSION = 2  # the names that the constructor speaks in
    HERE = 3  # a number, at the operation or layer that failed
    EXPRESSION_BEFORE = 4  # names, at a layer before
    NUMBER = 5  # a number for a number, at a layer before
    LIKE_ANOTHER = 6  # another dim or order of dims, at an operation before, that then reads as another one in the file does
    BEFORE = 7  # the same for one that reads as no other
    NUMBER_FOR_EXPRESSION = 8


@dataclass(frozen=True)
class Fix:
    """Edits of one file that may mend a finding.

    calls: where an edit changes a call that examples were taken from, their expressions as they are then, by those that they are now.
    gives: the shape that the changed layer or expression gave when the fix was tried; "" where that is not known.
    """

    title: str
    edits: list[TextEdit]
    file: str
    likelihood: Likelihood = Likelihood.HERE
    calls: Mapping[str, str] = field(default_factory=dict)
    gives: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """The title with the shape that the fix gives: `Permute to channels first → [4, 3, 224, 224]`."""
        return f"{self.title} → {self.gives}" if self.gives else self.title


def with_examples(places: Places, fix: Fix) -> Fix:
    """The fix with the examples as they are then that were taken from a call which it changes: of `Net(64, 5)`, of which it makes
    `Net(64, 4)`."""
    module, (edit, *more) = places.module_of(fix.file), fix.edits
    if fix.calls or more or module is None:
        return fix
    calls: dict[str, str] = {}
    for call in module.calls_around(edit.span.start):
        text, start = module.lines.text_of(call.span), module.lines.offset(call.span.start)
        begin, end = module.lines.offset(edit.span.start) - start, module.lines.offset(edit.span.end) - start
        before, after = expression_of(text), expression_of(text[:begin] + edit.new_text + text[end:])
        if begin < 0 or end > len(text) or before is None or after is None:
            continue
        for run in places.trace.examples:
            if run.evidence and ast.unparse(before) in run.expression:
                calls.setdefault(run.expression, run.expression.replace(ast.unparse(before), ast.unparse(after)))
    return replace(fix, calls=calls) if calls else fix


def in_size_fixes(places: Places, mismatches: Sequence[Mismatch], place: ArgumentPlace) -> list[Fix]:
    """Sets the argument to the size that arrived: by the names that are there, else as a number. None where no one text is right for all
    layers of this constructor call, or the layers' other arguments forbid the size."""
    first = mismatches[0]
    by_layer = _sizes(places, mismatches)
    layers = [places.trace.layers[index] for index in by_layer]
    if not by_layer or place.hidden or not all(fits(layer, first.argument, by_layer[layer.index][1]) for layer in layers):
        return []
    sizes = list(by_layer.values())
    texts, same = list[str](), list[str]()
    if not _is_shape(place, first, layers):
        wanted = [size for _, size in sizes]
        texts, same = size_expressions(places, place, wanted, _maker(places, first)), of_other_layers(places, place, wanted)
    factors = _of_factors(place, first) if len({size for _, size in sizes}) == 1 else None
    number = factors or _argument_text(place, layers[0], first, sizes)
    found = [_in_size_fix(place, first.argument, text, Likelihood.PART) for text in same]
    if place.argument is not None and _is_one_too_few(place.argument.text, first, sizes):
        found.append(_in_size_fix(place, first.argument, f"{place.argument.text.strip()} + 1", Likelihood.PART))
    found += _of_default(place, first, sizes)
    found += [_in_size_fix(place, first.argument, text, Likelihood.EXPRESSION) for text in texts]
    if number is not None:
        found.append(_in_size_fix(place, first.argument, number, _likelihood(place, number, Likelihood.HERE)))
    return found


def _is_one_too_few(text: str, mismatch: Mismatch, sizes: Sizes) -> bool:
    """True if the rows of an Embedding were counted, and the index of one more is asked for: `len(words)`, where 0 stands for padding."""
    counted = expression_of(text.strip()) if mismatch.argument == "num_embeddings" else None
    return isinstance(counted, ast.Call | ast.Name | ast.Attribute) and all(wanted == now + 1 for now, wanted in sizes)


def _of_default(place: ArgumentPlace, mismatch: Mismatch, sizes: Sizes) -> list[Fix]:
    """Another default of the parameter that says how many rows an Embedding has: `max_length=120` for `max_length=100`."""
    name = place.argument.text.strip() if place.argument is not None and mismatch.argument == "num_embeddings" else ""
    functions = [node for node in ast.walk(tree_of(place)) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno <= place.span.line <= (node.end_lineno or node.lineno)]
    arguments = around[-1].args if around and name.isidentifier() else ast.arguments([], [], None, [], [], None, [])
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    for parameter, default in [*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
        is_number = isinstance(default, ast.Constant) and all(default.value == now for now, _ in sizes)
        if parameter.arg == name and isinstance(default, ast.Constant) and is_number and len({wanted for _, wanted in sizes}) == 1:
            edit = TextEdit(node_span(place, default), str(sizes[0][1]))
            return [Fix(f"Change the default of {name} to {sizes[0][1]}", [edit], place.file, Likelihood.PART)]
    return []


def _is_shape(place: ArgumentPlace, mismatch: Mismatch, layers: Sequence[LayerSeen]) -> bool:
    """True if an argument holds several sizes, or is written as if it did."""
    is_written = place.argument is not None and place.argument.text[:1] in ("(", "[")
    return mismatch.argument == "normalized_shape" and (is_written or any(len(normalized_shape(each)) > 1 for each in layers))


def _in_size_fix(place: ArgumentPlace, argument: str, text: str, likelihood: Likelihood) -> Fix:
    edit = replace_argument(place.module, place.call, place.argument, argument, text)
    return Fix(f"Change {argument} to {text}", [edit], place.file, likelihood)


def _maker(places: Places, mismatch: Mismatch) -> tuple[LayerSeen, str] | None:
    """The layer that made the size that arrived, and its argument that says the size."""
    origin = next(iter(mismatch.origins), None)
    return (
        (places.trace.layers[origin.layer], origin.argument)
        if origin is not None and origin.layer is not None and origin.argument
        else None
    )


def _of_factors(place: ArgumentPlace, mismatch: Mismatch) -> str | None:
    """`128 * 4 * 4` for `128 * 8 * 8`, where dims of these sizes were flattened."""
    written = place.argument.text if place.argument is not None else ""
    for origin in mismatch.origins:
        for dims in flattened_dims(origin, mismatch.got):
            text = with_factors(written, dims)
            if text is not None:
                return text
    return None


def producer_fix(places: Places, mismatches: Sequence[Mismatch]) -> Fix | None:
    """Sets the size that the layer before gives (its `out_features`, `out_channels`) to the one that is needed; None where the size did not
    come straight out of a layer, or other layers of the same constructor call are right as they are."""
    nearest = [each.origins[0] for each in mismatches if each.origins]
    if len(nearest) != len(mismatches) or any(origin.layer is None or origin.argument == "" for origin in nearest):
        return None
    sizes = {origin.layer: (each.got, each.need) for origin, each in zip(nearest, mismatches, strict=True) if origin.layer is not None}
    producer = places.trace.layers[next(iter(sizes))]
    if any(places.trace.layers[index].span != producer.span for index in sizes):
        return None
    if any(layer.span == producer.span and layer.calls and layer.index not in sizes for layer in places.trace.layers):
        return None
    wanted = [(got, need) for got, need in sizes.values() if got is not None and need is not None]
    first = mismatches[0]
    needing = (places.trace.layers[first.layer], first.argument) if first.layer is not None else None
    return resized(places, producer, nearest[0].argument, wanted, needing)


def broadcast_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """For two tensors that do not broadcast: the layers that gave them set to give the other one's size. One whose argument is an
    expression with the right size in it comes first; where neither is, nobody knows which of the two is wrong."""
    tensors = [value.shape for value in mismatch.inputs if value.kind == "tensor" and value.shape]
    if mismatch.code != "broadcast" or len(tensors) != 2 or tensors[0][-1] == tensors[1][-1]:
        return []
    found: list[Fix] = []
    for origin in mismatch.origins:
        for own, other in (tensors, tensors[::-1]):
            if origin.layer is None or not origin.argument or origin.result[-1:] != own[-1:] or own[-1] is None or other[-1] is None:
                continue
            producer = places.trace.layers[origin.layer]
            alike = all(layer.description == producer.description for layer in places.trace.layers if layer.span == producer.span)
            fix = resized(places, producer, origin.argument, [(own[-1], other[-1])])
            if fix is not None and (alike or fix.likelihood is Likelihood.PART):
                found.append(fix)
    return sorted(found, key=lambda fix: fix.likelihood)


def cat_fix(places: Places, mismatch: Mismatch) -> Fix | None:
    """Joins the tensors of a `cat` along the one dim in which they differ."""
    place = places.here(mismatch)
    call = place.module.call_at(place.span) if place is not None and mismatch.code == "cat" else None
    shapes = [value.shape or [] for value in mismatch.inputs]
    if place is None or call is None or call.function.rpartition(".")[2] not in _JOINS or not shapes:
        return None
    if len({len(shape) for shape in shapes}) != 1:
        return None
    differing = [dim for dim, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1]
    argument = place.module.argument(call, ["dim", "axis"], 1)
    if len(differing) != 1 or (argument is None and any(each.star for each in call.arguments)):
        return None
    edit = replace_argument(place.module, call, argument, "dim", str(differing[0]))
    return Fix(f"Join along dim {differing[0]}", [edit], place.file)


@dataclass(frozen=True)
class WrongJoin:
    """A `cat` along another dim than the one along which what fails needs its tensors joined. place: the argument that says the dim."""

    place: Place
    dim: int
    needed: int  # dim
    fix: Fix


def wrong_join(places: Places, mismatch: Mismatch) -> WrongJoin | None:
    """The `cat` on the way to what fails that would give what is needed if it joined along another dim; None for no such.

    A layer needs that dim to have a size; two tensors that do not broadcast would agree in all dims then.
    """
    for suspect in mismatch.suspects:
        joined = _joined(suspect)
        needed = _needed_dim(mismatch, suspect, *joined) if joined is not None else None
        place = places.locate(suspect.span) if needed is not None else None
        call = place.module.call_at(place.span) if place is not None else None
        if joined is None or needed is None or place is None or call is None:
            continue
        argument = place.module.argument(call, ["dim", "axis"], 1)
        if argument is None and any(each.star for each in call.arguments):
            continue
        edit = replace_argument(place.module, call, argument, "dim", str(needed))
        fix = Fix(f"Join along dim {needed}", [edit], place.file, Likelihood.LAYOUT)
        return WrongJoin(replace(place, span=argument.span) if argument is not None else place, joined[0], needed, fix)
    return None


def _joined(suspect: Suspect) -> tuple[int, int] | None:
    """(dim, count) of a `cat` of so many tensors of one shape; None for anything else."""
    one, whole = suspect.shape, suspect.result
    if suspect.operation not in _JOINS or suspect.behind or len(one) != len(whole):
        return None
    differing = [dim for dim, sizes in enumerate(zip(one, whole, strict=True)) if sizes[0] != sizes[1]]
    if len(differing) != 1:
        return None
    count, rest = divmod(whole[differing[0]] or 0, one[differing[0]] or 1)
    return (differing[0], count) if count > 1 and not rest else None


def _needed_dim(mismatch: Mismatch, suspect: Suspect, dim: int, count: int) -> int | None:
    """The dim along which so many tensors should have been joined, rather than along `dim`; None where no other one fits."""
    one = suspect.shape
    if mismatch.argument:
        arrived = mismatch.inputs[0].shape if mismatch.inputs else None
        if not arrived or mismatch.dim is None or mismatch.need is None or len(one) != len(arrived):
            return None
        needed = mismatch.dim % len(arrived)
        size = one[needed]
        return needed if dim != needed and size is not None and count * size == mismatch.need else None
    shapes = [value.shape for value in mismatch.inputs if value.kind == "tensor" and value.shape]
    if mismatch.code != "broadcast" or len(shapes) != 2 or suspect.result not in shapes:
        return None
    other = shapes[1 - shapes.index(suspect.result)]
    fitting = [
        needed
        for needed in range(len(one))
        if needed != dim and other == [count * size if at == needed and size is not None else size for at, size in enumerate(one)]
    ]
    return fitting[0] if fitting else None


def resized(places: Places, producer: LayerSeen, argument: str, sizes: Sizes, needing: tuple[LayerSeen, str] | None = None) -> Fix | None:
    """Sets the size that an argument of a layer says. None where the layer is called more than once: what else it gives its result to
    would no longer fit.

    needing: the layer that gets its result, and the argument of it that says the size.
    """
    if argument == "hidden_size" and re.search("bidirectional=True|proj_size", producer.description):
        return None  # The size is twice the argument, or another argument's.
    place = places.argument(producer, argument)
    if place is None or place.argument is None or place.argument.star or sum(call.count for call in producer.calls) > 1:
        return None
    text = replacement(place.argument.text, sizes)
    if text is None or not all(fits(producer, argument, wanted) for _, wanted in sizes):
        return None
    likelihood = _likelihood(place, text, Likelihood.NUMBER)
    if likelihood is Likelihood.NUMBER_FOR_EXPRESSION:
        for expression in size_expressions(places, place, (size for _, size in sizes), needing)[:1]:
            text, likelihood = expression, Likelihood.EXPRESSION_BEFORE
    edit = replace_argument(place.module, place.call, place.argument, argument, text)
    return Fix(f"Change {argument} of {layer_name(producer)} to {text}", [edit], place.file, likelihood)


def _likelihood(place: ArgumentPlace, text: str, of_number: Likelihood) -> Likelihood:
    """Returns the likelihood that one text is right in the place of an argument's text."""
    if not re.fullmatch(r"[\d\s,()\[\]]+", text):
        return Likelihood.PART
    written = place.argument.text if place.argument is not None else ""
    return of_number if re.fullmatch(r"[\d\s,()\[\]]*", written) else Likelihood.NUMBER_FOR_EXPRESSION


def _sizes(places: Places, mismatches: Sequence[Mismatch]) -> dict[int, tuple[int, int]]:
    """Returns the wrong and the right size of the argument for each layer of the constructor call, by index; {} where a layer gets several
    sizes."""
    first = mismatches[0]
    size_at = _dim(first)
    needs = {each.layer: each.need for each in mismatches}
    arrived: dict[int, set[int]] = {}
    for each in mismatches:
        if each.layer is not None and each.got is not None:
            arrived.setdefault(each.layer, set()).add(each.got)
    span = places.trace.layers[first.layer].span if first.layer is not None else None
    for layer in places.trace.layers if size_at is not None else []:
        for call in layer.calls if layer.span == span else []:
            size = _size(call.inputs[0], size_at) if size_at is not None and call.inputs and call.inputs[0].kind == "tensor" else None
            if size is not None:
                arrived.setdefault(layer.index, set()).add(size)
    if any(len(sizes) > 1 for sizes in arrived.values()):
        return {}
    return {index: (needs.get(index) or min(sizes), min(sizes)) for index, sizes in arrived.items()}


def _dim(mismatch: Mismatch) -> int | None:
    """The dim of the layer's first input that carries the size, counted so that it holds for inputs of other ranks too."""
    first = mismatch.inputs[0] if mismatch.inputs else None
    if mismatch.dim is None or first is None or first.shape is None or mismatch.argument in ("in2_features", "kdim", "vdim"):
        return None
    return mismatch.dim if mismatch.argument in _COUNTED_FROM_THE_FRONT or mismatch.dim < 0 else mismatch.dim - len(first.shape)


def _size(value: Value, dim: int) -> int | None:
    shape = value.shape or []
    return shape[dim] if -len(shape) <= dim < len(shape) else None


def _argument_text(place: ArgumentPlace, layer: LayerSeen, mismatch: Mismatch, sizes: Sizes) -> str | None:
    """Returns the text for the argument: the size, or the list of sizes where `normalized_shape` is one."""
    text = place.argument.text.strip() if place.argument is not None else ""
    if mismatch.argument != "normalized_shape":
        return replacement(text, sizes)
    count = len(normalized_shape(layer))
    closing = {"[": "]", "(": ")"}.get(text[:1], "") if "," in text or text.startswith("[") else ""
    if count == 1 and not closing:
        return replacement(text, sizes)
    if len({wanted for _, wanted in sizes}) != 1:
        return None
    shape = (mismatch.inputs[0].shape or [])[-count:] if mismatch.inputs else []
    if not closing or len(shape) != count or None in shape:
        return None
    return text[0] + ", ".join(map(str, shape)) + ("," if closing == ")" and count == 1 else "") + closing
