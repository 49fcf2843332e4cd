"""A workspace of 20 000 files: a file in it is seen from the one that uses it, every question is answered meanwhile, and little is kept."""

from __future__ import annotations

import asyncio
import time

import psutil

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
LONGEST_WAIT = 1.5  # seconds; on an idle machine a tenth of that


async def test_twenty_thousand_files_are_no_burden(editor: Editor) -> None:
    for number in range(FOLDERS):
        folder = editor.root / f"part{number}"
        folder.mkdir()
        for other in range(FILES // FOLDERS):
            (folder / f"module{other}.py").write_text(OTHER)
    (editor.root / "uses.py").write_text(USES)
    uri = editor.open("net.py", NET)
    server, waits, memory = psutil.Process(editor.pid), [0.0], 0
    shown: dict[int, str] = {}
    end = time.perf_counter() + 60
    while "32]" not in str(shown):  # Only the other file says so.
        asked = time.perf_counter()
        assert asked < end, shown
        shown = await editor.hints(uri)
        waits.append(time.perf_counter() - asked)
        memory = max(memory, server.memory_info().rss)
        await asyncio.sleep(0.02)
    assert max(waits) < LONGEST_WAIT
    assert memory < MOST_MEMORY
