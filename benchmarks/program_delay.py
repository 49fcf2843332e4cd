"""How long after the hints of a file's classes those of its program are there.

    python benchmarks/program_delay.py PROGRAMS... [--python PYTHON] [--rounds 1]

`PROGRAMS` are files, or folders whose *.py files are taken; PYTHON has torch and what the programs import. Each file is opened in a server
that has seen another one before, so that torch is imported and nothing of the file is known. A client asks for hints every 20 ms: `classes`
is when the first hint inside of a class was there, `program` when the first one outside was, and `all` when the last hint was.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from program_truth import files
from wire import Client

EVERY = 0.02  # seconds
QUIET = 3.0  # seconds without a change, after which all is shown
LIMIT = 40.0  # seconds
FIRST = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        y = x + 1\n        return y\n"


def lines_of_classes(text: str) -> set[int]:
    """The numbers of the lines inside of classes, from 0."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            found.update(range(node.lineno - 1, node.end_lineno or node.lineno))
    return found


async def delay(client: Client, path: Path, text: str) -> tuple[float, float, float] | None:
    """Seconds from the opening of a file to its first hint inside of a class, its first outside, and its last; None without one of them."""
    inside = lines_of_classes(text)
    start = changed = time.perf_counter()
    uri = client.open(path, text)
    before: list[Any] = []
    first: dict[bool, float] = {}
    while time.perf_counter() - start < LIMIT and (not before or time.perf_counter() - changed < QUIET):
        hints = await client.hints(uri) or []
        now = time.perf_counter()
        if hints != before:
            before, changed = hints, now
        for hint in hints:
            first.setdefault(hint["position"]["line"] in inside, now - start)
        await asyncio.sleep(EVERY)
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return (first[True], first[False], changed - start) if len(first) == len((True, False)) else None


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    delays: list[float] = []
    print(f"{'file':60} classes  program  later by      all")
    for path in [path.resolve() for path in files(options.programs)]:
        text = path.read_text(encoding="utf-8", errors="replace")
        found = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["SHAPELENS_CACHE_DIR"] = folder
                command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"]
                async with Client(command, path.parent) as client:
                    warm = Path(folder, "first.py")
                    await client.settled([client.open(warm, FIRST)], 1.0, LIMIT)
                    found.append(await delay(client, path, text))
        times = [each for each in found if each is not None]
        if not times:
            print(f"{path.name[:60]:60} no hints inside, or none outside of classes", flush=True)
            continue
        classes, program, everything = [statistics.median(column) for column in zip(*times, strict=True)]
        delays.append(program - classes)
        print(f"{path.name[:60]:60} {classes:5.2f} s  {program:5.2f} s  {program - classes:6.2f} s  {everything:5.2f} s", flush=True)
    if delays:
        within = sum(each <= 1 for each in delays)
        print(f"{len(delays)} files: median {statistics.median(delays):.2f} s, {within} within 1 s, at most {max(delays):.2f} s")


asyncio.run(main())
