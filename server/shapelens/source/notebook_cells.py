"""Reads the code cells of a notebook's file as one module.

nbformat is not used: all that is needed of it is the list of cells, which the worker reads without it anyway (`notebooks.py`), and it
would bring nine packages into the extension, one of them native.
"""

from __future__ import annotations

from dataclasses import dataclass

from shapelens import notebooks
from shapelens.source.module import Module, SyntaxProblem, parse
from shapelens.source.positions import Span


@dataclass(frozen=True)
class NotebookCells:
    """Holds the cells as one module, and what was left out as it does not parse. source: what stands in them, in the same lines."""

    module: Module
    problems: list[SyntaxProblem]
    source: str


def read_cells(content: str) -> NotebookCells:
    """The cells of the notebook that a file's content is. One without Python has no text. Raises NoNotebook."""
    cells = notebooks.code_cells(content)
    modules = [parse(notebooks.as_python(cell.source)) for cell in cells]
    numbers = [cell.number for cell in cells]
    pieces = [notebooks.left_out(cell.source) if module.errors else module.text for cell, module in zip(cells, modules, strict=True)]
    joined = notebooks.joined(pieces, numbers)
    module = parse(joined.text)
    module.notebook = joined
    problems = [
        SyntaxProblem(_moved(problem.span, first - 1), problem.message)
        for first, cell in zip(joined.firsts, modules, strict=True)
        for problem in cell.errors
    ]
    return NotebookCells(module, problems, notebooks.joined([cell.source for cell in cells], numbers).text)


def _moved(span: Span, down: int) -> Span:
    return Span(span.line + down, span.column, span.end_line + down, span.end_column)
