"""The user's modules as a run has loaded them, and everything that watches them: what a run has at hand when its examples are evaluated.

A process does one run with it, or several (loaded_project.py).
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import sys
from types import FrameType
from typing import Any, Dict, Iterator, List, Optional

from ...protocol import FileSpan, Mismatch, Note, Run, Trace
from ..calls.mismatches import OF_THE_WORLD, is_set_elsewhere, may_follow, meant_name, one_line
from ..calls.module_calls import watching
from ..calls.sure_mistakes import is_sure
from ..loading.compile_cache import PREPARED
from ..loading.definitions import KEPT, LeftOutError, left_out
from ..loading.importer import UserFinder, executed_once, load
from ..loading.missing_packages import MissingFinder
from ..loading.shadowed_modules import shadowed_by_files, taken_away
from ..meta import op_cache
from ..meta.mode import MetaMode
from ..sandbox.exceptions import ProcessEnded, traceback_of
from ..sandbox.limits import TooLong
from ..shims import file_access
from ..shims.command_line import CommandLine
from ..shims.data_sets import absences
from ..shims.replacements import harmless
from ..trace.definition_time import executing
from ..trace.frames import Frames
from ..trace.progress import Progress
from ..trace.recorder import Recorder
from ..unknown import stand_ins
from ..unknown.values_at_hand import ON_DATA
from ..unknown.world_errors import world_cause
from .evaluation import Evaluation


class RunContext:
    """The place that a run loads into, with all that watches the run. `trace` is that of the run under way."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.trace = Trace(run.file)
        PREPARED.forget_run()
        executing.forget_modules()
        self.recorder = Recorder(PREPARED.table, lambda module, site: self.evaluation.calls.reported(module, site))
        self.meta = MetaMode()
        self.frames = Frames(run.file, run.root, self.recorder)
        self.evaluation = Evaluation(self.recorder, self.meta, self.frames)
        self.progress = Progress()
        texts = {**run.overlays, run.file: run.text}
        self.finder = UserFinder(run.file, texts, run.observe, self.frames.is_user_file, self.recorder, self._definition_failed)
        self.finder.followed_for = run.followed_for
        self.missing = MissingFinder(self._missing)
        self.shadowed = shadowed_by_files(run.file, run.root)
        op_cache.state.off = False

    @contextlib.contextmanager
    def environment(self) -> Iterator[None]:
        """Everything that holds while user code runs: where it is imported from, what is replaced, the torch mode."""
        run = self.run
        before = list(sys.path), list(sys.argv)
        former_folder = os.getcwd()
        sys.argv = CommandLine(run.file, run.root, run.followed_for)
        sys.meta_path.insert(0, self.finder)
        sys.meta_path.append(self.missing)
        absences.watch(self.frames.is_user_file)
        folder = run.root or os.path.dirname(run.file)
        if os.path.isdir(folder):
            os.chdir(folder)
        try:
            with (
                executed_once(),
                harmless(self.meta),
                self.meta,
                watching(lambda: self.evaluation.calls, self.progress),
                taken_away(self.shadowed),
            ):
                yield
        finally:
            sys.path[:], sys.argv = before[0], before[1]
            with contextlib.suppress(OSError):
                os.chdir(former_folder)
            sys.meta_path.remove(self.finder)
            sys.meta_path.remove(self.missing)

    def load(self) -> Dict[str, Any]:
        """Load the document; its names. Raises SyntaxError; what its definitions raise is put into the trace."""
        left_out.clear()
        left_out.update({(self.run.file, each.line): each.message for each in self.run.left_out})
        module = load(self.run.file, self.run.root, self.finder)
        self.evaluation.calls.definitions_ended()
        self.trace.notes += self.absences()
        names: Dict[str, Any] = module.__dict__.get(KEPT, module.__dict__)
        return names

    def absences(self) -> List[Note]:
        """Returns the notes on stand-ins that are to be reported, one a file."""
        said = {note.span.file for note in self.trace.notes if note.code in OF_THE_WORLD and note.span is not None}
        found = absences.notes(self.frames.line)
        return [note for note in found if note.span is not None and note.span.file not in said]

    def _missing(self, name: str, frames: List[FrameType]) -> None:
        """A package is not installed: said at the line of the document that wants it, directly or not."""
        document = self.run.file
        wants = [frame for frame in frames if frame.f_code.co_filename == document]
        span = self.frames.line(document, wants[-1].f_lineno) if wants else None
        message = missing_message(name)
        self.trace.notes.append(Note("missing-import", message, span))
        if frames[0].f_code.co_filename in self.finder.loaded:
            self.trace.notes.append(Note("missing-import", message, self.frames.line(frames[0].f_code.co_filename, frames[0].f_lineno)))

    def _definition_failed(self, file: str, node: ast.stmt, error: BaseException) -> None:
        span = FileSpan(file, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        if file != self.run.file and self.missing.is_guarded():
            raise error  # Whoever imports this file is prepared for that.
        if isinstance(error, TooLong):
            self.trace.notes.append(Note("unavailable", "this takes too long while the file is loaded: what it gives is unknown", span))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import_failed(span, error)
        elif stand_ins.cause_of(error) is not None:
            code, message = world_cause(error) or ("", "")
            said = any(note.code in OF_THE_WORLD and note.span is not None and note.span.file == file for note in self.trace.notes)
            if code in OF_THE_WORLD and not said:  # Once a file; nor is what follows from it said again.
                self.trace.notes.append(Note(code, message, span))
            stand_ins.called.clear()
        elif file_access.made_up and isinstance(error, ON_DATA):
            return  # What follows from a text that is not there is no mistake.
        elif not may_follow(self.trace, file, node) and not is_set_elsewhere(error):
            if isinstance(error, LeftOutError):
                span = self.frames.line(file, node.lineno)
            trail = self.frames.trail_of(traceback_of(error)) or [refused_at(error, file) or span]
            message = error.msg if isinstance(error, SyntaxError) and trail[-1] != span else one_line(error)
            kind = {ProcessEnded: "SystemExit", LeftOutError: ""}.get(type(error), type(error).__name__)
            self.trace.mismatches.append(Mismatch("definition", message or kind, kind, trail[-1], trail, -1))

    def _import_failed(self, span: FileSpan, error: BaseException) -> None:
        message, kind = one_line(error), type(error).__name__
        if isinstance(error, ImportError) and is_sure(error):
            said = _FILE.sub("", message)
            self.trace.mismatches.append(Mismatch("definition", said, kind, span, [span], -1, meant=meant_name(error), sure=True))
        else:
            self.trace.notes.append(Note("missing-import", "%s: %s" % (kind, message), span))


_FILE = re.compile(r" \(\S+\)\Z")  # of a module, at the end of what Python says of a name that it lacks


def refused_at(error: BaseException, file: str) -> Optional[FileSpan]:
    """The place of what Python's compiler refuses in a file, though it can be parsed: an argument of a name twice, `await`, `break`."""
    if not isinstance(error, SyntaxError) or error.filename != file or not error.lineno or not error.offset:
        return None
    start, end_line = error.offset - 1, getattr(error, "end_lineno", None) or error.lineno  # It has an end since Python 3.10.
    return FileSpan(file, error.lineno, start, end_line, (getattr(error, "end_offset", None) or error.offset + 1) - 1)


def missing_message(name: str) -> str:
    """Returns Python's message for a package that is not installed."""
    return "ModuleNotFoundError: No module named %r" % name
