"""How long after the server was started the first hints of a file are there, against `import torch` in the same minute.

    python benchmarks/start.py [FILE] [--python PYTHON] [--rounds 5]

FILE is as it is on disk: an example is found for it, unless a directive gives one. The client asks for hints every 5 ms. By turns:

  import torch    alone, with PYTHON, which runs the models
  unknown file    an empty cache
  known file      the cache that the server before has left
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wire import Client

ROOT = Path(__file__).resolve().parents[1]
IMPORT = "import time; start = time.perf_counter(); import torch; print(time.perf_counter() - start)"
EVERY = 0.005  # seconds
SETTLED = 3.0  # seconds, after which what was shown is in the cache
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "fixtures" / "recipe" / "recipe.py")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # An installed server is compiled.
    alone, unknown, known = [], [], []
    for number in range(-1, options.rounds):  # The first one compiles what is not.
        with tempfile.TemporaryDirectory() as cache:
            os.environ["SHAPELENS_CACHE_DIR"] = cache
            done = subprocess.run([options.python, "-c", IMPORT], capture_output=True, text=True, check=True)
            seconds = [float(done.stdout), *[asyncio.run(_started(options, wait)) for wait in (SETTLED, 0.0)]]
        if number >= 0:
            for times, each in zip((alone, unknown, known), seconds, strict=True):
                times.append(each)
    torch = statistics.median(alone)
    _tell("import torch", alone, "")
    _tell("unknown file → hints", unknown, f"{torch + 0.7:.2f}: import torch + 0.7")
    _tell("known file → hints", known, "0.40")


def _tell(measure: str, times: list[float], goal: str) -> None:
    print(f"{measure:<24}{statistics.median(times):6.2f} s  ({min(times):.2f}-{max(times):.2f})   {goal}")


async def _started(options: argparse.Namespace, wait: float) -> float:
    """Seconds from the start of a server until it gives hints; it is ended after `wait` more."""
    start = time.perf_counter()
    path = options.file.resolve()
    async with Client(
        [sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"], path.parent
    ) as client:
        uri = client.open(path, path.read_text(encoding="utf-8"))
        async with asyncio.timeout(60):
            while not await client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": WHOLE}):
                await asyncio.sleep(EVERY)
        seconds = time.perf_counter() - start
        await asyncio.sleep(wait)
    return seconds


main()
