"""A part of what `keystrokes.py` types: no error of ours, and at the end what a fresh open shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from differential import keystrokes

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.slow("hundreds of keys, and a server anew for each comparison")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["recipe/recipe.py"])
async def test_typing_ends_where_a_fresh_open_begins(name: str) -> None:
    path = FIXTURES / name
    report = await keystrokes.type_in(path, path.parent, sys.executable, 800, seed=1)
    assert report.keys >= 800 and report.checked >= 2
    assert [each for each in report.wrong if each[0] != "unsteady"] == []
