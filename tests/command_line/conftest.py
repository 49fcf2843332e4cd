"""What the tests of the command line share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from command_line.commands import ROOT, Shown, validated
from forked_workers import forked_workers as forked_workers
from shapelens.batch import Batch
from shapelens.report.document import document
from shapelens.source.files import read


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown() -> AsyncIterator[Shown]:
    """The JSON of a file, as `show` makes it; one worker for all of the tests."""
    async with Batch(sys.executable, root=ROOT) as batch:

        async def show(file: Path, *examples: str) -> dict[str, Any]:
            return validated(document(await batch.analyse(file, read(file), examples=list(examples))))

        yield show


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "binary.py").write_bytes(b"\x7fELF\x00\x01\x02")
    (folder / "latin.py").write_bytes(b"x = '\xe9'\n")
    (folder / "notes.txt").write_text("These are notes, not code.\n")
    (folder / "model.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n")
    mlp = "from torch import nn\n\n\n# shapelens: Net()(f32[B:2, T:3, 8])\nclass Net(nn.Sequential):\n    def __init__(self):\n"
    (folder / "mlp.py").write_text(f"{mlp}        super().__init__(nn.Linear(8, 4))\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    return folder
