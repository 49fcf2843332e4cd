"""Usages in docstrings: their doctests and code blocks, each docstring read as a script of its own."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Dict, Iterator, List, Sequence, Union

from ....python_sources import blocks_of_code, doctest
from ..evidence import Candidate
from .project_usages import UsageWriter, usages
from .scripts.module_names import FUNCTIONS, ModuleNames
from .scripts.script import Script

MOST_LINES = 200  # of one docstring
_PRETRAINED = re.compile(r"pretrained|checkpoint|from_hub|hub\.load")  # it says nothing about the sizes of a class of this file

Documented = Union[ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]


def documented_usages(tree: ast.Module, classes: Sequence[str]) -> List[Candidate]:
    """All ways in which the docstrings of a document build its `classes` and call them. None of them is sure: a docstring may be old."""
    document = ModuleNames(tree)
    codes = [code for node in _documented(tree) for code in _scripts_of(node, tree)]
    found = [each for code in codes for each in usages(code, classes, "docstring", _known(code, document), tree)]
    return [
        replace(each, where="the docstring, line %s" % each.where.rpartition(":")[2], call=None)
        for each in found
        if not _PRETRAINED.search(each.constructor)
    ]


def documented_calls(tree: ast.Module, function: ast.FunctionDef, classes: Sequence[str]) -> List[str]:
    """The calls of a function of the document that its docstring has, each as an expression in the document's namespace."""
    document = ModuleNames(tree)
    found: List[str] = []
    for code in _scripts_of(function, tree):
        script = Script(ModuleNames(code, own=False, known=_known(code, document)), classes, document)
        script.read()
        writer = UsageWriter(script, document, "docstring")
        for name, given in script.function_calls:
            arguments = writer.arguments(given) if name == function.name else None
            if arguments is not None:
                found.append("%s(%s)" % (name, arguments))
    return list(dict.fromkeys(found))


def _documented(tree: ast.Module) -> Iterator[Documented]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef) + FUNCTIONS):
            yield node


def _known(code: ast.Module, document: ModuleNames) -> Dict[str, str]:
    """The names of the document, under which a docstring finds them whether it imports them or not."""
    known = {name: name for name in (*document.classes, *document.functions)}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom):
            known.update((alias.asname or alias.name, alias.name) for alias in node.names if alias.name in known)
    return known


def _scripts_of(node: Documented, tree: ast.Module) -> Iterator[ast.Module]:
    """The code in the docstring of a node, after what the document imports, with the lines that it has in the document."""
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant) or not isinstance(first.value.value, str):
        return
    text = first.value.value
    if ">>>" not in text and "::" not in text and "```" not in text:
        return
    lines = _aligned(text.splitlines()[:MOST_LINES])
    above = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    code_of_doctest = doctest(lines)
    for start, code in [(0, code_of_doctest)] if code_of_doctest.strip() else list(blocks_of_code(lines)):
        try:
            parsed = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError):
            continue
        ast.increment_lineno(parsed, first.value.lineno - 1 + start)
        yield ast.Module(above + parsed.body, [])


def _aligned(lines: List[str]) -> List[str]:
    """The lines, the first one indented as the others are: it stands behind the quotes."""
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    return [" " * margin + lines[0].lstrip(), *lines[1:]] if lines else lines
