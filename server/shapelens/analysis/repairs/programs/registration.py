"""Fixes of a class that does not tell torch of its layers: `super().__init__()` is missing or late, or they lie in a plain list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapelens.analysis.explanations.python_messages import TOO_EARLY, WITHOUT_SUPER
from shapelens.analysis.explanations.statements import node_span, nodes_around
from shapelens.analysis.places import Place, Places
from shapelens.analysis.repairs.fixes import Fix
from shapelens.protocol import Mismatch
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

_CALL = "super().__init__()"


def initialisation_fixes(places: Places, mismatch: Mismatch) -> Iterator[Fix]:
    """The call as the first statement of the constructor, and taken away where it comes too late; nothing for any other mismatch."""
    is_one = WITHOUT_SUPER.search(mismatch.message) or TOO_EARLY.match(mismatch.message)
    place = places.here(mismatch) if is_one else None
    constructor = _constructor(place) if place is not None else None
    if place is None or constructor is None:
        return
    docstring = ast.get_docstring(constructor, clean=False) is not None
    first = constructor.body[1 if docstring and len(constructor.body) > 1 else 0]
    lines = place.module.lines
    late = next((each for each in constructor.body if isinstance(each, ast.Expr) and ast.unparse(each.value) == _CALL), None)
    if late is None and any(isinstance(each, ast.Attribute) and each.attr == "__init__" for each in ast.walk(constructor)):
        return  # Some other class may have to come first.
    at = lines.line(first.lineno)
    indentation = at[: len(at) - len(at.lstrip())]
    if first.lineno == constructor.lineno or (late is not None and lines.line(late.lineno).strip() != _CALL):
        return
    edits = [TextEdit(Span(first.lineno, 0, first.lineno, 0), f"{indentation}{_CALL}\n")]
    if late is not None:
        edits.append(TextEdit(Span(late.lineno, 0, late.lineno + 1, 0), ""))
    yield Fix(f"Call {_CALL} first", edits, place.file)


def _constructor(place: Place) -> ast.FunctionDef | None:
    """The `__init__` that a place stands in."""
    found = [node for node in nodes_around(place, ast.FunctionDef) if node.name == "__init__"]
    return next(iter(found), None)


def wrapped_list(place: Place, name: str) -> Fix | None:
    """The fix that wraps the list or dict that is assigned to an attribute of the class around a place; None where there is no such."""
    around = nodes_around(place, ast.ClassDef)
    made = [
        node.value
        for owner in around[-1:]
        for node in ast.walk(owner)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == name
    ]
    if len(made) != 1 or not isinstance(made[0], ast.List | ast.ListComp | ast.Dict | ast.DictComp):
        return None
    kind = "ModuleDict" if isinstance(made[0], ast.Dict | ast.DictComp) else "ModuleList"
    span = node_span(place, made[0])
    owner_name = "nn" if "nn.Module" in place.module.text and "torch.nn as nn" in place.module.text else "torch.nn"
    text = place.module.lines.text_of(span)
    wrapped = f"{owner_name}.{kind}({'' if text in ('[]', '{}') else text})"
    return Fix(f"Make it a {kind}", [TextEdit(span, wrapped)], place.file)
