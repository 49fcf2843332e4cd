"""A process that does one run: forked ahead of time, it waits for its job with torch loaded and its pages touched."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from typing import Any, BinaryIO, Iterator, List, Optional

from ...protocol import ExampleRequest, Run, Trace, Traced, encode
from ..loading.compile_cache import PREPARED
from ..meta import op_cache
from ..reload.loaded_project import LoadedProject, Unsuitable
from ..sandbox import kernel_boundary, system_calls
from ..sandbox.allowed_acts import allow
from ..sandbox.audit_hook import forbid, trust
from ..sandbox.clocks import WorkClock
from ..sandbox.descriptors import OWN
from ..sandbox.limits import DeadlineReached, Interrupted, limit_memory, limit_time, no_time_limit, undisturbed
from ..sandbox.monkeypatches import ProcessState
from ..sandbox.originals import gc, os, select, signal
from ..sandbox.output import flush
from ..sandbox.scratch_folder import folder_of_worker, scratch_of
from ..sandbox.threads import OtherThreads
from .framing import read_message
from .messages import Imported, OpCacheAdditions, Outdated, Rehearsal, RunBegun, RunUnsuitable

LONGEST_REHEARSAL = 2.0  # seconds of a run's own work; one that waits for much longer is not rehearsed, as that would hold up the next one
LOOKING_SECONDS = 0.5  # between looks at threads that a rehearsal has left


def serve(numbers: List[int], project: Optional[LoadedProject], rehearsal: Optional[Run]) -> None:
    """Wait for a run, do it, write its messages, and end the process.

    numbers: of the pipes for the job, for the messages, and for what user code prints. With a project loaded, the last run is rehearsed
    while the next one is waited for: this takes the page faults of this process, and computes shapes of operations that will come again.
    """
    jobs, results, output = numbers
    code = 0
    try:
        jobs, results = OWN.take(jobs), OWN.take(results)
        os.setsid()
        system_calls.end_with_parent(signal.SIGKILL)
        gc.disable()  # A short-lived process need not collect, and each collection would copy pages of the parent.
        if project is not None and rehearsal is not None and not rehearsal.brief:
            redirect(os.open(os.devnull, os.O_WRONLY))
            threads = OtherThreads()
            if not rehearse(rehearsal, project, jobs):
                code = 70
                return
            redirect(output)
            _wait_for_threads(threads, jobs)
        else:
            redirect(output)
            if project is None:  # Else its job is on the way.
                _touch()
        with open(jobs, "rb") as incoming, open(results, "wb") as outgoing:
            run = read_message(incoming)
            if isinstance(run, Run):
                if rehearsal is not None:
                    outgoing.write(encode(RunBegun(run.run_id)))
                    outgoing.flush()
                do_run(run, outgoing, project, rehearsal)
    except BaseException:  # Nothing may get past this point: the parent's stack is below.
        if os.path.isdir(folder_of_worker()):  # Else the worker has ended, and what this process needs has gone with it.
            import traceback

            traceback.print_exc()
        code = 70
    finally:
        flush()
        os._exit(code)


def do_run(run: Run, outgoing: BinaryIO, project: Optional[LoadedProject], rehearsal: Optional[Run] = None) -> None:
    """Do a run under its limits and write its messages. rehearsal: what this process has done ahead of it, if it has come to that."""
    from ..run import execute  # The parent has imported it; this only names it.

    newest: Optional[Trace] = None
    rehearsed: Optional[Run] = None
    worked = WorkClock()

    def write(message: Any) -> None:
        frame = encode(message)
        with undisturbed():
            outgoing.write(frame)
            outgoing.flush()

    def send(message: Any) -> None:
        nonlocal newest
        write(message)
        if isinstance(message, Traced):
            newest = message.trace

    def prepare_the_next() -> None:
        nonlocal rehearsed
        next_one: Optional[Run] = None
        if newest is not None and run.typed and not run.background:
            next_one = _to_be_rehearsed(run, newest, worked())
            if project is not None and rehearsal is not None and newest.mismatches and _is_better(rehearsal, next_one, project):
                next_one = rehearsal
        if next_one is not None and next_one != rehearsed:
            rehearsed = next_one
            write(Rehearsal(next_one, run if next_one is rehearsal else None))

    finished: Any
    try:
        with _limits(run):
            finished = execute(run, send, project, prepare_the_next)
    except Unsuitable as error:
        write(RunUnsuitable(run.run_id, str(error)))
        return
    if project is not None and project.is_outdated and not run.background:
        write(Outdated())
    if finished.outcome == "ok":
        prepare_the_next()
    write(finished)
    additions = op_cache.additions()
    # Shapes are computed by code that may have been patched.
    if additions and project is not None and not project.foreign_changes.are_made_near():
        write(OpCacheAdditions(additions))
    if PREPARED.unprepared:
        write(Imported(PREPARED.unprepared))


def _to_be_rehearsed(run: Run, trace: Trace, seconds: float) -> Run:
    examples = [ExampleRequest(example.target, example.expression) for example in trace.examples]
    return Run(**{**run.__dict__, "search": None, "examples": examples if seconds < LONGEST_REHEARSAL else []})


def _is_better(before: Run, run: Run, project: LoadedProject) -> bool:
    """True if to rehearse what was rehearsed before rather than a run in which something is wrong: most of what the next one will do went
    well there.
    """
    rehearsed = project.rehearsed_examples
    if rehearsed is None or rehearsed.is_open or not rehearsed.went_well:
        return False
    return all(getattr(before, name) == getattr(run, name) for name in ("file", "root", "examples", "overlays", "observe", "followed_for"))


def rehearse(run: Run, project: LoadedProject, jobs: int) -> bool:
    """Do a run for its side effects on this process, until there is something to read from `jobs`.

    Returns whether the process may do another run: not where the code has changed torch or another module that is not the user's, nor where
    the run could not be done.
    """
    from ..run import execute

    project.foreign_changes.note_nearest()
    before = ProcessState()

    def look() -> None:
        if select.select([jobs], [], [], 0)[0]:
            raise Interrupted()  # The job has come.

    def write(message: Any) -> None:
        project.context.progress.look()
        encode(message)  # What is written for the first time takes longer too.

    interrupted = True
    try:
        look()
        project.context.progress.watch, project.is_rehearsal = look, True
        with _limits(run):
            execute(replace(run, named=False), write, project)  # What names need is known from the run itself.
        interrupted = False
    except (Interrupted, DeadlineReached):
        pass
    except Unsuitable:
        return False  # What is there is half of it.
    finally:
        project.context.progress.watch = None
        project.end_rehearsal(interrupted=interrupted)
    try:
        return not project.foreign_changes.are_made_since(before, None if interrupted else look)
    except Interrupted:
        return not project.foreign_changes.are_made_since(before, None)  # The likeliest are looked at, as somebody waits.


def _wait_for_threads(threads: OtherThreads, jobs: int) -> None:
    """Wait for the job as long as the rehearsal has left threads behind, and end the process where one of these takes a processor."""
    while threads.are_left() and not select.select([jobs], [], [], LOOKING_SECONDS)[0]:
        if threads.spin():
            os._exit(70)


@contextlib.contextmanager
def _limits(run: Run) -> Iterator[None]:
    sys.dont_write_bytecode = True
    allow(run.allow)
    forbid()  # Makes the scratch folder.
    trust()
    kernel_boundary.confine_to(scratch_of(os.getpid()))
    system_calls.refuse()
    forbid()
    limit_memory(run.memory_limit)
    limit_time(run.longest)
    try:
        yield
    finally:
        no_time_limit()
        flush()


def redirect(output: int) -> None:
    """Standard input is empty; standard output and error, also of C code, go to `output`."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for number in (nothing, output):
        if number > 2:
            os.close(number)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)


def _touch() -> None:
    """Take the page faults of a first small run now, while nobody waits."""
    import torch

    with torch.device("meta"):
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 2))(
            torch.empty(1, 3, 4, 4)
        )
