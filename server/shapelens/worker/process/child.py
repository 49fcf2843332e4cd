"""A process that does one run: forked ahead of time, it waits for its job with torch loaded and its pages touched."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import time
from dataclasses import replace
from typing import Any, BinaryIO, Iterator, Optional

from ...protocol import ExampleRequest, Run, Trace, Traced, encode
from ..loading.compile_cache import PREPARED
from ..meta import op_cache
from ..reload.loaded_project import Standing, Unsuitable
from ..sandbox import confinement
from .framing import read_message
from .messages import Imported, Learnt, Outdated, Rehearsal, Unsuited

LONGEST_REHEARSAL = 2.0  # seconds


def serve_one(jobs: int, results: int, output: int, standing: Optional[Standing], rehearsal: Optional[Run]) -> None:
    """Wait for a run on the `jobs` pipe, do it, send its messages to `results`, and end the process. User prints go to `output`.

    With what stands loaded, the last run is done once more while the next one is waited for: it takes the page faults of this process, and
    computes the shapes of operations that will come again.
    """
    code = 0
    try:
        os.setsid()
        gc.disable()  # A short-lived process need not collect, and each collection would copy pages of the parent.
        if standing is not None and rehearsal is not None and not rehearsal.brief:
            redirect(os.open(os.devnull, os.O_WRONLY))
            rehearse(rehearsal, standing, jobs)
            redirect(output)
        else:
            redirect(output)
            if standing is None:  # Else its job is on the way.
                _touch()
        with os.fdopen(jobs, "rb") as incoming, os.fdopen(results, "wb") as outgoing:
            run = read_message(incoming)
            if isinstance(run, Run):
                do(run, outgoing, standing, rehearsal)
    except BaseException:  # Nothing may get past this point: the parent's stack is below.
        import traceback

        traceback.print_exc()
        code = 70
    finally:
        confinement.flush()
        os._exit(code)


def do(run: Run, outgoing: BinaryIO, standing: Optional[Standing], rehearsal: Optional[Run] = None) -> None:
    """Do a run under its limits and write its messages. rehearsal: what this process has done ahead of it, if it has come to that."""
    from ..run import execute  # The parent has imported it; this only names it.

    newest: Optional[Trace] = None
    rehearsed: Optional[Run] = None
    start = time.perf_counter()

    def write(message: Any) -> None:
        outgoing.write(encode(message))
        outgoing.flush()

    def send(message: Any) -> None:
        nonlocal newest
        write(message)
        if isinstance(message, Traced):
            newest = message.trace

    def prepare_the_next() -> None:
        nonlocal rehearsed
        next_one: Optional[Run] = None
        if newest is not None and not run.background:
            next_one = _to_be_rehearsed(run, newest, time.perf_counter() - start)
            if standing is not None and rehearsal is not None and newest.mismatches and _is_better(rehearsal, next_one, standing):
                next_one = rehearsal
        if next_one is not None and next_one != rehearsed:
            rehearsed = next_one
            write(Rehearsal(next_one, run if next_one is rehearsal else None))
        additions = op_cache.additions()
        if additions:
            write(Learnt(additions))

    finished: Any
    try:
        with _limits(run):
            finished = execute(run, send, standing, prepare_the_next)
    except Unsuitable as error:
        write(Unsuited(run.run_id, str(error)))
        return
    if standing is not None and standing.outdated and not run.background:
        write(Outdated())
    if finished.outcome == "ok":
        prepare_the_next()
    write(finished)
    if PREPARED.unprepared:
        write(Imported(PREPARED.unprepared))


def _to_be_rehearsed(run: Run, trace: Trace, seconds: float) -> Run:
    examples = [ExampleRequest(example.target, example.expression) for example in trace.examples]
    return Run(**{**run.__dict__, "search": None, "examples": examples if seconds < LONGEST_REHEARSAL else []})


def _is_better(before: Run, run: Run, standing: Standing) -> bool:
    """Whether to rehearse what was rehearsed before rather than a run in which something is wrong: most of what the next one will do went
    well there.
    """
    rehearsed = standing.workspace.rehearsed
    if rehearsed is None or rehearsed.is_open or not rehearsed.went_well:
        return False
    return all(getattr(before, name) == getattr(run, name) for name in ("file", "root", "examples", "overlays", "observe"))


def rehearse(run: Run, standing: Standing, jobs: int) -> None:
    """Do a run for its side effects on this process, until there is something to read from `jobs`."""
    from ..run import execute

    def look() -> None:
        if select.select([jobs], [], [], 0)[0]:
            raise confinement.Interrupted()  # The job has come.

    def write(message: Any) -> None:
        standing.workspace.progress.look()
        encode(message)  # What is written for the first time takes longer too.

    interrupted = True
    try:
        look()
        standing.workspace.progress.watch, standing.is_rehearsed = look, True
        with _limits(run):
            execute(replace(run, named=False), write, standing)  # What names need is known from the run itself.
        interrupted = False
    except (confinement.Interrupted, Unsuitable, confinement.DeadlineReached):
        pass
    finally:
        standing.workspace.progress.watch = None
        standing.rehearsed(interrupted=interrupted)


@contextlib.contextmanager
def _limits(run: Run) -> Iterator[None]:
    sys.dont_write_bytecode = True
    confinement.forbid()
    confinement.limit_memory(run.memory_limit)
    confinement.limit_time(run.longest)
    try:
        yield
    finally:
        confinement.no_time_limit()
        confinement.flush()


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
