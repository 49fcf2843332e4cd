"""What an edit in the last cell of a notebook costs, beside the same edit of the same text in a file, by turns: edit → diagnostics.

    python benchmarks/cells.py [--python PYTHON] [--cells 60] [--edits 15] [--turns 3]

Each cell but the last defines a network and uses it; the edit makes and mends a bug in the last one: in its class, then in its program.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from wire import Client

PAUSE = 0.3  # seconds between two edits of a person
CELL = """\
class Net{0}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, {0} + 16)
        self.fc2 = nn.Linear({0} + 16, 4)

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())

y{0} = Net{0}()(torch.rand(32, 8))"""
EDITS = {"class": ("+ 16, 4)", "+ 17, 4)"), "program": ("rand(32, 8)", "rand(32, 9)")}


def main() -> None:
    """Measure, and print one line for each kind of edit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the cells (default: this one)")
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--edits", type=int, default=15, help="how often a bug is made and mended in a turn (default: 15)")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    cells = ["import torch\nfrom torch import nn", *(CELL.format(number) for number in range(1, options.cells))]
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.turns):
        for where in ("file", "notebook"):
            for kind, times in asyncio.run(_measured(cells, where, options)).items():
                found.setdefault((kind, where), []).extend(times)
    for kind in EDITS:
        file, notebook = (statistics.median(found[kind, where]) for where in ("file", "notebook"))
        print(f"{kind}, {len(cells)} cells: p50 {file:.1f} ms in a file, {notebook:.1f} ms in a cell: {notebook / file:.2f} ×")


async def _measured(cells: list[str], where: str, options: argparse.Namespace) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"]
        async with Client(command, root) as client:
            edit: Callable[[str], float]
            if where == "file":
                uri = client.open(root / "text.py", "\n".join(cells) + "\n")

                def edit(text: str) -> float:
                    return client.edit(uri, text)
            else:
                path = root / "text.ipynb"
                uri = client.open_notebook(path, cells)[-1]

                def edit(text: str) -> float:
                    return client.edit_cell(path, uri, text)

            await client.settled([uri], 2.0, 120.0)
            return {kind: await _times(client, uri, edit, *EDITS[kind], options.edits) for kind in EDITS}


async def _times(client: Client, uri: str, edit: Callable[[str], float], old: str, new: str, edits: int) -> list[float]:
    """Milliseconds until the diagnostics of each edit came."""
    head, _, tail = client.texts[uri].rpartition(old)
    right, wrong = head + old + tail, head + new + tail
    times: list[float] = []
    for number in range(2 * edits):
        await asyncio.sleep(PAUSE)
        sent = edit(right if number % 2 else wrong)
        times.append(1000 * (await client.answered(uri, wrong=number % 2 == 0) - sent))
    await client.settled([uri], 2.0, 60.0)
    return times


if __name__ == "__main__":
    main()
