"""`show --format json`: one analysed file as a JSON document, described by show.schema.json beside this file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from shapelens.analysis.evidence import where_text
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.shapes import has_tensor, shape_text, tensors_in
from shapelens.batch import Analysed
from shapelens.protocol import ExampleRun, LayerSeen, Observation, Trace, Value
from shapelens.source.positions import Span

VERSION = 1  # of the document; it changes when a field changes its meaning or goes


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    loaded: dict[str, Any] = json.loads(resources.files(__package__).joinpath("show.schema.json").read_text(encoding="utf-8"))
    return loaded


def document(analysed: Analysed) -> dict[str, Any]:
    """The document of one file, ready for json.dump. Lines are 1-based, columns 0-based code points, ends exclusive."""
    return {
        "version": VERSION,
        "file": analysed.path,
        "examples": _examples(analysed),
        "observations": list(_observations(analysed)),
        "findings": [_finding(analysed, finding) for finding in analysed.findings],
    }


def _examples(analysed: Analysed) -> list[dict[str, Any]]:
    evidence = {(example.target, example.expression): example.evidence for example in analysed.choice.examples}
    return [
        {
            "class": run.target,
            "expression": run.expression,
            "evidence": _evidence(analysed, run) or evidence.get((run.target, run.expression), ""),
            "where": Path(run.file).name if run.file not in ("", analysed.path) else where_text(run.where, analysed.module),
            "doubtful": run.doubtful,
            "others": [{"expression": each.expression, "evidence": each.evidence, "where": each.where} for each in run.others],
            "dims": run.dims,
            "error": run.error,
        }
        for run in analysed.trace.examples
    ]


def _evidence(analysed: Analysed, run: ExampleRun) -> str:
    if run.file == analysed.path:  # It was followed as a program, or a step of it was called beside the examples.
        return run.evidence if run.target else "program"
    return "importing file" if run.file else run.evidence


# --- observations ---


def _observations(analysed: Analysed) -> Iterator[dict[str, Any]]:
    """Yields what this file's own lines held, in the order of the text. What holds no tensor is left out."""
    trace, lines = analysed.trace, analysed.module.lines
    values = ((lines.span_from_bytes(seen.span), _of_value(seen)) for seen in trace.observations if seen.span.file == trace.file)
    layers = ((lines.span_from_bytes(layer.span), _of_layer(layer)) for layer in _constructed_here(trace) if layer.span is not None)
    for span, seen in sorted(itertools.chain(layers, values), key=lambda pair: (pair[0].line, pair[0].column)):
        if seen["shapes"]:
            yield {**_place(analysed, span), **seen}


def _constructed_here(trace: Trace) -> Iterable[LayerSeen]:
    return (layer for layer in trace.layers if layer.span is not None and layer.span.file == trace.file)


def _of_value(seen: Observation) -> dict[str, Any]:
    return {"name": seen.name, "kind": seen.kind, **_shapes(seen.values), "count": seen.count, "example": seen.example}


def _of_layer(layer: LayerSeen) -> dict[str, Any]:
    outputs = [call.output for call in layer.calls]
    return {
        "name": layer.path,
        "kind": "layer",
        **_shapes(outputs),
        "count": sum(call.count for call in layer.calls),
        "example": layer.example,
    }


def _shapes(values: Iterable[Value]) -> dict[str, Any]:
    """shapes, named and dtype of the distinct values of an anchor, in the order in which they came."""
    held = [value for value in values if has_tensor(value)]
    dtypes = {tensor.dtype for value in held for tensor in tensors_in(value)}
    distinct: dict[str, list[Any]] = {}
    for value in held:
        tensors = [tensor.shape for tensor in tensors_in(value)]
        named = shape_text(value, "names")
        distinct.setdefault(named + repr(tensors), [tensors if value.items is not None else tensors[0], named])
    return {
        "shapes": [shapes for shapes, _ in distinct.values()],
        "named": [named for _, named in distinct.values()],
        "dtype": dtypes.pop() if len(dtypes) == 1 else None,
    }


# --- findings ---


def _finding(analysed: Analysed, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        **_place(analysed, finding.span),
        "related": [
            {"file": each.file or finding.file, **_place(analysed, each.span, each.file), "message": each.message}
            for each in finding.related
        ],
        "fix": _fix(analysed, finding.fix) if finding.fix is not None else None,
    }


def _fix(analysed: Analysed, fix: Fix) -> dict[str, Any]:
    edits = [{**_place(analysed, edit.span, fix.file), "new_text": edit.new_text} for edit in fix.edits]
    return {"title": fix.title, "file": fix.file, "edits": edits}


def _place(analysed: Analysed, span: Span, file: str | None = None) -> dict[str, int]:
    """A span of the analysed file or of another one. One in a notebook, which never leaves its cell, also by that."""
    place = {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}
    notebook = analysed.module.notebook
    if notebook is not None and file in (None, analysed.path):
        place["cell"], place["cell_line"] = notebook.locate(span.line)
    return place
