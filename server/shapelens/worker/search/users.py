"""How other files of the project use the classes of a document."""

from __future__ import annotations

import ast
from typing import List, Sequence

from .evidence import Candidate
from .scripts.imports import known_names
from .scripts.module_names import ModuleNames
from .usages import usages


def usages_elsewhere(text: str, file: str, classes: Sequence[str], document: ast.Module, document_file: str) -> List[Candidate]:
    """What the text of `file` says of the document's `classes`: usages(), said to be from "train.py:40". [] where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    known = known_names(tree, ModuleNames(document), document_file)
    if not set(known.values()) & set(classes) and not any(name in document_functions(document) for name in known.values()):
        return []
    return usages(tree, classes, file, known, document)


def document_functions(document: ast.Module) -> List[str]:
    """The functions of the document, which may make its models."""
    return [node.name for node in document.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
