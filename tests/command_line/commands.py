"""How the tests of the command line run it: as a user does, in processes of its own, with a real worker and real torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema

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
    """Run `shapelens` with these arguments, with no word of the environment of the tests."""
    command = [str(SHAPELENS), *map(str, arguments)]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS", "VIRTUAL_ENV", "CI")}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", env={**plain, "PYTHONUTF8": "1", **environment}, timeout=110
    )


def validated(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


Shown = Callable[..., Awaitable[dict[str, Any]]]
