"""The hostile fixtures and texts, those of a kind one after the other in one server: what is said of them, what is shown of the rest, that
each next edit works, and that nothing is left behind.
"""

from __future__ import annotations

import sys

import pytest

from hostile.table import attacks, rows_of

DEADLINE = 3.0  # seconds
SHORTER = {"never end": 1.0, "use up what there is": 1.0, "while loading": 0.5}  # each of those that hang takes it, some several times
TIMEOUTS = "grace=0.3 definition=0.5 hanging=1 program=0.5 patient=1"
SOON = 20.0  # seconds, on a machine that does other things as well
ATTACKS = attacks()


def test_there_are_attacks_of_each_kind() -> None:
    assert {kind: len(texts) for kind, texts in ATTACKS.items()} == {
        "fixtures": 9, "never end": 4, "use up what there is": 3, "end": 9, "reach out": 22, "while loading": 11, "whole texts": 13
    }  # fmt: skip


@pytest.mark.slow("dozens of attacks, each until its deadline")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.xdist_group(f"hostile: {kind}")) for kind in ATTACKS])
async def test_the_next_edit_works_and_nothing_is_left(kind: str) -> None:
    chosen = ATTACKS[kind]
    rows, left = await rows_of(chosen, sys.executable, deadline=SHORTER.get(kind, DEADLINE), timeouts=TIMEOUTS)
    assert [row.name for row in rows] == [*chosen]
    assert [(row.name, row.failures) for row in rows if row.failures] == []
    assert [(row.name, row.next_edit) for row in rows if row.next_edit > SOON] == []
    assert [row.name for row in rows if row.stays is False] == []
    texts = [(row, chosen[row.name]) for row in rows if chosen[row.name].codes]
    assert [(row.name, row.findings) for row, text in texts if not (set(row.codes) or {""}) <= text.codes] == []
    assert [row.name for row, text in texts if row.hints < text.attacked] == []
    assert left.processes == [] and left.files == []
