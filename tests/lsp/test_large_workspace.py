"""A workspace of 20 000 files: a file in it is seen from the one that uses it, every question is answered meanwhile, and little is kept."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

NET = """from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        y = self.fc(x)
        return y
"""
USES = "import torch\nfrom net import Net\n\nmodel = Net(32)\nprint(model(torch.randn(4, 32)).shape)\n"
FILES, FOLDERS = 20_000, 200
OTHER = "import os\n\n\ndef of_number(number: int) -> str:\n    return os.path.join('folder', str(number))\n" * 20
MOST_MEMORY = 200 << 20


@pytest.mark.timeout(300)
async def test_twenty_thousand_files_are_no_burden(tmp_path: Path) -> None:
    for number in range(FOLDERS):
        folder = tmp_path / f"part{number}"
        folder.mkdir()
        (folder / "module0.py").write_text(OTHER)
        for other in range(1, FILES // FOLDERS):
            os.link(folder / "module0.py", folder / f"module{other}.py")  # Twenty thousand names are the burden, not what is written.
    (tmp_path / "uses.py").write_text(USES)
    editor = Editor(tmp_path)  # Of its own, as the other tests share a workspace.
    await editor.start("--interpreter", TORCH_PYTHON)
    uri = editor.open("net.py", NET)
    server, memory = psutil.Process(editor.pid), 0
    shown: dict[int, str] = {}
    end = time.perf_counter() + 60
    while "32]" not in str(shown):  # Only the other file says so.
        assert time.perf_counter() < end, shown
        shown = await editor.hints(uri)
        memory = max(memory, server.memory_info().rss)
        await asyncio.sleep(0.02)
    assert await editor.stop() == 0
    assert memory < MOST_MEMORY
