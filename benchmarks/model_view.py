"""Times the view of a model as an editor with it open asks for it: after an edit, once the model's hints are there.

    python benchmarks/model_view.py FILE EXAMPLE [FILE EXAMPLE ...] [--python PYTHON] [--turns N]

Each turn edits the example's first size. Printed for each, as the median of the turns in milliseconds from the hints on: until what is
shown first is there, the tree with its shapes; until the steps of forward are, for the picture; until operations and memory are. And the
memory with another size of the first dim, and with one more, as a slider asks. In brackets is the processor time meanwhile, of the server
and of all processes: what a busy machine leaves about as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import time
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from wire import Client

T = TypeVar("T")
Took = tuple[float, float, float]  # seconds: passed, of the server's processor time, of all processes'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+", metavar="FILE EXAMPLE")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for path, expression in zip(options.pairs[::2], options.pairs[1::2], strict=True):
        asyncio.run(_measure(Path(path).resolve(), expression, options.python, options.turns))


async def _measure(path: Path, expression: str, python: str, turns: int) -> None:
    size = re.search(r"(?<=:)\d+", expression)
    if size is None:
        raise SystemExit(f"{expression} names no dim")
    name, text = expression.partition("(")[0], path.read_text(encoding="utf-8")
    found: dict[str, list[Took]] = {"shapes": [], "steps": [], "memory": [], "memory with another size": [], "with one more": []}
    async with Client([sys.executable, "-m", "shapelens.lsp", "--interpreter", python, "--log-level", "error"], path.parent) as client:
        uri = client.open(path, "")
        for turn in range(turns):
            example = expression[: size.start()] + str(int(size[0]) + turn) + expression[size.end() :]
            client.edit(uri, re.sub(rf"^(?=class {name}\b)", f"# shapelens: {example}\n", text, count=1, flags=re.M))
            await client.settled([uri], 0.0, 60.0)
            await client.hints(uri)

            async def ask(**options: Any) -> Any:
                params = {"command": "shapelens.model", "arguments": [uri, name, 1, options]}
                while True:  # There is no answer while something newer is asked, and none with a model while libraries are loaded.
                    answer = await client.request("workspace/executeCommand", params)
                    if answer and ("model" in answer or "memory" in answer):
                        return answer
                    await asyncio.sleep(0.01)

            passed: Took = (0.0, 0.0, 0.0)
            for what, until in (("shapes", "shapes"), ("steps", "steps"), ("memory", "")):
                last, took = await _timed(client, ask(until=until))
                passed = (passed[0] + took[0], passed[1] + took[1], passed[2] + took[2])
                found[what].append(passed)
            dims = last["model"]["example"]["dims"]
            dim = next(iter(dims))
            _, took = await _timed(client, ask(memory=dim, sizes={dim: dims[dim] + 1}))
            found["memory with another size"].append(took)
            _, took = await _timed(client, ask(memory=dim, sizes={dim: dims[dim] + 5}))
            found["with one more"].append(took)
    steps = len(last["model"]["graph"]["nodes"])
    print(f"{path.name}: {expression}, {steps} steps, load {psutil.getloadavg()[0]:.1f}", flush=True)
    for what, each in found.items():
        print(f"  {what:<26}{_median(each)}", flush=True)


async def _timed(client: Client, wanted: Awaitable[T]) -> tuple[T, Took]:
    start, before = time.perf_counter(), _busy(client)
    answer = await wanted
    server, every = (after - earlier for after, earlier in zip(_busy(client), before, strict=True))
    return answer, (time.perf_counter() - start, server, every)


def _busy(client: Client) -> tuple[float, float]:
    """Seconds of processor time: of the server alone, and with all processes that it has started, those that have ended included."""
    server = psutil.Process(client.process.pid)
    times = server.cpu_times()
    every = times.user + times.system + times.children_user + times.children_system
    for process in server.children(recursive=True):
        with suppress(psutil.Error):
            every += sum(process.cpu_times()[:4])
    return times.user + times.system, every


def _median(times: list[Took]) -> str:
    passed, server, every = (1000 * statistics.median(each) for each in zip(*times, strict=True))
    return f"{passed:6.0f} ms ({server:.0f} / {every:.0f})"


if __name__ == "__main__":
    main()
