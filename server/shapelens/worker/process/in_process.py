"""The worker's main loop where there is no fork: runs happen in this process, each in fresh module namespaces.

The server replaces the process when a run hangs, exits or crashes. What user code does to torch itself lasts until then.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Set, Tuple

from ...protocol import MOST_STARVED, Cancel, Finished, Preload, Replace, Run, Stop, encode
from ...stated.syntax_trees import program_of
from ..loading.compile_cache import PREPARED
from ..loading.definitions import KEPT
from ..loading.import_graph import Imports
from ..sandbox import monkeypatches
from ..sandbox.allowed_acts import allow
from ..sandbox.audit_hook import forbid, trust
from ..sandbox.limits import GRACE, limit_time, no_time_limit, undisturbed
from ..sandbox.originals import os, signal
from ..sandbox.scratch_folder import clean_up_worker
from .framing import read_message

MOST_OUTPUT = 256 * 1024
MARK = b"\0end of output\0"
LONGEST_WAIT = 1.0  # seconds


class InProcessWorker:
    """Reads messages from `incoming`, writes to `outgoing`: file descriptors that nobody else knows."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = os.fdopen(incoming, "rb")
        self.outgoing = os.fdopen(outgoing, "wb")
        self.lock = threading.Lock()
        self.run_id = -1
        self.reached = threading.Event()
        self.is_as_it_began = True
        self.only_for: Optional[Tuple[str, Set[str]]] = None  # the document whose packages have changed others, and what it imports

    def send(self, message: Any) -> None:
        """Write a message to the server; a whole frame at a time."""
        frame = encode(message)
        with undisturbed(), self.lock:
            self.outgoing.write(frame)
            self.outgoing.flush()

    def serve(self) -> None:
        """Until `Stop`, or the end of `incoming`. A run that was cancelled before it began is not begun."""
        self._capture_output()
        while True:
            message = read_message(self.incoming)
            if message is None or isinstance(message, Stop):
                _clean_up()
                return
            if isinstance(message, Run):
                self.is_as_it_began = self.only_for is None or _imports_as_much(message, *self.only_for)
                if self.is_as_it_began:
                    self._run(message)
                if not self.is_as_it_began:
                    self.send(Replace())
                    _clean_up()
                    return
            elif isinstance(message, (Cancel, Preload)):
                pass  # What runs cannot be interrupted from here: the server ends the process.

    def _run(self, run: Run) -> None:
        from ..run import execute

        self.run_id = run.run_id
        before = set(sys.modules)
        patience = MOST_STARVED if hasattr(signal, "setitimer") else 1
        watchdog = threading.Timer(patience * run.longest + GRACE, self._too_late, [run])
        watchdog.daemon = True
        watchdog.start()
        allow(run.allow)
        forbid()
        limit_time(run.longest)
        state = monkeypatches.ProcessState()
        try:
            finished = execute(run, self.send)
        finally:
            no_time_limit()
            watchdog.cancel()
        self._forward_what_was_printed()
        self.send(finished)
        self._look_at_changes(run, state)
        _forget(before)
        for file in list(PREPARED.unprepared):
            PREPARED.prepare(file)

    def _look_at_changes(self, run: Run, before: monkeypatches.ProcessState) -> None:
        """Find out which runs this process may do from now on."""
        project = {name: module.__file__ or "" for name, module in list(sys.modules.items()) if KEPT in getattr(module, "__dict__", ())}
        found = before.monkeypatches(project, lambda: _texts(run, project))
        self.is_as_it_began = not found.by_project
        if found.by_packages:
            self.only_for = run.file, _packages(run.text)
        monkeypatches.SNAPSHOT.accept()

    def _too_late(self, run: Run) -> None:
        self.send(Finished(run.run_id, "deadline", "the run took longer than its deadline of %g s" % run.deadline, run.deadline))
        _clean_up()
        os._exit(75)

    def _capture_output(self) -> None:
        """Standard output and error, also of C code, go to the log as `Output`."""
        read, write = os.pipe()
        for number in (1, 2):
            os.dup2(write, number)
        os.close(write)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)
        threading.Thread(target=self._forward, args=[read], daemon=True).start()

    def _forward_what_was_printed(self) -> None:
        """Wait until all that is in the pipe has been sent: a mark goes in behind it."""
        sys.stdout.flush()
        self.reached.clear()
        os.write(1, MARK)
        self.reached.wait(LONGEST_WAIT)

    def _forward(self, read: int) -> None:
        from ...protocol import Output

        printed: Dict[int, int] = {}
        while True:
            chunk = os.read(read, 1 << 16)
            if not chunk:
                return
            text = chunk[: -len(MARK)] if chunk.endswith(MARK) else chunk
            sent = printed.get(self.run_id, 0)
            printed = {self.run_id: sent + len(text)}
            if text and sent < MOST_OUTPUT:
                self.send(Output(self.run_id, text.decode("utf-8", "replace")))
            if text is not chunk:
                self.reached.set()


def _imports_as_much(run: Run, file: str, packages: Set[str]) -> bool:
    """True if a run is one of this document and imports these packages."""
    return run.file == file and packages <= _packages(run.text)


def _packages(text: str) -> Set[str]:
    return Imports(program_of(text), "", False).packages()


def _texts(run: Run, project: Dict[str, str]) -> Iterator[str]:
    for file in {run.file, *project.values()}:
        text = run.text if file == run.file else run.overlays.get(file)
        with contextlib.suppress(OSError, ValueError):
            yield text if text is not None else Path(file).read_text(encoding="utf-8")


def _forget(before: Set[str]) -> None:
    """Drop the workspace's modules, so that the next run loads them anew; libraries stay."""
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "site-packages" not in file and "dist-packages" not in file:
            del sys.modules[name]


def _clean_up() -> None:
    """This process writes nothing any more."""
    trust()
    clean_up_worker()
