"""Tells a key that a dict of the code lacks, and that no line sets, from one that data may bring."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from types import FrameType
from typing import Any, Dict, Iterator, Optional, Tuple

from ..loading.definitions import KEPT
from ..loading.failing_lines import end_of, tree_of
from ..sandbox.exceptions import raised_at


def dict_without(error: BaseException) -> Dict[str, Any]:
    """The dict all whose keys the code names, out of which it takes one that it sets nowhere; an empty one where that is not wrong."""
    key, place = error.args[0] if type(error) is KeyError and error.args else None, raised_at(error)
    tree = tree_of(place.tb_frame) if place is not None else None
    if place is None or tree is None or not isinstance(key, str):
        return {}
    held = next(_dicts_asked(tree, place.tb_frame, place.tb_lineno, key), None)
    if not held or key in held:
        return {}
    texts = ["".join(linecache.getlines(file)) for file in files_of_project()]
    if any(_is_set(key, text) for text in texts):
        return {}
    return held if all(isinstance(each, str) and any(_is_set(each, text) for text in texts) for each in held) else {}


def _dicts_asked(tree: ast.Module, frame: FrameType, line: int, key: str) -> Iterator[Dict[Any, Any]]:
    """The dicts that a statement asks for a key, by the names or attributes that hold them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= end_of(node) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for part in ast.walk(node):
                if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and part.slice.value == key:
                    value = held_by(part.value, frame)
                    if type(value) is dict:
                        yield value


def held_by(node: ast.expr, frame: FrameType) -> Any:
    """Returns the value that a name, or an attribute of one, holds in a frame; None where that is unknown."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    owner: Optional[Any] = held_by(node.value, frame) if isinstance(node, ast.Attribute) else None
    return getattr(owner, "__dict__", {}).get(node.attr) if isinstance(node, ast.Attribute) else None


def files_of_project() -> Tuple[str, ...]:
    """The files of the project that are loaded."""
    loaded = [vars(module) for module in list(sys.modules.values()) if module is not None and KEPT in getattr(module, "__dict__", {})]
    return tuple(file for file in (each.get("__file__") for each in loaded) if isinstance(file, str))


def _is_set(key: str, text: str) -> bool:
    """True if a text names a key otherwise than to look it up: `{"key": …}`, `d["key"] = …`, `dict(key=…)`, a list of keys, an
    annotation."""
    name = re.escape(key)
    taken = r"(?<=[\w\])])\[\s*([\"'])%s\1\s*\](?!\s*=[^=])" % name
    rest = re.sub(taken, "", text)
    return re.search(r"([\"'])%s\1|\b%s\s*[=:](?!=)" % (name, name), rest) is not None
