"""Layers that a class constructs and nothing uses: never called in examples that ran to their end, and never read by the code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from shapelens import protocol
from shapelens.analysis.places import Place, Places
from shapelens.protocol import LayerSeen
from shapelens.source.module import Module
from shapelens.source.positions import BYTE_ORDER_MARK

_PLAIN_BASES = ("nn.Module", "torch.nn.Module", "Module", "object", "ABC", "abc.ABC")
# Code that reads attributes without naming them.
_READS_ALL = {"children", "named_children", "modules", "named_modules", "_modules", "__dict__", "get_submodule", "__getattr__"}


def unused_layers(places: Places) -> Iterator[tuple[LayerSeen, Place]]:
    """Each layer that an attribute of a class of this file holds and nothing uses, with the place of `self.name` in its assignment."""
    trace = places.trace
    # The document as a program, and the steps called after it, need not come to each layer: they only tell of some that are used.
    of_program = {number for number, run in enumerate(trace.examples) if run.file == trace.file}
    failed = _failed(trace, of_program)
    if -1 in failed:
        return  # A definition failed, and what else it would have used is not known.
    unclear = {layer.class_name for layer in trace.layers if layer.example in failed}
    own = [layer for layer in trace.layers if layer.example not in of_program]
    candidates = [layer for layer in own if _is_idle(layer, trace.file)]
    code = _AttributeReads.of(places.module) if candidates else None
    if code is None:
        return
    by_path = {(layer.example, layer.path): layer for layer in trace.layers}
    used = _used_paths(own)
    used_places = {_place_of(layer) for layer in own if (layer.example, layer.path) in used} | set(map(_place_of, _called(trace)))
    for layer in candidates:
        owner_path, _, name = layer.path.rpartition(".")
        owner = by_path.get((layer.example, owner_path))
        where = _place_of(layer)
        is_known = owner is not None and owner is not layer and _is_clear(owner, unclear)
        if owner is None or not is_known or not name.isidentifier() or code.reads(owner.class_name, name):
            continue
        if where in used_places or (layer.example, layer.path) in used:
            continue
        place = _assignment(places, layer, name)
        if place is not None:
            used_places.add(where)  # It is told once.
            yield layer, place


def _failed(trace: protocol.Trace, of_program: set[int]) -> set[int]:
    """The examples that failed, still run, or may be wrong."""
    found = {
        number
        for number, run in enumerate(trace.examples)
        if number not in of_program and (run.error is not None or run.doubtful or not run.seconds)
    }
    return found | {each.example for each in trace.mismatches}


def _is_clear(owner: LayerSeen, unclear: set[str]) -> bool:
    """True if a layer that holds others was called, in examples that ran to their end."""
    return bool(owner.calls) and owner.class_name not in unclear


def _called(trace: protocol.Trace) -> Iterator[LayerSeen]:
    return (layer for layer in trace.layers if layer.calls or layer.call_span is not None)


def _is_idle(layer: LayerSeen, file: str) -> bool:
    """True if a layer of a file was never called."""
    is_own = layer.span is not None and layer.span.file == file
    return is_own and layer.path != "" and not layer.calls and layer.call_span is None and layer.class_name != "Identity"


def _place_of(layer: LayerSeen) -> object:
    span = layer.span
    return None if span is None else (span.file, span.line, span.column, span.end_line, span.end_column)


def _used_paths(layers: list[LayerSeen]) -> set[tuple[int, str]]:
    """The layers that were called, and those that hold one that was."""
    used = set()
    for layer in layers:
        if layer.calls or layer.call_span is not None:
            path = layer.path
            while (layer.example, path) not in used:
                used.add((layer.example, path))
                path = path.rpartition(".")[0]
    return used


def _assignment(places: Places, layer: LayerSeen, name: str) -> Place | None:
    """`self.name` of the statement that constructs the layer; None where it was constructed elsewhere, or was seen outside of that
    statement: passed on as an argument, say, to one that uses it under another name."""
    holding = [
        seen
        for seen in places.trace.observations
        if seen.example == layer.example and any(value.kind == "layer" and value.layer == layer.index for value in seen.values)
    ]
    assigned = [seen for seen in holding if seen.kind == "assign" and seen.name == name]
    if not assigned or layer.span is None or assigned[0].statement is None:
        return None
    statement = assigned[0].statement
    if not _inside(layer.span, statement) or not all(_inside(seen.span, statement) for seen in holding):
        return None
    return places.locate(assigned[0].span)


def _inside(span: protocol.FileSpan, outer: protocol.FileSpan) -> bool:
    return span.file == outer.file and outer.line <= span.line and span.end_line <= outer.end_line


@dataclass(frozen=True)
class _Reads:
    """The attributes that one top-level statement reads."""

    bases: dict[str, list[str]]  # of its classes, nested ones too, by name
    own: dict[str, set[str]]  # what a class reads of `self`
    others: set[str]  # what is read of anything but `self` may be of any class
    texts: set[str]  # its strings, which may name attributes


@lru_cache(maxsize=512)
def _reads(text: str) -> _Reads | None:
    """Returns the attributes that one statement reads; None where it does not parse. Cached, as most statements are the same after the next
    edit."""
    try:
        nodes = list(ast.walk(ast.parse(text.removeprefix(BYTE_ORDER_MARK))))
        classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
        return _Reads(
            {node.name: [ast.unparse(base) for base in node.bases] for node in classes},
            {node.name: _reads_of_self(node) for node in classes},
            {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not _of_self(node)},
            {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)},
        )
    except (SyntaxError, ValueError, RecursionError):
        return None


class _AttributeReads:
    """Which attributes the classes of a file read."""

    def __init__(self, statements: Iterable[_Reads]) -> None:
        self._bases: dict[str, list[str]] = {}
        self._own: dict[str, set[str]] = {}
        self._others: list[set[str]] = []
        for each in statements:
            self._bases |= each.bases
            self._own |= each.own
            self._others += [each.others, each.texts]

    @staticmethod
    def of(module: Module) -> _AttributeReads | None:
        """Returns the attributes that the classes of a text read; None where it does not parse."""
        found = [_reads(item.statement.text) for item in module.statements.placed]
        known = [each for each in found if each is not None]
        return _AttributeReads(known) if len(known) == len(found) else None

    def reads(self, class_name: str, attribute: str) -> bool:
        """True if code of the file may read this attribute of an instance of the class; True where its bases are not all known."""
        if any(attribute in names for names in self._others):
            return True
        family = self._family(class_name)
        return family is None or any(attribute in self._own[name] or self._own[name] & _READS_ALL for name in family)

    def _family(self, class_name: str) -> set[str] | None:
        """The class with its bases in this file, and the classes that derive from it; None where a base is defined elsewhere."""
        if class_name not in self._bases:
            return None
        family, todo = set(), [class_name]
        while todo:
            name = todo.pop()
            if name in family:
                continue
            family.add(name)
            for base in self._bases[name]:
                if base in self._bases:
                    todo.append(base)
                elif base not in _PLAIN_BASES:
                    return None
        return family | {name for name, bases in self._bases.items() if not family.isdisjoint(bases)}


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _reads_of_self(node: ast.ClassDef) -> set[str]:
    """The attributes that a class reads of `self`, and `getattr` or `vars` of it as all of them."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            found.add(part.attr)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("getattr", "vars"):
            first = part.args[0] if part.args else None
            if isinstance(first, ast.Name) and first.id == "self":
                found.add("__dict__")
    return found
