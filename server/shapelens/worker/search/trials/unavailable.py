"""What an example says that needs what cannot be had: a package that is not installed, a file that is not there."""

from __future__ import annotations

import ast
import contextlib
from typing import Any, Iterator, Mapping, Optional

from ...unknown import stand_ins, unknown_sizes
from ..evidence import Candidate, with_sizes
from .trial import Trial


def is_known(candidate: Candidate, names: Mapping[str, Any]) -> bool:
    """Whether all that a call names is there: not so for what is read from a file, or made by a missing package."""
    arguments = with_sizes(candidate.arguments, candidate.sizes) if candidate.arguments is not None else ""
    values = _named_in("%s(%s)" % (with_sizes(candidate.constructor, candidate.sizes), arguments), names)
    return not any(stand_ins.is_absent(value) or _is_unknown_size(value) for value in values)


def can_be_built(candidate: Candidate, names: Mapping[str, Any]) -> bool:
    """Whether all that a construction names is there, or is a size that nobody knows."""
    return not any(map(stand_ins.is_absent, _named_in(with_sizes(candidate.constructor, candidate.sizes), names)))


def _is_unknown_size(value: Any) -> bool:
    return unknown_sizes.state.lasting and unknown_sizes.is_unknown(value)


def _named_in(expression: str, names: Mapping[str, Any]) -> Iterator[Any]:
    """The values of the names of an expression; of a name that the file does not have, or whose definition fails, building tells."""
    try:
        named = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    except SyntaxError:
        return
    for name in sorted(named):
        with contextlib.suppress(Exception):
            yield names[name]


def lacks_parts(trial: Trial, node: Optional[ast.ClassDef], file: str) -> bool:
    """Whether an attempt failed as the `forward` of a class of the file needs what is missing, whatever it is called with."""
    body = node.body if node is not None else []
    forward = next((item for item in body if isinstance(item, ast.FunctionDef) and item.name == "forward"), None)
    if trial.found is None or trial.found.code not in ("missing-import", "missing-file", "unavailable") or forward is None:
        return False
    lines = range(forward.lineno, (forward.end_lineno or forward.lineno) + 1)
    return any(span.file == file and span.line in lines for span in trial.found.trail)
