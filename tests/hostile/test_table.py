"""The hostile fixtures and texts, one after the other in one server: what is said of them, what is shown of the rest, that each next edit
works, and that nothing is left behind.
"""

from __future__ import annotations

import sys

import pytest

from hostile.table import attacks, rows_of
from hostile.texts import TEXTS

DEADLINE = 3.0  # seconds; each of those that hang takes it, some several times
SOON = 20.0  # seconds, on a machine that does other things as well


@pytest.mark.timeout(1200)
async def test_the_next_edit_works_and_nothing_is_left() -> None:
    chosen = attacks()
    rows, left = await rows_of(chosen, sys.executable, DEADLINE)
    assert [row.name for row in rows] == [*chosen]
    assert [(row.name, row.failures) for row in rows if row.failures] == []
    assert [(row.name, row.next_edit) for row in rows if row.next_edit > SOON] == []
    assert [row.name for row in rows if row.stays is False] == []
    texts = [(row, TEXTS[row.name]) for row in rows if row.name in TEXTS]
    assert [(row.name, row.findings) for row, text in texts if not (set(row.codes) or {""}) <= text.codes] == []
    assert [row.name for row, text in texts if row.hints < text.attacked] == []
    assert left.processes == [] and left.files == []
