"""Times the profile of a model as a view in an editor asks for it: after a run that has shown the model's hints, in the same worker.

    python tests/benchmarks/model_view.py FILE EXAMPLE [FILE EXAMPLE ...] [--python PYTHON] [--turns N]

Printed for each, in milliseconds and as the median of the turns, with the time of computing behind it, which a busy machine leaves as it is: until the first profile is there, which the view shows, and until the
last one, which has names for dims and the memory of a training step; how large they are; a profile with another size of the first dim.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

from shapelens.protocol import ExampleRequest, ModelProfile, ProfileRequest, Run
from shapelens.runner import Worker


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="FILE EXAMPLE")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    pairs = list(zip(options.pairs[::2], options.pairs[1::2], strict=True))
    asyncio.run(_measure(pairs, options.python, options.turns))


async def _measure(pairs: list[tuple[str, str]], python: str, turns: int) -> None:
    for path, expression in pairs:
        worker = Worker(python, root=str(Path(path).parent))
        requests = [ExampleRequest("", expression)]
        text = Path(path).read_text()
        numbers = iter(range(1, 10_000))

        async def profiled(
            request: ProfileRequest | None,
            worker: Worker = worker,
            path: str = path,
            text: str = text,
            requests: list[ExampleRequest] = requests,
            numbers: iter[int] = numbers,
        ) -> list[tuple[float, ModelProfile]]:
            run = Run(next(numbers), path, text, str(Path(path).parent), requests, deadline=60, profile=request)
            run.background = request is not None
            start, found = time.perf_counter(), []

            def take(profile: ModelProfile) -> None:
                found.append((1000 * (time.perf_counter() - start), profile))

            finished = await worker.submit(run, lambda traced: None, take)
            if request is not None and not found:
                raise SystemExit(f"{path}: {finished.outcome} {finished.detail}")
            return found

        first, last, slider = [], [], []
        for _ in range(turns):
            await profiled(None)
            said = await profiled(ProfileRequest())
            first.append(_times(said[0]))
            last.append(_times(said[-1]))
            dims = dict(said[-1][1].dims)
            if dims:
                dims[next(iter(dims))] += 1
                slider.append(_times((await profiled(ProfileRequest(dims, memory_only=True)))[-1]))
        profile = said[-1][1]
        print(
            f"{Path(path).name}: {expression[:60]:<60} first {_median(first)}  last {_median(last)}  "
            f"{len(profile.steps)} steps, {len(profile.modules)} modules"
            + (f"  memory with another size {_median(slider)}" if slider else "")
            + (f"  {profile.error}" if profile.error else ""),
            flush=True,
        )
        await worker.stop()


def _times(said: tuple[float, ModelProfile]) -> tuple[float, float]:
    return said[0], 1000 * said[1].seconds


def _median(times: list[tuple[float, float]]) -> str:
    return "%5.0f (%.0f) ms" % tuple(statistics.median(column) for column in zip(*times, strict=True))


if __name__ == "__main__":
    main()
