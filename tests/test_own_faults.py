"""A fault of ShapeLens itself: a line says so, and what has nothing to do with it goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import typer

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


def test_a_command_says_so_in_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> int:
        raise IndexError("list index out of range")

    with pytest.raises(typer.Exit) as ended:
        cli._run(fails)
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err.startswith("shapelens: this is a fault of ShapeLens: IndexError: list index out of range (")
    monkeypatch.setenv(cli.TRACEBACK, "1")
    with pytest.raises(IndexError):
        cli._run(fails)
