"""What was stood in for as it is not here: one quiet note a file, at the first line that asked."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Callable, List, Optional, Tuple

from ....protocol import Note, Span

# (code, message, the frames that asked as file and line, innermost first) since the run began
said: List[Tuple[str, str, List[Tuple[str, int]]]] = []


def say(message: str, code: str = "missing-file") -> None:
    """Note that something is stood in for, at the user's line that asked for it."""
    places: List[Tuple[str, int]] = []
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and len(places) < 40:
        places.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    said.append((code, message, places))


def notes(is_user_file: Callable[[str], bool], line: Callable[[str, int], Span]) -> List[Note]:
    """What to say, once a file. `line(file, number)` is the span of a line."""
    found = {}
    for code, message, places in said:
        place = next((place for place in places if is_user_file(place[0])), None)
        if place is not None and place[0] not in found:
            found[place[0]] = Note(code, message, line(*place))
    return list(found.values())
