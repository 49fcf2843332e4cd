"""Data that is not here and has a stand-in: one quiet note a file, at the first line that asked."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Callable, Dict, List, Optional, Tuple

from ....protocol import FileSpan, Note

Absence = Tuple[str, int, str, str]  # the user's file and line that asked, what to say of it, the code of the note

said: List[Absence] = []  # since the run began


class _Asker:
    """Who asks for something: a frame of the user's."""

    is_user_file: Callable[[str], bool] = staticmethod(lambda file: False)  # set by whoever runs user code


def watch(is_user_file: Callable[[str], bool]) -> None:
    """Tell the user's files from others by this function from now on."""
    _Asker.is_user_file = staticmethod(is_user_file)


def is_asked_by_user() -> bool:
    """True if the function that is running was called by the user's code, and not by a library's."""
    return _Asker.is_user_file(sys._getframe(2).f_code.co_filename)


def say(message: str, code: str = "missing-file") -> None:
    """Note that something is stood in for, at the user's line that asked for it."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and not _Asker.is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        absence = frame.f_code.co_filename, frame.f_lineno, message, code
        if absence not in said:
            said.append(absence)


def is_met_by(code: CodeType, line: int) -> bool:
    """True if a function that has come to this line asked for something that is stood in for."""
    return any(file == code.co_filename and code.co_firstlineno <= number <= line for file, number, _, _ in said)


def notes(line: Callable[[str, int], FileSpan]) -> List[Note]:
    """Returns what to say, once a file. `line(file, number)` is the span of a line."""
    found: Dict[str, Note] = {}
    for file, number, message, code in said:
        found.setdefault(file, Note(code, message, line(file, number)))
    return list(found.values())
