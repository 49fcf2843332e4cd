"""Values of parameters that nobody gives: command lines by their defaults, tests by the first of their cases."""

from __future__ import annotations

import ast
import json
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from .....stated.syntax_trees import dotted
from .values import ScriptValue, constant, guessed


def command_line(tree: ast.AST) -> Iterator[Tuple[str, ast.expr]]:
    """The options of a file's command lines that have a default, by the names that they are read by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            name, default = _destination(node), _default(node)
            if name and default is not None:
                yield name, default


# The types of options, by which a default that is a text is read too: https://docs.python.org/3/library/argparse.html#default
_READERS: Dict[str, Callable[[str], Any]] = {"int": int, "float": float, "literal_eval": ast.literal_eval, "loads": json.loads}


def _destination(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    flags = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    best = next((flag for flag in flags if flag.startswith("--") or not flag.startswith("-")), flags[0] if flags else "")
    return best.lstrip("-").replace("-", "_")


def _default(node: ast.Call) -> Optional[ast.expr]:
    said = {keyword.arg: keyword.value for keyword in node.keywords}
    default = said.get("default")
    read = _READERS.get(dotted(said.get("type")).rpartition(".")[2])
    if isinstance(default, ast.Constant) and isinstance(default.value, str) and read is not None:
        try:
            return ast.parse(repr(read(default.value)), mode="eval").body
        except (ValueError, SyntaxError):
            return None
    if default is not None:
        return default
    action = said.get("action")
    if isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        return constant(action.value == "store_false")
    choices = said.get("choices")
    if isinstance(choices, (ast.List, ast.Tuple)) and choices.elts:
        return guessed(ScriptValue(choices.elts[0])).node
    return None


def from_decorators(decorators: Sequence[ast.expr]) -> Dict[str, ast.expr]:
    """Returns the values that decorators give to parameters: pytest's first case, a default of click's."""
    found: Dict[str, ast.expr] = {}
    for node in decorators:
        if not isinstance(node, ast.Call):
            continue
        kind = dotted(node.func).rpartition(".")[2]
        if kind == "parametrize" and len(node.args) >= 2:
            _first_case(node.args[0], node.args[1], found)
        elif kind in ("option", "argument"):
            name, default = _destination(node), _default(node)
            if name and default is not None:
                found[name] = default
    return found


def _first_case(names: ast.expr, cases: ast.expr, found: Dict[str, ast.expr]) -> None:
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        called = [name.strip() for name in names.value.split(",")]
    elif isinstance(names, (ast.List, ast.Tuple)):
        called = [str(part.value) for part in names.elts if isinstance(part, ast.Constant)]
    else:
        return
    if isinstance(cases, (ast.List, ast.Tuple)) and cases.elts:
        first = cases.elts[0]
        if isinstance(first, ast.Call) and dotted(first.func).endswith("param") and first.args:
            parts = list(first.args)
        elif len(called) > 1 and isinstance(first, (ast.List, ast.Tuple)):
            parts = list(first.elts)
        else:
            parts = [first]
        found.update(zip(called, parts))
    elif len(called) == 1:
        found[called[0]] = ast.Subscript(cases, constant(0), ast.Load())
