"""Fixes of tensors that lie on different devices: one of them is moved, or made where the other one is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapelens.analysis.explanations.device_messages import DEVICE, is_parameter
from shapelens.analysis.explanations.statements import indentation_at, inserted, node_span, nodes_around, statement_at, tree_of
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.programs.registration import wrapped_list
from shapelens.protocol import Mismatch
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position, Span
from shapelens.stated.syntax_trees import expression_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MADE_BY = {
    "zeros", "ones", "empty", "full", "arange", "linspace", "eye", "rand", "randn", "randint", "randperm", "tensor", "as_tensor", "range",
}  # fmt: skip


def device_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates, the likeliest first; [] for any other mismatch."""
    place = places.here(mismatch)
    if mismatch.code != DEVICE or place is None or place != places.locate(mismatch.span) or not mismatch.origins:
        return []
    if mismatch.operation == "numpy":
        return list(_numpy(place))
    found = _parameter(places, mismatch, place) if is_parameter(mismatch.inputs[0]) else _tensor(places, mismatch, place)
    return list(found)


def _numpy(place: Place) -> Iterator[Fix]:
    text = place.module.lines.text_of(place.span)
    if text.endswith(".numpy()"):
        position = _back(place, len(".numpy()"))
        yield Fix("Bring it to the CPU first", [inserted(position, ".cpu()")], place.file)
        return
    node = _expression(place)
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript):
        argument = place.module.call_at(place.span)
        if argument is not None and argument.arguments:
            yield Fix("Bring it to the CPU first", [inserted(argument.arguments[0].span.end, ".cpu()")], place.file)


# --- modules that nothing has moved ---


def _parameter(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    layer = places.layer_of(mismatch)
    made = places.locate(layer.span) if layer is not None else None
    if made is None:
        return
    node = statement_at(made)
    holder = _attribute_filled(made, node)
    if holder:
        fix = wrapped_list(made, holder)
        if fix is not None:
            yield fix
    if isinstance(node, ast.Expr):  # `model.to` in a line of its own stays what it is; `layers.append(nn.Linear(8, 8))`
        return
    for move in _moves(places, mismatch, made):
        yield Fix(f"Move it there: {move}", [inserted(made.span.end, move)], made.file)
    for device in _device_of_others(mismatch):
        yield Fix("Move it to where its input is", [inserted(made.span.end, f".to({device})")], made.file)


def _attribute_filled(place: Place, node: ast.stmt | None) -> str:
    """The attribute of `self` whose list or dict the layer at a place goes into; "" for none."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        is_list = isinstance(node.value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)
        return node.targets[0].attr if is_list else ""
    target: ast.expr | None = None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        target = node.value.func.value if node.value.func.attr == "append" else None
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0].value
    return target.attr if isinstance(target, ast.Attribute) else ""


# --- tensors ---


def _tensor(places: Places, mismatch: Mismatch, place: Place) -> Iterator[Fix]:
    origin, name = mismatch.origins[0], mismatch.origins[0].argument
    made = places.locate(origin.span)
    yield from _assigned(place, name)
    if made is not None:
        yield from _in_loop(places, mismatch, made, name)
        node = statement_at(made)
        in_constructor = _function_around(made, "__init__")
        if in_constructor and isinstance(node, ast.Assign):
            yield from _buffer(made, node)
        yield from _all_made_there(place)
        yield from _after_name(places, mismatch, place, made)
        if origin.operation in _MADE_BY:
            yield from _made_there(places, mismatch, made, in_place=_same_function(made, place))
        if isinstance(node, ast.Assign) and not in_constructor:
            yield from _after(places, mismatch, made, node)
    yield from _here(places, mismatch, place, name)


def _assigned(place: Place, name: str) -> Iterator[Fix]:
    """`x.to(device)` above in a line of its own, whose result nobody takes."""
    tree = tree_of(place)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            call = node.value.func
            is_of_it = isinstance(call.value, ast.Name) and call.value.id == name and node.lineno <= place.span.line
            if is_of_it and call.attr in ("to", "cuda"):
                edits = [inserted(node_span(place, node).start, f"{name} = ")]
                yield Fix(f"Take what {call.attr}() gives: {name} = …", edits, place.file)


def _in_loop(places: Places, mismatch: Mismatch, made: Place, name: str) -> Iterator[Fix]:
    """`for x, y in loader:` all of whose tensors are moved first."""
    tree = tree_of(made)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.AsyncFor)]
    loops = [node for node in loops if _holds(node_span(made, node.target), made.span)]
    for loop in loops[-1:]:
        yield from _moved_before(places, mismatch, made, _names_in(loop.target, name), loop.body[0])


def _after(places: Places, mismatch: Mismatch, made: Place, node: ast.Assign) -> Iterator[Fix]:
    """`x, y = batch`, after which both are moved."""
    names = _names_in(node.targets[0], "")
    span = node_span(made, node)
    for chosen in _choices(names, mismatch.origins[0].argument):
        for move in _moves(places, mismatch, made):
            text = f"\n{indentation_at(made)}{_moving(chosen, move)}"
            yield Fix(f"Move what is made here: {_moving(chosen, move)}", [inserted(span.end, text)], made.file)


def _moved_before(places: Places, mismatch: Mismatch, made: Place, names: list[str], first: ast.stmt) -> Iterator[Fix]:
    start = node_span(made, first).start
    line = made.module.lines.line(start.line)
    indentation = line[: len(line) - len(line.lstrip())]
    for chosen in _choices(names, mismatch.origins[0].argument):
        for move in _moves(places, mismatch, Place(made.file, made.module, Span.of(start, start))):
            text = _moving(chosen, move)
            yield Fix(
                f"Move the batch: {text}" if len(text) < 60 else "Move the batch", [inserted(start, f"{text}\n{indentation}")], made.file
            )


def _choices(names: list[str], name: str) -> Iterator[list[str]]:
    """All names, then each of them alone, the one that is meant first."""
    if len(names) > 1:
        yield names
        if len(names) > 2:
            yield names[-2:]
    for each in sorted(names, key=lambda other: other != name):
        yield [each]


def _moving(names: list[str], move: str) -> str:
    return f"{', '.join(names)} = {', '.join(name + move for name in names)}"


def _names_in(target: ast.expr, name: str) -> list[str]:
    """The names that a target binds, from the innermost tuple that has the one that is meant."""
    groups = [node for node in ast.walk(target) if isinstance(node, ast.Tuple | ast.List)]
    for group in reversed(groups):
        names = [each.id for each in group.elts if isinstance(each, ast.Name) and each.id != "_"]
        if names and (not name or name in names):
            return names
    return [target.id] if isinstance(target, ast.Name) else []


def _buffer(made: Place, node: ast.Assign) -> Iterator[Fix]:
    """`self.mask = torch.ones(…)` in a constructor, as a buffer that moves with its module."""
    target = node.targets[0]
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        value = made.module.lines.text_of(node_span(made, node.value))
        new = f'self.register_buffer("{target.attr}", {value})'
        yield Fix(f"Register {target.attr} as a buffer, which moves with the module", [TextEdit(node_span(made, node), new)], made.file)


def _made_there(places: Places, mismatch: Mismatch, made: Place, *, in_place: bool) -> Iterator[Fix]:
    """With the `device` of what it meets."""
    call = made.module.call_at(made.span)
    if call is None or any(each.keyword == "device" for each in call.arguments) or not call.arguments:
        return
    end = _back(made, 1)
    devices = [f"{name}.device" for name in _parameters_of(made)] if in_place else []
    devices += [move[len(".to(") : -1] for move in _moves(places, mismatch, made) if move.startswith(".to(")]
    devices += ['"cuda"'] if _moved_by_cuda(places, mismatch) else []
    for device in devices:
        yield Fix(f"Make it there: device={device}", [inserted(end, f", device={device}")], made.file)


def _all_made_there(place: Place) -> Iterator[Fix]:
    """All tensors that an expression reads and that factories have made in the same function, with the `device` of what that was given."""
    function, node = _function_at(place), _expression(place)
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node is not None else set()
    edits = []
    for each in _parameters_of(place)[:1]:
        for statement in ast.walk(function) if function is not None else ():
            if (
                isinstance(statement, ast.Assign)
                and {part.id for part in ast.walk(statement.targets[0]) if isinstance(part, ast.Name)} & read
            ):
                calls = [part for part in ast.walk(statement.value) if isinstance(part, ast.Call) and _is_factory(part)]
                ends = [node_span(place, part).end for part in calls]
                edits += [inserted(Position(end.line, end.column - 1), f", device={each}.device") for end in ends]
        if len(edits) > 1:
            yield Fix(f"Make them there: device={each}.device", edits, place.file)


def _is_factory(node: ast.Call) -> bool:
    is_named = isinstance(node.func, ast.Attribute) and node.func.attr in _MADE_BY and ast.unparse(node.func.value) == "torch"
    return is_named and bool(node.args) and all(each.arg != "device" for each in node.keywords)


def _after_name(places: Places, mismatch: Mismatch, place: Place, made: Place) -> Iterator[Fix]:
    """`x, y = get_batch()`, whose tensors were made elsewhere."""
    scope, name = _function_at(place) or tree_of(place), mismatch.origins[0].argument
    statements = [
        each
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign) and each.lineno < place.span.line and name in _names_in(each.targets[0], name)
    ]
    for node in sorted(statements, key=lambda each: each.lineno)[-1:]:
        span = node_span(place, node)
        if made.file != place.file or not _holds(span, made.span):
            yield from _after(places, mismatch, Place(place.file, place.module, span), node)


def _parameters_of(place: Place) -> list[str]:
    """Returns the parameters of the function around a place, but for `self`."""
    function = _function_at(place)
    if function is None:
        return []
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg not in ("self", "cls")][:3]


def _here(places: Places, mismatch: Mismatch, place: Place, name: str) -> Iterator[Fix]:
    """At the operation itself."""
    node = _expression(place)
    if node is None or not name:
        return
    start = place.module.lines.offset(place.span.start)
    text = place.module.lines.text_of(place.span)
    found = [match.start() for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?![\w(.])", text)]
    other = mismatch.origins[1].argument
    moves = [f".to({other}.device)"] if re.fullmatch(r"[\w.]+", other) and not is_parameter(mismatch.inputs[1]) else []
    for position in found[:1]:
        for move in (*moves, *_moves(places, mismatch, place)):
            where = place.module.lines.position(start + position + len(name))
            yield Fix(f"Move it: {name}{move}", [inserted(where, move)], place.file)


# --- what moves ---


def _moves(places: Places, mismatch: Mismatch, where: Place) -> list[str]:
    """Returns the calls that moved the other side, if the place can make them as well: `.to(device)`, `.cuda()`."""
    there = places.locate(mismatch.origins[1].span)
    node = _expression(there) if there is not None else None
    if there is None or not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
        return [".cuda()"]
    given = [each.value for each in node.keywords if each.arg == "device"]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        given += node.args[:1]
    if not given:
        return []
    text = ast.unparse(given[0])
    is_visible = isinstance(given[0], ast.Constant) or (there.file == where.file and _is_visible(given[0], there, where))
    return [f".to({text})"] if is_visible else []


def _moved_by_cuda(places: Places, mismatch: Mismatch) -> bool:
    return mismatch.origins[1].operation == "cuda" and mismatch.inputs[1].device == "cuda"


def _device_of_others(mismatch: Mismatch) -> list[str]:
    other = mismatch.origins[1].argument
    return [f"{other}.device"] if other.isidentifier() else []


def _is_visible(node: ast.expr, there: Place, where: Place) -> bool:
    """True if an expression means the same at another place: its names are those of the module, or both stand in one function."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    if _same_function(there, where):
        return True
    tree = tree_of(there)
    scope = _function_at(there)
    local = {each.id for each in ast.walk(scope) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)} if scope else set()
    local |= {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)} if scope else set()
    own = _function_at(where)
    given = {each.arg for each in ast.walk(own) if isinstance(each, ast.arg)} if own is not None else set()
    stored = set[str]()
    for statement in tree.body:
        if not isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
            stored |= {each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return (names <= stored and not names & local) or names <= given


def _same_function(one: Place, other: Place) -> bool:
    if one.file != other.file:
        return False
    first, second = _function_at(one), _function_at(other)
    return (first is None and second is None) or (first is not None and second is not None and first.lineno == second.lineno)


def _function_at(place: Place) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function around a place."""
    around = nodes_around(place, *_FUNCTIONS)
    return around[-1] if around else None


def _function_around(place: Place, name: str) -> bool:
    function = _function_at(place)
    return function is not None and function.name == name


def _expression(place: Place) -> ast.expr | None:
    return expression_of(f"({place.module.lines.text_of(place.span)})")


def _holds(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _back(place: Place, count: int) -> Position:
    """So many characters before the end of a place."""
    return place.module.lines.position(place.module.lines.offset(place.span.end) - count)
