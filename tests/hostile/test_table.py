"""The hostile fixtures, one after the other in one server: each next edit works, and nothing is left behind."""

from __future__ import annotations

import sys

import pytest

from hostile.table import FOLDER, rows_of

SOON = 20.0  # seconds, on a machine that does other things as well


@pytest.mark.timeout(600)
async def test_the_next_edit_works_and_nothing_is_left() -> None:
    files = sorted(FOLDER.glob("*.py"))
    rows, left = await rows_of(files, sys.executable)
    assert [row.name for row in rows] == [file.stem for file in files]
    assert [(row.name, row.failures) for row in rows if row.failures] == []
    assert [(row.name, row.next_edit) for row in rows if row.next_edit > SOON] == []
    assert left.processes == [] and left.files == []
