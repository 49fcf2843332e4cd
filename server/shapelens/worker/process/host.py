"""A loop that does each run in a child that was forked ahead of it.

User code never runs in this process. It relays the child's messages, kills it at its deadline, and says how it ended.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from functools import partial
from typing import Any, Callable, List, Optional

from ...protocol import HEADER, Cancel, Finished, Output, Run, Stop, decode, encode
from ..meta import op_cache
from ..reload.loaded_project import Standing
from ..sandbox.confinement import GRACE, clean_up, clean_up_after_the_dead
from . import child
from .framing import Splitter
from .messages import INTERNAL, Learnt, Outdated, Rehearsal

MOST_OUTPUT = 256 * 1024  # bytes of user prints that a run may send to the log
READ_SIZE = 1 << 18
AHEAD_SECONDS = 0.1  # that a run takes before another child is prepared beside it: a short one would have to share the processors
READING_SECONDS = 0.02  # for which no message is answered


class Child:
    """A forked process: waiting, or at work on `run`."""

    def __init__(self, inherited: List[int], standing: Optional[Standing] = None, rehearsal: Optional[Run] = None) -> None:
        job_out, self.job_in = os.pipe()
        self.results, result_in = os.pipe()
        self.output, output_in = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for number in inherited + [self.job_in, self.results, self.output]:
                os.close(number)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child.serve_one(job_out, result_in, output_in, standing, rehearsal)
        for number in (job_out, result_in, output_in):
            os.close(number)
        os.set_blocking(self.results, False)
        os.set_blocking(self.output, False)
        self.run: Optional[Run] = None
        self.splitter = Splitter()
        self.finished = False
        self.is_known = False  # what it does, so that the next run can be prepared
        self.began = float("inf")
        self.kill_at = float("inf")
        self.killed_for = ""
        self.printed = 0

    def start(self, run: Run) -> None:
        """Hand over the job."""
        self.run = run
        self.began = time.monotonic()
        self.kill_at = time.monotonic() + run.longest + GRACE
        with os.fdopen(self.job_in, "wb") as stream:
            stream.write(encode(run))
        self.job_in = -1

    def kill(self, reason: str) -> None:
        """Kill it and whatever it started."""
        self.killed_for = self.killed_for or reason
        for kill, target in ((os.killpg, self.pid), (os.kill, self.pid)):
            try:
                kill(target, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

    def close(self) -> None:
        """Close what this process holds of its pipes."""
        for number in (self.job_in, self.results, self.output):
            if number >= 0:
                os.close(number)


class Host:
    """Reads messages from `incoming`, writes to `outgoing`: file descriptors that nobody else knows."""

    def __init__(self, incoming: int, outgoing: int, standing: Optional[Standing] = None, rehearsal: Optional[Run] = None) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.standing = standing  # what this process has loaded for the runs of its children
        self.rehearsal = rehearsal  # what they do while they wait
        self.splitter = Splitter()
        self.selector = selectors.DefaultSelector()
        self.waiting: Optional[Child] = None
        self.working: Optional[Child] = None
        self.background: Optional[Child] = None  # does a run in the background
        self.dying: List[Child] = []  # killed, as nobody waits for them any more: the end of a large process takes its time
        self.queue: List[Run] = []
        self.background_queue: List[Run] = []  # those for the background
        self.wake, self.wake_in = os.pipe()
        self.stopping = False
        self.is_read = False  # what stands loaded, as far as later runs need it

    def serve(self) -> None:
        """Until `Stop`, or the end of `incoming`."""
        clean_up_after_the_dead()
        os.set_blocking(self.incoming, False)
        os.set_blocking(self.wake, False)
        os.set_blocking(self.wake_in, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_in, warn_on_full_buffer=False)
        self.selector.register(self.incoming, selectors.EVENT_READ, self._read_server)
        self.selector.register(self.wake, selectors.EVENT_READ, self._drain_wake)
        try:
            while not self.stopping:
                self._prepare()
                ready = self.selector.select(self._timeout())
                if not ready:
                    self._while_idle()
                for key, _ in ready:
                    if key.fileobj in self.selector.get_map():  # An earlier handler of this round may have closed it.
                        key.data()
                self._reap()
                self._watch_deadline()
        finally:
            for process in [*self._children(), *self.dying]:
                process.kill("stop")
                try:
                    os.waitpid(process.pid, 0)
                except ChildProcessError:
                    pass
                clean_up(process.pid)

    def send(self, message: Any) -> None:
        """Write a message to the server."""
        self._write(encode(message))

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        try:
            while view:
                view = view[os.write(self.outgoing, view) :]
        except BrokenPipeError:
            self.stopping = True

    # --- the server's messages ---

    def _read_server(self) -> None:
        chunk = os.read(self.incoming, READ_SIZE)
        if not chunk:
            self.stopping = True
            return
        for frame in self.splitter.feed(chunk):
            self._handle(decode(frame[HEADER.size :]))

    def _handle(self, message: Any) -> None:
        if isinstance(message, Run):
            (self.background_queue if message.background and self.standing is not None else self.queue).append(message)
            self._next()
        elif isinstance(message, Cancel):
            self._cancel(message.run_id)
        elif isinstance(message, Stop):
            self.stopping = True

    def _cancel(self, run_id: int) -> None:
        for queue in (self.queue, self.background_queue):
            for run in [run for run in queue if run.run_id == run_id]:
                queue.remove(run)
                self.send(Finished(run_id, "cancelled"))
        for process in self._children():
            if process.run is not None and process.run.run_id == run_id:
                self._let_go(process)
                self._next()

    def _let_go(self, process: Child) -> None:
        """End a run: it is over from now on, whatever becomes of its process."""
        assert process.run is not None
        process.kill("cancelled")
        for number in (process.results, process.output):
            if number in self.selector.get_map():
                self.selector.unregister(number)
        process.close()
        self.dying.append(process)
        self.working = None if process is self.working else self.working
        self.background = None if process is self.background else self.background
        if not process.finished:
            self.send(Finished(process.run.run_id, "cancelled"))

    def _replace_waiting(self) -> None:
        """The child that waits does not have what has just been loaded; the next one will."""
        if self.waiting is not None:
            self.waiting.kill("stale")
            os.waitpid(self.waiting.pid, 0)
            self.waiting.close()
            self.waiting = None

    def _while_idle(self) -> None:
        """Nothing has happened for as long as `_timeout` says."""
        if self.standing is not None and not self.is_read:
            self.is_read = self.standing.read_imports(READING_SECONDS)

    def _next(self) -> None:
        if self.working is None and self.queue:
            self._prepare()
            process, self.waiting = self.waiting, None
            assert process is not None
            self.working = process
            self._begin(process, self.queue.pop(0))
        elif self.background is None and self.background_queue:
            self.background = Child(self._open(), self.standing)
            self._begin(self.background, self.background_queue.pop(0))

    def _begin(self, process: Child, run: Run) -> None:
        self.selector.register(process.results, selectors.EVENT_READ, lambda: self._relay(process))
        self.selector.register(process.output, selectors.EVENT_READ, lambda: self._relay_output(process))
        try:
            process.start(run)
        except BrokenPipeError:
            pass  # It died while it waited: _reap says so.

    def _prepare(self) -> None:
        """Have a child that waits for the next run, also beside one that is at work: that may be cancelled."""
        if self.waiting is None and (self.working is None or (self.standing is not None and self._may_be_joined(self.working))):
            # One that is needed now has no time to rehearse.
            self.waiting = Child(self._open(), self.standing, None if self.queue else self.rehearsal)

    def _may_be_joined(self, process: Child) -> bool:
        return process.is_known or time.monotonic() - process.began > AHEAD_SECONDS

    def _open(self) -> List[int]:
        """The files of this process that are not for those that it forks."""
        pipes = [number for child in self._children() for number in (child.job_in, child.results, child.output) if number >= 0]
        return [self.incoming, self.outgoing, self.wake, self.wake_in, *pipes]

    def _children(self) -> List[Child]:
        return [child for child in (self.waiting, self.working, self.background) if child is not None]

    # --- the child's messages ---

    def _relay(self, process: Child) -> None:
        chunk = read(process.results)
        if chunk == b"":
            self.selector.unregister(process.results)
        for frame in process.splitter.feed(chunk or b""):
            kind = kind_of(frame)
            if kind in ("Finished", "Unsuited"):
                process.finished = True
                # What was printed before belongs in front of it.
                self._drain(process.output, lambda: self._relay_output(process))
            if kind in INTERNAL:
                process.is_known |= kind == "Rehearsal"
                self._hear(decode(frame[HEADER.size :]), frame)
            else:
                self._write(frame)

    def _hear(self, message: Any, frame: bytes) -> None:
        """What a child says to this process, or to the one that this one was forked by."""
        if isinstance(message, Learnt):
            op_cache.learn(message.additions)
        elif isinstance(message, Rehearsal):
            before, run = self.rehearsal, message.run
            if before is None or (before.file, before.examples) != (run.file, run.examples):
                self._replace_waiting()
            self.rehearsal = message.run
            if self.standing is not None and not run.brief:
                absorbed = [self.standing.absorb(each) for each in (message.latest, run) if each is not None]
                if not all(absorbed):
                    self.send(Outdated())
        self._write(frame)

    def _relay_output(self, process: Child) -> None:
        assert process.run is not None
        chunk = read(process.output)
        if chunk == b"":
            self.selector.unregister(process.output)
        elif chunk:
            process.printed = self._tell(process.run.run_id, chunk, process.printed)

    def _tell(self, run_id: int, chunk: bytes, printed: int) -> int:
        """Send what was printed for a run, after as many bytes as were `printed` before; how many that are now."""
        room = MOST_OUTPUT - printed
        if room > 0:
            text = chunk[:room].decode("utf-8", "replace")
            self.send(Output(run_id, text if len(chunk) <= room else text + "\n[more is not shown]\n"))
        return printed + len(chunk)

    # --- ends ---

    def _timeout(self) -> Optional[float]:
        if self.standing is not None and not self.is_read:
            return 0.0
        ends = [child.kill_at for child in self._children() if child.run is not None]
        if self.working is not None and self.waiting is None and self.standing is not None:
            ends.append(self.working.began + AHEAD_SECONDS)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _watch_deadline(self) -> None:
        for process in self._children():
            if time.monotonic() >= process.kill_at:
                process.kill("deadline")
                process.kill_at = time.monotonic() + 60

    def _drain_wake(self) -> None:
        read(self.wake)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.waiting is not None and pid == self.waiting.pid:
                self.waiting.close()
                self.waiting = None
            else:
                for process in [process for process in self.dying if process.pid == pid]:
                    self.dying.remove(process)
                    self._bury(process)
                for process in self._children():
                    if process.pid == pid:
                        self._ended(process, status)

    def _ended(self, process: Child, status: int) -> None:
        """A child that was at work is gone: what it wrote last, then how it ended."""
        assert process.run is not None
        for number, relay in ((process.results, self._relay), (process.output, self._relay_output)):
            self._drain(number, partial(relay, process))
            if number in self.selector.get_map():
                self.selector.unregister(number)
        self.working = None if process is self.working else self.working
        self.background = None if process is self.background else self.background
        process.close()
        self._bury(process)
        if not process.finished:
            outcome, detail = how_it_ended(process, status)
            self.send(Finished(process.run.run_id, outcome, detail))
        self._next()

    def _bury(self, process: Child) -> None:
        process.kill("ended")  # What it may have left running.
        clean_up(process.pid)

    def _drain(self, number: int, relay: Callable[[], None]) -> None:
        """Relay all that a pipe holds now."""
        while number in self.selector.get_map() and any(key.fd == number for key, _ in self.selector.select(0)):
            relay()


def how_it_ended(process: Child, status: int) -> Any:
    """(outcome, detail) for a child that did not say so itself."""
    if process.killed_for == "deadline":
        assert process.run is not None
        return "deadline", "the run took longer than its deadline of %g s" % process.run.deadline
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = "signal %d" % number
        return "crash", "the process that ran the file was ended by %s" % name
    return "exit", "the file ended its process with exit code %d" % os.WEXITSTATUS(status)


def kind_of(frame: bytes) -> str:
    """The class of the message in a frame."""
    start = HEADER.size + len(b'{"type":"')
    return frame[start : frame.index(b'"', start)].decode()


def read(number: int) -> Optional[bytes]:
    """What a pipe holds now; b"" at its end, None where there is nothing at the moment."""
    try:
        return os.read(number, READ_SIZE)
    except BlockingIOError:
        return None
