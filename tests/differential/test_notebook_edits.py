"""Random edits of notebooks end in what a fresh open shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("notebook_edits.py")


def edited(*options: str) -> str:
    """The last line of what the driver prints; all of it where something differs."""
    answer = subprocess.run([sys.executable, str(DRIVER), *options], capture_output=True, text=True, timeout=280, check=False)
    return answer.stdout.splitlines()[-1] if answer.returncode == 0 else answer.stdout + answer.stderr


@pytest.mark.slow("edits of cells, and a server anew for each comparison")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", ["1", "4"])
def test_a_part_of_them(number: str) -> None:
    # All 5000 of them take long: `python notebook_edits.py`.
    assert edited("--edits", "40", "--only", number) == "40 edits, 0 differences, 0 surer"
