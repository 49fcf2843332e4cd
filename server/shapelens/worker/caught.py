"""Whether an exception would be caught by the code that runs: what code expects to fail is no mistake, and has to fail."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import Dict, List, Optional, Tuple

from .frames import EXAMPLE_FILE

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SETUP_FINALLY = 122  # the opcode of Python 3.9 and 3.10

# Handlers of these only are not there for an operation that fails.
_OTHERS = {
    "ImportError",
    "ModuleNotFoundError",
    "KeyError",
    "StopIteration",
    "KeyboardInterrupt",
    "NameError",
    "OSError",
    "FileNotFoundError",
}
_SUPPRESS = {"suppress", "contextlib.suppress", "raises", "pytest.raises", "assertRaises", "self.assertRaises"}

_protected: Dict[str, List[Tuple[int, int]]] = {}


def would_be_caught() -> bool:
    """Whether a frame between here and the example has a handler around the line where it is."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != EXAMPLE_FILE:
        file = frame.f_code.co_filename
        ours = file.startswith((_HERE, "<"))
        if not ours and _may_catch(frame.f_code) and any(first <= frame.f_lineno <= last for first, last in _protected_lines(file)):
            return True
        frame = frame.f_back
    return False


def _may_catch(code: CodeType) -> bool:
    """A cheap look at the code itself, as most functions have no handler at all."""
    table = getattr(code, "co_exceptiontable", None)  # Python 3.11
    return bool(table) if table is not None else _SETUP_FINALLY in code.co_code[::2]


def _protected_lines(file: str) -> List[Tuple[int, int]]:
    lines = linecache.getlines(file)
    key = "%s:%d" % (file, hash(tuple(lines)))
    if key not in _protected:
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError, RecursionError):
            tree = ast.Module([], [])
        _protected[key] = [
            (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Try) and any(_catches(handler) for handler in node.handlers))
            or (isinstance(node, ast.With) and any(_suppresses(item) for item in node.items))
        ]
    return _protected[key]


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may be for a failed operation, and does not just raise again."""
    if handler.type is None:
        names = [""]
    else:
        parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = [ast.unparse(part).rpartition(".")[2] for part in parts]
    raises = isinstance(handler.body[-1], ast.Raise)
    return not raises and any(name not in _OTHERS for name in names)


def _suppresses(item: ast.withitem) -> bool:
    return isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) in _SUPPRESS
