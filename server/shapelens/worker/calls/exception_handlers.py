"""Tests for handlers that would catch an exception in the running code: an expected failure is no mistake, and has to be raised."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
import tokenize
from functools import lru_cache
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Dict, List, Optional, Set, Tuple, Union

from torch.utils.data._utils import collate

from ..locations import WORKER
from ..sandbox.exceptions import is_raise, traceback_of
from ..trace.frames import EXAMPLE_FILE

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
    "MemoryError",
    "OutOfMemoryError",
}
_SUPPRESS = {"suppress", "contextlib.suppress", "raises", "pytest.raises", "assertRaises", "self.assertRaises"}

_protected: Dict[CodeType, List[Tuple[int, int]]] = {}
_handled: Dict[CodeType, List[Tuple[int, int, Set[str]]]] = {}


def would_be_caught() -> bool:
    """True if a frame between here and the example has a handler around its current line."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != EXAMPLE_FILE:
        file = frame.f_code.co_filename
        line, may_catch = frame.f_lineno, not file.startswith((WORKER, "<")) and _may_catch(frame.f_code, frame.f_lasti)
        may_catch = may_catch and file != collate.__file__  # Its handlers are for containers that cannot be made again.
        if may_catch and any(first <= line <= last for first, last in _protected_lines(frame.f_code)):
            return True
        frame = frame.f_back
    return False


def handled_by_user(error: BaseException, frame: Optional[FrameType]) -> bool:
    """True if a frame from this one on has, around its current line, a handler in the user's code for this very exception."""
    names = {cls.__name__ for cls in type(error).__mro__}
    while frame is not None and frame.f_code.co_filename != EXAMPLE_FILE:
        if not frame.f_code.co_filename.startswith((WORKER, "<")):
            for first, last, handled in _guarded_lines(frame.f_code):
                if first <= frame.f_lineno <= last and not names.isdisjoint(handled):
                    return True
        frame = frame.f_back
    return False


def was_awaited(error: BaseException) -> bool:
    """True if an exception left code that expects it, though the handler itself is missing: `pytest.raises` without pytest."""
    names = {cls.__name__ for cls in type(error).__mro__}
    places = [
        (frame.f_code, line) for frame, line in walk_tb(traceback_of(error)) if not frame.f_code.co_filename.startswith((WORKER, "<"))
    ]
    guarded = [(line, guard) for code, line in places for guard in _guarded_lines(code)]
    return any(first <= line <= last and not names.isdisjoint(handled) for line, (first, last, handled) in guarded)


def is_raised_here(error: BaseException, frame: FrameType) -> bool:
    """True if a function raised this itself, on purpose: then it has ended, and its caller's statement has failed.

    Other settings often avoid a `raise` within nested conditions: after such a refusal, the function goes on.
    """
    traceback = traceback_of(error)
    if traceback is None or traceback.tb_next is not None or frame.f_code.co_name == "<module>":
        return False
    return is_raise(frame.f_code.co_filename, traceback.tb_lineno)


def _guarded_lines(code: CodeType) -> List[Tuple[int, int, Set[str]]]:
    """The (first, last) lines in a function that have handlers around them, and the names of the exceptions that these are for."""
    found = _handled.get(code)
    if found is None:
        above, tree = _tree_of(code)
        found = _handled[code] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Try) and node.handlers:
                found.append((*_lines_of(node, above), {name for handler in node.handlers for name in _names(handler.type)}))
            elif isinstance(node, ast.With):
                calls = [item.context_expr for item in node.items if _suppresses(item)]
                awaited = [each for call in calls if isinstance(call, ast.Call) for each in call.args]
                found += [(*_lines_of(node, above), _names(each)) for each in awaited]
    return found


def _lines_of(node: Union[ast.Try, ast.With], above: int) -> Tuple[int, int]:
    return above + node.body[0].lineno, above + (node.body[-1].end_lineno or node.body[-1].lineno)


def _names(caught: Optional[ast.expr]) -> Set[str]:
    """The names of the exceptions that a handler, or a `with` that awaits them, is for."""
    if caught is None:
        return {"BaseException"}
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return {ast.unparse(part).rpartition(".")[2] for part in parts}


def _may_catch(code: CodeType, offset: int) -> bool:
    """A cheap look at the code itself, as there is no handler around most instructions."""
    table = getattr(code, "co_exceptiontable", None)  # Python 3.11
    if table is None:
        return _SETUP_FINALLY in code.co_code[::2]
    return any(start <= offset < end for start, end in _guarded(table))


@lru_cache(maxsize=4096)
def _guarded(table: bytes) -> List[Tuple[int, int]]:
    """The ranges of bytes of an exception table, as `Objects/exception_handling_notes.txt` of CPython describes it.

    Each entry has four numbers, of which the first two are the start and the length in code units. A byte has six bits of a number; bit 6
    says that more follow, bit 7 begins an entry.
    """
    ranges, numbers = [], []
    for byte in table:
        if byte & 128:
            numbers = [0]
        numbers[-1] = numbers[-1] << 6 | byte & 63
        if not byte & 64:
            numbers.append(0)
            if len(numbers) == 3:
                ranges.append((2 * numbers[0], 2 * (numbers[0] + numbers[1])))
    return ranges


def _protected_lines(code: CodeType) -> List[Tuple[int, int]]:
    """The (first, last) lines in a function that have a handler around them."""
    found = _protected.get(code)
    if found is None:
        above, tree = _tree_of(code)
        found = _protected[code] = [
            _lines_of(node, above)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Try) and any(_catches(handler) for handler in node.handlers))
            or (isinstance(node, ast.With) and any(_suppresses(item) for item in node.items))
        ]
    return found


def _tree_of(code: CodeType) -> Tuple[int, ast.Module]:
    """Returns the number of lines above a function, and its tree; those of the whole file where the function cannot be told apart."""
    lines = linecache.getlines(code.co_filename)
    above = code.co_firstlineno - 1
    blocks = [] if code.co_name == "<module>" else [(above, _block(lines[above:]))]
    for skipped, text in (*blocks, (0, "".join(lines))):
        try:
            return skipped, ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            pass
    return 0, ast.Module([], [])


def _block(lines: List[str]) -> str:
    try:
        return textwrap.dedent("".join(inspect.getblock(lines)))
    except (SyntaxError, tokenize.TokenError):
        return "".join(lines)


def _catches(handler: ast.ExceptHandler) -> bool:
    """True if a handler may be for a failed operation, and does not just raise again."""
    raises = isinstance(handler.body[-1], ast.Raise)
    return not raises and not _names(handler.type) <= _OTHERS


def _suppresses(item: ast.withitem) -> bool:
    return isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func) in _SUPPRESS
