"""Fixes of what `backward` cannot go through, and of layers that are called as nothing can be called."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from shapelens.analysis.explanations.statements import indentation_at, inserted, node_span, nodes_around, statement_at, tree_of
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.protocol import Mismatch
from shapelens.source.calls import Call
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import dotted, expression_of

_NO_GRAD = re.compile(r"\b(?:torch\.)?(?:no_grad|inference_mode)\(\)")
_SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def tape_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates, the likeliest first; [] for any other mismatch."""
    rule = _RULES.get(mismatch.code)
    place = places.here(mismatch)
    if rule is None or place is None or place != places.locate(mismatch.span):
        return []
    return list(rule(places, mismatch, place))


# --- what gradients need ---


def _in_place(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    node = statement_at(place)
    if node is None:
        return
    span = node_span(place, node)
    if len(mismatch.origins) < 2:  # A leaf.
        if span.line == span.end_line and not isinstance(node, ast.For | ast.While | ast.If | ast.With):
            text = f"with torch.no_grad():\n{indentation_at(place)}    "
            yield Fix("Change it without recording gradients", [inserted(span.start, text)], place.file)
        return
    lines = place.module.lines
    if isinstance(node, ast.AugAssign) and type(node.op) in _SIGNS:
        target, value = (lines.text_of(node_span(place, each)) for each in (node.target, node.value))
        if isinstance(node.target, ast.Name):
            plain = isinstance(node.value, ast.Name | ast.Call | ast.Attribute | ast.Constant | ast.Subscript)
            new = f"{target} = {target} {_SIGNS[type(node.op)]} {value if plain else f'({value})'}"
            yield Fix(f"Make a new tensor: {new}" if len(new) < 60 else "Make a new tensor", [TextEdit(span, new)], place.file)
        else:
            yield from _cloned(place, node.target, span)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        yield from _cloned(place, node.targets[0], span)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        name, owner = node.value.func.attr, node.value.func.value
        if name.endswith("_") and isinstance(owner, ast.Name):
            arguments = lines.text_of(Span.of(node_span(place, node.value.func).end, span.end))
            new = f"{owner.id} = {owner.id}.{name[:-1]}{arguments}"
            yield Fix(f"Make a new tensor: {new}" if len(new) < 60 else "Make a new tensor", [TextEdit(span, new)], place.file)
    yield from _not_in_place(places, mismatch, place)


def _cloned(place: Place, target: ast.expr, span: Span) -> Iterator[Fix]:
    """`x[:, 0] = 0` of a copy of `x`."""
    owner = target.value if isinstance(target, ast.Subscript) else None
    if isinstance(owner, ast.Name):
        text = f"{owner.id} = {owner.id}.clone()\n{indentation_at(place)}"
        yield Fix(f"Change a copy of {owner.id}", [inserted(span.start, text)], place.file)


def _not_in_place(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """Without the `inplace=True` of a layer or a function."""
    text = place.module.lines.text_of(place.span)
    if "inplace=True" in text:
        start = place.module.lines.offset(place.span.start) + text.index("inplace=True") + len("inplace=")
        yield Fix("Do it not in place", [TextEdit(place.module.lines.span(start, start + len("True")), "False")], place.file)
    for layer in places.trace.layers:
        made = places.locate(layer.span) if layer.class_name == mismatch.origins[1].operation else None
        call = made.module.call_at(made.span) if made is not None and layer.call_span == mismatch.span else None
        argument = next((each for each in call.arguments if each.text in ("True", "inplace=True")), None) if call is not None else None
        if made is not None and argument is not None:
            new = "inplace=False" if argument.text.startswith("inplace") else "False"
            yield Fix("Do it not in place", [TextEdit(argument.span, new)], made.file)


def _second_backward(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    freed = places.locate(mismatch.origins[1].span) if len(mismatch.origins) > 1 else None
    if freed is None:
        return
    if freed == place:
        yield from _detached_state(places, place)
        yield from _detached_attribute(places, mismatch)
        yield from _in_each_turn(places, mismatch, place)
        yield from _detached_before(places, mismatch, place)
    elif freed.file == place.file:
        yield from _detached_input(freed, place)
    text = freed.module.lines.text_of(freed.span)
    if text.endswith("backward()"):
        end = freed.module.lines.offset(freed.span.end) - 1
        position = freed.module.lines.position(end)
        yield Fix("Keep the graph for the second time", [inserted(position, "retain_graph=True")], freed.file)


def _in_each_turn(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """Yields repairs for a loop that goes back in each turn through what was computed in front of the loop: it is computed in each turn."""
    made = places.locate(mismatch.origins[0].span)
    statement = statement_at(made) if made is not None and made.file == place.file else None
    loops = nodes_around(place, ast.For, ast.While)
    if made is None or statement is None or not loops or not isinstance(statement, ast.Assign) or statement.lineno >= loops[0].lineno:
        return
    span, lines = node_span(place, statement), place.module.lines
    if statement.col_offset != loops[0].col_offset or span.line != span.end_line or loops[0].body[0].lineno == loops[0].lineno:
        return
    text, body = lines.text_of(span), node_span(place, loops[0].body[0]).start
    indentation = lines.line(body.line)[: body.column]
    whole = Span.of(lines.position(lines.offset(span.start) - span.column), lines.position(lines.offset(span.end) + 1))
    title = f"Compute it in each turn: {text}" if len(text) < 60 else "Compute it in each turn"
    yield Fix(title, [TextEdit(whole, ""), inserted(body, f"{text}\n{indentation}")], place.file)


def _detached_state(places: Places, place: Place) -> Iterator[Fix]:
    """`out, hidden = model(x, hidden)` in a loop: the state of the next turn leads back to nothing."""
    loops = nodes_around(place, ast.For, ast.While)
    for node in ast.walk(loops[-1]) if loops else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        given = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        stored = [each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name) and each.id in given]
        span = node_span(place, node)
        text = place.module.lines.line(span.line)
        indentation = text[: len(text) - len(text.lstrip())]
        for name in stored:
            for new in (f"{name}.detach()", f"tuple(state.detach() for state in {name})"):
                edit = inserted(span.end, f"\n{indentation}{name} = {new}")
                yield Fix(f"Detach {name} from this turn", [edit], place.file)


def _detached_attribute(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """`out, self.hidden = self.lstm(x, self.hidden)`: the state that a module keeps for its next call leads back to nothing."""
    made = places.locate(mismatch.origins[0].span)
    node = statement_at(made) if made is not None else None
    if made is None or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return
    given = {dotted(each) for each in ast.walk(node.value) if isinstance(each, ast.Attribute)}
    kept = [dotted(each) for each in ast.walk(node.targets[0]) if isinstance(each, ast.Attribute) and dotted(each) in given]
    end, indentation = node_span(made, node).end, indentation_at(made)
    for name in kept:
        for new in (f"{name}.detach()", f"tuple(state.detach() for state in {name})"):
            yield Fix(f"Detach {name} from this call", [inserted(end, f"\n{indentation}{name} = {new}")], made.file)


def _detached_before(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """Yields repairs for a loop that goes back in each turn through what was computed in front of the loop: the loop does not learn it."""
    made = places.locate(mismatch.origins[0].span)
    node = statement_at(made) if made is not None and made.file == place.file else None
    loops = nodes_around(place, ast.For, ast.While)
    if made is None or not loops or not isinstance(node, ast.Assign) or node.lineno >= loops[0].lineno:
        return
    span, is_one = node_span(made, node.value), isinstance(node.value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    edits = [inserted(span.end, ".detach()")] if is_one else [inserted(span.start, "("), inserted(span.end, ").detach()")]
    yield Fix("Detach it: the loop does not learn it", edits, made.file)


def _detached_input(freed: Place, again: Place) -> Iterator[Fix]:
    """Yields fixes that detach a tensor shared by two losses, where the first one uses the tensor: the picture of a generator, for the loss
    of the discriminator."""
    body = _block_around(tree_of(again), freed.span.line, again.span.line)
    made: dict[str, int] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.lineno < freed.span.line:
            made.setdefault(node.targets[0].id, node.lineno)
    calls = [call for node in body for call in ast.walk(node) if isinstance(call, ast.Call)]
    given = [argument for call in calls for argument in call.args if isinstance(argument, ast.Name)]
    uses = [argument for argument in given if argument.id in made and argument.lineno > made[argument.id]]
    for name in made:
        before = [each for each in uses if each.id == name and each.lineno < freed.span.line]
        after = [each for each in uses if each.id == name and freed.span.line < each.lineno <= again.span.line]
        if before and after:
            edits = [inserted(node_span(freed, each).end, ".detach()") for each in before]
            yield Fix(f"Detach {name} for the first backward()", edits, freed.file)


def _block_around(tree: ast.Module, first: int, last: int) -> list[ast.stmt]:
    """The innermost block of statements that holds two lines; [] for none."""
    blocks = (body for node in ast.walk(tree) for body in (getattr(node, "body", None), getattr(node, "orelse", None)))
    around = [body for body in blocks if isinstance(body, list) and body and _holds(body, first, last)]
    return around[-1] if around else []


def _holds(body: Sequence[ast.stmt], first: int, last: int) -> bool:
    """True if statements begin at a line or before, and end at another one or after."""
    end = body[-1].end_lineno
    return body[0].lineno <= first and (end is None or last <= end)


def _numpy(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    text = place.module.lines.text_of(place.span)
    if text.endswith(".numpy()"):
        position = place.module.lines.position(place.module.lines.offset(place.span.end) - len(".numpy()"))
        yield Fix("Detach it first", [inserted(position, ".detach()")], place.file)


def _detached(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """With the way back to the parameters that something has cut off."""
    cut = places.locate(mismatch.origins[0].span) if mismatch.origins else None
    if cut is None:
        yield from _without_item(place) if "has no attribute" in mismatch.message else ()
        return
    lines, operation = cut.module.lines, mismatch.origins[0].operation
    text, end = lines.text_of(cut.span), lines.offset(cut.span.end)
    for suffix in (".detach()", ".data"):
        if text.endswith(suffix):
            yield Fix(f"Take {suffix[1:]} away", [TextEdit(lines.span(end - len(suffix), end), "")], cut.file)
    if operation == "tensor" and (inner := re.fullmatch(r"torch\.tensor\((\w+)\)", text)):
        yield Fix("Take torch.tensor() away", [TextEdit(cut.span, inner[1])], cut.file)
    if operation == "no_grad":
        yield from _with_gradients(cut)


def _with_gradients(place: Place) -> Iterator[Fix]:
    """The innermost `with torch.no_grad():` around a place, or the decorator of its function, that records gradients."""
    lines = place.module.lines
    for node in reversed(nodes_around(place, ast.With, ast.FunctionDef)):
        if isinstance(node, ast.With):
            parts = [item.context_expr for item in node.items]
        else:
            parts = list(node.decorator_list)
        for part in parts:
            span = node_span(place, part)
            if _NO_GRAD.fullmatch(lines.text_of(span)):
                yield Fix("Record gradients here", [TextEdit(span, "torch.enable_grad()")], place.file)
                return


def _without_item(place: Place) -> Iterator[Fix]:
    """`loss = criterion(out, y).item()` above, without `item()`."""
    name = place.module.lines.text_of(place.span).partition(".")[0]
    tree = tree_of(place)
    made = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
        if node.lineno < place.span.line
    ]
    text = place.module.lines.text_of(node_span(place, made[-1])) if made else ""
    if text.endswith(".item()"):
        end = place.module.lines.offset(node_span(place, made[-1]).end)
        yield Fix("Take item() away", [TextEdit(place.module.lines.span(end - len(".item()"), end), "")], place.file)


# --- calls of layers ---


_HAS_NO_ATTRIBUTE = re.compile(r"'(tuple|list)' object has no attribute '(\w+)'")
# Methods of a tensor that give the same tensor, elsewhere or of another kind.
_OF_EACH = ("to", "cuda", "cpu", "detach", "clone", "contiguous", "float", "double", "half", "bfloat16", "long", "int", "bool")
_GIVE_INDICES = ("max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax", "cummin")  # beside what they pick


def _layer_input(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """The first tensor of the tuple that a layer gave."""
    made = places.locate(mismatch.origins[0].span) if mismatch.origins else None
    if made is not None and mismatch.origins[0].operation in ("LSTM", "GRU", "RNN", "MultiheadAttention"):
        node = statement_at(made)
        is_alone = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node_span(made, node.value) == made.span
        if is_alone and isinstance(node, ast.Assign):
            yield Fix("Take the first of what it gives", [inserted(node_span(made, node.targets[0]).end, ", _")], made.file)
        else:
            yield Fix("Take the first of what it gives", [inserted(made.span.end, "[0]")], made.file)
        return
    if made is not None and mismatch.origins[0].operation in _GIVE_INDICES:
        yield Fix("Take the values", [inserted(made.span.end, ".values")], made.file)
        return
    node = statement_at(place)
    asked = _HAS_NO_ATTRIBUTE.search(mismatch.message)
    if asked is not None and node is not None:
        yield from _of_several(place, node, asked[1], asked[2])
        return
    for part in ast.walk(node) if node is not None else ():  # `x + self.attention(x, x, x)`
        if isinstance(part, ast.BinOp):
            for side in (part.right, part.left):
                if isinstance(side, ast.Call | ast.Name):
                    yield Fix("Take the first of what it gives", [inserted(node_span(place, side).end, "[0]")], place.file)
    argument = node.value.args[0] if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args else None
    if argument is None or isinstance(argument, ast.Starred):
        return
    span = node_span(place, argument)
    text = place.module.lines.text_of(span)
    if mismatch.message.endswith(("a list", "a numpy array")):
        for new in (f"torch.tensor({text}, dtype=torch.float32)", f"torch.tensor({text})"):
            yield Fix("Make a tensor of it", [TextEdit(span, new)], place.file)
    elif mismatch.message.endswith("a tuple"):
        yield Fix("Take the first of it", [inserted(span.end, "[0]")], place.file)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _of_several(place: Place, statement: ast.stmt, kind: str, name: str) -> Iterator[Fix]:
    """Several tensors that are asked for an attribute of one: each of them is asked, or the first one is."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name and name in _OF_EACH:
            owner = place.module.lines.text_of(node_span(place, node.func.value))
            called = place.module.lines.text_of(Span.of(node_span(place, node.func.value).end, node_span(place, node).end))
            each = f"each{called} for each in {owner}"
            new = f"[{each}]" if kind == "list" else f"tuple({each})"
            yield Fix(
                f"Ask each of them: {new}" if len(new) < 60 else "Ask each of them", [TextEdit(node_span(place, node), new)], place.file
            )
    asked = next((node.value for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr == name), None)
    if not isinstance(asked, ast.Name | ast.Call):
        return
    before = [each for each in ast.walk(tree_of(place)) if isinstance(each, ast.Assign) and each.lineno < statement.lineno]
    made = [each for each in before if isinstance(each.targets[0], ast.Name) and _is_name(asked, each.targets[0].id)]
    for assignment in sorted(made, key=lambda each: each.lineno)[-1:]:
        yield Fix("Take the first of what it gives", [inserted(node_span(place, assignment.value).end, "[0]")], place.file)
    yield Fix("Take the first of them", [inserted(node_span(place, asked).end, "[0]")], place.file)


def _layer_as_function(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """`nn.ReLU()(x)`, `nn.MaxPool2d(2)(x)` for `nn.MaxPool2d(x, 2)`: what has a name stays with the constructor, what follows may."""
    node = expression_of(f"({place.module.lines.text_of(place.span)})")
    if not isinstance(node, ast.Call):
        return
    named, given = [ast.unparse(each) for each in node.keywords], [ast.unparse(each) for each in node.args]
    for count in dict.fromkeys((len(given), 1)):
        made, called = ", ".join(given[count:] + named), ", ".join(given[:count])
        new = f"{ast.unparse(node.func)}({made})({called})"
        yield Fix(f"Call a layer: {new}" if len(new) < 60 else "Call a layer", [TextEdit(place.span, new)], place.file)


def _tensor_called(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """Another name for the function: where it is made, and in its calls."""
    name, tree = mismatch.argument, tree_of(place)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    new = next((each for each in (f"{name}_fn", f"{name}_function") if all(node.id != each for node in names)), None)
    nodes = list(ast.walk(tree))
    called = [node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name]
    made = [
        node.targets[0]
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
        if all(not (isinstance(each, ast.Name) and each.id == name) for each in ast.walk(node.value))
    ]
    if new is not None and called and len(made) == 1:
        edits = [TextEdit(node_span(place, node), new) for node in (made[0], *called)]
        yield Fix(f"Name the function {new}", edits, place.file)


_MISSING = re.compile(r"missing \d+ required positional arguments?: (.+)")


def _call_arguments(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """With what is missing, where something there is called so; without an argument that `forward` has no parameter for."""
    call = place.module.call_at(place.span)
    missing = _MISSING.search(mismatch.message)
    if call is not None and missing is not None:
        yield from _with_missing(place, call, re.findall(r"'(\w+)'", missing[1]))
    yield from _one_by_one(mismatch, place)
    surplus = re.search(r"takes (?:from \d+ to )?(\d+) positional arguments? but (\d+)", mismatch.message)
    if call is None or surplus is None or any(each.star for each in call.arguments):
        return
    most, given = int(surplus[1]) - 1, int(surplus[2]) - 1
    positional = [each for each in call.arguments if not each.keyword]
    if "forward()" in mismatch.message and len(positional) == given and 0 < most < given:
        span = Span.of(positional[most - 1].span.end, positional[given - 1].span.end)
        yield Fix("Leave out what it does not take", [TextEdit(span, "")], place.file)


def _with_missing(place: Place, call: Call, missing: list[str]) -> Iterator[Fix]:
    """A call with the arguments that it lacks, each of which a name in front of it is called like."""
    if any(each.star for each in call.arguments) or not set(missing) <= _names_before(place):
        return
    by_name = any(each.keyword for each in call.arguments)
    written = ", ".join(f"{name}={name}" if by_name else name for name in missing)
    start = place.module.lines.offset(call.arguments[-1].span.end) if call.arguments else place.module.lines.offset(place.span.end) - 1
    edit = inserted(place.module.lines.position(start), f", {written}" if call.arguments else written)
    yield Fix(f"Give it {' and '.join(missing)}", [edit], place.file)


def _names_before(place: Place) -> set[str]:
    """The names that the function around a place, or else the file, binds in front of it."""
    functions = nodes_around(place, ast.FunctionDef)
    scope: ast.AST = functions[-1] if functions else tree_of(place)
    parameters = {each.arg for each in ast.walk(functions[-1].args) if isinstance(each, ast.arg)} if functions else set()
    stored = (each for each in ast.walk(scope) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return parameters | {each.id for each in stored if each.lineno < place.span.line}


def _one_by_one(mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """The layers of a Sequential, each called with all that this is given: `for layer in self.layers: x = layer(x, mask)`."""
    node = statement_at(place)
    if "Sequential.forward()" not in mismatch.message or not isinstance(node, ast.Return | ast.Assign):
        return
    value, lines, indentation = node.value, place.module.lines, indentation_at(place)
    is_whole = isinstance(value, ast.Call) and node_span(place, value) == place.span
    if not isinstance(value, ast.Call) or not is_whole or not value.args or not isinstance(value.args[0], ast.Name):
        return
    target = value.args[0].id
    if isinstance(node, ast.Assign):
        only = node.targets[0] if len(node.targets) == 1 else None
        target = only.id if isinstance(only, ast.Name) else ""
    if not target:
        return
    first, called = value.args[0].id, node_span(place, value.func)
    given = lines.text_of(Span.of(called.end, place.span.end))
    loop = f"for layer in {lines.text_of(called)}:\n{indentation}    {first} = layer{given}"
    last = f"return {first}" if isinstance(node, ast.Return) else f"{target} = {first}" if target != first else ""
    new = f"{loop}\n{indentation}{last}" if last else loop
    yield Fix("Call its layers one after the other", [TextEdit(node_span(place, node), new)], place.file)


_NO_LAYER = re.compile(r"([\w.]+) is not a Module subclass")


def _class_for_layer(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    """`nn.ReLU()` for `nn.ReLU` among the layers of a container, also where a list gets the class by a parameter's name."""
    refused = _NO_LAYER.search(mismatch.message)
    if refused is None:
        return
    name, tree = refused[1].rpartition(".")[2], tree_of(place)
    functions = nodes_around(place, ast.FunctionDef)
    inside: ast.AST = functions[-1] if functions else tree
    named = {name, *(_parameters_for(functions[-1], name) if functions else ())}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    listed = [
        part
        for node in ast.walk(inside)
        if isinstance(node, ast.Call | ast.List | ast.Tuple)
        for part in (node.args if isinstance(node, ast.Call) else node.elts)
        if isinstance(part, ast.Name | ast.Attribute) and dotted(part).rpartition(".")[2] in named and id(part) not in called
    ]
    if listed:
        text = place.module.lines.text_of(node_span(place, listed[0]))
        edits = [inserted(node_span(place, each).end, "()") for each in listed]
        yield Fix(f"Make a layer of the class: {text}()", edits, place.file)


def _parameters_for(function: ast.FunctionDef, name: str) -> Iterator[str]:
    """The parameters of a function whose default is a class of that name."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    for parameter, default in zip(arguments[len(arguments) - len(function.args.defaults) :], function.args.defaults, strict=True):
        if dotted(default).rpartition(".")[2] == name:
            yield parameter.arg
    for parameter, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if value is not None and dotted(value).rpartition(".")[2] == name:
            yield parameter.arg


_RULES: Mapping[str, Callable[[Places, Mismatch, Place], Iterator[Fix]]] = {
    "in-place": _in_place,
    "second-backward": _second_backward,
    "numpy-of-gradient": _numpy,
    "detached-loss": _detached,
    "layer-input": _layer_input,
    "layer-as-function": _layer_as_function,
    "tensor-called": _tensor_called,
    "call-arguments": _call_arguments,
    "layer-arguments": _class_for_layer,
}
