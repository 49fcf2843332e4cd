"""How a workspace of many files opens: the time until a file in it has hints, the longest wait for an answer, and the server's memory.

    python benchmarks/large_workspace.py SOURCES [--files 20000] [--python PYTHON] [--seconds 60]

SOURCES is a folder of Python files, as the site-packages of an environment: they are copied, under several names where there are too few.
The file that is opened, without an example, lies beside them; a class in a second one uses it. By turns with a workspace of these two.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from wire import Client

NET = """from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        return self.fc(x)
"""
USES = "import torch\nfrom net import Net\n\nmodel = Net(32)\nprint(model(torch.randn(4, 32)).shape)\n"
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}
EVERY = 0.02  # seconds
MB = 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="a folder of Python files")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which the server is watched (default: 60)")
    options = parser.parse_args()
    for number in (0, options.files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "net.py").write_text(NET)
            (root / "uses.py").write_text(USES)
            for place, source in enumerate(itertools.islice(_sources(options.sources), number)):
                copy = root / f"part{place // 200}" / f"file{place}.py"
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(source.read_bytes())
            hints, waited, memory = asyncio.run(_opened(root, options))
        files = f"{number + 2:>6} files"
        print(f"{files}: hints after {hints:5.2f} s, longest wait for an answer {1000 * waited:5.0f} ms, server {memory:4.0f} MB")


def _sources(folder: Path) -> Iterator[Path]:
    return itertools.cycle(sorted(folder.rglob("*.py")))


async def _opened(root: Path, options: argparse.Namespace) -> tuple[float, float, float]:
    """Seconds until the hint that only the other file gives, the longest wait in seconds, and the most memory of the server in MB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"]
    hints, waited, memory = float("nan"), 0.0, 0.0
    async with Client(command, root) as client:
        uri = client.open(root / "net.py", NET)
        server = psutil.Process(client.process.pid)
        while time.perf_counter() - start < options.seconds:
            asked = time.perf_counter()
            shown = await client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": WHOLE})
            waited = max(waited, time.perf_counter() - asked)
            memory = max(memory, server.memory_info().rss / MB)
            if hints != hints and any("32" in str(hint["label"]) for hint in shown or ()):
                hints = time.perf_counter() - start
            await asyncio.sleep(EVERY)
    return hints, waited, memory


main()
