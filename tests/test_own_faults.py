"""A fault of ShapeLens itself: a line says so, and what has nothing to do with it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shapelens import cli
from shapelens.cache.store import Store
from shapelens.checking import CheckedFile, Checker

NET = "from torch import nn\n\n\n# shapelens: Net()({})\nclass Net(nn.Module):\n    def forward(self, x):\n        return x @ x\n"


class FailingOnce(Store):
    """A store that raises what no store raises, the first time that it is asked."""

    failed = False

    def get(self, key: str) -> Any:
        if not self.failed:
            self.failed = True
            raise RuntimeError("a fault of our own")
        return super().get(key)


async def test_the_other_files_are_checked(tmp_path: Path) -> None:
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for path in files:
        path.write_text(NET.format("f32[2, 3]"))
    checker = Checker(sys.executable, FailingOnce(tmp_path / "cache"))
    found: list[CheckedFile] = [
        checked async for _, checked in checker.check([(path, True) for path in files], lambda path: None) if checked
    ]
    said = sorted((finding.severity, finding.code) for checked in found for finding in checked.findings)
    assert said == [("error", "matmul"), ("warning", "crash")]


FAILS = """
import typer
from shapelens import cli
async def fails():
    raise IndexError("list index out of range")
def command():
    cli._run(fails)
cli.app = typer.Typer(pretty_exceptions_enable=False)
cli.app.command()(command)
cli.main()
"""


@pytest.mark.parametrize("traceback", ["", "1"])
def test_a_command_says_so_in_a_line(traceback: str) -> None:
    environment = {**os.environ, cli.TRACEBACK: traceback}
    done = subprocess.run([sys.executable, "-c", FAILS], capture_output=True, text=True, env=environment)
    if traceback:
        assert done.returncode == 1 and "Traceback" in done.stderr
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("shapelens: this is a fault of ShapeLens: IndexError: list index out of range (")
        assert done.stderr.count("\n") == 1
