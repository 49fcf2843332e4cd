"""Fixes of masks that do not fit their scores: cut, made of another size, turned round, repeated for each head, or read by a layer that
takes the time for the batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shapelens.analysis.explanations.expression_parts import ExpressionPart, parts_of
from shapelens.analysis.explanations.names_in_scope import scope_of
from shapelens.analysis.explanations.statements import node_span
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.analysis.repairs.targets import appended
from shapelens.protocol import LayerSeen, Mismatch
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.stated.syntax_trees import all_parameters, expression_of, integer, last_name, positional

_SHAPES = re.compile(r"The shape of the (\d)D attn_mask is torch\.Size\(\[(\d+)\D.*, but should be \((\d+),")
_MASK = re.compile(r"mask|tril|triu|causal|bias")
_STEPS = re.compile(r"(?:t|l|s|n|.*(?:len|length|steps|time|tokens|seq).*)$", re.IGNORECASE)  # names of the length of a sequence
MOST_STEPS = 4  # from a mask back to the sizes that it is made with
_HAVE_BATCH_FIRST = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer")


@dataclass(frozen=True)
class _Mask:
    """A mask as it is handed over somewhere: its rank and size, and the size that it should have."""

    place: Place
    rank: int
    now: int
    wanted: int
    scores: str = ""  # an expression of the same function that has the wanted size in its last dim


def mask_fixes(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """Yields fixes of a mask of an attention, likely ones first. Each is run before it is offered."""
    mask_seen = _mask(places, mismatch)
    for each in _handed(places, mismatch, mask_seen) if mask_seen is not None else ():
        yield from _made_otherwise(places, each)
        yield from _cut(places, each)
    place = places.here(mismatch)
    call = place.module.call_at(place.span) if mismatch.code == "attention" and place is not None else None
    if place is None or call is None:
        return
    shapes = _SHAPES.search(mismatch.message)
    masks = [argument for argument in call.arguments if not argument.star and "mask" in (argument.keyword or argument.text)]
    for mask in masks:
        name = mask.keyword or "the mask"
        if shapes is None:
            yield appended(place, mask.span, "T", f"Turn {name} round")
        elif shapes[1] == "3" and int(shapes[3]) % int(shapes[2]) == 0:
            heads = int(shapes[3]) // int(shapes[2])
            yield appended(place, mask.span, f"repeat_interleave({heads}, dim=0)", f"Repeat {name} for each of the {heads} heads")
    other = _batch_first(places, mismatch)
    if other is not None:
        yield other


# --- square masks of a wrong size ---


def _mask(places: Places, mismatch: Mismatch) -> _Mask | None:
    """The square mask of a mismatch, at the operation or attention that refuses it."""
    place = places.here(mismatch) if mismatch.code == "attention" else places.locate(mismatch.span)
    parts = parts_of(place) if place is not None and mismatch.code in ("attention", "broadcast") else None
    if place is None or parts is None:
        return None
    shapes = [value.shape or [] for value in mismatch.inputs if value.kind == "tensor"]
    said = _SHAPES.search(mismatch.message)
    given = next((each for each in parts.arguments if "mask" in (each.keyword or each.text)), None)
    if said is not None:
        where = Place(place.file, place.module, given.span) if given is not None and said[1] == "2" else None
        return _Mask(where, 2, int(said[2]), int(said[3])) if where is not None else None
    if given is not None and len(shapes) == 4 and _is_square(shapes[3]) and shapes[0][-2:-1] == shapes[1][-2:-1]:
        size, wanted = shapes[3][-1], shapes[0][-2]
        if size is not None and wanted is not None:
            return _Mask(Place(place.file, place.module, given.span), len(shapes[3]), size, wanted)
    return _mask_of_scores(place, parts.operands(), shapes)


def _mask_of_scores(place: Place, operands: Sequence[ExpressionPart], shapes: Sequence[Sequence[int | None]]) -> _Mask | None:
    """The operand of an operation on two squares that is the mask of the other one: by its name, or as it has fewer dims."""
    if len(shapes) != 2 or len(operands) < 2 or not all(_is_square(shape) for shape in shapes):
        return None
    sides = sorted((0, 1), key=lambda side: (not _MASK.search(operands[side].text), len(shapes[side])))
    mask, other = operands[sides[0]], operands[sides[1]]
    now, wanted = shapes[sides[0]][-1], shapes[sides[1]][-1]
    if now is None or wanted is None or now == wanted:
        return None
    scores = other.text if isinstance(other.node, ast.Name | ast.Attribute) else ""
    return _Mask(Place(place.file, place.module, mask.span), len(shapes[sides[0]]), now, wanted, scores)


def _is_square(shape: Sequence[int | None]) -> bool:
    return len(shape) > 1 and shape[-1] == shape[-2] and shape[-1] != 1


def _handed(places: Places, mismatch: Mismatch, mask: _Mask) -> Iterator[_Mask]:
    """The mask where it is used, and as the callers hand it over."""
    yield mask
    outer = [place for span in mismatch.trail if (place := places.locate(span)) is not None]
    while outer and (outer[-1].file != mask.place.file or not _holds(outer[-1], mask.place)):
        outer.pop()
    for call_place in reversed(outer[:-1]):
        scope, name = scope_of(mask.place), mask.place.module.lines.text_of(mask.place.span)
        call = call_place.module.call_at(call_place.span)
        if (
            scope is None
            or isinstance(scope.node, ast.Module)
            or call is None
            or name not in [each.arg for each in all_parameters(scope.node)]
        ):
            return
        names = [each.arg for each in positional(scope.node) if each.arg != "self"]
        argument = call_place.module.argument(call, [name], names.index(name) if name in names else -1)
        if argument is None or argument.star:
            return
        mask = _Mask(Place(call_place.file, call_place.module, argument.span), mask.rank, mask.now, mask.wanted)
        yield mask


def _holds(outer: Place, inner: Place) -> bool:
    return outer.span.start <= inner.span.start and inner.span.end <= outer.span.end


def _cut(places: Places, mask: _Mask) -> Iterator[Fix]:
    """A part of a mask that is larger than its scores: `self.mask[:, :, :T, :T]`."""
    text = mask.place.module.lines.text_of(mask.place.span)
    node, span = expression_of(text), mask.place.span
    if isinstance(node, ast.Compare):
        start = mask.place.module.lines.offset(span.start)
        text = ast.get_source_segment(text, node.left) or ""
        node, span = node.left, mask.place.module.lines.span(start, start + len(text))
    if mask.now <= mask.wanted or not isinstance(node, ast.Name | ast.Attribute):
        return
    sizes = [*_named(places, mask.place, mask.wanted), *([f"{mask.scores}.size(-1)"] if mask.scores else [])]
    for size in sizes[:1]:
        part = ", ".join([*[":"] * (mask.rank - 2), f":{size}", f":{size}"])
        yield Fix(f"Cut it to the length: {text}[{part}]", [TextEdit(span, f"{text}[{part}]")], mask.place.file, Likelihood.LAYOUT)


def _made_otherwise(places: Places, mask: _Mask) -> Iterator[Fix]:
    """The sizes that a mask is made with, read from another dim, or as another name or number."""
    for where, node in _makers(mask.place):
        whole = Place(where.file, where.module, where.span)
        reads = [(each, dim) for each in ast.walk(node) if (dim := _read_dim(each)) is not None]
        for other in (1, 0, 2, -2):
            places_of_dims = [node_span(whole, dim) for _, dim in reads if integer(dim) != other]
            if reads and len(places_of_dims) == len(reads):
                read = ast.unparse(reads[0][0]).replace(str(integer(reads[0][1])), str(other))
                edits = [TextEdit(span, str(other)) for span in places_of_dims]
                yield Fix(f"Take the size of dim {other}: {read}", edits, where.file, Likelihood.PART)
        known = _named(places, where, mask.now)
        sizes = [each for each in ast.walk(node) if integer(each) == mask.now or (isinstance(each, ast.Name) and each.id in known)]
        spans = [node_span(whole, each) for each in sizes if isinstance(each, ast.expr)]
        for size in _named(places, where, mask.wanted)[:1] or [str(mask.wanted)] if spans else ():
            text = where.module.lines.text_of(spans[0])
            likelihood = Likelihood.HERE if size.isdecimal() else Likelihood.EXPRESSION
            yield Fix(f"Change {text} to {size}", [TextEdit(span, size) for span in spans], where.file, likelihood)


def _makers(place: Place) -> Iterator[tuple[Place, ast.expr]]:
    """The expression at a place, and what the names in it were assigned above in the same function."""
    scope = scope_of(place)
    if scope is None:
        return
    inside = [node for node in ast.walk(scope.node) if isinstance(node, ast.expr)]
    todo = [next((node for node in inside if node_span(place, node) == place.span), None)]
    seen = set[str]()
    for _ in range(MOST_STEPS):
        node = todo.pop(0) if todo else None
        if node is None:
            return
        yield Place(place.file, place.module, node_span(place, node)), node
        for each in ast.walk(node):
            name = each.id if isinstance(each, ast.Name) else ""
            assigned = [made for made in ast.walk(scope.node) if isinstance(made, ast.Assign) and last_name(made.targets[0]) == name]
            todo += [made.value for made in assigned if name and name not in seen and made.lineno <= node.lineno]
            seen.add(name)


def _read_dim(node: ast.AST) -> ast.expr | None:
    """`0` of `x.shape[0]` and of `x.size(0)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return node.slice if integer(node.slice) is not None else None
    is_size = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1
    return node.args[0] if isinstance(node, ast.Call) and is_size and integer(node.args[0]) is not None else None


def _named(places: Places, place: Place, size: int) -> list[str]:
    """The names of a function that held a size, those first that say a length."""
    scope = scope_of(place)
    found: dict[str, set[str]] = {}
    for seen in places.trace.observations if scope is not None else ():
        is_of_it = scope is not None and seen.span.file == place.file and seen.function == scope.qualified_name
        if is_of_it and seen.kind in ("parameter", "assign") and seen.name.isidentifier():
            found.setdefault(seen.name, set()).update(value.text for value in seen.values)
    return sorted((name for name, texts in found.items() if texts == {str(size)}), key=lambda name: not _STEPS.match(name))


# --- what the attention is told ---


def _batch_first(places: Places, mismatch: Mismatch) -> Fix | None:
    """Sets batch_first at the constructor of the attention, or of the layer that holds it, to what it is not."""
    layer = _constructed(places, mismatch)
    said = places.argument(layer, "batch_first") if layer is not None else None
    if said is None or said.hidden or (said.argument is not None and said.argument.text not in ("True", "False")):
        return None
    value = "False" if said.argument is not None and said.argument.text == "True" else "True"
    edit = replace_argument(said.module, said.call, said.argument, "batch_first", value)
    return Fix(f"Set batch_first={value}", [edit], said.file)


def _constructed(places: Places, mismatch: Mismatch) -> LayerSeen | None:
    """The layer with `batch_first` that failed, around it or in it, which the user's code constructs; None where several may be meant."""
    layers = places.trace.layers
    failed = layers[mismatch.layer] if mismatch.layer is not None else None
    if failed is None:
        return None
    able = [each for each in layers if each.example == failed.example and each.span is not None and each.class_name in _HAVE_BATCH_FIRST]
    inside = f"{failed.path}." if failed.path else ""
    around = [each for each in able if each.path == failed.path or failed.path.startswith(f"{each.path}.")]
    found = [each for each in around if each.class_name == failed.class_name or failed.path] or [
        each for each in able if each.path != failed.path and each.path.startswith(inside)
    ]
    return found[-1] if len({each.span for each in found}) == 1 else None
