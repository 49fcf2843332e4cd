"""A process that has loaded what a run loaded, and forks the processes of the runs that follow from there.

It is named after Android's, which does the same for apps. To the worker's main loop it is a pipe that takes runs and gives their messages;
within, it has such a loop of its own. User code has run in it, so that it does not hold the server's pipes.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from typing import Any, List, Set

from ...protocol import LONGEST_LOAD, Run, encode
from ..loading.compile_cache import PREPARED
from ..reload.loaded_project import Standing
from ..sandbox import confinement
from .child import redirect
from .framing import Splitter
from .messages import Stands

PATIENCE = 0.3  # seconds that it has to end its children


class Zygote:
    """The process, as the one that forked it sees it. It takes runs once it is `ready`.

    awaited: the run itself is still to be done, and is what it loads all of this for.
    """

    def __init__(self, run: Run, inherited: List[int], *, awaited: bool) -> None:
        self.root = run.root
        self.file = run.file
        self.awaited = run.run_id if awaited else -1
        self.kill_at = time.monotonic() + LONGEST_LOAD + confinement.GRACE
        self.printed = 0
        self.ready = False
        self.modules: Set[str] = set()  # the outermost packages that it has loaded
        self.splitter = Splitter()
        jobs, self.jobs = os.pipe()
        self.results, results_in = os.pipe()
        self.output, output_in = os.pipe()  # what is printed while it loads
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for number in inherited + [self.jobs, self.results, self.output]:
                os.close(number)
            _serve(run, jobs, results_in, output_in, awaited)
        for number in (jobs, results_in, output_in):
            os.close(number)
        for number in (self.results, self.output):
            os.set_blocking(number, False)

    @property
    def pipes(self) -> List[int]:
        """This process's ends."""
        return [self.jobs, self.results, self.output]

    def send(self, message: Any) -> None:
        """Write a message to it. One that has gone is not an error here: the end of its results says so."""
        view = memoryview(encode(message))
        try:
            while view:
                view = view[os.write(self.jobs, view) :]
        except BrokenPipeError:
            pass

    def stop(self) -> None:
        """End it and its children, and close its pipes."""
        os.close(self.jobs)
        end = time.monotonic() + (PATIENCE if self.ready else 0)
        while time.monotonic() < end and not self._has_ended():
            time.sleep(0.005)
        self.kill()
        self._has_ended(wait=True)
        os.close(self.results)
        os.close(self.output)
        confinement.clean_up(self.pid)

    def kill(self) -> None:
        """End it at once; a child of it that is at work ends by its own time limit."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _has_ended(self, wait: bool = False) -> bool:
        try:
            return os.waitpid(self.pid, 0 if wait else os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


def _serve(run: Run, incoming: int, outgoing: int, output: int, awaited: bool) -> None:
    """Load what the run needs, and serve from there. Ends the process."""
    code = 0
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()  # What is loaded stays: looking for garbage in between only takes time.
        redirect(output)
        confinement.forbid()
        confinement.limit_memory(run.memory_limit)
        confinement.limit_time(LONGEST_LOAD)
        standing = Standing(run)
        with standing.workspace.environment():
            standing.load()
            gc.freeze()
            gc.enable()
            confinement.no_time_limit()
            confinement.trust()
            PREPARED.keep()
            sys.stdout.flush()
            redirect(os.open(os.devnull, os.O_WRONLY))
            frame = memoryview(encode(Stands(sorted({name.partition(".")[0] for name in sys.modules}))))
            while frame:
                frame = frame[os.write(outgoing, frame) :]
            from .host import Host

            Host(incoming, outgoing, standing, None if awaited else run).serve()
    except BaseException:  # Nothing may get past this point: the parent's stack is below. Without a zygote runs take longer, that is all.
        code = 70
    finally:
        os._exit(code)
