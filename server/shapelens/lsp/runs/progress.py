"""Telling of a run that takes long, and trying an example that is being typed without disturbing any."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from shapelens import protocol
from shapelens.analysis.evidence import outcome
from shapelens.lsp.runs.client import Client
from shapelens.runner import Worker

# A run that takes longer shows progress; for shorter ones the status would only flicker.
PROGRESS_AFTER = 0.3
LOOK_AGAIN = 0.05
LONGEST_TRIAL = 2.0  # seconds that an example may run which is being typed


async def watch(run: protocol.Run, worker: Worker, client: Client) -> None:
    """Tell of a run that takes long. While the worker is still loading, that is what is told."""
    await asyncio.sleep(PROGRESS_AFTER)
    while worker.state.name != "running":
        await asyncio.sleep(LOOK_AGAIN)
    searches = run.search is not None and {known.target for known in run.search.known} < set(run.search.classes)
    title = "Looking for example inputs" if searches else f"Running {Path(run.file).name}"
    client.status("running", title, worker.interpreter)
    client.progress(title)


async def tried(run: protocol.Run, worker: Worker) -> tuple[bool, str] | None:
    """Whether the example of a run fits, and what comes out of it or is wrong; None where there is no time to try it."""
    end = asyncio.get_running_loop().time() + LONGEST_TRIAL
    while worker.state.name == "running" and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(LOOK_AGAIN)  # It must not take the place of a run.
    if worker.state.name != "ready":
        return None
    traces: list[protocol.Trace] = []
    finished = await worker.submit(replace(run, deadline=LONGEST_TRIAL), lambda traced: traces.append(traced.trace))
    return outcome(traces[-1]) if traces and traces[-1].examples and finished.outcome != "cancelled" else None
