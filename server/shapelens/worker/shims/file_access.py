"""Files: what the file's author reads is looked for beside the file too, and what is written goes to a scratch file."""

from __future__ import annotations

import builtins
import io
import os
import shutil
import sys
import tempfile
from typing import Any, Callable, List, Tuple

from ...protocol import Note, Span
from .compilers import Replacement

# A text in the place of one that is not there: its characters are those of an ordinary text.
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:!?'-\n"


missing: List[Tuple[str, int, str]] = []  # (file, line, what to say of it) of texts that were read and are not there


TEXTS = (".txt", ".text")


def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        try:
            return original(file, mode, *args, **kwargs)
        except FileNotFoundError:
            beside = _beside(file)
            if any(letter in mode for letter in "wax+"):
                raise
            if beside is not None:
                return original(beside, mode, *args, **kwargs)
            if "b" in mode or not str(file).endswith(TEXTS):
                raise
            frame = sys._getframe(1)
            message = "%s is not there: sizes that follow from it are those of a text of %d different characters" % (file, len(LETTERS))
            missing.append((frame.f_code.co_filename, frame.f_lineno, message))
            return io.StringIO(LETTERS * 100)
        except PermissionError:
            if not any(letter in mode for letter in "wax+"):
                raise
            number, _ = tempfile.mkstemp()
            return original(number, mode.replace("x", "w"), *args, **kwargs)

    return opened


def _beside(file: Any) -> Any:
    """The path of a file relative to the folder of the script, where there is one."""
    if isinstance(file, int) or not sys.argv or os.path.isabs(os.fspath(file)):
        return None
    path = os.path.join(os.path.dirname(sys.argv[0]), os.fsdecode(file))
    return path if os.path.isfile(path) else None


def _if_allowed(original: Callable[..., Any]) -> Callable[..., Any]:
    def changed(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except PermissionError as error:
            if "ShapeLens" not in str(error):
                raise
            return None

    return changed


def notes(is_user_file: Callable[[str], bool], line: Callable[[str, int], Span]) -> List[Note]:
    """What to say of the texts that are not there. `line(file, number)` is the span of a line."""
    return [Note("missing-file", message, line(file, number)) for file, number, message in missing if is_user_file(file)]


def replacements() -> List[Replacement]:
    """What takes the place of Python's functions for the time of a run."""
    missing.clear()
    out: List[Replacement] = [(builtins, "open", _opening(builtins.open)), (io, "open", _opening(io.open))]
    for owner, names in (
        (os, "mkdir makedirs remove unlink rmdir rename replace symlink link chmod utime"),
        (shutil, "rmtree move copyfile copy copy2 copytree"),
    ):
        out += [(owner, name, _if_allowed(owner.__dict__[name])) for name in names.split()]
    return out
