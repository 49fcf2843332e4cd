"""Batches of loaders: of the picture data sets that everybody knows, by their names; of any other, by asking the loader itself."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import List, Optional, Tuple

from .....stated.syntax_trees import keyword
from ....shims.data_sets.documented import DATA_SETS
from .loops import first_of
from .scope import CallArguments
from .tensors import shorthand
from .values import SPELLED, UNKNOWN, ScriptValue, constant, guessed, integer, is_guessed

RESIZES = {"Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop"}


def data_set(name: str, given: CallArguments) -> Optional[ScriptValue]:
    """A data set of torchvision's, with what an item of it is; None for any other function."""
    tail = name.rpartition(".")[2]
    documented = DATA_SETS.get(tail)
    if documented is None or documented.target not in ("class", "attributes"):
        return None
    transform = given.by_name("transform")
    channels = 1 if documented.mode == "L" else 3
    height, width = documented.size or (0, 0)
    known = transform.known() if transform is not None else None
    for node in ast.walk(known) if known is not None else ():
        if isinstance(node, ast.Call):
            kind = ast.unparse(node.func).rpartition(".")[2]
            said = _picture_size(node) if kind in RESIZES else None
            if said is not None:
                height, width = said
            if kind == "Grayscale":
                channels = 1
                for part in node.args[:1] + [keyword.value for keyword in node.keywords]:
                    channels = integer(part) or 1
            if kind == "Lambda":  # It may flatten the picture, or do anything else.
                return ScriptValue()
    if not height:
        return ScriptValue()
    picture = ScriptValue(shorthand("f32", [constant(channels), constant(height), constant(width)]))
    if transform is not None and known is None:
        picture = guessed(picture)
    target = shorthand("i64", [] if documented.target == "class" else [constant(40)])
    return ScriptValue(None, element=_tuple([picture, ScriptValue(target)]))


def _picture_size(node: ast.Call) -> Optional[Tuple[int, int]]:
    given = node.args[0] if node.args else keyword(node, "size")
    if isinstance(given, (ast.Tuple, ast.List)) and len(given.elts) == 2:
        sizes = [integer(part) for part in given.elts]
        return (sizes[0], sizes[1]) if sizes[0] and sizes[1] else None
    side = integer(given)
    return (side, side) if side else None


def sample(shorthands: List[Optional[ast.expr]]) -> Optional[ScriptValue]:
    """Returns the sample of a data set of these tensors: one row of each; None where nobody knows the tensors."""
    parts = []
    for node in shorthands:
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        inner = node.slice
        sizes = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        if not sizes:
            return None
        parts.append(ScriptValue(shorthand(node.value.id, sizes[1:])))
    return _tuple(parts) if parts else None


def loader(given: CallArguments, items: Optional[ScriptValue]) -> Optional[ScriptValue]:
    """`DataLoader(…)` of a data set: what a loop over it gives, where an item of the data set is known."""
    if items is None or items.element is None or given.by_name("collate_fn") is not None:
        return None
    size = given.by_name("batch_size", 1)
    known = size.known() if size is not None else None
    count = known if integer(known) is not None else constant(1 if size is None else 32)
    number = constant(integer(count))
    number.__dict__[SPELLED] = "batch_size"
    return ScriptValue(None, element=_batched(items.element, number))


def _batched(sample: ScriptValue, count: ast.expr) -> ScriptValue:
    if sample.items is not None:
        return _tuple([_batched(part, count) for part in sample.items])
    if isinstance(sample.node, ast.Subscript) and isinstance(sample.node.value, ast.Name):
        inner = sample.node.slice
        sizes = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        batch = ScriptValue(shorthand(sample.node.value.id, [count] + sizes))
        return guessed(batch) if is_guessed(sample.node) else batch
    return UNKNOWN


def _tuple(parts: List[ScriptValue]) -> ScriptValue:
    nodes = [part.node for part in parts]
    known = [node for node in nodes if node is not None]
    return ScriptValue(ast.Tuple(known, ast.Load()) if len(known) == len(nodes) else None, items=tuple(parts))


def first_batch(value: ScriptValue) -> ScriptValue:
    """A loader that the document can make: its first batch is what it gives."""
    if value.node is None or value.element is not None:
        return value
    return replace(value, element=ScriptValue(first_of(value.node)))
