"""Two workers for the whole folder: one that forks, and one where there is no fork."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from worker.process import WorkerProcess


@pytest.fixture(scope="session")
def forking() -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    assert worker.close() == 0


@pytest.fixture(scope="session")
def unforked() -> Iterator[WorkerProcess]:
    worker = WorkerProcess("--no-fork")
    yield worker
    assert worker.close() == 0
