"""Reads what exceptions of user code say, without trusting the code of their classes: `__str__` may fail or never end."""

from __future__ import annotations

import linecache
import re
from types import TracebackType
from typing import Optional, Set

from .limits import TooLong, within

LONGEST = 0.25  # seconds that a message may take to be made

_TRACEBACK = BaseException.__dict__["__traceback__"]
_speechless: Set[type] = set()  # classes whose message cannot be made


class ProcessEnded(SystemExit):
    """User code has ended its process in another way than by `sys.exit`, as by `os._exit`; its message is that call."""


# What torch's C++ code adds to its messages: where it raised the error, and machine addresses, which are others in each process.
_TRACE_OF_C = re.compile(r"\s*\bException raised from .*? \(most recent call first\):.*", re.DOTALL)


def lacks_memory(error: BaseException) -> bool:
    """True if an exception says that there is no more memory: torch has words for it where Python has MemoryError."""
    return isinstance(error, MemoryError) or "can't allocate memory" in message_of(error)


def message_of(error: BaseException) -> str:
    """The message of an exception, without a traceback of C++ code; "" where its class cannot say it."""
    text = _said_by(error)
    if "Exception raised from" not in text:
        return text
    return _TRACE_OF_C.sub('"' if text.endswith('"') else "", text)  # Some quote it.


def _said_by(error: BaseException) -> str:
    cls = type(error)
    if cls in _speechless:
        return ""
    if cls.__module__ == "builtins" and all(type(part) in (str, int) for part in BaseException.args.__get__(error)):  # type: ignore[attr-defined]
        return str(error)
    try:
        with within(LONGEST):
            said = str(error)
        return str.__str__(said)
    except (Exception, TooLong):
        _speechless.add(cls)
        return ""


def raised_at(error: BaseException) -> Optional[TracebackType]:
    """The innermost place that an exception passed: the one where it was raised."""
    traceback = traceback_of(error)
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def is_raise(file: str, line: int) -> bool:
    """True if a line of a file is a `raise`: what is raised there is raised on purpose."""
    return linecache.getline(file, line).lstrip().startswith("raise")


def traceback_of(error: BaseException) -> Optional[TracebackType]:
    """Where an exception was raised, whatever its class calls its traceback."""
    found: Optional[TracebackType] = _TRACEBACK.__get__(error)
    return found
