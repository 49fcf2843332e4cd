"""Every file of `fixtures/`, against what is expected in its comments. See fixtures.py."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import fixtures
import pytest
import pytest_asyncio
from shapelens.runner.worker import Worker


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def worker() -> AsyncIterator[Worker]:
    """One worker for all files, as an editor has."""
    worker = Worker(sys.executable, root=str(fixtures.FOLDER))
    yield worker
    await worker.stop()


@pytest.mark.parametrize("name", fixtures.names())
async def test_fixture(worker: Worker, name: str) -> None:
    await fixtures.check(worker, name)
