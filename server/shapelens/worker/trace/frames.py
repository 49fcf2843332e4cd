"""Which frames are user code, and where exactly they are."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from types import CodeType, FrameType, TracebackType
from typing import Any, Dict, List, Optional, Tuple

import torch

from ...protocol import FileSpan
from ..locations import TORCH, WORKER
from .module_names import package_of
from .recorder import Recorder
from .value_summary import OF_EXAMPLE

EXAMPLE_FILE = "<example>"

_MODULE_FILE = sys.modules[torch.nn.Module.__module__].__file__


def _library_folders() -> Tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    return tuple({os.path.realpath(path) + os.sep for path in paths if path})


class Frames:
    """Tells user code from libraries, and finds the expressions that frames are at."""

    def __init__(self, file: str, root: str, recorder: Recorder) -> None:
        self.recorder = recorder
        self._libraries = _library_folders()
        self._places: Dict[CodeType, List[Any]] = {}  # of each instruction
        self.file = self._root = ""
        self.adopt(file, root)

    def adopt(self, file: str, root: str) -> None:
        """The document of the run is this one now."""
        if (file, root) == (self.file, self._root):
            return
        self.file, self._root = file, root
        self._folders = tuple({os.path.join(folder, "") for folder in (os.path.dirname(file), package_of(file)[0], root) if folder})
        self._known: Dict[str, bool] = {file: True}

    def is_user_file(self, file: str) -> bool:
        """True if a file belongs to the workspace and is no library."""
        known = self._known.get(file)
        if known is None:
            real = os.path.realpath(file)
            parts = file.split(os.sep)
            inside = file.startswith(self._folders) and not file.startswith((WORKER, TORCH))
            installed = "site-packages" in parts or "dist-packages" in parts or real.startswith(self._libraries)
            known = self._known[file] = inside and not installed and not file.startswith("<")
        return known

    def is_user_frame(self, frame: FrameType) -> bool:
        """True if a frame runs code of the workspace."""
        return self.is_user_file(frame.f_code.co_filename)

    def called_by_example(self) -> bool:
        """True if the code that called into ours is the example's own expression."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and (frame.f_code.co_filename.startswith(WORKER) or frame.f_code.co_filename == _MODULE_FILE):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename == EXAMPLE_FILE

    def constructor(self, module: Any) -> Tuple[Optional[FileSpan], int]:
        """Where a module under construction is constructed, if that is user code that was not rewritten, or else None; and the id of the
        frame that constructs it. A module that the example's expression constructs is marked."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(WORKER):
                first = code.co_varnames[0] if code.co_varnames else ""
                if not (code.co_name in ("__init__", "__new__", "__call__") and frame.f_locals.get(first) in (module, type(module))):
                    break
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename == EXAMPLE_FILE:
            module.__dict__[OF_EXAMPLE] = True
        if frame is None or not self.is_user_file(frame.f_code.co_filename) or self._reports(frame.f_code):
            return None, id(frame)
        return self._span(frame.f_code, frame.f_lasti, frame.f_lineno, innermost=False), id(frame)

    def is_under_construction(self, module: Any, constructing: int) -> bool:
        """True if the module's own `__init__` is running: `self.apply(…)` in it gives the module as well, and does not construct it.

        constructing: the id of the frame that constructs the module; where that frame itself asks, the search ends there.
        """
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(WORKER):
            frame = frame.f_back
        if id(frame) == constructing:
            return False
        while frame is not None and frame.f_code.co_filename != EXAMPLE_FILE:
            code = frame.f_code
            if code.co_name == "__init__" and code.co_varnames and frame.f_locals.get(code.co_varnames[0]) is module:
                return True
            frame = frame.f_back
        return False

    def trail(self) -> List[FileSpan]:
        """The user frames that are running, outermost first."""
        spans: List[FileSpan] = []
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            if self.is_user_file(frame.f_code.co_filename):
                spans.append(self._span(frame.f_code, frame.f_lasti, frame.f_lineno, innermost=not spans))
            frame = frame.f_back
        return spans[::-1]

    def innermost(self) -> Optional[FileSpan]:
        """The user frame that is running, the last of the trail."""
        known = self._known
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:  # Asked at each call of a module, and in a library's model the way up is long.
            file = frame.f_code.co_filename
            is_user_file = known.get(file)
            if is_user_file or (is_user_file is None and self.is_user_file(file)):
                return self._span(frame.f_code, frame.f_lasti, frame.f_lineno, innermost=True)
            frame = frame.f_back
        return None

    def trail_of(self, traceback: Optional[TracebackType]) -> List[FileSpan]:
        """The user frames that an exception passed, outermost first; module level included."""
        entries = []
        while traceback is not None:
            if self.is_user_file(traceback.tb_frame.f_code.co_filename):
                entries.append(traceback)
            traceback = traceback.tb_next
        return [self._span(entry.tb_frame.f_code, entry.tb_lasti, entry.tb_lineno, innermost=entry is entries[-1]) for entry in entries]

    def _reports(self, code: CodeType) -> bool:
        """True if the calls in this code report their results: those of functions in rewritten files do."""
        return code.co_name != "<module>" and self._rewritten(code.co_filename)

    def _rewritten(self, file: str) -> bool:
        return file in self.recorder.rewritten

    def _span(self, code: CodeType, instruction: int, line: int, innermost: bool) -> FileSpan:
        if hasattr(code, "co_positions"):  # Python 3.11
            places = self._places.get(code)
            if places is None:  # Walked through once: a long function is asked for each of its calls.
                places = self._places[code] = list(code.co_positions())
            start, end, column, end_column = places[instruction // 2] if instruction // 2 < len(places) else (None,) * 4
            if start is not None and end is not None and column is not None and end_column is not None:
                return FileSpan(code.co_filename, start, column, end, end_column)
        if innermost and self._rewritten(code.co_filename):
            place = self._next_operation(code.co_filename, line)
            if place is not None:
                return FileSpan(code.co_filename, *place)
        return self.line(code.co_filename, line)

    def line(self, file: str, number: int) -> FileSpan:
        """A whole line, without its indentation."""
        text = linecache.getline(file, number).rstrip("\r\n")
        return FileSpan(file, number, len(text) - len(text.lstrip()), number, len(text.rstrip().encode()))

    def _next_operation(self, file: str, line: int) -> Optional[Tuple[int, int, int, int]]:
        """Before Python 3.11: the operation of the line that was next to report itself; sites are numbered in the order of evaluation."""
        sites = self.recorder.sites
        inside = [
            number
            for number in self.recorder.sites_of(file)
            if sites[number].operation and sites[number].place[0] <= line <= sites[number].place[2]
        ]
        after = [number for number in inside if number > self.recorder.last] or inside
        return sites[after[0]].place if after else None
