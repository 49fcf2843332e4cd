"""The process that holds the server's pipes: it decides which process does which run, and no user code ever runs in it.

A run is done by a child of the zygote, which has loaded what the last run of the project has; where there is no zygote yet, one is made for
it. A run that no zygote can do is done by a child of this process, or of the one that has imported libraries, which does not stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional

from ...protocol import HEADER, Cancel, Finished, Loading, Preload, Run, Stop, decode
from ..loading.load_progress import RunningStatement
from ..sandbox.originals import os, time
from ..sandbox.scratch_folder import clean_up_after_the_dead, clean_up_worker, folder_of_worker
from . import child, library_process, zygote
from .child_pool import ChildPool
from .event_loop import READ_SIZE, EventLoop
from .failed_loads import FailedLoads
from .framing import FrameSplitter
from .library_process import Libraries
from .messages import Fork, Imported, OpCacheAdditions, Outdated, Rehearsal, RunUnsuitable
from .orphans import children_of, end_with_descendants
from .zygote_slot import Zygote, ZygoteSlot, ZygoteStage

QUIET_SECONDS = 1.0  # without a run, after which files are prepared for the next zygote
PROVEN_SECONDS = 10.0  # for which a zygote has to live until its failures are forgotten
ENDING_SECONDS = 0.5  # in which zygotes end their children when the worker ends


def begin_fork(order: Fork, numbers: List[int]) -> None:
    """Does the work of a process that the main process or the libraries' process has forked. It never returns."""
    if order.role == "zygote":
        assert order.run is not None
        zygote.serve(order.run, numbers, awaited=order.awaited)
    elif order.role == "libraries":
        library_process.serve(numbers[0], begin_fork)
    elif order.role == "compiler":
        library_process.compile_files(order.files)
    else:
        child.serve(numbers, None, None)


class MainProcess:
    """Reads messages from `incoming`, writes to `outgoing`: descriptors that nobody else knows."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._splitter = FrameSplitter()
        self._loop = EventLoop()
        self._loop.own(outgoing)
        self._loop.watch(incoming, self._read)
        self._libraries = Libraries(self._loop, begin_fork, self._libraries_settled)
        self._children = ChildPool(self._loop, self._libraries, outgoing, self._receive, is_ahead=False, rested=self.rested)
        self._zygotes = ZygoteSlot(self._loop, self._libraries, self)
        self._failed = FailedLoads()
        self._queue: List[Run] = []
        self._said_to_load = -1  # the run of which the server knows that what it needs is being loaded
        self._refused = -1  # the run that no zygote could do
        self._is_outdated = False  # what the zygote has loaded
        self._rehearsal: Optional[Run] = None  # what the next zygote loads
        self._imported: List[str] = []  # files that are to be prepared for the next zygote

    def serve(self) -> None:
        """Until `Stop`, or the end of `incoming`."""
        clean_up_after_the_dead()
        folder_of_worker()
        self._loop.orphans.adopt()
        try:
            self._loop.run()
        finally:
            self._zygotes.end_all()
            self._children.end()
            self._loop.run_until(lambda: not self._loop.waits_for_ends(), ENDING_SECONDS)
            self._libraries.end()
            for pid in children_of(os.getpid()):
                end_with_descendants(pid)
            clean_up_worker()

    # --- the server's messages ---

    def _read(self) -> None:
        chunk = os.read(self._incoming, READ_SIZE)
        if not chunk:
            self._loop.stopping = True
            return
        for frame in self._splitter.feed(chunk):
            self._handle(decode(frame[HEADER.size :]))

    def _handle(self, message: Any) -> None:
        if isinstance(message, Preload):
            self._libraries.load(message.modules, message.allow)
        elif isinstance(message, Run):
            self._libraries.load([], message.allow)
            idle = not self._queue and not self._children.is_at_work()
            waits = message.background and self._is_better_to_come(message)
            if waits or not (message.background and idle and self._zygotes.lend_background(message)):
                self._queue.append(message)
                self.changed()
        elif isinstance(message, Cancel):
            for run in [run for run in self._queue if run.run_id == message.run_id]:
                self._queue.remove(run)
                self._children.send(Finished(run.run_id, "cancelled"))
            self._children.cancel(message.run_id)
            self._zygotes.cancel(message.run_id)
        elif isinstance(message, Stop):
            self._loop.stopping = True

    # --- which process does the next run ---

    def changed(self) -> None:
        """Something has changed that may let the next run begin."""
        self._zygotes.take_over()
        if not self._queue or self._children.is_at_work() or self._zygotes.is_at_work():
            return
        run = self._queue[0]
        ready = self._zygotes.ready_for(run.root)
        if run.background and ready is not None and self._is_better_to_come(run):
            self._say_that_it_loads(run)
            return
        if run.run_id == self._refused or run.line_by_line or run.left_out:  # No zygote is to load that.
            self._children.submit(self._queue.pop(0))
        elif ready is not None:
            self._zygotes.lend(ready, self._queue.pop(0))
        elif self._libraries.are_awaited_by(run):
            self._say_that_it_loads(run)
        elif self._failed.hold(run):
            self._children.submit(self._queue.pop(0))
        else:
            loading = self._zygotes.loading_for(run.root)
            if loading is None or loading.is_stuck_in_removed_code(run):
                self._load(run, awaited=True)
            self._say_that_it_loads(run)

    def _is_better_to_come(self, run: Run) -> bool:
        """True if a zygote loads, or soon will, that has libraries which the current one does not have: each run there would import them
        anew. For a run that nobody waits for.
        """
        return self._zygotes.loading_for(run.root) is not None or self._libraries.are_awaited_by(run)

    def _say_that_it_loads(self, run: Run) -> None:
        if self._said_to_load != run.run_id:
            self._said_to_load = run.run_id
            self._children.send(Loading(run.run_id))

    def _load(self, run: Run, *, awaited: bool) -> None:
        self._is_outdated = False
        self._zygotes.load(run, awaited=awaited)

    def rested(self) -> None:
        """A run has ended: now there is time to load once more what is not as the next run needs it."""
        self._zygotes.take_over()
        self._prove(self._zygotes.current)
        if self._is_outdated and self._rehearsal is not None and not self._children.is_at_work():
            self._load(self._rehearsal, awaited=False)
        self.changed()

    def _libraries_settled(self) -> None:
        """Another zygote would have libraries that the current one does not have."""
        current = self._zygotes.current
        if current is not None and not self._libraries.are_had_by(current.modules):
            self._is_outdated = True
            if not self._zygotes.is_at_work():
                self.rested()
        self._loop.when_idle(QUIET_SECONDS, self._work_ahead)
        self.changed()

    # --- what the other processes say ---

    def relay(self, frame: bytes) -> None:
        """A zygote has something for the server, or for this process."""
        message = self._children.relay(frame)
        if message is not None:
            self._receive(message, frame)

    def forward_output(self, run_id: int, chunk: bytes, printed: int) -> int:
        """A zygote has printed something."""
        return self._children.forward_output(run_id, chunk, printed)

    def _receive(self, message: Any, frame: bytes) -> None:
        if isinstance(message, OpCacheAdditions):
            self._libraries.learn(message.additions)
        elif isinstance(message, Imported):
            self._imported += message.files
            self._loop.when_idle(QUIET_SECONDS, self._work_ahead)
        elif isinstance(message, Rehearsal):
            self._rehearsal = message.run
            if not self._zygotes.is_there_for(message.run.root):
                self._is_outdated |= self._failed.may_be_tried(message.run)
        elif isinstance(message, Outdated):
            self._is_outdated = True
        elif isinstance(message, RunUnsuitable):
            self._unsuited(message.run_id)

    def _unsuited(self, run_id: int) -> None:
        """The zygote cannot do a run: another one is made for it. One that was made for this very run would not be better."""
        zygote = self._zygotes.current
        if zygote is None:
            return
        self._take_back(zygote)
        if zygote.run is not None and zygote.run.run_id == run_id:
            self._queue.insert(0, zygote.run)
            if zygote.awaited and zygote.loads.run_id == run_id:
                self._refused = run_id
            self._zygotes.end(zygote)

    def _prove(self, zygote: Optional[Zygote]) -> None:
        """A zygote that has been of use for some time can be loaded again."""
        if zygote is not None and zygote.stage is not ZygoteStage.LOADING and time.monotonic() - zygote.began > PROVEN_SECONDS:
            self._failed.forget(zygote.loads.file)

    def _take_back(self, zygote: Zygote) -> None:
        """Queues what a zygote was to do in the background, like any other run."""
        if zygote.background is not None:
            self._queue.append(replace(zygote.background, background=False))
            zygote.background = None

    def zygote_ended(self, zygote: Zygote, stack: List[RunningStatement]) -> None:
        """A zygote has ended, which it does not do by itself once it is ready and well."""
        if zygote.run is not None:
            self._refused = zygote.run.run_id
            self._queue.insert(0, zygote.run)
        self._take_back(zygote)
        self._failed.note(zygote.loads, stack)
        if zygote.is_hanging and self._queue and self._queue[0].run_id == zygote.loads.run_id:
            self._children.send(Finished(self._queue.pop(0).run_id, "deadline", _what_hangs(stack)))
        self.changed()

    # --- ahead of the next zygote ---

    def _work_ahead(self) -> bool:
        if self._zygotes.is_at_work() or self._children.is_at_work():
            return True
        if self._imported:
            self._libraries.prepare(self._imported.pop())
            return True
        self._libraries.compile()
        return False


def _what_hangs(stack: List[RunningStatement]) -> str:
    if not stack:
        return "the file and what it imports took too long to load"
    return "loading does not come to an end: line %d of %s" % (stack[-1].line, os.path.basename(stack[-1].file))
