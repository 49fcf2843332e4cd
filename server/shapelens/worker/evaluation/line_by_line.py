"""An example evaluated with word of each line before it is executed: what ends the process there cannot say anything afterwards."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable, Set, Tuple


def line_by_line(run_it: Callable[[], None], is_user_file: Callable[[str], bool], tell: Callable[[str, int], None]) -> None:
    """Call `run_it`, and `tell` with a file and a line number before a line of the user's is executed for the first time, and when
    one goes on that has called another part of the user's code for the first time.

    Raises what `run_it` raises.
    """
    told: Set[Tuple[str, int, str, int]] = set()

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if not is_user_file(frame.f_code.co_filename):
            return None
        if event == "line":
            say(frame, "", 0)
        elif event == "return":
            caller = frame.f_back
            while caller is not None and not is_user_file(caller.f_code.co_filename):
                caller = caller.f_back
            if caller is not None:
                say(caller, frame.f_code.co_filename, frame.f_code.co_firstlineno)
        return look

    def say(frame: FrameType, called_file: str, called_line: int) -> None:
        place = frame.f_code.co_filename, frame.f_lineno, called_file, called_line
        if place not in told:
            told.add(place)
            tell(*place[:2])

    before = sys.gettrace()
    sys.settrace(look)
    try:
        run_it()
    finally:
        sys.settrace(before)
