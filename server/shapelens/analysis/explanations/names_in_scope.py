"""Values of names and expressions where a layer is constructed: parameters, attributes, what other layers were given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.layer_arguments import ARGUMENTS, normalized_shape, setting
from shapelens.analysis.places import ArgumentPlace, Place, Places
from shapelens.examples.expression import size_of
from shapelens.protocol import LayerSeen, Observation
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import expression_of

_SIZES = re.compile(r"(features|channels|_size|_dim|num_embeddings|d_model|dim_feedforward|normalized_shape)$|^num_(features|channels)")


@dataclass(frozen=True)
class SizeName:
    """An expression without a call of a layer in it, and the sizes that it stood for."""

    text: str
    values: frozenset[int]
    is_argument: bool = False  # of another layer that is constructed in the same function


@dataclass(frozen=True)
class Scope:
    """The function that a constructor call stands in, with the names of it and of those around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
    qualified_name: str  # "" for the module
    span: Span


def argument_size(layer: LayerSeen, argument: str) -> int | None:
    """The size that a layer was constructed with, as its repr shows it; None where it does not."""
    if argument == "normalized_shape":
        shape = normalized_shape(layer)
        return shape[0] if len(shape) == 1 else None
    named = setting(layer, argument)
    names = ARGUMENTS.get(layer.class_name, ())
    if named is not None or argument not in names:
        return named
    numbers = re.match(r"\w+\(([\d, ]+)", layer.description)
    given = [part for part in numbers.group(1).split(",") if part.strip()] if numbers else []
    index = names.index(argument)
    return int(given[index]) if index < len(given) else None


def scope_of(place: ArgumentPlace | Place) -> Scope | None:
    """The function that a constructor call stands in, else the module; None where the file does not parse."""
    tree = tree_of(place)
    if not tree.body:
        return None
    found, names = Scope(tree, "", Span(1, 0, place.module.lines.count, 0)), list[str]()

    def visit(node: ast.AST) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                visit(child) if isinstance(child, ast.stmt) else None
            elif child.lineno <= place.span.line <= (child.end_lineno or child.lineno):
                names.append(child.name)
                if not isinstance(child, ast.ClassDef):
                    found = Scope(child, ".".join(names), node_span(place, child))
                visit(child)

    visit(tree)
    return found


def known_sizes(places: Places, place: ArgumentPlace, scope: Scope) -> Iterator[SizeName]:
    """The sizes that have a name above a constructor call: first the arguments of other layers, nearest first, then names. Examples in
    which nothing fails say nothing: theirs may be other sizes."""
    values: dict[tuple[str, bool], set[int]] = {}
    for text, size in _given_to_layers(places, place, scope):
        values.setdefault((text, True), set()).add(size)
    for text, sizes in (*_sizes_of_names(places, place, scope), *_sizes_of_fields(places, place, scope)):
        if text.startswith("len(") or (text, True) not in values:
            values.setdefault((text, False), set()).update(sizes)
    return (SizeName(text, frozenset(sizes), is_argument) for (text, is_argument), sizes in values.items())


def _given_to_layers(places: Places, place: ArgumentPlace, scope: Scope) -> Iterator[tuple[str, int]]:
    """The sizes that other layers in a scope are constructed with, as they are written."""
    failed = {mismatch.example for mismatch in places.trace.mismatches}
    located = [(places.locate(layer.span), layer) for layer in places.trace.layers if layer.example in failed]
    layers = [(made, layer) for made, layer in located if made is not None and made.file == place.file]
    inside = [(made, layer) for made, layer in layers if holds(scope.span, made.span) and made.span != place.call.span]
    for made, layer in sorted(inside, key=lambda each: abs(each[0].span.line - place.span.line)):
        call = made.module.call_at(made.span)
        for argument in ARGUMENTS.get(layer.class_name, ()) if call is not None else ():
            size = argument_size(layer, argument) if _SIZES.search(argument) else None
            given = places.argument(layer, argument) if size is not None else None
            if given is not None and size is not None and given.argument is not None and is_size(given.argument.text):
                yield given.argument.text.strip(), size


def _sizes_of_names(places: Places, place: ArgumentPlace, scope: Scope) -> Iterator[tuple[str, set[int]]]:
    """Yields names with the numbers that they held, or with their numbers of items."""
    for seen in _names(places, place, scope):
        where = places.locate(seen.span)
        text = where.module.lines.text_of(where.span) if where is not None and seen.kind == "assign" and scope.qualified_name else seen.name
        text = seen.name if not text.endswith(seen.name) or "\n" in text else text
        if seen.values and all(value.kind == "sequence" and value.items for value in seen.values):
            yield f"len({text})", {len(value.items or []) for value in seen.values}
            continue
        sizes = {int(value.text) for value in seen.values if value.kind == "scalar" and re.fullmatch(r"\d+", value.text)}
        if sizes and len(sizes) == len(seen.values):
            yield text, sizes


def _sizes_of_fields(places: Places, place: ArgumentPlace, scope: Scope) -> Iterator[tuple[str, set[int]]]:
    """Yields attributes of the function's parameters that hold one size, with that size."""
    for text, field in _fields(scope):
        sizes = _field_sizes(places, place, field)
        if len(sizes) == 1:
            yield text, sizes


def _names(places: Places, place: ArgumentPlace, scope: Scope) -> Iterator[Observation]:
    """The parameters of the function, what it has assigned above the call, then the names of the module."""
    for function in dict.fromkeys((scope.qualified_name, "")):
        for seen in places.trace.observations:
            if seen.function == function and seen.kind in ("parameter", "assign") and seen.span.file == place.file:
                at_top = function == "" and scope.qualified_name != ""
                if (at_top or seen.span.line < place.span.line or seen.kind == "parameter") and re.fullmatch(r"[\w.]+", seen.name):
                    yield seen


def _fields(scope: Scope) -> Iterator[tuple[str, str]]:
    """Attributes of the function's parameters that it reads, as `config.n_embd`, with the attribute's name."""
    if isinstance(scope.node, ast.Module):
        return
    parameters = {each.arg for each in [*scope.node.args.args, *scope.node.args.kwonlyargs]} - {"self"}
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in parameters:
            yield f"{node.value.id}.{node.attr}", node.attr


def _field_sizes(places: Places, place: ArgumentPlace, field: str) -> set[int]:
    """Returns the numbers that classes of the file assign to a name: 768 of `n_embd: int = 768`. An object may hold another one, as a run
    will show."""
    tree = tree_of(place)
    sizes: set[int] = set()
    for cls in ast.walk(tree):
        for node in cls.body if isinstance(cls, ast.ClassDef) else ():
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
            value = node.value if isinstance(node, ast.AnnAssign | ast.Assign) else None
            if isinstance(target, ast.Name) and target.id == field and isinstance(value, ast.Constant) and type(value.value) is int:
                sizes.add(value.value)
    return sizes


def is_size(text: str) -> bool:
    """True if an argument is an expression of names that can stand elsewhere in the same function."""
    return has_name(text) and "\n" not in text and not re.search(r"\b(lambda|for|if|await|yield)\b|:=|[\[{\"']", text)


def has_name(text: str) -> bool:
    """True if a text is more than a number."""
    return re.search(r"[A-Za-z_]", text) is not None


def holds(outer: Span, inner: Span) -> bool:
    """True if a span lies inside of another one."""
    return outer.start <= inner.start and inner.end <= outer.end


def value_of(places: Places, place: ArgumentPlace, text: str) -> int | None:
    """Returns the value of an expression of names and numbers where a constructor is called; None where nobody knows the value, or several
    numbers were."""
    scope = scope_of(place)
    node = expression_of(text.strip())
    if scope is None or node is None:
        return None
    sizes = {each.text: min(each.values) for each in known_sizes(places, place, scope) if len(each.values) == 1}
    return sizes[text.strip()] if text.strip() in sizes else size_of(node, sizes)
