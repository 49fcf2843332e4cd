"""Times the profile of a model as a view in an editor asks for it: after a run that has shown the model's hints, in the same worker.

    python tests/benchmarks/model_view.py FILE EXAMPLE [FILE EXAMPLE ...] [--python PYTHON] [--turns N]

Printed for each, as the median of the turns in milliseconds, with the time of computing behind it, which a busy machine leaves about as it
is: until the first profile is there, which the view shows, and until the last one, which has operations and memory; the memory with
another size of the first dim.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import time
from pathlib import Path

from shapelens.protocol import ExampleRequest, ModelProfile, ProfileRequest, Run
from shapelens.runner import Worker

Said = list[tuple[float, ModelProfile]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="FILE EXAMPLE")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    asyncio.run(_measure(list(zip(options.pairs[::2], options.pairs[1::2], strict=True)), options.python, options.turns))


async def _measure(pairs: list[tuple[str, str]], python: str, turns: int) -> None:
    for path, expression in pairs:
        worker, numbers = Worker(python, root=str(Path(path).parent)), itertools.count(1)
        first, last, other = [], [], []
        for _ in range(turns):
            await _run(worker, next(numbers), path, expression, None)
            said = await _run(worker, next(numbers), path, expression, ProfileRequest())
            first.append(said[0])
            last.append(said[-1])
            dims = dict(said[-1][1].dims)
            if dims:
                dims[next(iter(dims))] += 1
                other += await _run(worker, next(numbers), path, expression, ProfileRequest(dims, memory_only=True))
        profile = last[-1][1]
        print(
            f"{Path(path).name}: {expression:<50} first {_median(first)}  last {_median(last)}  "
            f"{len(profile.steps)} steps, {len(profile.modules)} modules"
            + (f"  memory with another size {_median(other)}" if other else "")
            + (f"  {profile.error}" if profile.error else ""),
            flush=True,
        )
        await worker.stop()


async def _run(worker: Worker, number: int, path: str, expression: str, request: ProfileRequest | None) -> Said:
    run = Run(number, path, Path(path).read_text(), str(Path(path).parent), [ExampleRequest("", expression)], deadline=60)
    run.profile, run.background = request, request is not None
    start, found = time.perf_counter(), []  # type: float, Said
    finished = await worker.submit(run, lambda traced: None, lambda profile: found.append((time.perf_counter() - start, profile)))
    if request is not None and not found:
        raise SystemExit(f"{path}: {finished.outcome} {finished.detail}")
    return found


def _median(said: Said) -> str:
    passed, computed = (statistics.median(times) for times in ([time for time, _ in said], [profile.seconds for _, profile in said]))
    return f"{1000 * passed:5.0f} ({1000 * computed:.0f}) ms"


if __name__ == "__main__":
    main()
