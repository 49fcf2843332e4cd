"""Code lenses: on each module class its example, where that comes from, and the size of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ..examples.choose import Example
from ..protocol import ExampleRun, Trace
from ..source.module import Module
from ..source.positions import Span
from .shapes import memory_text, plural

LONGEST_ERROR = 80

_EVIDENCE = {"directive": "from the directive", "settings": "from the settings", "command line": "from the command line"}


@dataclass(frozen=True)
class Lens:
    """A line of text above a class, which changes its example when clicked. expression: "" where there is no example."""

    span: Span
    title: str
    target: str
    expression: str
    evidence: str


def lenses(module: Module, examples: Sequence[Example], trace: Trace | None) -> list[Lens]:
    """One lens for each example of a class; one that offers to set an example for a class without any. trace: None before the first run."""
    found = []
    for cls in module.classes:
        own = [example for example in examples if example.target in (cls.name, cls.qualname)]
        for example in own:
            parts = [example.expression, _EVIDENCE.get(example.evidence, example.evidence), *_of_run(_run(trace, example))]
            found.append(Lens(cls.name_span, " · ".join(parts), cls.qualname, example.expression, example.evidence))
        if not own:
            found.append(Lens(cls.name_span, " · ".join([*_used_by(trace, cls.name), "Set example input…"]), cls.qualname, "", ""))
    return found


def _run(trace: Trace | None, example: Example) -> ExampleRun | None:
    runs = [run for run in trace.examples if not run.file] if trace is not None else []
    return next((run for run in runs if run.expression == example.expression and run.target == example.target), None)


def _of_run(run: ExampleRun | None) -> list[str]:
    parts = []
    if run is not None and run.parameter_count is not None:
        parts.append(plural(run.parameter_count, "parameter"))
        parts += [memory_text(run.bytes)] if run.bytes else []
    if run is not None and run.error is not None:
        error = run.error.splitlines()[0] if run.error else run.error_kind
        parts.append("failed: " + (error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"))
    return parts


def _used_by(trace: Trace | None, name: str) -> list[str]:
    """`part of Net`: a class that another class constructs is observed where it is used, and needs no example of its own.

    Where that is in another file, its example is named: `part of Net in net.py: Net()(f32[B:2, 8])`.
    """
    if trace is None:
        return []
    models = [layer for layer in trace.layers if layer.path == ""]
    for layer in trace.layers:
        run = trace.examples[layer.example] if 0 <= layer.example < len(trace.examples) else None
        if layer.class_name == name and (layer.path or (run is not None and run.file)):
            owner = next((model.class_name for model in models if model.example == layer.example), "")
            part = ("part of " + (owner or "another module")) if layer.path else "seen"
            return [f"{part} in {PurePath(run.file).name}: {run.expression}" if run is not None and run.file else part]
    return []
