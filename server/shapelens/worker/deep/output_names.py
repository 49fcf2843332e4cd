"""The names in a forward of the tensors that it returns: `return logits, loss`."""

from __future__ import annotations

import ast
import linecache
import re
from typing import Any, Dict, List, Optional

from ...stated.syntax_trees import program_of

_INDEX = re.compile(r"\[(\d+)\]|\['([^']*)'\]|\.(\w+)")


def output_names(cls: type) -> Dict[str, str]:
    """Names by the way to each output: "" for a single one, "[0]" for the first of several. Nothing where its returns differ."""
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    if code is None:
        return {}
    tree = program_of("".join(linecache.getlines(code.co_filename)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _first_line(node) == code.co_firstlineno:
            return _of_returns([each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None])
    return {}


def _first_line(node: Any) -> int:
    return int(min([node.lineno, *[each.lineno for each in node.decorator_list]]))


def _of_returns(values: List[Any]) -> Dict[str, str]:
    found: Optional[Dict[str, str]] = None
    for value in values:
        parts = {"[%d]" % place: part for place, part in enumerate(value.elts)} if isinstance(value, ast.Tuple) else {"": value}
        names = {way: part.id for way, part in parts.items() if isinstance(part, ast.Name)}
        if found is not None and names != found:
            return {}
        found = names
    return found or {}


def name_of(way: str, names: Dict[str, str]) -> str:
    """The name of an output, or words for it: "logits", "output 0", "the output"."""
    if way in names:
        return names[way]
    steps = _INDEX.findall(way)
    if not steps:
        return ""
    number, key, attribute = steps[0]
    return key or attribute or "output %s" % number
