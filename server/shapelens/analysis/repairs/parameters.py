"""Fixes of a parameter or buffer of the user's own whose size does not fit what it is combined with: one place more in a position table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from shapelens.analysis.explanations.names_in_scope import holds
from shapelens.analysis.explanations.related_places import assignments
from shapelens.analysis.explanations.statements import node_span, tree_of
from shapelens.analysis.places import ArgumentPlace, Place, Places
from shapelens.analysis.repairs.fixes import Fix, Likelihood
from shapelens.analysis.repairs.size_expressions import operands
from shapelens.analysis.repairs.sizes_in_scope import size_expressions
from shapelens.protocol import FileSpan, Mismatch
from shapelens.source.calls import Call
from shapelens.source.position_map import TextEdit

MAKERS = ("zeros", "ones", "randn", "rand", "empty", "full", "Tensor", "FloatTensor")
LARGEST_STEP = 2  # that is added to a size, as for the token of the class


def parameter_fixes(places: Places, mismatch: Mismatch) -> list[Fix]:
    """Candidates for two tensors that do not broadcast or multiply, of which one is an attribute; [] for any other mismatch."""
    tensors = [value.shape for value in mismatch.inputs if value.kind == "tensor" and value.shape]
    if mismatch.code not in ("broadcast", "matmul") or len(tensors) != 2 or mismatch.span is None:
        return []
    found: list[Fix] = []
    if mismatch.code == "matmul":
        left, right = tensors
        inner = max(len(right) - 2, 0)
        if len(right) > 1 and left[-1] == right[-1]:
            return []  # It fits when it is transposed.
        for shape, dim, size in ((right, inner, left[-1]), (left, len(left) - 1, right[inner])):
            now = shape[dim]
            for call, place in _made_with(places, mismatch.span, shape) if now is not None and size is not None else ():
                found += _resized(places, call, place, dim, now or 0, size or 0)
        # A side that is to be transposed is likelier than a wrong size.
        return [replace(fix, likelihood=Likelihood.EXPRESSION_BEFORE) for fix in found]
    for own, other in (tensors, tensors[::-1]):
        for back in range(1, min(len(own), len(other)) + 1):
            now, wanted = own[-back], other[-back]
            if now is not None and wanted is not None and now != wanted and 1 not in (now, wanted):
                for call, place in _made_with(places, mismatch.span, own):
                    found += _resized(places, call, place, len(own) - back, now, wanted)
    return found


def _made_with(places: Places, span: FileSpan, shape: list[int | None]) -> Iterator[tuple[Call, Place]]:
    """The calls that gave the attributes their shape that an expression reads."""
    for read in places.trace.observations:
        inside = read.span.file == span.file and span.line <= read.span.line <= span.end_line and read.kind == "expression"
        if not inside or not read.name or not any(value.kind == "tensor" and value.shape == shape for value in read.values):
            continue
        for made in assignments(places, read):
            statement = places.locate(made.statement)
            for node in ast.walk(tree_of(statement)) if statement is not None else ():
                if statement is None or not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in MAKERS:
                    continue
                where = node_span(statement, node)
                call = statement.module.call_at(where) if holds(statement.span, where) else None
                if call is not None:
                    yield call, Place(statement.file, statement.module, where)


def _resized(places: Places, call: Call, place: Place, dim: int, now: int, wanted: int) -> Iterator[Fix]:
    """The size of one dim: with one more or less, as a part of what is written, in other names, or as a number."""
    given = [each for each in call.arguments if each.index is not None and not each.star]
    if dim >= len(given) or any(each.text.startswith(("(", "[")) for each in given):
        return
    text = given[dim].text.strip()
    where = ArgumentPlace(place.file, place.module, call, given[dim])
    texts = [*operands(text), *size_expressions(places, where, [wanted], None)] if not text.isdecimal() else [str(wanted)]
    if not text.isdecimal() and abs(wanted - now) <= LARGEST_STEP:
        texts.insert(0, f"{text} {'+' if wanted > now else '-'} {abs(wanted - now)}")
    for new in texts:
        likelihood = Likelihood.NUMBER_FOR_EXPRESSION if new.isdecimal() else Likelihood.EXPRESSION
        yield Fix(f"Change {text} to {new}", [TextEdit(given[dim].span, new)], place.file, likelihood)
