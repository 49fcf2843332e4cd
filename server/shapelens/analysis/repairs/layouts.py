"""Fixes of what a layer or operation is given: its dims in another order, one more or less, another dtype. No layer learns anything else.

The tensor is changed where it is handed over furthest out: at the program's call of the model rather than inside of it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shapelens.analysis.explanations.expression_parts import ExpressionPart, parts_of
from shapelens.analysis.explanations.statements import node_span, nodes_around
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import FileSpan, LayerSeen, Mismatch, Value
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import expression_of

Shape = Sequence[int]

_CAST = {"float32": "float()", "int64": "long()", "float64": "double()", "float16": "half()", "bfloat16": "bfloat16()"}
_PRIMARY = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_MAKERS = ("randn", "rand", "zeros", "ones", "empty", "full", "tensor", "as_tensor", "from_numpy", "stack")  # of data
_CONV = re.compile(r"(?:Lazy)?Conv(?:Transpose)?(\d)d$")
# How a picture is given to a model that takes another form of it (as `worker/calls/misplaced_dims.py` words it), and what makes it right;
# "": a permutation.
_FORMS = {
    "gets one picture without its dim": (".unsqueeze(0)", "Add the batch dim"),
    "with a dim for the channel, which these lack": (".unsqueeze(1)", "Add the dim of the channel"),
    "and gets them last": ("", "Permute to channels first"),
}
_ONE_STEP = "For unbatched 2-D input, hx and cx should also be 2-D"  # of a recurrent layer
_RANK = re.compile(r"expected (?:\w+ or )?(\d)D(?: or \dD)? input \(got (\d)D input\)")


@dataclass(frozen=True)
class _Given:
    """The first argument of a call on the way to a mismatch, and what it held."""

    place: Place
    part: ExpressionPart
    value: Value
    expression: str = ""  # of the example that was taken from the call

    @property
    def shape(self) -> list[int]:
        """Its sizes; [] where one of them is not known."""
        return [size for size in self.value.shape or [] if size is not None] if None not in (self.value.shape or []) else []


def layout_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for a layer that was given a size that does not fit, or too few dims, the likeliest first; [] for any other mismatch."""
    layer = places.layer_of(mismatch)
    arrived = mismatch.inputs[0] if mismatch.inputs else None
    if _ONE_STEP in mismatch.message and layer is not None:
        steps = 1 if "batch_first=True" in layer.description else 0
        step = _at(places, mismatch.span, Value("tensor"))
        return [_changed(each, f".unsqueeze({steps})", "Add the dim of the steps") for each in step]
    if arrived is None or not arrived.shape or None in arrived.shape:
        return []
    shape = [size for size in arrived.shape if size is not None]
    given = list(_given(places, mismatch, arrived))
    form = next((way for said, way in _FORMS.items() if said in mismatch.message), None)
    if form is not None:
        return list(_in_form(places, mismatch, [each for each in given if each.shape == shape][:1], *form))
    if _RANK.search(mismatch.message):
        return [_changed(each, ".unsqueeze(0)", "Add the batch dim") for each in given]
    if layer is None or mismatch.need is None or not mismatch.argument:
        return []
    found = list(_flattening_layer(places, layer, shape, mismatch.need))
    found += _moved_features(places, mismatch, layer, shape, given, mismatch.need)
    if not _CONV.match(layer.class_name) and math.prod(shape) == mismatch.need and len(shape) > 1:
        found += [_changed(each, ".unsqueeze(0)", "Add the batch dim") for each in [*given[:1], *_unbatched(places, mismatch)]]
    return found


def _in_form(places: Places, mismatch: Mismatch, given: Sequence[_Given], suffix: str, title: str) -> Iterator[Fix]:
    """Yields fixes that bring an input into the form that a message asks for, in the example that calls the model here as well."""
    taken = [run.expression for run in places.trace.examples if run.call is not None and run.call == mismatch.span]
    for each in given:
        rank = len(each.shape)
        way = suffix or f".permute(0, {rank - 1}, {', '.join(map(str, range(1, rank - 1)))})"
        fix = _changed(each, way, title)
        yield replace(fix, calls={**fix.calls, **{one: _with_first_argument(one, way) for one in taken}})


def _moved_features(
    places: Places, mismatch: Mismatch, layer: LayerSeen, shape: Shape, given: Sequence[_Given], need: int
) -> Iterator[Fix]:
    """Yields fixes that move the features or channels of an input to where a layer takes them."""
    made_by = next(iter(mismatch.origins), None)
    # What a layer gave has its features where they belong; a picture that was computed has its channels there.
    in_place = made_by is not None and (made_by.argument or (_CONV.match(layer.class_name) and made_by.operation not in _MAKERS))
    for suffix, title in _ways(layer, shape, need) if not in_place else ():
        yield from [_changed(each, suffix, title) for each in given if each.shape == shape][:1]
        if suffix == ".transpose(1, 2)":
            yield from (_there_and_back(each, places.locate(mismatch.span), suffix) for each in given[-1:] if each.shape == shape)


def _flattening_layer(places: Places, layer: LayerSeen, shape: Shape, need: int) -> Iterator[Fix]:
    """A `Flatten` in front of a layer of a Sequential that gets a picture."""
    place = places.locate(layer.span)
    if place is None or layer.class_name != "Linear" or len(shape) < 3 or math.prod(shape[1:]) != need:
        return
    call = place.module.call_at(place.span)
    around = [each for each in place.module.calls_around(place.span.start) if each.function.rpartition(".")[2] == "Sequential"]
    if call is not None and any(argument.span == place.span for each in around for argument in each.arguments):
        prefix = call.function.removesuffix("Linear")
        edit = TextEdit(Span.of(place.span.start, place.span.start), f"{prefix}Flatten(), ")
        yield Fix(f"Put {prefix}Flatten() in front of it", [edit], place.file, Likelihood.LAYOUT)


def _unbatched(places: Places, mismatch: Mismatch) -> Iterator[_Given]:
    """Yields the input of the first convolution before a mismatch, where that is one picture."""
    for suspect in reversed(mismatch.suspects):
        layer = places.layer_of(suspect)
        conv = _CONV.match(layer.class_name) if layer is not None else None
        if layer is not None and conv and layer.calls and layer.calls[0].inputs:
            arrived = layer.calls[0].inputs[0]
            if len(arrived.shape or []) == int(conv.group(1)) + 1:
                yield from _at(places, layer.call_span, arrived)
                return


def dtype_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for a layer or a product that was given another dtype than that of its parameters or of the other side."""
    tensors = [value for value in mismatch.inputs if value.kind == "tensor"]
    if mismatch.code == "embedding-dtype":
        return [_cast(each, "int64") for each in _given(places, mismatch, tensors[0])][:1] if tensors else []
    if mismatch.code != "dtype" or not tensors:
        return []
    wanted = _parameter_dtype(places, mismatch)
    if wanted and tensors[0].dtype != wanted:
        return [_cast(each, wanted) for each in _given(places, mismatch, tensors[0]) if each.value.dtype == tensors[0].dtype][:1]
    place = places.here(mismatch)
    parts = parts_of(place) if place is not None and place == places.locate(mismatch.span) else None
    operands = parts.operands() if parts is not None else []
    found = []
    for one, other in [(0, 1), (1, 0)] if len(operands) == len(tensors) == 2 else []:
        if _is_floating(tensors[other]) and tensors[one].dtype not in (tensors[other].dtype, "float32") and place is not None:
            found.append(_cast(_Given(place, operands[one], tensors[one]), tensors[other].dtype))
    return found


def alignment_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for two tensors that do not broadcast: dims of size 1 where they let the sizes meet, as `emb[:, :, None, None]`."""
    place = places.locate(mismatch.span)
    tensors = [value for value in mismatch.inputs if value.kind == "tensor"]
    if mismatch.code != "broadcast" or place is None or len(tensors) != 2:
        return []
    if mismatch.operation.strip("_") in ("eq", "ne"):
        return []  # Scores are compared with numbers of classes: that is for `targets`.
    parts = parts_of(place)
    operands = parts.operands() if parts is not None else []
    if len(operands) != 2:
        return []
    found = []
    for one, other in ((0, 1), (1, 0)):
        given = _Given(place, operands[one], tensors[one])
        against = _Given(place, operands[other], tensors[other]).shape
        shape = given.shape
        everywhere = [given, *_made(places, mismatch, given)]
        if not 0 < len(shape) < len(against):
            continue
        fitting = [
            kept
            for kept in combinations(range(len(against)), len(shape))
            if kept[0] < len(against) - len(shape) and all(size in (1, against[dim]) for size, dim in zip(shape, kept, strict=True))
        ]
        # What has the first dims in common, as `[B, C]` has, then what has the last one, as a mask of keys has.
        leads = shape == against[: len(shape)]
        fitting.sort(key=lambda kept: (not leads or kept != tuple(range(len(kept))), kept[-1] != len(against) - 1))
        for kept in fitting[:2]:
            found += [_changed(each, _with_ones(kept, len(against)), "Add dims of size 1") for each in everywhere]
    return found


def transposing_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for tensors that are joined or broadcast, and fit once the last two dims of one of them are swapped."""
    place = places.here(mismatch)
    tensors = [value for value in mismatch.inputs if value.kind == "tensor"]
    if mismatch.code not in ("broadcast", "cat") or place is None or place != places.locate(mismatch.span):
        return []
    parts = parts_of(place)
    operands = parts.operands() if parts is not None else []
    givens = [_Given(place, part, value) for part, value in zip(operands, tensors, strict=False)] if len(operands) == len(tensors) else []
    found = []
    for given in givens:
        rank, swapped = len(given.shape), [*given.shape[:-2], *given.shape[-2:][::-1]]
        others = [each.shape for each in givens if each is not given]
        if rank < 3 or swapped == given.shape or not others or any(len(each) != rank for each in others):
            continue
        allowed = 1 if mismatch.code == "cat" else 0
        if all(sum(a != b for a, b in zip(swapped, each, strict=True)) <= allowed for each in others):
            suffix = ".transpose(1, 2)" if rank == 3 else ".transpose(-2, -1)"
            title = "Transpose dims 1 and 2" if rank == 3 else "Transpose the last two dims"
            found += [_changed(each, suffix, title) for each in (*_made(places, mismatch, given), given)]
    return found


def index_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for a `gather` whose index lacks the dim that is gathered along: `q.gather(1, actions.unsqueeze(1))`."""
    place = places.here(mismatch)
    shapes = [value.shape or [] for value in mismatch.inputs if value.kind == "tensor"]
    parts = parts_of(place) if place is not None and mismatch.operation == "gather" and place == places.locate(mismatch.span) else None
    if parts is None or place is None or len(shapes) != 2 or len(shapes[1]) != len(shapes[0]) - 1:
        return []
    is_method = len(parts.arguments) == 2
    dim, index = parts.argument("dim", 0 if is_method else 1), parts.argument("index", 1 if is_method else 2)
    if dim is None or dim.number is None or index is None:
        return []
    given = _Given(place, index, mismatch.inputs[1])
    return [_changed(given, f".unsqueeze({dim.number})", f"Add dim {dim.number} to the index")]


def stride_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for a `view` that strides do not allow: `reshape`, or `contiguous()` before it."""
    place = places.here(mismatch)
    call = place.module.call_at(place.span) if place is not None and place == places.locate(mismatch.span) else None
    if mismatch.code != "view" or "stride" not in mismatch.message or place is None or call is None or not call.function.endswith(".view"):
        return []
    lines = place.module.lines
    end = lines.offset(call.open_bracket) - 1
    name = lines.span(end - len("view"), end)
    dot = lines.position(end - len(".view"))
    return [
        Fix("Make it contiguous before the view", [TextEdit(Span.of(dot, dot), ".contiguous()")], place.file, Likelihood.LAYOUT),
        Fix("Use reshape", [TextEdit(name, "reshape")], place.file, Likelihood.LAYOUT),
    ]


# --- places ---


def _made(places: Places, mismatch: Mismatch, given: _Given) -> Iterator[_Given]:
    """Where what is given was made: the operations that gave its shape, nearest first, or else what its name was assigned."""
    value, found = given.value, False
    for suspect in mismatch.suspects:
        place = places.locate(suspect.span) if suspect.layer is None and suspect.result == value.shape else None
        text = place.module.lines.text_of(place.span) if place is not None else ""
        node = expression_of(text)
        if node is not None and place is not None and place != places.locate(mismatch.span) and isinstance(node, _PRIMARY):
            found = True
            yield _Given(place, ExpressionPart(text, place.span, node), value)
    if not found:
        yield from _assigned(given)


def _assigned(given: _Given) -> Iterator[_Given]:
    """Yields the values assigned to the name in `a.sqrt()` in the same function, where these are calls or parts of something."""
    node: ast.AST = given.part.node
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    place = given.place
    around = nodes_around(place, ast.FunctionDef)
    for each in ast.walk(around[-1]) if around and isinstance(node, ast.Name) else ():
        is_before = isinstance(each, ast.Assign) and each.lineno < place.span.line and isinstance(each.value, _PRIMARY)
        if is_before and isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == ast.unparse(node):
            span = node_span(place, each.value)
            text = place.module.lines.text_of(span)
            yield _Given(place, ExpressionPart(text, span, each.value), given.value)


def _given(places: Places, mismatch: Mismatch, arrived: Value) -> Iterator[_Given]:
    """The first arguments of the calls that led to a mismatch, from the outermost to the one that failed."""
    run = places.trace.examples[mismatch.example] if 0 <= mismatch.example < len(places.trace.examples) else None
    model = next((each for each in places.trace.layers if each.example == mismatch.example and not each.path and each.calls), None)
    if run is not None and run.call is not None and model is not None and model.calls[0].inputs:
        yield from _at(places, run.call, model.calls[0].inputs[0], run.expression)
    for span in dict.fromkeys([*mismatch.trail, mismatch.span]):
        value = _input_at(places, span, mismatch.example) or (arrived if span == mismatch.span else None)
        yield from _at(places, span, value)


def _at(places: Places, span: FileSpan | None, value: Value | None, expression: str = "") -> Iterator[_Given]:
    """The first argument of the call at a place, which held this value."""
    place = places.locate(span)
    parts = parts_of(place) if place is not None else None
    first = next((each for each in parts.arguments if not each.keyword), None) if parts is not None else None
    if place is not None and first is not None and not isinstance(first.node, ast.Starred) and value is not None and value.kind == "tensor":
        yield _Given(place, first, value, expression)


def _input_at(places: Places, span: FileSpan | None, example: int) -> Value | None:
    """Returns the input of the module that is called at a place; of a Sequential and the layers in it, that of the Sequential."""
    called = [each for each in places.trace.layers if each.call_span == span and each.example == example and each.calls]
    outermost = min(called, key=lambda layer: len(layer.path), default=None)
    return next(iter(outermost.calls[0].inputs), None) if outermost is not None else None


# --- ways to change a tensor ---


def _ways(layer: LayerSeen, shape: Shape, need: int) -> Iterator[tuple[str, str]]:
    """Yields methods to call on a tensor so that a layer gets `need` where it looks for that size."""
    rank, conv = len(shape), _CONV.match(layer.class_name)
    if conv:
        dims = int(conv.group(1))
        if rank in (dims + 1, dims + 2) and shape[-1] == need:
            batch = rank - dims - 1
            order = [*range(batch), rank - 1, *range(batch, rank - 1)]
            yield f".permute({', '.join(map(str, order))})", "Permute to channels first"
        if rank == dims + 1 and need == 1:
            yield ".unsqueeze(1)", "Add the dim of the channel"
        return
    if layer.class_name.startswith(("BatchNorm", "InstanceNorm", "GroupNorm", "PReLU", "Embedding")):
        return
    if rank == 2 and shape[0] == need:
        yield ".T", "Transpose it"
    elif rank == 3 and shape[1] == need:
        yield ".transpose(1, 2)", "Transpose dims 1 and 2"
    elif rank == 4 and shape[1] == need:
        yield ".permute(0, 2, 3, 1)", "Permute to channels last"
    if rank == 1 and need == 1:
        yield ".unsqueeze(1)", "Add a dim of size 1"
    if rank > 2 and math.prod(shape[1:]) == need:
        yield ".flatten(1)", "Flatten all but the batch"
    elif rank > 2 and shape[-2] > 1 and math.prod(shape[-2:]) == need:
        yield ".flatten(-2)", "Flatten the last two dims"


def _with_ones(kept: Sequence[int], rank: int) -> str:
    """`[:, :, None, None]` where the dims 0 and 1 of four are there; ones in front are left out, as broadcasting adds them."""
    shown = [":" if dim in kept else "None" for dim in range(kept[0], rank)]
    if shown.count("None") == 1:
        return f".unsqueeze({shown.index('None') if shown[-1] == ':' else -1})"
    return f".view({', '.join(['-1', *['1'] * (rank - 1)])})" if list(kept) == [0] else f"[{', '.join(shown)}]"


def _parameter_dtype(places: Places, mismatch: Mismatch) -> str:
    layer = places.layer_of(mismatch)
    dtypes = [each.dtype for each in layer.parameters if not each.buffer] if layer is not None else []
    said = re.search(r"weight is (\w+)", mismatch.message)
    return dtypes[0] if dtypes else said.group(1) if said else ""


def _is_floating(value: Value) -> bool:
    return value.dtype.startswith(("float", "bfloat"))


def _cast(given: _Given, dtype: str) -> Fix:
    return _changed(given, f".{_CAST.get(dtype, f'to(torch.{dtype})')}", f"Make it {dtype}")


def _changed(given: _Given, suffix: str, title: str) -> Fix:
    text = given.part.text
    new = f"{text}{suffix}" if isinstance(given.part.node, _PRIMARY) else f"({text}){suffix}"
    edits = [TextEdit(given.part.span, new)]
    if not given.expression:
        return Fix(title, edits, given.place.file, Likelihood.LAYOUT)
    changed = _with_first_argument(given.expression, suffix)
    return Fix(title, edits, given.place.file, Likelihood.LAYOUT, {given.expression: changed})


def _there_and_back(given: _Given, call: Place | None, suffix: str) -> Fix:
    """With the dims of what a layer is given swapped, and those of what it gives swapped back: a layer over the tokens."""
    fix = _changed(given, suffix, "Transpose dims 1 and 2, and back")
    end = call.span.end if call is not None else given.part.span.end
    return replace(fix, edits=[*fix.edits, TextEdit(Span.of(end, end), suffix)])


def _with_first_argument(expression: str, suffix: str) -> str:
    """An example whose first tensor has something called on it: `Net()(f32[2, 3].unsqueeze(0))`."""
    node = ast.parse(expression, mode="eval").body
    first = next(iter(node.args), None) if isinstance(node, ast.Call) else None
    if first is None or not expression.isascii():
        return expression
    return f"{expression[: first.end_col_offset]}{suffix}{expression[first.end_col_offset :]}"
