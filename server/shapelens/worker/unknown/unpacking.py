"""Into how many names a value is unpacked whose parts nobody knows."""

from __future__ import annotations

from opcode import opmap
from types import FrameType
from typing import Optional

_UNPACK = opmap["UNPACK_SEQUENCE"]


def unpacked_count(frame: Optional[FrameType]) -> Optional[int]:
    """The number of names that a frame unpacks a value into just now (`a, b = value`); None where the frame does something else."""
    if frame is None or frame.f_lasti < 0:
        return None
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at + 1] if code[at] == _UNPACK else None
