"""Milliseconds from an edit to its findings: a number in the recipe network is broken and mended again and again.

    python tests/benchmarks/edits.py [--edits 40]

Measured without an editor in between: the text is parsed, run by a worker that is loaded already, and analysed. "first" counts from nothing
to the first findings, so it holds the start of the worker and the loading of torch.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

from shapelens.batch import Batch

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "fixtures" / "recipe" / "recipe.py"
RIGHT, WRONG = "16 * 5 * 5", "16 * 6 * 6"


async def measure(edits: int) -> None:
    """Print the time to the first findings, and the median and 95th percentile over `edits` edits."""
    right = FILE.read_text(encoding="utf-8")
    wrong = right.replace(RIGHT, WRONG)
    assert wrong != right
    times: list[float] = []
    async with Batch(sys.executable, root=ROOT) as batch:
        started = time.perf_counter()
        await batch.analyse(FILE, right)
        first = time.perf_counter() - started
        for number in range(edits):
            text, codes = (wrong, ["linear-in-features"]) if number % 2 == 0 else (right, [])
            started = time.perf_counter()
            analysed = await batch.analyse(FILE, text)
            times.append(1000 * (time.perf_counter() - started))
            assert [finding.code for finding in analysed.findings] == codes
    last = statistics.quantiles(times, n=20)[-1]
    print(f"first {first:.1f} s; {edits} edits: median {statistics.median(times):.0f} ms, 95 % within {last:.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=40, help="how many (default: 40)")
    asyncio.run(measure(parser.parse_args().edits))
