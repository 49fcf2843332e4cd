"""Fixes that change how something is set up or called, where no size is at fault: `drop_last`, `eval()`, another loss, another name."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from shapelens.analysis.explanations.operation_messages import OF_CLASSES
from shapelens.analysis.explanations.statements import indentation_at, inserted, node_span, statement_at, tree_of
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
    if mismatch.remainder:
        yield from _without_last_batch(place, Likelihood.LAYOUT if mismatch.code == "norm-single-value" else Likelihood.LIKE_ANOTHER)
    elif mismatch.code == "norm-single-value":
        yield from _evaluating(places, mismatch)
    if "enforce_sorted" in mismatch.message:
        yield from _unsorted(place)
    if mismatch.operation == "stack":
        yield from _collated(place)
    if mismatch.message.endswith("gets a PIL picture from the data set"):
        yield from _as_tensor(place)
    if mismatch.message.startswith("ToTensor takes a picture"):
        yield from _without_to_tensor(place)
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


def _called(place: Place, *names: str) -> Iterator[tuple[ast.Call, Span]]:
    """The calls in a file of what has one of these names, each with the span of what it calls."""
    for node in ast.walk(tree_of(place)):
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else name
        if isinstance(node, ast.Call) and name in names:
            end = node_span(place, node.func).end
            start = place.module.lines.position(place.module.lines.offset(end) - len(name))
            yield node, Span.of(start, end)


def _without_last_batch(place: Place, likelihood: Likelihood) -> Iterator[Fix]:
    """A loader without its last batch, which is smaller."""
    for node, _ in _called(place, "DataLoader"):
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
        calls = [place.module.call_at(node_span(place, node)) for node, _ in _called(place, "DataLoader")]
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
    loaded = [node.args[0] for node, _ in _called(place, "DataLoader") if node.args]
    sets = [made.get(each.id) if isinstance(each, ast.Name) else each for each in loaded]
    edits = []
    for each in sets:
        call = place.module.call_at(node_span(place, each)) if isinstance(each, ast.Call) else None
        if call is not None and not any(one.star or one.keyword == "transform" for one in call.arguments):
            edits.append(replace_argument(place.module, call, None, "transform", f"{owner}.ToTensor()"))
    if edits:
        yield Fix("Make tensors of the pictures: transform=ToTensor()", edits, place.file, Likelihood.LAYOUT)
    for node, _ in _called(place, "Compose"):
        listed = node.args[0] if node.args else None
        if isinstance(listed, ast.List) and listed.elts and "ToTensor" not in ast.unparse(listed):
            edit = inserted(node_span(place, listed.elts[-1]).end, f", {owner}.ToTensor()")
            yield Fix("Make tensors of the pictures last: ToTensor()", [edit], place.file, Likelihood.LAYOUT)


def _without_to_tensor(place: Place) -> Iterator[Fix]:
    """The transforms of what is a tensor already, without the one that makes tensors of pictures."""
    lines = place.module.lines
    for node, _ in _called(place, "Compose"):
        listed = node.args[0] if node.args else None
        parts = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
        for number, part in enumerate(parts[:-1]):
            if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] == "ToTensor":
                span = Span.of(node_span(place, part).start, node_span(place, parts[number + 1]).start)
                if lines.text_of(span).replace(" ", "").replace("\n", "").endswith("(),"):
                    yield Fix("Leave out ToTensor()", [TextEdit(span, "")], place.file, Likelihood.LAYOUT)


def _transforms(tree: ast.Module) -> str:
    """What a file calls torchvision's transforms; "" where it imports nothing of them."""
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
    for node, _ in _called(place, "CrossEntropyLoss", "NLLLoss", *OF_CLASSES):
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
    made = [span for _, span in _called(place, layer)]
    for name, spans in (("CrossEntropyLoss", made), ("cross_entropy", [span for _, span in _called(place, mismatch.operation)])):
        if len(spans) == 1:
            yield Fix(f"Use {name} for the numbers of classes", [TextEdit(spans[0], name)], place.file, Likelihood.LAYOUT)
