"""The workers of a session, one for each interpreter in use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from shapelens.runner import Worker, WorkerState

logger = logging.getLogger(__name__)
output_logger = logging.getLogger("shapelens.output")
# What a program prints in a loop is of no use to anybody after this many characters of a run.
MOST_OUTPUT = 20_000


class Workers:
    """Workers by interpreter, each made when it is first asked for. One listener hears of every change of state of any of them."""

    def __init__(self) -> None:
        self._on_state: Callable[[Worker, WorkerState], None] | None = None
        self._workers: dict[str, Worker] = {}
        self._stopping: set[asyncio.Task[Any]] = set()
        self._output_left = MOST_OUTPUT

    def listen(self, on_state: Callable[[Worker, WorkerState], None]) -> None:
        """Tell of each change of state from now on, and of the state that each worker is in now."""
        self._on_state = on_state
        for worker in self._workers.values():
            if worker.state.name != "stopped":
                on_state(worker, worker.state)

    def of(self, interpreter: str, root: str) -> Worker:
        """The worker under this interpreter; a new one has `root` as its folder."""
        worker = self._workers.get(interpreter)
        if worker is None:
            worker = Worker(interpreter, root=root, on_output=self._log_output, on_state=lambda state: self._report(interpreter, state))
            self._workers[interpreter] = worker
        return worker

    def keep(self, needed: Iterable[Worker]) -> None:
        """Stop all workers but these."""
        kept = set(needed)
        for interpreter, worker in list(self._workers.items()):
            if worker not in kept:
                del self._workers[interpreter]
                task = asyncio.create_task(worker.stop())
                self._stopping.add(task)
                task.add_done_callback(self._stopping.discard)

    async def restart(self) -> None:
        """End all workers, and start them anew."""
        await asyncio.gather(*(worker.restart() for worker in self._workers.values()))

    async def stop(self) -> None:
        """End all workers; returns when no process is left."""
        self.keep([])
        if self._stopping:
            await asyncio.wait(self._stopping)

    def kill(self) -> None:
        """End all workers at once, without waiting."""
        for worker in self._workers.values():
            worker.kill()

    def new_run(self) -> None:
        """Notes that what is printed from now on belongs to another run."""
        self._output_left = MOST_OUTPUT

    def _report(self, interpreter: str, state: WorkerState) -> None:
        worker = self._workers.get(interpreter)
        if worker is not None and self._on_state is not None:
            self._on_state(worker, state)

    def _log_output(self, text: str) -> None:
        if self._output_left > 0:
            shown = text.rstrip("\n")[: self._output_left]
            self._output_left -= len(text)
            output_logger.info("%s%s", shown, "" if self._output_left > 0 else "\n… more was printed and is left out")
