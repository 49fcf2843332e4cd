"""Files: what the file's author reads is looked for next to the file too, and what is written goes to a scratch file."""

from __future__ import annotations

import builtins
import contextlib
import io
import linecache
import os
import shutil
import sys
import tempfile
from types import FrameType
from typing import Any, Callable, Iterator, List

from ..loading.missing_packages import guarded_lines
from ..unknown import unknown_sizes
from .compilers import Replacement
from .data_sets import absences

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?'-"  # before those of other scripts
IN_A_LINE = 5  # letters, but for the first line

made_up: List[str] = []  # texts that were made up in this process: sizes and indices that follow from them are no ground for an error
TEXTS = (".txt", ".text")
CATCH_MISSING = {"FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"}


class MissingText(io.StringIO):
    """A text that is not there: what parses it gets a stand-in (data_sets/files.py), whoever reads it learns now that it is not there."""

    def __init__(self, error: FileNotFoundError) -> None:
        super().__init__()
        self.error = error

    def read(self, *args: Any) -> Any:
        raise self.error

    readline = readlines = __next__ = getvalue = read

    def __iter__(self) -> Any:
        raise self.error


class MissingBytes(MissingText):
    """The same of a file that is opened in binary mode."""

    readinto = MissingText.read


def _text() -> str:
    """A text in the place of one that is not there: nobody knows how many letters and lines it has."""
    count = unknown_sizes.count()
    unknown_sizes.state.text = True
    letters = LETTERS + "".join([chr(0x4E00 + number) for number in range(count - len(LETTERS))])
    lines = [(letters * 2)[start : start + IN_A_LINE] for start in range(1, count)]
    return "\n".join([letters, *lines])


def _expects_failure(frame: FrameType) -> bool:
    """True if the code that opens a file catches that the file is not there."""
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    return any(first <= frame.f_lineno <= last for first, last in guarded_lines(text, CATCH_MISSING))


def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        try:
            return original(file, mode, *args, **kwargs)
        except FileNotFoundError as error:
            beside = next_to_script(file)
            if _is_for_writing(mode):
                raise
            if beside is not None:
                return original(beside, mode, *args, **kwargs)
            if isinstance(file, int) or not absences.is_asked_by_user() or _expects_failure(sys._getframe(1)):
                raise
            if "b" in mode or not str(file).endswith(TEXTS):
                absences.say("%s is not there: what it holds is unknown" % (file,))
                return MissingBytes(error) if "b" in mode else MissingText(error)
            absences.say("%s is not there: what it holds is unknown" % (file,))
            made_up.append(str(file))
            return io.StringIO(_text())
        except PermissionError:
            if not _is_for_writing(mode):
                raise
            return _elsewhere(original, mode, *args, **kwargs)

    return opened


def _writing(original: Callable[..., Any]) -> Callable[..., Any]:
    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        try:
            return original(file, mode, *args, **kwargs)
        except PermissionError:
            if not _is_for_writing(mode):
                raise
            return _elsewhere(original, mode, *args, **kwargs)

    return opened


def _is_for_writing(mode: str) -> bool:
    return any(letter in mode for letter in "wax+")


def _elsewhere(original: Callable[..., Any], mode: str, *args: Any, **kwargs: Any) -> Any:
    """A scratch file, open like one that may not be written."""
    number, _ = tempfile.mkstemp()
    return original(number, mode.replace("x", "w"), *args, **kwargs)


def next_to_script(file: Any) -> Any:
    """The path of a file relative to the folder of the script, where there is one."""
    path = place_next_to_script(file)
    return path if path is not None and os.path.isfile(path) else None


def place_next_to_script(file: Any) -> Any:
    """Where a file would be that lies in the folder of the script; None for an absolute path."""
    if isinstance(file, int) or not sys.argv or os.path.isabs(os.fspath(file)):
        return None
    return os.path.join(os.path.dirname(sys.argv[0]), os.fsdecode(file))


def _if_allowed(original: Callable[..., Any]) -> Callable[..., Any]:
    def changed(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except PermissionError as error:
            if "ShapeLens" not in str(error):
                raise
            return None

    return changed


def _of_a_file(original: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel's filter passes over changes of attributes: it says that all went well of a file that is not there, too (`Path.touch`)."""

    def changed(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, (str, bytes, os.PathLike)) and kwargs.get("dir_fd") is None:
            os.lstat(path)
        return original(path, *args, **kwargs)

    return changed


def _temporary_places() -> List[Replacement]:
    """Temporary files and folders are made in the scratch folder, whatever folder is asked for."""
    module: Any = tempfile
    original = getattr(module, "_sanitize_params", None)  # What all functions of tempfile call for their arguments.
    if original is None:
        return []

    def in_scratch(prefix: Any, suffix: Any, folder: Any) -> Any:
        prefix, suffix, folder, kind = original(prefix, suffix, folder)
        scratch = tempfile.gettempdir()
        if not os.path.realpath(os.fsdecode(folder)).startswith(os.path.realpath(scratch)):
            folder = os.fsencode(scratch) if kind is bytes else scratch
        return prefix, suffix, folder, kind

    return [(module, "_sanitize_params", in_scratch)]


def replacements() -> List[Replacement]:
    """Returns what takes the place of Python's functions for the time of a run."""
    return [(builtins, "open", _opening(builtins.open)), (io, "open", _opening(io.open)), *_temporary_places(), *_changes()]


@contextlib.contextmanager
def no_file_changed() -> Iterator[None]:
    """While a library is imported, what it is not to write goes to a scratch file, and what it would change stays as it is."""
    own = [(builtins, "open", _writing(builtins.open)), (io, "open", _writing(io.open)), *_changes()]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in own]
    for owner, name, replacement in own:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for (owner, name, original), (_, _, replacement) in zip(before, own):
            if getattr(owner, name, None) is replacement:  # Else it is the library's, which has patched it.
                setattr(owner, name, original)


def _changes() -> List[Replacement]:
    out: List[Replacement] = [(os, name, _if_allowed(_of_a_file(getattr(os, name)))) for name in ("chmod", "utime")]
    for owner, names in (
        (os, "mkdir makedirs remove unlink rmdir rename replace symlink link"),
        (shutil, "rmtree move copyfile copy copy2 copytree"),
    ):
        out += [(owner, name, _if_allowed(owner.__dict__[name])) for name in names.split()]
    return out
