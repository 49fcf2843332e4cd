"""Examples that need what cannot be had: a package that is not installed, a file that is not there."""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Any, Callable, Iterator, Mapping, Optional

from ....stated.syntax_trees import program_of
from ...unknown import stand_ins, unknown_sizes
from ..evidence import Candidate, with_sizes
from .trial import Trial

_LOADS = re.compile(r"open|(\w+\.)*(load|loads|safe_load|full_load|load_file|read_\w+)")
Evaluate = Callable[[str], Any]  # an expression; None where it fails


def is_known(candidate: Candidate, names: Mapping[str, Any], evaluate: Evaluate) -> bool:
    """True if all that a call names is there: not so for what is read from a file, or made by a missing package."""
    arguments = with_sizes(candidate.arguments, candidate.sizes) if candidate.arguments is not None else ""
    values = _named_in("%s(%s)" % (with_sizes(candidate.constructor, candidate.sizes), arguments), names, evaluate)
    return not any(stand_ins.is_absent(value) or _is_unknown_size(value) for value in values)


def can_be_built(candidate: Candidate, names: Mapping[str, Any], evaluate: Evaluate) -> bool:
    """True if all that a construction names is there, or is a size that nobody knows."""
    return not any(map(stand_ins.is_absent, _named_in(with_sizes(candidate.constructor, candidate.sizes), names, evaluate)))


def _is_unknown_size(value: Any) -> bool:
    return unknown_sizes.may_be_held() and unknown_sizes.is_unknown(value)


def _named_in(expression: str, names: Mapping[str, Any], evaluate: Evaluate) -> Iterator[Any]:
    """The values of the names of an expression, and of what it loads; of a name that the file does not have, or whose definition fails,
    building tells.
    """
    nodes = list(ast.walk(program_of(expression)))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    loads = {ast.unparse(node) for node in nodes if isinstance(node, ast.Call) and _LOADS.fullmatch(ast.unparse(node.func))}
    yield from map(evaluate, sorted(loads))
    for name in sorted(named):
        with contextlib.suppress(Exception):
            yield names[name]


def lacks_parts(trial: Trial, node: Optional[ast.ClassDef], file: str) -> bool:
    """True if an attempt failed as the `forward` of a class of the file needs what is missing, whatever it is called with."""
    body = node.body if node is not None else []
    forward = next((item for item in body if isinstance(item, ast.FunctionDef) and item.name == "forward"), None)
    if trial.found is None or trial.found.code not in ("missing-import", "missing-file", "unavailable") or forward is None:
        return False
    lines = range(forward.lineno, (forward.end_lineno or forward.lineno) + 1)
    return any(span.file == file and span.line in lines for span in trial.found.trail)
