"""Telling the user of a run that takes long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from shapelens import protocol
from shapelens.lsp.runs.client import Client
from shapelens.runner import Worker

# A run that takes longer shows progress; for shorter ones the status would only flicker.
PROGRESS_AFTER = 0.3
LOOK_AGAIN = 0.05


async def tell_when_slow(run: protocol.Run, worker: Worker, client: Client) -> None:
    """Tell of a run that takes long, until this is cancelled. While the worker is still loading, the user is told that, and not this."""
    await asyncio.sleep(PROGRESS_AFTER)
    while worker.state.name != "running":
        await asyncio.sleep(LOOK_AGAIN)
    searches = run.search is not None and {known.target for known in run.search.known} < set(run.search.classes)
    title = "Looking for example inputs" if searches else f"Running {Path(run.file).name}"
    client.status("running", title, worker.interpreter)
    client.progress(title)
