"""The line of the user's code that an exception left, and the syntax tree that it stands in."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from traceback import walk_tb
from types import FrameType
from typing import Optional, Tuple

from ..sandbox.exceptions import traceback_of
from .definitions import KEPT
from .importer import parse


def last_place(error: BaseException) -> Optional[Tuple[FrameType, int]]:
    """The innermost frame of the user's that an exception left, and the line that it was at."""
    places = [(frame, line) for frame, line in walk_tb(traceback_of(error)) if KEPT in frame.f_globals]
    return places[-1] if places else None


def tree_of(frame: FrameType) -> Optional[ast.Module]:
    """The syntax tree of the file that a frame runs; None where it has none."""
    return parsed("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))


@lru_cache(maxsize=4)  # A search comes to the same mistake with each attempt.
def parsed(text: str) -> Optional[ast.Module]:
    try:
        return parse(text, "<text>")
    except SyntaxError:
        return None


def end_of(node: ast.stmt) -> int:
    """The last line of a statement."""
    return node.end_lineno or node.lineno
