"""Runs in a zygote: a process that has loaded what a run loaded, and forks the processes of the runs that follow from there.

It is named after Android's, which does the same for apps. User code has run in it, so that it does not hold the server's pipes.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any, List, Optional

from ...protocol import HEADER, LONGEST_LOAD, Cancel, Run, decode, encode
from ..loading.compile_cache import PREPARED
from ..loading.load_progress import LoadProgress, shared
from ..meta import op_cache
from ..reload.loaded_project import LoadedProject
from ..sandbox import import_boundary, kernel_boundary, system_calls
from ..sandbox.allowed_acts import allow
from ..sandbox.audit_hook import forbid, trust
from ..sandbox.descriptors import OWN, Reserve
from ..sandbox.limits import limit_memory, limit_time, no_time_limit
from ..sandbox.originals import gc, os, signal, time
from ..sandbox.scratch_folder import folder_of_worker
from ..sandbox.threads import OtherThreads
from . import child
from .child_pool import ChildPool
from .event_loop import READ_SIZE, EventLoop, write_all
from .forks import Forks, loaded_packages
from .framing import FrameSplitter
from .messages import OpCacheAdditions, Outdated, ProjectLoaded, Rehearsal

READING_SECONDS = 0.02  # for which no message is answered
QUIET_SECONDS = 0.05  # after which it is looked at what loading has changed
LOOKING_SECONDS = 1.0  # between looks at the threads that loading has left behind
ENDING_SECONDS = 0.2  # in which its children end


def serve(run: Run, numbers: List[int], *, awaited: bool) -> None:
    """Load what a run needs, and serve from there. Ends the process.

    numbers: of the pipes for runs, for their messages, for what is printed meanwhile, and of the memory that shows what is being loaded.
    awaited: the run itself is still to be done.
    """
    incoming, outgoing, output, progress = numbers
    code = 0
    try:
        incoming, outgoing = OWN.take(incoming), OWN.take(outgoing)
        os.setsid()
        system_calls.end_with_parent(signal.SIGKILL)
        gc.disable()  # What is loaded stays: looking for garbage in between only takes time.
        child.redirect(output)
        threads, reserve = OtherThreads(), Reserve()
        allow(run.allow)
        forbid()
        trust()
        import_boundary.redirect_caches()
        kernel_boundary.confine_to(folder_of_worker())
        system_calls.refuse(forks=True)
        forbid()
        limit_memory(run.memory_limit)
        limit_time(LONGEST_LOAD)
        shared.progress = LoadProgress(progress)
        os.close(progress)
        project = LoadedProject(run)
        with project.context.environment():
            project.load()
            shared.progress.end()
            shared.progress = None
            gc.freeze()
            gc.enable()
            no_time_limit()
            trust()
            reserve.give_back()
            PREPARED.keep()
            sys.stdout.flush()
            child.redirect(os.open(os.devnull, os.O_WRONLY))
            write_all(outgoing, encode(ProjectLoaded(loaded_packages())))
            _ZygoteServer(incoming, outgoing, project, run if run.typed and not awaited else None, threads).serve()
    except BaseException:  # Nothing may get past this point: the parent's stack is below. Without a zygote runs take longer, that is all.
        traceback.print_exc()
        code = 70
    finally:
        os._exit(code)


class _ZygoteServer:
    def __init__(self, incoming: int, outgoing: int, project: LoadedProject, rehearsal: Optional[Run], threads: OtherThreads) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._project = project
        self._threads = threads
        self._splitter = FrameSplitter()
        self._loop = EventLoop()
        self._loop.orphans.adopt()
        self._loop.own(outgoing)
        self._loop.watch(incoming, self._read)
        forks = Forks(self._loop, lambda order, numbers: child.serve(numbers, project, order.run))
        self._children = ChildPool(self._loop, forks, outgoing, self._receive, is_ahead=True)
        if rehearsal is not None:
            self._children.rehearse(rehearsal)
        self._loop.before_waiting = self._children.prepare
        self._loop.when_idle(0.0, self._read_imports)
        self._look_at_threads()

    def serve(self) -> None:
        """Until the end of what comes in."""
        self._loop.run()
        self._children.end()
        self._loop.run_until(lambda: not self._loop.waits_for_ends(), ENDING_SECONDS)

    def _read(self) -> None:
        chunk = os.read(self._incoming, READ_SIZE)
        if not chunk:
            self._loop.stopping = True
        for frame in self._splitter.feed(chunk):
            message = decode(frame[HEADER.size :])
            if isinstance(message, Run):
                loaded, is_awaited = self._project.context.run, message.typed and not message.background
                if not is_awaited and (message.file, message.text) != (loaded.file, loaded.text):
                    self._project.foreign_changes.by_loading()  # Else each process that does a run of another text looks.
                self._children.submit(message, background=message.background)
            elif isinstance(message, Cancel):
                self._children.cancel(message.run_id)

    def _receive(self, message: Any, frame: bytes) -> None:
        """Takes what a child says to this process, or to the one that this one was forked for."""
        if isinstance(message, OpCacheAdditions):
            op_cache.learn(message.additions)
        elif isinstance(message, Rehearsal):
            self._children.rehearse(message.run)
            if not message.run.brief:
                absorbed = [self._project.absorb(each) for each in (message.latest, message.run) if each is not None]
                if not all(absorbed):
                    self._children.send(Outdated())
        write_all(self._outgoing, frame)

    def _read_imports(self) -> bool:
        """Finds out what later runs need to know of what is loaded, while there is nothing to do. True if there is more."""
        if self._project.modules.read_imports(READING_SECONDS):
            self._loop.when_idle(QUIET_SECONDS, self._look_at_changes)
        return True

    def _look_at_changes(self) -> bool:
        return self._children.is_at_work() or not self._project.foreign_changes.look_further()

    def _look_at_threads(self) -> None:
        """End where user code has left threads that take a processor: its runs are done by processes that do not stay."""
        if self._threads.spin():
            self._loop.stopping = True
        elif self._threads.are_left():
            self._loop.at(time.monotonic() + LOOKING_SECONDS, self._look_at_threads)
