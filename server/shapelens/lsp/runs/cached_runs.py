"""Runs that are answered from the cache on disk: those of saved files that this server or an earlier one has run, as long as nothing that
they read has changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from shapelens import protocol
from shapelens.cache.inputs import ReadState
from shapelens.cache.runs import KeptRun, RunCache
from shapelens.cache.store import Store
from shapelens.runner import Worker

logger = logging.getLogger(__name__)
Complete = Callable[[protocol.Trace], protocol.Trace]


class CachedRuns:
    """Answers a run from the cache, or has the worker do it. What is being typed is neither looked up nor kept: an edit costs nothing."""

    def __init__(self, store: Store | None) -> None:
        self._cache = RunCache(store) if store is not None else None
        self._read: dict[str, tuple[protocol.Run, ReadState]] = {}  # by file: its last run that is kept, and what that read; not of trials
        # By file: the last run of all its examples, and which files it and those of some of them since have read, at what time (seconds).
        self._whole: dict[str, tuple[protocol.Run, dict[str, float]]] = {}
        self._ever_read: dict[str, set[str]] = {}  # by file: what any of its runs has read, or asked for
        self._hellos: dict[str, protocol.Hello] = {}  # by interpreter
        self._writing: set[asyncio.Task[None]] = set()

    def learn(self, worker: Worker) -> None:
        """A worker is ready, and may have been started anew."""
        hello = worker.hello
        if self._cache is not None and hello is not None and self._hellos.get(worker.interpreter) is not hello:
            self._hellos[worker.interpreter] = hello
            self._cache.learn(worker.interpreter, hello)

    async def run(
        self,
        run: protocol.Run,
        worker: Worker,
        on_trace: Callable[[protocol.Traced], None],
        *,
        lasting: bool,
        partial: bool = False,
        complete: Complete = lambda trace: trace,
    ) -> protocol.Finished:
        """Does a run, or says what came out of it before.

        lasting: the texts of the run are on disk, and what comes out of it may be kept. partial: the run is of some examples only, and goes
        together with the run before it. complete: adds to a trace what is known from earlier runs.
        """
        started = time.time()
        cache = self._cache if lasting and not partial else None
        kept = cache.find(run, worker.interpreter) if cache is not None else None
        if kept is not None:
            logger.debug("%s is as it was when it last ran", run.file)
            worker.begin()
            if run.named:
                self._read[run.file] = run, kept.read
                self._whole[run.file] = run, dict.fromkeys(kept.read[0], started)
            self._ever_read.setdefault(run.file, set()).update(kept.read[0])
            on_trace(kept.traced)
            return kept.finished
        if run.named:
            self._read.pop(run.file, None)
        newest: list[protocol.Traced] = []

        def take(traced: protocol.Traced) -> None:
            if traced.stage not in protocol.WHAT_IS_WRONG:
                newest[:] = [traced]
            on_trace(traced)

        finished = await worker.submit(run, take)
        self._ever_read.setdefault(run.file, set()).update(finished.read)
        if run.named and newest and finished.outcome == "ok":
            users = run.search.users if run.search is not None else []
            read = dict.fromkeys({*newest[0].trace.files, *finished.read, *users} - {run.file}, started)
            if not partial:
                self._whole[run.file] = run, read
            elif run.file in self._whole:
                self._whole[run.file][1].update(read)
        elif run.named:
            self._whole.pop(run.file, None)
        if cache is not None and newest and finished.outcome == "ok":
            traced = protocol.Traced(run.run_id, newest[0].stage, complete(newest[0].trace))
            self._keep_later(run, worker.interpreter, KeptRun(traced, finished))
        return finished

    def _keep_later(self, run: protocol.Run, interpreter: str, kept: KeptRun) -> None:
        if self._cache is not None:
            task = asyncio.create_task(self._keep(self._cache, run, interpreter, kept))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _keep(self, cache: RunCache, run: protocol.Run, interpreter: str, kept: KeptRun) -> None:
        read = await asyncio.to_thread(cache.keep, run, interpreter, kept)
        if read is not None and run.named:
            self._read[run.file] = run, read

    def keep_shown(self, run: protocol.Run, examples: list[protocol.ExampleRequest], trace: protocol.Trace, interpreter: str) -> None:
        """Keeps what the runs of an edited file came to, as if all of it had run once it was saved. run: the last of them."""
        whole, read = self._whole.get(run.file, (None, {}))
        if (
            self._cache is None
            or whole is None
            or self.read_by(run) is not None
            or whole.examples != examples
            or whole.overlays != run.overlays
        ):
            return
        if any(_changed_since(path, time) for path, time in read.items()):
            return
        whole = replace(whole, text=run.text)
        finished = protocol.Finished(whole.run_id, "ok", read=sorted(read))
        kept = self._cache.keep(whole, interpreter, KeptRun(protocol.Traced(whole.run_id, "named", trace), finished))
        if kept is not None:
            self._read[run.file] = whole, kept
            self._whole[run.file] = whole, read

    def read_by(self, run: protocol.Run) -> ReadState | None:
        """Returns what a run has read; None where it is not kept."""
        last = self._read.get(run.file)
        return last[1] if last is not None and (last[0].text, last[0].overlays) == (run.text, run.overlays) else None

    def has_read(self, file: str, path: str) -> bool:
        """True if a run of a file has read another file, or asked for it. A run of an earlier text counts, which costs a run at most."""
        return path in self._ever_read.get(file, ())

    def now(self, files: Iterable[str]) -> ReadState:
        """The states of files as they are now."""
        return self._cache.inputs.now(files) if self._cache is not None else []

    def identity(self, interpreter: str) -> str | None:
        """Returns what changes whenever the environment of an interpreter does; None where it is not known."""
        return self._cache.environments.identity(interpreter) if self._cache is not None else None

    async def written(self) -> None:
        """Wait until all that is to be kept is on disk."""
        if self._writing:
            await asyncio.wait(self._writing)


def _changed_since(path: str, time: float) -> bool:
    try:
        stat = Path(path).stat()
    except OSError:
        return False  # A file that is not there cannot have changed; that it was missing is part of the state that is kept.
    return max(stat.st_mtime, stat.st_ctime) > time
