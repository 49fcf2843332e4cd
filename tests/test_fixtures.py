"""Every file of `fixtures/`, against what is expected in its comments. See fixtures.py."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import fixtures
from shapelens.batch import Batch


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch() -> AsyncIterator[Batch]:
    """One worker for all files, as an editor has."""
    async with Batch(sys.executable, root=fixtures.FOLDER) as batch:
        yield batch


@pytest.mark.parametrize("name", fixtures.names())
async def test_fixture(batch: Batch, name: str) -> None:
    await fixtures.check(batch, name)
