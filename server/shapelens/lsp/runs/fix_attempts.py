"""Runs what shows a document again with other texts, to see whether a fix works."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shapelens import protocol
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.traces.programs import with_importing_program, with_program
from shapelens.analysis.traces.views import seen_by_program, seen_from, with_evidence
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.repair.search import Attempt, GivenUp
from shapelens.runner import Worker
from shapelens.trace_numbering import merged


@dataclass(eq=False)
class FixTask:
    """Holds what there is to try for a document: an analysis, and the runs that it is made of."""

    analysis: Analysis
    runs: Sequence[RepeatableRun]
    findings: list[Finding]  # as they were before any fix was known
    under_way: tuple[Worker, int] | None = None  # with the id of the run
    interrupted: bool = False

    def interrupt(self) -> None:
        """Something else wants to run: the attempt that is under way ends."""
        self.interrupted = True
        if self.under_way is not None:
            worker, run_id = self.under_way
            worker.cancel(run_id)


class FixAttempts:
    """Makes the attempts of one task at a time: of the one that was begun last."""

    def __init__(self, cached_runs: CachedRuns, run_ids: itertools.count[int]) -> None:
        self._cached_runs = cached_runs
        self._run_ids = run_ids
        self._task: FixTask | None = None

    def begin(self, task: FixTask) -> None:
        """From now on attempts are made for this task, and end when it is interrupted."""
        task.interrupted = False
        self._task = task

    def of(self, file: str, runs: Sequence[RepeatableRun]) -> Attempt:
        """Does these runs again; what they saw together is of a file. The attempt raises GivenUp where the task has been interrupted."""

        async def attempt(texts: Mapping[str, str], numbers: Sequence[int] | None, expressions: Mapping[str, str]) -> protocol.Trace | None:
            views: list[protocol.Trace] = []
            for ran in runs:
                trace = await self._run(ran, texts, numbers, expressions)
                if trace is None:
                    return None
                if ran.run.program:
                    is_own = ran.run.file == file
                    views = with_program(views, trace) if is_own else with_importing_program(views, seen_by_program(trace, file))
                else:
                    views.append(trace if trace.file == file else seen_from(trace, file))
            return merged(file, views) if len(views) > 1 else views[0]

        return attempt

    async def _run(
        self, ran: RepeatableRun, texts: Mapping[str, str], numbers: Sequence[int] | None, expressions: Mapping[str, str]
    ) -> protocol.Trace | None:
        task = self._task
        if task is None or task.interrupted:
            raise GivenUp
        newest: list[protocol.Trace] = []
        run, worker = ran.run, ran.worker
        examples, known = ([_otherwise(each, expressions) for each in some] for some in (ran.trustworthy_examples(numbers), run.known))
        text, overlays = texts.get(run.file, run.text), {**run.overlays, **texts}
        run = replace(
            run, run_id=next(self._run_ids), text=text, examples=examples, known=known, overlays=overlays, named=False, background=True
        )
        task.under_way = worker, run.run_id
        finished = await self._cached_runs.run(run, worker, lambda traced: newest.append(traced.trace), lasting=ran.lasting)
        task.under_way = None
        if finished.outcome in ("cancelled", "unavailable"):  # A run that did not take place says nothing about the fix.
            raise GivenUp
        return with_evidence(newest[-1], ran.examples) if newest and finished.outcome == "ok" else None


def _otherwise(request: protocol.ExampleRequest, expressions: Mapping[str, str]) -> protocol.ExampleRequest:
    return replace(request, expression=expressions.get(request.expression, request.expression))
