"""Usages of a document's classes in other files of the project."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import List, Sequence

from .... import notebooks, python_sources
from ..evidence import Candidate
from .project_usages import usages
from .scripts.imports import known_names
from .scripts.module_names import ModuleNames


def usages_elsewhere(text: str, file: str, classes: Sequence[str], document: ast.Module, document_file: str) -> List[Candidate]:
    """Returns the usages of the document's `classes` in the text of `file`, perhaps a notebook or documentation: usages(), said to be from
    "train.py:40".

    [] where it does not parse.
    """
    notebook = notebooks.read(text) if file.endswith(notebooks.SUFFIX) else None
    text = notebook.text if notebook is not None else python_sources.as_python(file, text)
    try:
        tree = ast.parse(python_sources.about(file, text, [*classes, *document_functions(document)]))
    except (SyntaxError, ValueError, RecursionError):
        return []
    known = known_names(tree, ModuleNames(document), document_file, file)
    if not set(known.values()) & set(classes) and not any(name in document_functions(document) for name in known.values()):
        return []
    found = usages(tree, classes, file, known, document)
    return found if notebook is None else [_in_notebook(candidate, notebook) for candidate in found]


def _in_notebook(candidate: Candidate, notebook: notebooks.Notebook) -> Candidate:
    """Said to be from a cell: the lines of a notebook's file are nobody's."""
    file, _, line = candidate.where.rpartition(":")
    return replace(candidate, where="%s, %s" % (file, notebook.place(int(line)))) if line.isdigit() else candidate


def document_functions(document: ast.Module) -> List[str]:
    """The functions of the document, which may make its models."""
    return [node.name for node in document.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
