"""A model as a whole as a JSON document, described by model.schema.json beside this file: for `show` and the view in an editor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from shapelens.analysis.evidence import fits_nothing
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.structure.graph import Graph, graph
from shapelens.analysis.structure.large_logits import LargeLogits, large_logits
from shapelens.analysis.structure.training_memory import MemoryEstimate, inference_memory, training_memory
from shapelens.analysis.structure.tree import Failure, ModuleRow, tree, walk
from shapelens.analysis.traces.shown import Shown
from shapelens.profiles import ModelProfile
from shapelens.source.positions import Lines, Span
from shapelens.traces import FileSpan

VERSION = 1  # of the document; it changes when a field changes its meaning or goes

Place = dict[str, Any]  # file, line, column, end_line, end_column
LinesOf = Callable[[str], Lines | None]  # the lines of a file by its absolute path; None where they cannot be had


@dataclass(frozen=True)
class ModelView:
    """A model as it is shown: what a profiling run saw of an example, from the module at `shown.path` on."""

    file: str
    class_name: str
    shown: Shown
    profile: ModelProfile
    findings: Sequence[Finding]
    lines_of: LinesOf
    optimizer: str = "AdamW"
    optimizer_from: str = "default"  # "program" | "option" | "default"
    device: str = "cuda"
    autocast: str = ""  # what the model is called under: "bfloat16" | "float16" | "" for none
    autocast_from: str = "default"  # as for the optimizer
    has_graph: bool = True  # whether the profile tells the steps of forward

    @classmethod
    def of(
        cls,
        file: str,
        class_name: str,
        shown: Shown,
        profile: ModelProfile,
        findings: Sequence[Finding],
        lines_of: LinesOf,
        optimizer: tuple[str, str] = ("AdamW", "default"),
        device: str = "cuda",
        autocast: tuple[str, str] = ("", "default"),
        *,
        has_graph: bool = True,
    ) -> ModelView:
        """The view of a profile."""
        return cls(file, class_name, shown, profile, findings, lines_of, *optimizer, device, *autocast, has_graph)

    @cached_property
    def rows(self) -> list[ModuleRow]:
        """The module at the path and what is inside of it; further models behind it."""
        rows = tree(self.profile, self.findings, self.optimizer, self.device)
        inside = [row for _, row in walk(rows) if row.path == self.shown.path] if self.shown.path else rows
        return inside or rows

    @property
    def training(self) -> MemoryEstimate | None:
        """The memory of a training step; None where it was not seen."""
        memory = self.profile.training
        return training_memory(memory, self.optimizer, self.device) if memory is not None else None

    @property
    def advice(self) -> LargeLogits | None:
        """Returns what would take much less memory."""
        return large_logits(self.profile, self.training)

    @property
    def inference(self) -> MemoryEstimate | None:
        """The memory of a forward without gradients; None where it was not seen."""
        memory = self.profile.inference
        return inference_memory(memory, self.device) if memory is not None else None


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    loaded: dict[str, Any] = json.loads(resources.files(__package__).joinpath("model.schema.json").read_text(encoding="utf-8"))
    return loaded


def model_document(view: ModelView, as_seen: Callable[[Place], Place] = lambda place: place) -> dict[str, Any]:
    """The document of a model, ready for json.dump. Lines are 1-based, columns 0-based code points, ends exclusive.

    as_seen: makes a place one in the terms of whoever reads the document.
    """
    places = _DocumentPlaces(view.lines_of, as_seen)
    run, profile = view.shown.example, view.profile
    first_path = view.rows[0].path if view.rows else ""
    return {
        "version": VERSION,
        "file": view.file,
        "class": view.class_name,
        "path": first_path,
        "complete": profile.is_complete,
        "example": {
            "class": run.target,
            "expression": run.expression,
            "evidence": run.evidence or "directive",
            "where": Path(run.file).name if run.file else run.where,
            "dims": profile.dims,
            "fits": not fits_nothing(run),
            "error": profile.error,
        },
        "others": [other.expression for other in view.shown.others],
        "tree": [_row(row, places) for row in view.rows],
        "graph": _graph(graph(profile, view.findings) if view.has_graph else Graph([], []), places),
        "memory": _memories(view, places),
    }


def memory_document(view: ModelView, as_seen: Callable[[Place], Place]) -> dict[str, Any]:
    """The document's memory alone."""
    return _memories(view, _DocumentPlaces(view.lines_of, as_seen))


def _memories(view: ModelView, places: _DocumentPlaces) -> dict[str, Any]:
    advice = view.advice
    return {
        "training": _memory(view, view.training, places),
        "inference": _memory(view, view.inference, places),
        "optimizer": view.optimizer,
        "optimizer_from": view.optimizer_from,
        "device": view.device,
        "autocast": view.autocast or None,
        "autocast_from": view.autocast_from,
        "uncounted": view.profile.uncounted,
        "advice": {"message": advice.message, "place": places.of(advice.span)} if advice is not None else None,
    }


def _row(row: ModuleRow, places: _DocumentPlaces) -> dict[str, Any]:
    return {
        "path": row.path,
        "name": row.name,
        "class": row.class_name,
        "description": row.description,
        "outputs": row.outputs,
        "sizes": row.sizes,
        "calls": row.calls,
        "parameters": row.parameters,
        "trainable": row.trainable,
        "parameter_bytes": row.parameter_bytes,
        "buffer_bytes": row.buffer_bytes,
        "flops": row.flops,
        "backward_flops": row.backward_flops,
        "held_bytes": row.held_bytes,
        "gradient_bytes": row.gradient_bytes,
        "optimizer_bytes": row.optimizer_bytes,
        "kept_bytes": row.kept_bytes,
        "temporary_bytes": row.temporary_bytes,
        "constructor": places.of(row.span),
        "call": places.of(row.call_span),
        "signature": row.signature,
        "failure": _failure(row.failure, places),
        "rows": [_row(inner, places) for inner in row.rows],
    }


def _graph(found: Graph, places: _DocumentPlaces) -> dict[str, Any]:
    return {
        "nodes": [
            {
                "id": node.number,
                "kind": node.kind,
                "label": node.label,
                "path": node.path,
                "parent": node.parent,
                "shape": node.shape,
                "sizes": node.sizes,
                "dims": node.dims,
                "call": places.of(node.span),
                "failure": _failure(node.failure, places),
            }
            for node in found.nodes
        ],
        "edges": [{"from": edge.source, "to": edge.target, "shape": edge.shape, "sizes": edge.sizes} for edge in found.edges],
    }


def _memory(view: ModelView, found: MemoryEstimate | None, places: _DocumentPlaces) -> dict[str, Any] | None:
    if found is None:
        return None
    step = view.profile.steps[found.peak_step] if found.peak_step is not None and found.peak_step < len(view.profile.steps) else None
    return {
        "parameters": found.parameters,
        "buffers": found.buffers,
        "gradients": found.gradients,
        "optimizer_state": found.optimizer_state,
        "inputs": found.inputs,
        "activations": found.activations,
        "temporaries": found.temporaries,
        "after_forward": found.after_forward,
        "peak": found.peak,
        "peak_phase": found.peak_phase,
        "peak_at": places.of(step.span) if step is not None else None,
        "error": found.error or None,
    }


def _failure(failure: Failure | None, places: _DocumentPlaces) -> dict[str, Any] | None:
    if failure is None:
        return None
    finding = failure.finding
    place = places.at(finding.file, finding.span) if finding is not None else None
    fix = finding.fix.title if finding is not None and finding.fix is not None else None
    return {"code": failure.code, "message": failure.message, "place": place, "fix": fix}


class _DocumentPlaces:
    """The places of the document, each made once: a repeated block has the same ones again."""

    def __init__(self, lines_of: LinesOf, as_seen: Callable[[Place], Place]) -> None:
        self._lines_of = lines_of
        self._as_seen = as_seen
        self._known: dict[FileSpan, Place] = {}

    def of(self, span: FileSpan | None) -> Place | None:
        """The place of a span of the worker's."""
        if span is None:
            return None
        if span not in self._known:
            lines = self._lines_of(span.file)
            whole_line = Span(span.line, 0, span.line, 0)
            self._known[span] = self.at(span.file, lines.span_from_bytes(span) if lines is not None else whole_line)
        return self._known[span]

    def at(self, file: str, span: Span) -> Place:
        """The place of a span of a text."""
        ends = {"end_line": span.end_line, "end_column": span.end_column}
        return self._as_seen({"file": file, "line": span.line, "column": span.column, **ends})
