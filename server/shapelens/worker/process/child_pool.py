"""Children that do one run each: one waits, forked ahead of its run; one works; one more may work in the background."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Callable, List, Optional

from ...protocol import HEADER, Finished, Output, Run, decode, encode
from ..sandbox.clocks import RunClock
from ..sandbox.limits import GRACE
from ..sandbox.originals import os, signal, time
from ..sandbox.scratch_folder import clean_up
from .event_loop import EventLoop, Timer, kill, read, write_all
from .forks import pipe_from, pipe_to
from .framing import FrameSplitter
from .messages import INTERNAL, Fork

MOST_OUTPUT = 256 * 1024  # bytes of user prints that a run may send to the log
AHEAD_SECONDS = 0.1  # that a run takes before another child is prepared beside it: a short one would have to share the processors
REHEARSING_SECONDS = 2.0  # that a rehearsal may go on when there is a run to be done
DYING_SECONDS = 60.0  # after which a process that was killed is killed again


class Child:
    """A forked process: waiting, or at work on `run`."""

    def __init__(self, loop: EventLoop, forks: Any, rehearsal: Optional[Run] = None) -> None:
        jobs, self.job_in = pipe_to(loop)
        self.results, result_in = pipe_from(loop)
        self.output, output_in = pipe_from(loop)
        self.pid = forks.fork(Fork("child", rehearsal), [jobs, result_in, output_in])
        self.rehearsal = rehearsal
        self.run: Optional[Run] = None
        self.splitter = FrameSplitter()
        self.finished = False
        self.has_begun = rehearsal is None  # with its run: until then it rehearses
        self.is_known = False  # what it does, so that the next run can be prepared
        self.began = float("inf")
        self.deadline: Optional[Timer] = None
        self.clock = RunClock(self.pid)  # since its run began
        self.killed_for = ""
        self.printed = 0

    def kill(self, reason: str) -> None:
        """Kill it and whatever it started."""
        self.killed_for = self.killed_for or reason
        kill(self.pid)


class ChildPool:
    """Forks children, hands runs to them, relays their messages, kills them at their deadline, and says how they ended.

    outgoing: the descriptor for what the server is to know. receive: gets the messages that are not for the server, with their frames.
    is_ahead: whether a child is forked before there is a run for it. rested: called when a run has ended.
    """

    def __init__(
        self,
        loop: EventLoop,
        forks: Any,
        outgoing: int,
        receive: Callable[[Any, bytes], None],
        *,
        is_ahead: bool,
        rested: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = loop
        self._forks = forks
        self._outgoing = outgoing
        self._receive = receive
        self._is_ahead = is_ahead
        self._rested = rested
        self._waiting: Optional[Child] = None
        self._working: Optional[Child] = None
        self._background: Optional[Child] = None
        self._queue: List[Run] = []
        self._background_queue: List[Run] = []
        self._rehearsal: Optional[Run] = None  # what children do while they wait
        self._died_of: Optional[Run] = None  # a rehearsal that ended its process: it is not tried again
        self._must_wait = False  # a child died before there was anything to do for it: none is forked ahead until the next run

    # --- runs ---

    def is_at_work(self) -> bool:
        """True if a run that somebody waits for is under way or in the queue."""
        return self._working is not None or bool(self._queue)

    def submit(self, run: Run, *, background: bool = False) -> None:
        """Do a run as soon as may be; one in the background has a child of its own."""
        (self._background_queue if background else self._queue).append(run)
        self._next()

    def cancel(self, run_id: int) -> None:
        """End a run, which is said at once, whatever becomes of its process; nothing happens if it is not here."""
        for queue in (self._queue, self._background_queue):
            for run in [run for run in queue if run.run_id == run_id]:
                queue.remove(run)
                self.send(Finished(run_id, "cancelled"))
        for child in (self._working, self._background):
            if child is not None and child.run is not None and child.run.run_id == run_id:
                child.kill("cancelled")  # The end of a large process takes its time: nobody waits for it.
                self._let_go(child)
                if not child.finished:
                    self.send(Finished(run_id, "cancelled"))
                self._next()

    def rehearse(self, run: Run) -> None:
        """Have children rehearse this run from now on."""
        before, self._rehearsal = self._rehearsal, run
        if before is None or (before.file, before.examples) != (run.file, run.examples):
            self.renew()

    def renew(self) -> None:
        """The child that waits does not have what this process has loaded since it was forked; the next one will."""
        if self._waiting is not None:
            child, self._waiting = self._waiting, None
            child.kill("stale")
            self._close(child)

    def prepare(self) -> None:
        """Have a child that waits for the next run, also beside one that is at work: that one may be cancelled."""
        if self._is_ahead and self._waiting is None and not self._must_wait and self._may_be_joined():
            self._fork_ahead()

    def _may_be_joined(self) -> bool:
        child = self._working
        return child is None or child.is_known or time.monotonic() - child.began > AHEAD_SECONDS

    def _fork_ahead(self) -> None:
        # A child that is needed now has no time to rehearse.
        rehearsal = None if self._queue or _are_the_same(self._rehearsal, self._died_of) else self._rehearsal
        child = self._waiting = Child(self._loop, self._forks, rehearsal)
        self._loop.when_ended(child.pid, partial(self._ended, child))

    def _next(self) -> None:
        if self._working is None and self._queue:
            if self._waiting is None:
                self._fork_ahead()
            child, self._waiting, self._must_wait = self._waiting, None, False
            assert child is not None
            self._working = child
            self._begin(child, self._queue.pop(0))
        elif self._background is None and self._background_queue:
            child = self._background = Child(self._loop, self._forks)
            self._loop.when_ended(child.pid, partial(self._ended, child))
            self._begin(child, self._background_queue.pop(0))

    def _begin(self, child: Child, run: Run) -> None:
        child.run, child.began, child.clock = run, time.monotonic(), RunClock(child.pid)
        self._loop.watch(child.results, lambda: self._relay(child))
        self._loop.watch(child.output, lambda: self._relay_output(child))
        child.deadline = self._loop.at(child.began + run.longest + GRACE, lambda: self._kill_late(child))
        if not child.has_begun:
            self._loop.at(child.began + REHEARSING_SECONDS, lambda: self._kill_rehearsing(child))
        if self._is_ahead and child is self._working:
            self._loop.at(child.began + AHEAD_SECONDS, lambda: None)  # Then another one is prepared.
        write_all(child.job_in, encode(run))  # A child that died while it waited says so by its end.
        self._loop.close(child.job_in)
        child.job_in = -1

    def _kill_rehearsing(self, child: Child) -> None:
        """A child that does not stop rehearsing when its run comes is in something that has no end."""
        if not child.has_begun and child is self._working:
            kill(child.pid)

    def _kill_late(self, child: Child) -> None:
        assert child.run is not None
        left = child.run.longest + GRACE - child.clock()
        if left > 0 and not child.killed_for:  # Others have had the processor.
            child.deadline = self._loop.at(time.monotonic() + left, lambda: self._kill_late(child))
            return
        child.kill("deadline")
        child.deadline = self._loop.at(time.monotonic() + DYING_SECONDS, lambda: self._kill_late(child))

    # --- messages ---

    def send(self, message: Any) -> None:
        """Write a message to the server."""
        if not write_all(self._outgoing, encode(message)):
            self._loop.stopping = True

    def relay(self, frame: bytes) -> Any:
        """Write a frame to the server if it is for the server; else the message in it, which is not."""
        if kind_of(frame) in INTERNAL:
            return decode(frame[HEADER.size :])
        if not write_all(self._outgoing, frame):
            self._loop.stopping = True
        return None

    def _relay(self, child: Child) -> None:
        chunk = read(child.results)
        if chunk == b"":
            self._loop.unwatch(child.results)
        for frame in child.splitter.feed(chunk or b""):
            kind = kind_of(frame)
            if kind in ("Finished", "RunUnsuitable"):
                child.finished = True
                self._loop.drain(child.output)  # What was printed before belongs in front of it.
            child.is_known |= kind == "Rehearsal"
            if kind == "RunBegun":
                child.has_begun = True
                continue
            message = self.relay(frame)
            if message is not None:
                self._receive(message, frame)

    def _relay_output(self, child: Child) -> None:
        assert child.run is not None
        chunk = read(child.output)
        if chunk == b"":
            self._loop.unwatch(child.output)
        elif chunk:
            child.printed = self.forward_output(child.run.run_id, chunk, child.printed)

    def forward_output(self, run_id: int, chunk: bytes, printed: int) -> int:
        """Send what was printed for a run, after as many bytes as were `printed` before; how many these are now."""
        room = MOST_OUTPUT - printed
        if room > 0:
            text = chunk[:room].decode("utf-8", "replace")
            self.send(Output(run_id, text if len(chunk) <= room else text + "\n[more is not shown]\n"))
        return printed + len(chunk)

    # --- ends ---

    def _ended(self, child: Child, status: int) -> None:
        """A child is gone: what it wrote last, then how it ended."""
        if child.run is not None:
            self._loop.drain(child.results)
            self._loop.drain(child.output)
        is_own = child in (self._waiting, self._working, self._background)
        self._let_go(child)
        kill(child.pid)  # What it may have left running.
        clean_up(child.pid)
        if not is_own:
            return
        if child.run is not None and not child.has_begun and not child.killed_for:
            self._died_of = child.rehearsal
            self._queue.insert(0, child.run)
            self._next()
            return
        if child.run is None:
            self._died_of, self._must_wait = child.rehearsal, child.rehearsal is None
            return
        if not child.finished:
            self.send(Finished(child.run.run_id, *how_it_ended(child, status)))
        self._next()
        self._rested()

    def _let_go(self, child: Child) -> None:
        self._waiting = None if child is self._waiting else self._waiting
        self._working = None if child is self._working else self._working
        self._background = None if child is self._background else self._background
        self._close(child)

    def _close(self, child: Child) -> None:
        if child.deadline is not None:
            child.deadline.cancel()
        numbers, child.job_in, child.results, child.output = (child.job_in, child.results, child.output), -1, -1, -1
        self._loop.close(*numbers)

    def end(self) -> None:
        """Kill all children."""
        for child in (self._waiting, self._working, self._background):
            if child is not None:
                child.kill("stop")


def _are_the_same(run: Optional[Run], other: Optional[Run]) -> bool:
    """True if two runs do the same: nothing but their number may differ."""
    return run is not None and other is not None and replace(run, run_id=0) == replace(other, run_id=0)


def how_it_ended(child: Child, status: int) -> Any:
    """(outcome, detail) for a child that did not say so itself."""
    if child.killed_for == "deadline":
        assert child.run is not None
        return "deadline", "the run took longer than its deadline of %g s" % child.run.deadline
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
