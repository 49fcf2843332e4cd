"""A model's tree as a table: in a terminal, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from shapelens.analysis.evidence import guessed_sizes
from shapelens.analysis.markdown import code, plain
from shapelens.analysis.shapes import count_text, memory_text
from shapelens.analysis.structure.training_memory import MemoryEstimate
from shapelens.analysis.structure.tree import ModuleRow, repeats
from shapelens.report.model_document import ModelView

_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def _of(amount: str, text: Callable[[int], str]) -> Callable[[ModuleRow], str]:
    def cell(row: ModuleRow) -> str:
        value: int = getattr(row, amount)
        return text(value) if value else ""

    return cell


def flops_text(count: int) -> str:
    """`3.65 G`"""
    return next((f"{count / size:.2f} {unit}" for unit, size in _PREFIXES if count >= size), str(count))


def _operations(count: int) -> str:
    """`3.65 GFLOPs`, `512 FLOPs`"""
    text = flops_text(count)
    return f"{text}FLOPs" if " " in text else f"{text} FLOPs"


_KEPT = {"Kept for backward": _of("kept_bytes", memory_text)}
# Of the rows, by what is asked for: the columns between the output and the line.
AMOUNTS = {
    "cost": {"Parameters": _of("parameters", count_text), "FLOPs": _of("flops", flops_text), **_KEPT},
    "memory": {
        "Parameters": _of("held_bytes", memory_text),
        "Gradients": _of("gradient_bytes", memory_text),
        "Optimizer": _of("optimizer_bytes", memory_text),
        **_KEPT,
        "Temporary": _of("temporary_bytes", memory_text),
    },
}


def headings(amounts: str) -> tuple[str, ...]:
    """Those of the table, with "cost" or "memory" of its rows."""
    return ("Layer", "Output", *AMOUNTS[amounts], "Line")


@dataclass(frozen=True)
class TableRow:
    """A row of the table, with the indentation of its first cell in levels."""

    depth: int
    cells: tuple[str, ...]
    error: str = ""


def table_rows(view: ModelView, amounts: str = "cost", depth: int | None = None) -> Iterator[TableRow]:
    """The rows of a model, with rows that differ in their name alone as one, `×12`; those deeper than `depth` left out."""
    return _rows(view, view.rows, amounts, 0, depth)


def _rows(view: ModelView, rows: list[ModuleRow], amounts: str, level: int, depth: int | None) -> Iterator[TableRow]:
    for row, count in repeats(rows):
        yield TableRow(level, _cells(view, row, amounts, count), row.failure.message if row.failure is not None else "")
        if depth is None or level < depth:
            yield from _rows(view, row.rows, amounts, level + 1, depth)


def _cells(view: ModelView, row: ModuleRow, amounts: str, count: int) -> tuple[str, ...]:
    name = row.class_name if row.name == row.class_name else f"{row.name} ({row.class_name})"
    if count > 1:
        name += f" ×{count}, each"
    calls = f" · {row.calls} calls" if row.calls > 1 else ""
    shown = " | ".join(row.outputs) + calls if row.calls else "not called" if not row.rows else ""
    return (name, shown, *(cell(row) for cell in AMOUNTS[amounts].values()), _line(view, row))


def _line(view: ModelView, row: ModuleRow) -> str:
    if row.span is None:
        return ""
    return str(row.span.line) if row.span.file == view.file else f"{PurePath(row.span.file).name}:{row.span.line}"


def totals(view: ModelView) -> list[tuple[str, str]]:
    """Returns what stands below the table, as pairs of a label and a text."""
    rows = view.rows
    parameters, trainable = sum(row.parameters for row in rows), sum(row.trainable for row in rows)
    found = [("Parameters", count_text(parameters) + (f", {count_text(trainable)} of them trained" if trainable != parameters else ""))]
    forward, backward = sum(row.flops for row in rows), sum(row.backward_flops for row in rows)
    if forward:
        both = f", {_operations(backward)} backward" if backward else ""
        found.append(("Operations", f"{_operations(forward)} forward{both}"))
    if view.profile.uncounted:
        found.append(("Not counted", ", ".join(view.profile.uncounted)))
    if guessed := guessed_sizes(view.shown.example, view.profile.dims):
        found.append(("Guessed", f"{guessed}; all numbers that depend on them are guesses, too"))
    if view.rows and view.rows[0].path:
        return found  # Memory is that of the whole example.
    if view.inference is not None and not view.inference.error:
        found.append(("Inference", f"{memory_text(view.inference.peak)} at its peak"))
    if view.training is not None:
        found += _of_training(view, view.training)
    return found


def _of_training(view: ModelView, found: MemoryEstimate) -> list[tuple[str, str]]:
    if found.error:
        return [("Training step", f"not known: {found.error}")]
    device = "on a CUDA device" if found.device == "cuda" else "on a CPU"
    parts = [
        ("parameters and buffers", found.parameters + found.buffers),
        ("gradients", found.gradients),
        (f"state of {view.optimizer}", found.optimizer_state),
        ("kept for backward", found.activations),
    ]
    under = f", under autocast to {view.autocast}" if view.autocast else ""
    text = ", ".join(f"{name} {memory_text(size)}" for name, size in parts if size)
    advice = [("", f"advice: {view.advice.message}")] if view.advice is not None else []
    return [
        ("Training step", f"{memory_text(found.peak)} at its peak, in {found.peak_phase}{_peak_line(view, found)}, {device}{under}"),
        ("", text),
        *advice,
    ]


def _peak_line(view: ModelView, found: MemoryEstimate) -> str:
    steps = view.profile.steps
    step = steps[found.peak_step] if found.peak_step is not None and found.peak_step < len(steps) else None
    while step is not None and step.span is None:
        step = steps[step.parent] if step.parent is not None else None
    if step is None or step.span is None:
        return ""
    line = str(step.span.line) if step.span.file == view.file else f"{PurePath(step.span.file).name}:{step.span.line}"
    return f" of line {line}" if found.peak_phase == "backward" else f" at line {line}"


def markdown(view: ModelView, amounts: str = "cost") -> str:
    """The table in Markdown, with "cost" or "memory" of its rows."""
    titles = headings(amounts)
    lines = [f"### {view.class_name}", "", code(view.shown.example.expression), ""]
    lines += ["| " + " | ".join(titles) + " |", "|" + "|".join([" --- ", " --- ", *[" ---: "] * (len(titles) - 2)]) + "|"]
    for row in table_rows(view, amounts):
        first = "&nbsp;" * 4 * row.depth + plain(row.cells[0])
        cells = (code(cell).replace("|", "\\|") if cell.startswith("[") else plain(cell) for cell in row.cells[1:])
        lines.append(f"| {' | '.join([first, *cells])} |")
        if row.error:
            lines.append(f"| {'&nbsp;' * 4 * row.depth}✗ {plain(row.error)} |{' |' * (len(titles) - 1)}")
    lines.append("")
    lines += [f"- {label + ': ' if label else ''}{text}" for label, text in totals(view)]
    return "\n".join(lines) + "\n"
