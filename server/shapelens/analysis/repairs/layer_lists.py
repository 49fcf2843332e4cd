"""The fix of layers in a plain list or dict: a container that the module knows."""

from __future__ import annotations

import ast

from shapelens.analysis.explanations.statements import node_span, nodes_around
from shapelens.analysis.places import Place
from shapelens.analysis.repairs.fixes import Fix
from shapelens.source.position_map import TextEdit


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
