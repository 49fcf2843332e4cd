"""Feeds runs to a worker: one runs, at most one waits, the newest wins; whatever becomes of the process, each run is answered."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from shapelens import protocol
from shapelens.runner import process as processes
from shapelens.runner.job import Job
from shapelens.runner.left_out_statements import KnownStatements
from shapelens.runner.worker_state import StartFailure, WorkerState, ends_again_and_again
from shapelens.timeouts import TIMEOUTS

logger = logging.getLogger(__name__)

# The worker itself keeps to a run's deadline; these many seconds later it is taken to hang and is killed.
GRACE_SECONDS = TIMEOUTS.worker_grace
# A cancelled run is answered at once unless the worker hangs.
CANCEL_SECONDS = 3.0
# The first run waits for torch and its kernels.
LOADING_SECONDS = 120.0
# A worker that could not be started is not started again for this long, unless `restart` asks for it.
FAILURE_SECONDS = 3.0
LONGEST_BACK_OFF = 30.0
SLICE_SECONDS = 1.0  # between looks whether this process was suspended
MOST_CRASHES = 5  # in a row, after which nothing is started until the user wants it, or an edit comes after LONGEST_BACK_OFF


class Worker:
    """The worker of one interpreter. It starts on demand, restarts after a crash, and never raises at the caller.

    `on_output` gets what user code printed and what the worker logged; `on_state` each change of state. Both are called on the event loop.
    Besides the outcomes of the protocol a run may end as "unavailable": no worker could be started, the detail says why.
    """

    def __init__(
        self,
        interpreter: str,
        *,
        root: str = "",
        fork: bool | None = None,
        on_output: Callable[[str], None] = lambda text: None,
        on_state: Callable[[WorkerState], None] = lambda state: None,
    ) -> None:
        self.interpreter = interpreter
        self.root = root
        self.state = WorkerState("stopped")
        self._fork = fork
        self._on_output = on_output
        self._on_state = on_state
        self._process: processes.Process | None = None
        self._failure: StartFailure | None = None
        self._failed_at = 0.0
        self._crashes = 0  # in a row
        self._has_given_up = False  # and said so
        self._starting: asyncio.Task[processes.Process | StartFailure] | None = None
        self._running: Job | None = None
        self._waiting: Job | None = None
        self._cancelled: dict[int, asyncio.Event] = {}  # runs whose end the process has not told yet: set when it does
        self._pump: asyncio.Task[None] | None = None
        self._watches: set[asyncio.Task[None]] = set()
        self._preloaded: list[str] = []
        self._allow: list[str] = []  # as the newest run's
        self._known_statements = KnownStatements()
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """The process id of the worker while one lives."""
        return self._process.pid if self._process is not None else None

    @property
    def hello(self) -> protocol.Hello | None:
        """Returns what the worker has said of itself, while one lives."""
        return self._process.hello.result() if self._process is not None else None

    def begin(self) -> None:
        """Start the worker unless it runs, without waiting for it."""
        if self._process is None and not self._stopping:
            self._watch(self._begun())

    async def start(self) -> protocol.Hello | StartFailure:
        """Start the worker unless it runs, and return what it says of itself, or why there is none."""
        process = await self._started()
        return process if isinstance(process, StartFailure) else process.hello.result()

    async def until_ready(self) -> None:
        """Wait until torch is loaded, or it turns out that it cannot be."""
        process = await self._started()
        if not isinstance(process, StartFailure):
            await _first(process.ready, process.ended)

    def submit(
        self,
        run: protocol.Run,
        on_trace: Callable[[protocol.Traced], None],
        on_profile: Callable[[protocol.ModelProfile], None] = lambda profile: None,
        on_report: Callable[[protocol.DeepReport], None] = lambda report: None,
    ) -> asyncio.Future[protocol.Finished]:
        """Run this as soon as may be. An older run that waits or is under way is cancelled: its Finished says "cancelled"."""
        job = Job(run, on_trace, asyncio.get_running_loop().create_future(), asyncio.Event(), on_profile, on_report, self._known_statements)
        if self._stopping:
            job.finish("cancelled")
            return job.finished
        if self._waiting is not None:
            self._waiting.finish("cancelled")
        self._waiting = job
        if self._running is not None and not self._running.finished.done():
            self._cancel_running(self._running)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run_jobs())
        return job.finished

    def cancel(self, run_id: int) -> None:
        """Cancel a run that waits or is under way; nothing happens if it has ended already."""
        if self._waiting is not None and self._waiting.run.run_id == run_id:
            self._waiting.finish("cancelled")
            self._waiting = None
        if self._running is not None and self._running.run.run_id == run_id:
            self._cancel_running(self._running)

    def _cancel_running(self, job: Job) -> None:
        if not job.cancelled.is_set():
            job.cancelled.set()
            if self._process is not None:
                self._process.send(protocol.Cancel(job.run.run_id))

    def preload(self, modules: list[str], allow: list[str]) -> None:
        """Have the worker import these modules ahead of the next run, within what the user allows. Remembered for workers that are
        started later.
        """
        new = [name for name in modules if name not in self._preloaded]
        self._preloaded += new
        self._allow = allow
        if new and self._process is not None:
            self._process.send(protocol.Preload(new, allow))

    async def restart(self) -> protocol.Hello | StartFailure:
        """End the process if there is one, forget earlier failures, and start anew. A run under way ends as "cancelled"."""
        for job in (self._running, self._waiting):
            if job is not None:
                self.cancel(job.run.run_id)
        await self._end_process()
        self._failure, self._crashes, self._has_given_up, self._preloaded = None, 0, False, []
        self._known_statements.forget()
        return await self.start()

    async def stop(self) -> None:
        """End the process and its children. Runs that wait or are under way end as "cancelled"."""
        self._stopping = True
        for job in (self._running, self._waiting):
            if job is not None:
                job.finish("cancelled")
        self._waiting = None
        if self._pump is not None:
            self._pump.cancel()
        await self._end_process()
        self._enter(WorkerState("stopped"))

    def kill(self) -> None:
        """End the process and its children at once, without waiting: for the end of the server."""
        self._stopping = True
        if self._process is not None:
            self._process.kill()

    # --- the process ---

    async def _started(self) -> processes.Process | StartFailure:
        """The living process, or a new one. Callers that come while one is being started share it."""
        if self._process is not None and not self._process.ended.is_set():
            return self._process
        patience = LONGEST_BACK_OFF if self._has_given_up else FAILURE_SECONDS
        if self._failure is not None and time.monotonic() - self._failed_at < patience:
            return self._failure
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._spawn())
        starting = self._starting
        await asyncio.wait({starting})
        return StartFailure("failed", "The worker was stopped while it started.") if starting.cancelled() else starting.result()

    async def _spawn(self) -> processes.Process | StartFailure:
        while True:
            if self._crashes > 1:
                await asyncio.sleep(min(LONGEST_BACK_OFF, 0.25 * 2 ** (self._crashes - 1)))
            if self._failure is None:
                self._enter(WorkerState("starting"))
            outcome = await processes.spawn(self.interpreter, self.root, self._fork, self._receive, self._on_output)
            if isinstance(outcome, processes.Process) or not outcome.is_killed or self._crashes >= MOST_CRASHES:
                break
            self._crashes += 1
        if isinstance(outcome, StartFailure):
            self._failure, self._failed_at = outcome, time.monotonic()
            self._enter(outcome.state)
            return outcome
        self._failure = None
        self._process = outcome
        if self._preloaded:
            outcome.send(protocol.Preload(self._preloaded, self._allow))
        self._watch(self._until_ready(outcome))
        self._watch(self._until_ended(outcome))
        return outcome

    async def _end_process(self) -> None:
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait({self._starting})
        process, self._process = self._process, None
        if process is not None:
            await process.stop()

    async def _begun(self) -> None:
        await self._started()

    def _watch(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

    async def _until_ready(self, process: processes.Process) -> None:
        await _first(process.ready, process.ended)
        if process is self._process and process.ready.is_set() and self._running is None:
            self._enter(WorkerState("ready"))

    async def _until_ended(self, process: processes.Process) -> None:
        await process.ended.wait()
        if process is not self._process or self._stopping:
            return  # We ended the process ourselves.
        self._process = None
        if process.is_outgrown:
            logger.info("the worker %d is replaced: what ran in it has changed torch or another module that is not its own", process.pid)
        else:
            self._crashes += 1
            logger.warning("the worker %d has gone: %s", process.pid, _how_it_ended(process))
        if self._crashes < MOST_CRASHES:
            await self._started()  # The next run should not have to wait for torch, so a new one is started now.
        else:
            self._give_up_starting(process)

    def _give_up_starting(self, process: processes.Process) -> None:
        self._failure, self._failed_at = ends_again_and_again(self.interpreter, MOST_CRASHES, _how_it_ended(process)), time.monotonic()
        self._enter(replace(self._failure.state, has_given_up=not self._has_given_up))
        self._has_given_up = True

    def _receive(self, message: object) -> None:
        job = self._running
        if isinstance(message, protocol.Output):
            self._on_output(message.text)
        elif isinstance(message, protocol.Replace):
            if self._process is not None:
                self._process.is_outgrown = True
        elif isinstance(message, protocol.Finished) and message.run_id in self._cancelled:
            self._cancelled[message.run_id].set()
        elif job is not None and getattr(message, "run_id", None) == job.run.run_id:
            _tell(job, message)

    def _enter(self, state: WorkerState) -> None:
        if state != self.state:
            self.state = state
            self._on_state(state)

    # --- the runs ---

    async def _run_jobs(self) -> None:
        while self._waiting is not None:
            job, self._waiting = self._waiting, None
            self._running = job
            try:
                await self._execute(job)
                while job.is_repeated and not job.finished.done():
                    job.is_repeated, job.target, job.number, job.loads, job.is_loaded = False, "", -1, False, False
                    job.ended.clear()
                    await self._execute(job)
            except Exception:
                logger.exception("run %d failed", job.run.run_id)
                job.is_repeated = False
                job.finish("crash", "ShapeLens failed to run this file; see the log.")
            finally:
                job.is_repeated = False
                job.finish("cancelled")
                self._running = None
            if self.state.name == "running":
                self._enter(WorkerState("ready"))

    async def _execute(self, job: Job) -> None:
        process = await self._started()
        if job.cancelled.is_set():
            return
        if isinstance(process, StartFailure):
            job.finish("unavailable", process.message)
            return
        # User code is not to blame while torch and its kernels are loading, so the deadline starts after that.
        await _first(process.ready, process.ended, job.cancelled, timeout=LOADING_SECONDS)
        if job.cancelled.is_set():
            return
        if not process.ready.is_set() and self._was_killed(process):
            await self._execute(job)  # Somebody has ended it before it came to the document: another one does the run.
            return
        if not process.ready.is_set():
            detail = "" if process.ended.is_set() else f"PyTorch did not load within {LOADING_SECONDS:.0f} s."
            process.kill()
            await process.ended.wait()
            job.finish("crash", detail or _how_it_ended_at(process))
            return
        self._enter(WorkerState("running"))
        before = list(self._cancelled.values())
        process.send(job.run)
        ends = (job.ended, process.ended, job.cancelled)
        limit = job.run.longest + GRACE_SECONDS
        await _first(*ends, timeout=limit)
        if not any(end.is_set() for end in ends) and not process.is_suspended():
            load = protocol.LONGEST_LOAD + limit if job.loads else 0.0
            await _first(*ends, timeout=load + (protocol.MOST_STARVED - 1) * job.run.longest)
        if job.ended.is_set():
            self._crashes, self._has_given_up = 0, False
        elif job.cancelled.is_set():
            job.finish("cancelled")  # The next run need not wait until the process has done with this one.
            if not process.ended.is_set():
                told = self._cancelled[job.run.run_id] = asyncio.Event()  # Before the process tells, which it may at any moment.
                self._watch(self._until_told(process, job.run.run_id, told))
        elif process.ended.is_set() and (process.is_outgrown or not all(told.is_set() for told in before)):
            await self._execute(job)  # The worker had not come to this run.
        elif self._was_killed(process) and not job.was_killed:
            job.was_killed = True  # Most often by somebody or something else: another one may do the run.
            await self._execute(job)
        elif process.ended.is_set():
            await self._give_up(process, job, "crash")
        elif process.is_suspended():  # That is not the code's fault: another one does the run.
            logger.warning("the worker %d was suspended by somebody, and is replaced", process.pid)
            process.kill()
            await process.ended.wait()
            await self._execute(job)
        else:
            await self._give_up(process, job, "deadline", f"The run did not end within its deadline of {job.run.deadline:g} s.")

    def _was_killed(self, process: processes.Process) -> bool:
        """True if a process has ended by a signal that did not come from here."""
        return process.ended.is_set() and process.is_killed and not process.problem and not self._stopping

    async def _until_told(self, process: processes.Process, run_id: int, told: asyncio.Event) -> None:
        """Wait for the end of a run that was cancelled, and end a process that does not tell it."""
        await _first(told, process.ended, timeout=CANCEL_SECONDS)
        del self._cancelled[run_id]
        if not told.is_set():
            process.kill()

    async def _give_up(self, process: processes.Process, job: Job, outcome: str, detail: str = "") -> None:
        process.kill()
        await process.ended.wait()
        finished = protocol.Finished(job.run.run_id, outcome, detail or _how_it_ended_at(process))
        if process.hello.result().fork:  # Code runs in others: this one was ended by something else.
            job.finish(finished.outcome, finished.detail)
        else:
            job.end(finished)


def _tell(job: Job, message: object) -> None:
    """Tell a job what its run says. What comes of it after it was cancelled is not wanted any more."""
    if isinstance(message, protocol.Loading):
        job.loads = True
    elif isinstance(message, protocol.Evaluating):
        job.target, job.number, job.is_loaded = message.target, message.number, True
    elif isinstance(message, protocol.Executing):
        job.left_out_statements.executed = message
    elif isinstance(message, protocol.Finished):
        job.end(message)
    elif job.cancelled.is_set():
        return
    elif isinstance(message, protocol.Profiled):
        job.on_profile(message.profile)
    elif isinstance(message, protocol.Deepened):
        job.on_report(message.report)
    elif isinstance(message, protocol.Traced):
        job.tell(message)


def _how_it_ended_at(process: processes.Process) -> str:
    return f"The worker {_how_it_ended(process)} while it ran this file."


def _how_it_ended(process: processes.Process) -> str:
    if process.problem:
        return f"was ended because {process.problem}"
    code = process.returncode
    if code is not None and code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"


async def _first(*events: asyncio.Event | asyncio.Future[protocol.Finished], timeout: float | None = None) -> None:
    """Wait until one of these has happened, or `timeout` seconds have passed; those in which this process was suspended do not count."""
    tasks = [asyncio.create_task(event.wait()) for event in events if isinstance(event, asyncio.Event)]
    waited_for: list[asyncio.Future[Any]] = [*tasks, *(event for event in events if not isinstance(event, asyncio.Event))]
    left = float("inf") if timeout is None else timeout
    done: set[asyncio.Future[Any]] = set()
    try:
        while left > 0 and not done:
            begin, most = time.monotonic(), min(left, SLICE_SECONDS)
            done, _ = await asyncio.wait(waited_for, timeout=None if timeout is None else most, return_when=asyncio.FIRST_COMPLETED)
            left -= min(time.monotonic() - begin, 2 * most)
    finally:
        for task in tasks:
            task.cancel()
