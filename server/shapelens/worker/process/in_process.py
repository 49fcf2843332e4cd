"""The worker's main loop where there is no fork: runs happen in this process, each in fresh module namespaces.

The server replaces the process when a run hangs, exits or crashes. What user code does to torch itself lasts until then.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Dict, Set

from ...protocol import Cancel, Finished, Preload, Run, Stop, encode
from ..loading.compile_cache import PREPARED
from ..sandbox.audit_hook import forbid, trust
from ..sandbox.limits import GRACE, limit_time, no_time_limit
from ..sandbox.originals import os
from ..sandbox.scratch_folder import clean_up
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

    def send(self, message: Any) -> None:
        """Write a message to the server; a whole frame at a time."""
        with self.lock:
            self.outgoing.write(encode(message))
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
                self._run(message)
            elif isinstance(message, (Cancel, Preload)):
                pass  # What runs cannot be interrupted from here: the server ends the process.

    def _run(self, run: Run) -> None:
        from ..run import execute

        self.run_id = run.run_id
        before = set(sys.modules)
        watchdog = threading.Timer(run.longest + GRACE, self._too_late, [run])
        watchdog.daemon = True
        watchdog.start()
        forbid()
        limit_time(run.longest)
        try:
            finished = execute(run, self.send)
        finally:
            no_time_limit()
            watchdog.cancel()
            _forget(before, run)
        self._forward_what_was_printed()
        self.send(finished)
        for file in list(PREPARED.unprepared):
            PREPARED.prepare(file)

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


def _forget(before: Set[str], run: Run) -> None:
    """Drop the workspace's modules, so that the next run loads them anew; libraries stay."""
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "site-packages" not in file and "dist-packages" not in file:
            del sys.modules[name]


def _clean_up() -> None:
    """This process writes nothing any more."""
    trust()
    clean_up(os.getpid())
