"""Trying an example while it is being typed, without disturbing any run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shapelens import protocol
from shapelens.analysis.evidence import outcome
from shapelens.runner import Worker

LOOK_AGAIN = 0.05
LONGEST_TRIAL = 2.0  # seconds that such an example may run


async def try_run(run: protocol.Run, worker: Worker) -> tuple[bool, str] | None:
    """Returns whether the example of a run fits, and what comes out of it or is wrong; None where there is no time to try it."""
    end = asyncio.get_running_loop().time() + LONGEST_TRIAL
    while worker.state.name == "running" and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(LOOK_AGAIN)  # A trial must not take the place of a run.
    if worker.state.name != "ready":
        return None
    traces: list[protocol.Trace] = []
    finished = await worker.submit(replace(run, deadline=LONGEST_TRIAL), lambda traced: traces.append(traced.trace))
    return outcome(traces[-1]) if traces and traces[-1].examples and finished.outcome != "cancelled" else None
