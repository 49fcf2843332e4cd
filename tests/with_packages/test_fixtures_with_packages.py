"""The fixtures that import what programs around models import: data sets, pictures, tables, environments (tools/user_environment.sh)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

import fixtures
from shapelens.batch import Batch


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch() -> AsyncIterator[Batch]:
    """One worker for all files, as an editor has."""
    assert fixtures.USER_PYTHON.exists(), "run tools/user_environment.sh first"
    async with Batch(str(fixtures.USER_PYTHON), root=fixtures.FOLDER) as batch:
        yield batch


@pytest.mark.parametrize("name", fixtures.names(with_packages=True))
async def test_fixture(batch: Batch, name: str) -> None:
    await fixtures.check(batch, name)
