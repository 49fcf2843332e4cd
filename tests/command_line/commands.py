"""How the tests of the command line run it: with a real worker and real torch, in this process or, as a user does, in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
from typer.testing import CliRunner

from shapelens.cli import app
from shapelens.report.document import schema

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = ROOT / "fixtures" / "recipe" / "recipe.py"
WRONG = ROOT / "fixtures" / "recipe" / "wrong_in_features.py"
NOTEBOOK = ROOT / "fixtures" / "notebooks" / "mistakes.ipynb"
SHAPELENS = Path(sys.executable).with_name("shapelens")

# A class of which a file makes an example, or derives.
HEAD = """\
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(24, 4)

    def forward(self, features):
        return self.fc(features)
"""


def run(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `shapelens` with these arguments prints and exits with, with no word of the environment of the tests.

    The command line itself runs here, in a thread, as Python and the packages would else be loaded for each test; its worker is a process.
    """
    plain = dict.fromkeys(("FORCE_COLOR", "COLUMNS", "VIRTUAL_ENV", "CI"))
    command = list(map(str, arguments))
    before = Path.cwd()
    os.chdir(cwd)
    try:
        with ThreadPoolExecutor(1) as thread:  # It has an event loop of its own.
            done = thread.submit(CliRunner().invoke, app, command, env={**plain, **environment}, catch_exceptions=False).result()
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def run_process(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """As `run`, by a process, as a user has it: the entry point, the streams, and a worker that is started from nothing."""
    command = [str(SHAPELENS), *map(str, arguments)]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS", "VIRTUAL_ENV", "CI")}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", env={**plain, "PYTHONUTF8": "1", **environment}, timeout=110
    )


def validated(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


Shown = Callable[..., Awaitable[dict[str, Any]]]
