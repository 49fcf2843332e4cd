"""Fixes of a state that does not fit its module: other names, the dict inside of it, without what does not fit, or a model that fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from shapelens.analysis.explanations.checkpoint_messages import CHECKPOINT, settings_words, square_sides
from shapelens.analysis.explanations.size_settings import SizeSetting, differing_sizes, size_settings
from shapelens.analysis.explanations.statements import inserted, tree_of
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.protocol import KeyChange, Mismatch, StateSeen
from shapelens.source.calls import Argument, Call
from shapelens.source.edits import replace_argument
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position
from shapelens.stated.syntax_trees import all_parameters, expression_of, positional, with_defaults

MOST_LEFT_OUT = 3  # parts of a model
LONGEST_TITLE = 60
LOADS_PATH = "load_from_checkpoint"  # Lightning's, which takes a path and builds the model


def checkpoint_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates, the likeliest first; [] for any other mismatch."""
    state, place = mismatch.state, places.here(mismatch)
    if mismatch.code != CHECKPOINT or state is None or place is None or place != places.locate(mismatch.span):
        return []
    call = place.module.call_at(place.span)
    given = place.module.argument(call, ["state_dict"], 0) if call is not None else None
    if call is None or given is None or given.star:
        return []
    if state.kind:
        return [_kind_fix(place, given, state)]
    of_path = call.function.rpartition(".")[2] == LOADS_PATH  # It has no state, whose names could be changed.
    found = list(_of_path(places, mismatch, place, call) if of_path else _ordered(places, mismatch, place, call, given))
    # The order is that of the candidates: it says what an author is likely to mean.
    return [replace(fix, likelihood=Likelihood.PART) for fix in found]


def _kind_fix(place: Place, given: Argument, state: StateSeen) -> Fix:
    if state.kind == "path":
        return Fix("Load the file first", [TextEdit(given.span, f'torch.load({given.text}, map_location="cpu")')], place.file)
    return Fix("Take its state_dict()", [inserted(given.span.end, ".state_dict()")], place.file)


def _ordered(places: Places, mismatch: Mismatch, place: Place, call: Call, given: Argument) -> Iterator[Fix]:
    state = mismatch.state
    assert state is not None
    settings = _setting_fixes(places, mismatch)
    own_names, state_text = _renamed(place, call, given, state)
    if state.inside or state.changes:
        yield from own_names
        for setting in settings:  # The names, and what the model was built with.
            for names in own_names:
                if names.file == setting.file:
                    yield Fix(
                        f"{names.title}, and {setting.title[0].lower()}{setting.title[1:]}", [*names.edits, *setting.edits], names.file
                    )
    else:
        yield from settings
    yield from _left_out(mismatch, place, call, given, state, state_text)
    if not mismatch.origins and state.strict and not state.others:
        for names in own_names if state.inside or state.changes else []:
            yield Fix(f"{names.title}, and {_LESS}", [*names.edits, _not_strict(place, call)], names.file)
        if not (state.inside or state.changes) and state.fitting:
            yield Fix("Load what fits: strict=False", [_not_strict(place, call)], place.file)


def _of_path(places: Places, mismatch: Mismatch, place: Place, call: Call) -> Iterator[Fix]:
    """Other arguments of the constructor, which stand in the same call, or what fits."""
    state = mismatch.state
    if state is not None and not state.changes and not state.inside:
        yield from _setting_fixes(places, mismatch)
        if not mismatch.origins and state.strict and state.fitting and not state.others:
            yield Fix("Load what fits: strict=False", [_not_strict(place, call)], place.file)


_LESS = "load what fits (strict=False)"


# --- other names ---


def _renamed(place: Place, call: Call, given: Argument, state: StateSeen) -> tuple[list[Fix], str]:
    """Fixes of the names alone, and the text of a state whose names fit, for others to build upon."""
    text = given.text
    if state.inside:
        text = _in_brackets(text) + "".join(f'["{key}"]' for key in state.inside)
    if not state.changes:
        title = f"Load {text}" if len(text) < LONGEST_TITLE else f"Load what is in {_where(state)}"
        return ([Fix(title, [TextEdit(given.span, text)], place.file)] if state.inside else []), text
    found: list[Fix] = []
    part = state.changes[0].here.rstrip(".")
    is_part = len(state.changes) == 1 and state.changes[0].kind == "prefix" and not state.changes[0].there
    dot = _before_method(place, call) if is_part and all(name.isidentifier() for name in part.split(".")) else None
    if dot is not None:
        edits = [inserted(dot, f".{part}")] + ([TextEdit(given.span, text)] if state.inside else [])
        found.append(Fix(f"Load it into .{part}", edits, place.file))
    renamed = f"{{{_key_text(state)}: v for k, v in {_in_brackets(text)}.items()}}"
    title = ", ".join(map(_title_of, state.changes)) + (f", of {_where(state)}" if state.inside else "")
    found.append(Fix(title[0].upper() + title[1:], [TextEdit(given.span, renamed)], place.file))
    return found, text


def _where(state: StateSeen) -> str:
    return "".join(f'["{key}"]' for key in state.inside)


def _title_of(change: KeyChange) -> str:
    if not change.here:
        return f'take "{change.there}" away from the keys'
    return f'rename "{change.there}" to "{change.here}"' if change.there else f'put "{change.here}" before the keys'


def _key_text(state: StateSeen) -> str:
    """The expression of the module's key for a key `k` of the state."""
    text = "k"
    for change in state.changes:
        there, here = change.there, change.here
        if not there:
            text = f'"{here}" + {text}'
            continue
        text = f"({text})" if text.startswith('"') else text
        if change.kind == "part":
            text = f'{text}.replace("{there}", "{here}")'
        else:
            text = f'{text}.replace("{there}", "{here}", 1)' if here else f'{text}.removeprefix("{there}")'
    return text


def _in_brackets(text: str) -> str:
    """A text that may be followed by `.items()` or `["key"]`."""
    node = expression_of(f"({text})")
    is_plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Dict | ast.DictComp)
    return text if is_plain else f"({text})"


def _before_method(place: Place, call: Call) -> Position | None:
    """In front of `.load_state_dict(`."""
    lines = place.module.lines
    start, end = lines.offset(call.span.start), lines.offset(call.open_bracket)
    at = lines.text[start:end].rfind(".load_state_dict")
    return lines.position(start + at) if at > 0 else None


# --- less than all ---


def _not_strict(place: Place, call: Call) -> TextEdit:
    position = 3 if call.function.rpartition(".")[2] == LOADS_PATH else 1
    return replace_argument(place.module, call, place.module.argument(call, ["strict"], position), "strict", "False")


def _left_out(mismatch: Mismatch, place: Place, call: Call, given: Argument, state: StateSeen, text: str) -> Iterator[Fix]:
    """Without the parts whose sizes differ: they keep what they begin with."""
    sizes = [origin for origin, _ in differing_sizes(mismatch)]
    if not sizes or state.sizes != len(sizes) or any(change.kind == "part" or (change.there and change.here) for change in state.changes):
        return
    keys = [origin.operation for origin in sizes]
    for change in reversed(state.changes):
        keys = [change.there + key.removeprefix(change.here) for key in keys]
    parts = list(dict.fromkeys(key.rpartition(".")[0] for key in keys))
    if len(parts) > MOST_LEFT_OUT:
        return
    starts = [f'"{part}."' for part in parts if part]
    single = [f'"{key}"' for key in keys if "." not in key]
    tests = []
    if starts:
        tests.append(f"not k.startswith({starts[0] if len(starts) == 1 else '(' + ', '.join(starts) + ')'})")
    if single:
        tests.append(f"k != {single[0]}" if len(single) == 1 else f"k not in ({', '.join(single)})")
    name = _key_text(state) if state.changes else "k"
    new = f"{{{name}: v for k, v in {_in_brackets(text)}.items() if {' and '.join(tests)}}}"
    edits = [TextEdit(given.span, new)]
    if state.strict:
        edits.append(_not_strict(place, call))
    names = ", ".join(part or key for part, key in zip(parts, keys, strict=False))
    yield Fix(f"Leave {names} as it is: load the rest", edits, place.file)


# --- another model ---


def _setting_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """The sizes that the state has, where the model is built."""
    settings, _ = size_settings(places, mismatch)
    known = [setting for setting in settings if setting.edit is not None]
    found: list[Fix] = []
    for file in dict.fromkeys(setting.place.file for setting in known):
        of_file = [setting for setting in known if setting.place.file == file]
        found.append(Fix(f"Build it with {settings_words(of_file)}", _edits(of_file), file))
    if not known:
        found += _pictures(places, mismatch)
    return found


def _edits(settings: list[SizeSetting]) -> list[TextEdit]:
    """The edits of settings; those that add to one call as one."""
    texts: dict[object, TextEdit] = {}
    for setting in settings:
        edit = setting.edit
        if edit is None:
            continue
        before = texts.get(edit.span)
        is_added = edit.span.start == edit.span.end
        text = edit.new_text if before is None or not is_added else before.new_text + ", " + edit.new_text.lstrip(", ")
        texts[edit.span] = TextEdit(edit.span, text)
    return list(texts.values())


def _pictures(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """Position embeddings: what the model's own constructor is given, for that many positions, or pictures or patches of that size."""
    for origin, chain in differing_sizes(mismatch)[:1]:
        pairs = [(there, here) for there, here in zip(origin.shape, origin.result, strict=False) if there != here]
        known = [(there, here) for there, here in pairs if there is not None and here is not None]
        if len(known) != 1 or len(pairs) != 1 or not chain:
            return
        there, here = known[0]
        layer = places.trace.layers[chain[-1]]
        made = places.locate(layer.span)
        call = made.module.call_at(made.span) if made is not None else None
        if made is None or call is None:
            return
        for name, given, value in _numbers_given(call, made, layer.class_name):
            for wanted in _scaled(value, there, here):
                edit = replace_argument(made.module, call, given, name, str(wanted))
                yield Fix(f"Build it with {name}={wanted}", [edit], made.file)


def _numbers_given(call: Call, made: Place, name: str) -> Iterator[tuple[str, Argument | None, int]]:
    """The whole numbers that a call gives a class of its file, or leaves to their defaults: parameter, argument and number."""
    tree = tree_of(made)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name]
    functions = [node for cls in classes[-1:] for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    if not functions or any(each.star for each in call.arguments):
        return
    by_place = len(positional(functions[0])) - 1
    defaults = {each.arg: value for each, value in with_defaults(functions[0])}
    for position, parameter in enumerate([each.arg for each in all_parameters(functions[0])[1:]]):
        given = made.module.argument(call, [parameter], position if position < by_place else -1)
        default = defaults.get(parameter)
        if given is not None and given.text.isdecimal():
            yield parameter, given, int(given.text)
        elif given is None and isinstance(default, ast.Constant) and type(default.value) is int:
            yield parameter, None, default.value


def _scaled(value: int, there: int, here: int) -> Iterator[int]:
    if value == here:
        yield there
    for one, other, _ in square_sides(there, here):
        for more, less in ((one, other), (other, one)):
            if value > 8 and value * more % less == 0:
                yield value * more // less
