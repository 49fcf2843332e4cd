"""Runs of files that are as they are on disk: done once, by this server or one before it, as long as nothing that they read has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from shapelens import protocol
from shapelens.cache import Kept, RunCache, opened
from shapelens.runner import Worker

logger = logging.getLogger(__name__)
Complete = Callable[[protocol.Trace], protocol.Trace]


class Reopened:
    """Stands before the workers. What is being typed is neither looked up nor kept, so that an edit costs nothing here."""

    def __init__(self) -> None:
        store = opened()
        self._cache = RunCache(store) if store is not None else None
        self._hellos: dict[str, protocol.Hello] = {}  # by interpreter
        self._writing: set[asyncio.Task[None]] = set()

    def learn(self, worker: Worker) -> None:
        """A worker is ready, and may have been started anew."""
        hello = worker.hello
        if self._cache is not None and hello is not None and self._hellos.get(worker.interpreter) is not hello:
            self._hellos[worker.interpreter] = hello
            self._cache.learn(worker.interpreter, hello)

    async def run(
        self, run: protocol.Run, worker: Worker, on_trace: Callable[[protocol.Traced], None], *, lasting: bool, complete: Complete
    ) -> protocol.Finished:
        """Do a run, or say what came out of it before. lasting: its texts are on disk, and it may be kept.

        complete: adds to a trace what is known from earlier runs.
        """
        cache = self._cache if lasting else None
        kept = cache.find(run, worker.interpreter) if cache is not None else None
        if kept is not None:
            logger.debug("%s is as it was when it last ran", run.file)
            worker.begin()
            on_trace(kept.traced)
            return kept.finished
        newest: list[protocol.Traced] = []

        def take(traced: protocol.Traced) -> None:
            newest[:] = [traced]
            on_trace(traced)

        finished = await worker.submit(run, take)
        if cache is not None and newest and finished.outcome == "ok":
            traced = protocol.Traced(run.run_id, newest[0].stage, complete(newest[0].trace))
            task = asyncio.create_task(asyncio.to_thread(cache.keep, run, worker.interpreter, Kept(traced, finished)))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)
        return finished

    async def written(self) -> None:
        """Wait until all that is to be kept is on disk."""
        if self._writing:
            await asyncio.wait(self._writing)
