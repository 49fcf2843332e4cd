"""Fixes of what makes batches: the last one dropped, a collate function, pictures as tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapelens.analysis.explanations.statements import calls_named, inserted, node_span, tree_of
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import Mismatch
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span


def loader_fixes(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """Candidates, the likeliest first."""
    place = places.here(mismatch)
    if place is None:
        return
    if mismatch.remainder:
        yield from _without_last_batch(place, Likelihood.LAYOUT if mismatch.code == "norm-single-value" else Likelihood.LIKE_ANOTHER)
    if mismatch.operation == "stack":
        yield from _collated(place)
    if mismatch.message.endswith("gets a PIL picture from the data set"):
        yield from _as_tensor(place)
    if mismatch.message.startswith("ToTensor takes a picture"):
        yield from _without_to_tensor(place)


def _without_last_batch(place: Place, likelihood: Likelihood) -> Iterator[Fix]:
    """A loader without its last batch, which is smaller."""
    for node, _ in calls_named(place, "DataLoader"):
        call = place.module.call_at(node_span(place, node))
        known = {each.keyword for each in call.arguments} if call is not None else set()
        is_open = call is None or any(each.star == "*" for each in call.arguments)
        if call is not None and not is_open and known.isdisjoint(("drop_last", "batch_sampler")):
            edit = replace_argument(place.module, call, None, "drop_last", "True")
            yield Fix("Leave out the last batch: drop_last=True", [edit], place.file, likelihood)


def _collated(place: Place) -> Iterator[Fix]:
    """Loaders whose samples differ in size, with the function of the file that makes batches and that no loader is given."""
    tree = tree_of(place)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or "collate" not in function.name or function.name in used:
            continue
        calls = [place.module.call_at(node_span(place, node)) for node, _ in calls_named(place, "DataLoader")]
        open_calls = [
            each for each in calls if each is not None and not any(one.star or one.keyword == "collate_fn" for one in each.arguments)
        ]
        edits = [replace_argument(place.module, each, None, "collate_fn", function.name) for each in open_calls]
        if edits:
            yield Fix(f"Make batches by collate_fn={function.name}", edits, place.file, Likelihood.LAYOUT)


def _as_tensor(place: Place) -> Iterator[Fix]:
    """Data sets of pictures with the transform that makes tensors of them: alone, or as the last of those that there are."""
    tree = tree_of(place)
    owner = _transforms(tree)
    if not owner:
        return
    made = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
    }
    loaded = [node.args[0] for node, _ in calls_named(place, "DataLoader") if node.args]
    sets = [made.get(each.id) if isinstance(each, ast.Name) else each for each in loaded]
    edits = []
    for each in sets:
        call = place.module.call_at(node_span(place, each)) if isinstance(each, ast.Call) else None
        if call is not None and not any(one.star or one.keyword == "transform" for one in call.arguments):
            edits.append(replace_argument(place.module, call, None, "transform", f"{owner}.ToTensor()"))
    if edits:
        yield Fix("Make tensors of the pictures: transform=ToTensor()", edits, place.file, Likelihood.LAYOUT)
    for node, _ in calls_named(place, "Compose"):
        listed = node.args[0] if node.args else None
        if isinstance(listed, ast.List) and listed.elts and "ToTensor" not in ast.unparse(listed):
            edit = inserted(node_span(place, listed.elts[-1]).end, f", {owner}.ToTensor()")
            yield Fix("Make tensors of the pictures last: ToTensor()", [edit], place.file, Likelihood.LAYOUT)


def _without_to_tensor(place: Place) -> Iterator[Fix]:
    """The transforms of what is a tensor already, without the one that makes tensors of pictures."""
    lines = place.module.lines
    for node, _ in calls_named(place, "Compose"):
        listed = node.args[0] if node.args else None
        parts = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
        for number, part in enumerate(parts[:-1]):
            if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] == "ToTensor":
                span = Span.of(node_span(place, part).start, node_span(place, parts[number + 1]).start)
                if lines.text_of(span).replace(" ", "").replace("\n", "").endswith("(),"):
                    yield Fix("Leave out ToTensor()", [TextEdit(span, "")], place.file, Likelihood.LAYOUT)


def _transforms(tree: ast.Module) -> str:
    """Returns the name that a file has for torchvision's transforms; "" where it imports nothing of them."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "torchvision":
            for part in node.names:
                if part.name == "transforms":
                    return part.asname or part.name
        if isinstance(node, ast.Import):
            for part in node.names:
                if part.name == "torchvision.transforms" and part.asname:
                    return part.asname
                if part.name.partition(".")[0] == "torchvision" and not part.asname:
                    return "torchvision.transforms"
    return ""
