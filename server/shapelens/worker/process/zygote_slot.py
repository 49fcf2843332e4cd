"""The zygotes as the main process sees them: one that takes runs, and perhaps its successor, which still loads."""

from __future__ import annotations

import enum
from typing import Any, List, Optional, Set, Tuple

from ...protocol import HEADER, LONGEST_LOAD, MOST_STARVED, Cancel, Run, decode, encode
from ...timeouts import TIMEOUTS
from ..loading import load_progress
from ..loading.load_progress import LoadProgress, RunningStatement
from ..sandbox.clocks import RunClock
from ..sandbox.limits import GRACE
from ..sandbox.originals import time
from ..sandbox.scratch_folder import clean_up
from .child_pool import kind_of
from .event_loop import EventLoop, Timer, kill, read, write_all
from .failed_loads import Cause
from .forks import pipe_from, pipe_to
from .framing import FrameSplitter
from .messages import Fork, ProjectLoaded

PATIENCE = 0.3  # seconds that a zygote has to end its children
STUCK_SECONDS = 0.5  # in one statement, after which a newer text need not wait for its end
LOOKING_SECONDS = 0.25  # between looks at what is being loaded


class ZygoteStage(enum.Enum):
    """Names what a zygote does."""

    LOADING = "loading"
    READY = "ready"
    WORKING = "working"  # on a run that somebody waits for
    ENDED = "ended"


class Zygote:
    """A process that loads what a run needs, and takes runs once it has.

    awaited: the run itself is still to be done, and is what it loads all of this for.
    """

    def __init__(self, loop: EventLoop, forks: Any, run: Run, *, awaited: bool) -> None:
        self.loads = run
        self.awaited = awaited
        self.stage = ZygoteStage.LOADING
        self.modules: Set[str] = set()  # the outermost packages that it has loaded
        self.run: Optional[Run] = None  # that it works on
        self.background: Optional[Run] = None  # that it does in the background
        self.is_hanging = False
        self.began = time.monotonic()
        self.printed = 0
        self.splitter = FrameSplitter()
        self.limit: Optional[Timer] = None
        memory = load_progress.memory()
        self._progress: Optional[LoadProgress] = LoadProgress(memory)
        jobs, self.jobs = pipe_to(loop)
        self.results, results_in = pipe_from(loop)
        self.output, output_in = pipe_from(loop)  # what is printed while it loads
        self.pid = forks.fork(Fork("zygote", run, awaited), [jobs, results_in, output_in, memory])
        self.load_clock = self.statement_clock = RunClock(self.pid)
        self._looked_at: Tuple[float, int] = (0.0, loop.suspensions)

    def executing(self) -> List[RunningStatement]:
        """Returns what it is loading, the document's statement first."""
        return self._progress.stack() if self._progress is not None else []

    def seconds_at(self) -> float:
        """Returns how long it has been executing the innermost statement of the user's."""
        stack = self.executing()
        return time.monotonic() - stack[-1].since if stack else 0.0

    def look(self, suspensions: int) -> None:
        """Have the clocks begin anew for a statement that is another one than before, or after this process was suspended."""
        stack = self.executing()
        since = stack[-1].since if stack else 0.0
        if suspensions != self._looked_at[1]:
            self.load_clock = RunClock(self.pid)
        if (since, suspensions) != self._looked_at:
            self._looked_at, self.statement_clock = (since, suspensions), RunClock(self.pid)

    def is_stuck_in_removed_code(self, run: Run) -> bool:
        """True if it has been executing for long what a newer run does not come to."""
        stack = self.executing()
        if self.seconds_at() < STUCK_SECONDS:
            return False
        if run.file != self.loads.file and not stack[-1].is_import:
            return True  # It is the other document's own code that takes so long.
        return any(Cause(each, self.loads).is_removed_by(run) for each in stack)

    def has_loaded(self, modules: List[str]) -> None:
        """It is ready."""
        self.stage, self.modules = ZygoteStage.READY, set(modules)
        if self._progress is not None:
            self._progress.close()
            self._progress = None


class ZygoteSlot:
    """Holds the zygotes, lends runs to them, and tells the main process what they say and how they end.

    forks: where they are forked. outgoing: the descriptor for what the server is to know. owner: the main process, which is told of
    `relay(frame)`, `forward_output(run_id, chunk, printed)`, `zygote_ended(zygote, stack)`, `changed()` and `rested()`.
    """

    def __init__(self, loop: EventLoop, forks: Any, owner: Any) -> None:
        self.current: Optional[Zygote] = None
        self.successor: Optional[Zygote] = None
        self._loop = loop
        self._forks = forks
        self._owner = owner

    # --- what is there ---

    def is_at_work(self) -> bool:
        """True if a run that somebody waits for is under way."""
        return self.current is not None and self.current.stage is ZygoteStage.WORKING

    def ready_for(self, root: str) -> Optional[Zygote]:
        """A zygote that can take a run of this workspace folder now."""
        zygote = self.current
        return zygote if zygote is not None and zygote.stage is ZygoteStage.READY and zygote.loads.root == root else None

    def loading_for(self, root: str) -> Optional[Zygote]:
        """A zygote that still loads for this workspace folder."""
        return self.successor if self.successor is not None and self.successor.loads.root == root else None

    def is_there_for(self, root: str) -> bool:
        """True if a zygote of this workspace folder is there, or is coming."""
        return any(each is not None and each.loads.root == root for each in (self.current, self.successor))

    # --- what is done with it ---

    def load(self, run: Run, *, awaited: bool) -> None:
        """Have another zygote load what a run needs: it waits for that, or it was the last one, and what it needed is loaded once more."""
        if self.successor is not None:
            self.end(self.successor)
        zygote = self.successor = Zygote(self._loop, self._forks, run, awaited=awaited)
        self._loop.when_ended(zygote.pid, lambda status: self._ended(zygote))
        self._loop.watch(zygote.results, lambda: self._relay(zygote))
        self._loop.watch(zygote.output, lambda: self._relay_output(zygote))
        zygote.limit = self._loop.at(time.monotonic() + LOOKING_SECONDS, lambda: self._look(zygote))

    def lend(self, zygote: Zygote, run: Run) -> None:
        """Have a run done."""
        zygote.stage, zygote.run = ZygoteStage.WORKING, run
        # It watches over its children itself.
        zygote.limit = self._loop.at(time.monotonic() + MOST_STARVED * run.longest + 2 * GRACE, lambda: kill(zygote.pid))
        write_all(zygote.jobs, encode(run))

    def lend_background(self, run: Run) -> bool:
        """Have a run done in the background; whether that can be now."""
        zygote = self.ready_for(run.root)
        if zygote is None or zygote.background is not None or self.successor is not None:
            return False
        zygote.background = run
        write_all(zygote.jobs, encode(run))
        return True

    def cancel(self, run_id: int) -> None:
        """End a run if it is here."""
        zygote = self.current
        if zygote is not None and any(run is not None and run.run_id == run_id for run in (zygote.run, zygote.background)):
            write_all(zygote.jobs, encode(Cancel(run_id)))

    def end(self, zygote: Zygote) -> None:
        """End a zygote and its children, without waiting for that."""
        self._forget(zygote)
        patience = PATIENCE if zygote.stage is not ZygoteStage.LOADING else 0.0
        zygote.stage = ZygoteStage.ENDED
        zygote.limit = self._loop.at(time.monotonic() + patience, lambda: kill(zygote.pid))
        self._close(zygote)

    def end_all(self) -> None:
        """End all of them."""
        for zygote in (self.current, self.successor):
            if zygote is not None:
                self.end(zygote)

    def take_over(self) -> None:
        """The successor takes the place of the current one, once it is ready and the other has nothing to do."""
        zygote, before = self.successor, self.current
        if zygote is None or zygote.stage is not ZygoteStage.READY:
            return
        if before is not None and (before.run is not None or before.background is not None):
            return
        if before is not None:
            self.end(before)
        self.current, self.successor = zygote, None

    # --- what they say ---

    def _relay(self, zygote: Zygote) -> None:
        chunk = read(zygote.results)
        if chunk == b"":  # It has ended, which it does not do by itself once it is ready; or it is about to.
            kill(zygote.pid)
            self._ended_by_itself(zygote)
            return
        for frame in zygote.splitter.feed(chunk or b""):
            message = decode(frame[HEADER.size :]) if kind_of(frame) in ("ProjectLoaded", "Finished") else None
            if isinstance(message, ProjectLoaded):
                self._cancel_limit(zygote)
                zygote.has_loaded(message.modules)
                self._loop.drain(zygote.output)
            elif message is not None:
                self._owner.relay(frame)
                self._returned(zygote, message.run_id)
            else:
                self._owner.relay(frame)
            if zygote.stage is ZygoteStage.ENDED:  # It was ended for what it said.
                break
        self._owner.changed()

    def _returned(self, zygote: Zygote, run_id: int) -> None:
        if zygote.background is not None and zygote.background.run_id == run_id:
            zygote.background = None
        if zygote.run is not None and zygote.run.run_id == run_id:
            self._cancel_limit(zygote)
            zygote.run, zygote.stage = None, ZygoteStage.READY
        self._owner.rested()

    def _relay_output(self, zygote: Zygote) -> None:
        """Tells whoever waits what is printed while it loads; later it prints nothing."""
        chunk = read(zygote.output)
        if chunk == b"":
            self._loop.unwatch(zygote.output)
        elif chunk and zygote.awaited:
            zygote.printed = self._owner.forward_output(zygote.loads.run_id, chunk, zygote.printed)

    def _look(self, zygote: Zygote) -> None:
        """A zygote is still loading."""
        stack = zygote.executing()
        is_import = not stack or stack[-1].is_import
        zygote.look(self._loop.suspensions)
        took = zygote.load_clock()
        zygote.is_hanging = took > LONGEST_LOAD + GRACE or (not is_import and zygote.statement_clock() > TIMEOUTS.hanging)
        if zygote.is_hanging:
            kill(zygote.pid)
        else:
            zygote.limit = self._loop.at(time.monotonic() + LOOKING_SECONDS, lambda: self._look(zygote))
            self._owner.changed()

    # --- ends ---

    def _ended(self, zygote: Zygote) -> None:
        self._cancel_limit(zygote)
        self._loop.drain(zygote.results)
        if zygote.stage is not ZygoteStage.ENDED:
            self._ended_by_itself(zygote)
        clean_up(zygote.pid)

    def _ended_by_itself(self, zygote: Zygote) -> None:
        """A zygote has ended by itself, or was killed for what it did."""
        self._forget(zygote)
        stack = zygote.executing()
        zygote.stage = ZygoteStage.ENDED
        self._loop.drain(zygote.output)
        self._close(zygote)
        self._owner.zygote_ended(zygote, stack)

    def _forget(self, zygote: Zygote) -> None:
        self.current = None if zygote is self.current else self.current
        self.successor = None if zygote is self.successor else self.successor

    def _close(self, zygote: Zygote) -> None:
        numbers, zygote.jobs, zygote.results, zygote.output = (zygote.jobs, zygote.results, zygote.output), -1, -1, -1
        self._loop.close(*numbers)

    def _cancel_limit(self, zygote: Zygote) -> None:
        if zygote.limit is not None:
            zygote.limit.cancel()
