"""A session in an editor, measured: how long after an edit its diagnostics come, a burst of edits, memory, and what is left at the end.

    python benchmarks/session.py [--python PYTHON] [--packages FOLDER] [--edits 15] [--burst 60] [--growth 10000] [--only NAME ...]

--python runs the models: it needs torch, and what the models import. --packages holds sources by package, as in
`timm/timm/models/swin_transformer.py`; models that are not there are left out. Every number comes from a real server and a client that
sends what an editor sends. The recipe's own way (hooks.py) runs in between, as the machine may be busy: compare with that.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from wire import Client

ROOT = Path(__file__).resolve().parents[1]
HOOKS = Path(__file__).with_name("hooks.py")
PAUSE = 0.3  # seconds between two edits of a person
RATE = 30  # edits a second of a burst


@dataclass(frozen=True)
class Case:
    """A model, and an edit of it that makes and mends a bug. Goals in ms; expression: for hooks.py, with the input's shape behind `@`."""

    name: str
    file: str
    old: str
    new: str
    directive: str = ""
    expression: str = ""
    goal: float = 0.0
    goal_p90: float = 0.0


PICTURE = "(f32[B:2, 3, 224, 224])"
VIT = "ViT(image_size=256, patch_size=32, num_classes=1000, dim=1024, depth=12, heads=16, mlp_dim=2048)"
CASES = [
    Case("recipe", "recipe/recipe.py", "16 * 5 * 5", "16 * 6 * 6", "", "Net()@2,3,32,32", 10, 20),
    Case(
        "ResNet-50",
        "pytorchcv/pytorchcv/models/resnet.py",
        "in_features=in_channels,",
        "in_features=in_channels + 1,",
        f"resnet50(){PICTURE}",
        "resnet50()@2,3,224,224",
        30,
    ),
    Case(
        "ViT, 12 layers",
        "vit-pytorch/vit_pytorch/vit.py",
        "nn.Linear(patch_dim, dim)",
        "nn.Linear(patch_dim, dim + 1)",
        f"{VIT}(f32[B:2, 3, 256, 256])",
        f"{VIT}@2,3,256,256",
        40,
    ),
    Case(
        "Swin-T",
        "timm/timm/models/swin_transformer.py",
        "self.qkv = nn.Linear(dim, attn_dim * 3,",
        "self.qkv = nn.Linear(dim, attn_dim * 2,",
        f"swin_tiny_patch4_window7_224(){PICTURE}",
        "swin_tiny_patch4_window7_224()@2,3,224,224",
        40,
    ),
    Case(
        "vision_transformer.py, no directive",
        "timm/timm/models/vision_transformer.py",
        "self.in_norm = norm_layer(dim, **dd)",
        "self.in_norm = norm_layer(dim + 1, **dd)",
        "",
        "",
        100,
    ),
]


def main() -> None:
    """Measure, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--packages", type=Path, default=ROOT / "fixtures", help="sources of packages")
    parser.add_argument("--edits", type=int, default=15, help="how often a bug is made and mended (default: 15)")
    parser.add_argument("--burst", type=float, default=60.0, help="seconds of a burst of edits (default: 60)")
    parser.add_argument("--growth", type=int, default=10_000, help="edits over which memory is watched (default: 10000)")
    parser.add_argument("--only", nargs="*", default=[], help="only the models whose name has one of these words, or burst, growth")
    options = parser.parse_args()
    print(f"{'measure':<38}{'result':>34}   goal")
    for case in CASES:
        if _is_wanted(options.only, case.name):
            asyncio.run(_latency(case, options))
    if _is_wanted(options.only, "burst"):
        asyncio.run(_burst(CASES[0], options))
    if _is_wanted(options.only, "growth"):
        asyncio.run(_growth(CASES[0], options))


def _is_wanted(only: list[str], name: str) -> bool:
    return not only or any(word in name for word in only)


def _tell(measure: str, result: str, goal: str) -> None:
    print(f"{measure:<38}{result:>34}   {goal}", flush=True)


def _client(options: argparse.Namespace, root: Path) -> Client:
    return Client([sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"], root)


def texts(case: Case, options: argparse.Namespace) -> tuple[Path, Path, str, str] | None:
    """The file, the folder that it is imported from, its right and its wrong text; None where there is no such file."""
    folder = ROOT / "fixtures" if case.file.startswith("recipe") else options.packages
    path = (folder / case.file).resolve()
    if not path.exists():
        _tell(case.name, f"no {case.file}", "")
        return None
    text = path.read_text(encoding="utf-8")
    right = f"# shapelens: {case.directive}\n{text}" if case.directive else text
    wrong = right.replace(case.old, case.new, 1)
    assert wrong != right, f"{case.old!r} is not in {path}"
    return path, folder / Path(case.file).parts[0], right, wrong


# --- edit → diagnostics ---


async def _latency(case: Case, options: argparse.Namespace) -> None:
    found = texts(case, options)
    if found is None:
        return
    path, folder, right, wrong = found
    own = hooks(case, path, folder, options)
    async with _client(options, folder) as client:
        start = time.perf_counter()
        uri = client.open(path, right)
        first = await client.answered(uri, wrong=False) - start
        await asyncio.sleep(1.0)
        times: list[float] = []
        missed = 0
        for number in range(2 * options.edits):
            await asyncio.sleep(PAUSE)
            sent = client.edit(uri, right if number % 2 else wrong)
            try:
                times.append(1000 * (await client.answered(uri, wrong=number % 2 == 0) - sent))
            except TimeoutError:
                missed += 1
        server, worker, children = _memory(client)
    if own is not None:
        own = statistics.mean([own, hooks(case, path, folder, options) or own])
    if not times:
        _tell(f"{case.name}: edit → diagnostics", f"none of {missed} came", "")
        return
    p50, p90 = statistics.median(times), statistics.quantiles(times, n=10)[-1]
    goal = f"{case.goal:.0f}" + (f" / {case.goal_p90:.0f}" if case.goal_p90 else "") + " ms"
    _tell(f"{case.name}: p50 / p90" + (f", {missed} missed" if missed else ""), f"{p50:.1f} / {p90:.1f} ms", goal)
    if own is not None:
        _tell("  the recipe's own way, warm", f"{own:.1f} ms: {p50 / own:.2f} ×", "")
    _tell("  open → first diagnostics", f"{first:.2f} s", "")
    _tell("  server / worker / its children", f"{server:.0f} / {worker:.0f} / {children:.0f} MB", "150 / 700 / small")


def hooks(case: Case, path: Path, folder: Path, options: argparse.Namespace) -> float | None:
    if not case.expression:
        return None
    command = [options.python, str(HOOKS), str(path), str(folder), case.expression, "11"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  hooks.py: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
        return None
    return float(done.stdout)


# --- a burst of edits ---


async def _burst(case: Case, options: argparse.Namespace) -> None:
    found = texts(case, options)
    assert found is not None
    path, folder, right, wrong = found
    async with _client(options, folder) as client:
        uri = client.open(path, right)
        await client.answered(uri, wrong=False)
        alone = []
        for number in range(10):
            await asyncio.sleep(PAUSE)
            sent = client.edit(uri, right if number % 2 else wrong)
            alone.append(await client.answered(uri, wrong=number % 2 == 0) - sent)
        run = statistics.median(alone)
        before = sum(_memory(client)[:2])
        behind = []
        rounds = 5
        for number in range(rounds):
            edits = int(options.burst * RATE / rounds) | 1
            begun = time.perf_counter()
            for edit in range(edits):
                await asyncio.sleep(max(0.0, begun + edit / RATE - time.perf_counter()))
                sent = client.edit(uri, right.replace(case.old, f"16 * 5 * {edit + 6}", 1) if (edit + number) % 2 else wrong)
            sent = client.edit(uri, wrong if number % 2 else right)
            behind.append(await client.answered(uri, wrong=bool(number % 2)) - sent)
        await asyncio.sleep(1.0)
        growth = sum(_memory(client)[:2]) - before
        worst = max(behind)
        _tell(f"{RATE} edits/s for {options.burst:.0f} s: last → right", f"{1000 * worst:.0f} ms: {worst / run:.1f} runs", "2 runs")
        _tell("  memory of server and worker", f"{growth:+.1f} MB", "none")
        with _watched_to_the_end(client) as left:
            await asyncio.sleep(1.0)
            idle = _busy(client)
            await asyncio.sleep(5.0)
            _tell("  processor time of 5 idle seconds", f"{1000 * (_busy(client) - idle):.0f} ms", "0")
    _tell("  processes left after `exit`", str(len(left())), "0")


def _processes(client: Client) -> list[psutil.Process]:
    server = psutil.Process(client.process.pid)
    return [server, *server.children(recursive=True)]


def _busy(client: Client) -> float:
    """Seconds of processor time that the server and all below it have used."""
    return sum(sum(process.cpu_times()[:2]) for process in _processes(client))


@contextmanager
def _watched_to_the_end(client: Client) -> Iterator[Callable[[], list[psutil.Process]]]:
    """Gives a function that says which of the processes of now are still alive."""
    known = _processes(client)
    yield lambda: psutil.wait_procs(known, timeout=2)[1]


# --- memory ---


async def _growth(case: Case, options: argparse.Namespace) -> None:
    found = texts(case, options)
    assert found is not None
    path, folder, right, _ = found
    async with _client(options, folder) as client:
        uri = client.open(path, right)
        await client.answered(uri, wrong=False)
        sizes: list[tuple[float, float]] = []
        start = time.perf_counter()
        for number in range(options.growth):
            # No two texts are the same, so that nothing that is kept by its text helps.
            text = right.replace(case.old, f"16 * 5 * {number + 6}", 1) if number % 2 == 0 else f"{right}\n# {number}\n"
            client.edit(uri, text)
            await client.answered(uri, wrong=number % 2 == 0)
            if number % max(1, options.growth // 10) == options.growth // 10 - 1:
                server, worker, _ = _memory(client)
                sizes.append((server, worker))
        seconds = time.perf_counter() - start
    each = f"{options.growth} edits, {1000 * seconds / options.growth:.0f} ms each"
    for who, index, goal in (("server", 0, "150 MB, none"), ("worker", 1, "700 MB, none")):
        first, last = sizes[1][index], sizes[-1][index]
        rate = 1000 * (last - first) / (0.8 * options.growth)
        _tell(f"{each}: {who}" if index == 0 else f"  {who}", f"{first:.1f} → {last:.1f} MB, {1024 * rate:+.0f} KB / 1000", goal)


def _memory(client: Client) -> tuple[float, float, float]:
    """MB: the server, the largest process below it, which is the worker, and what the others have for themselves."""
    server, *below = _processes(client)
    sizes = []
    for process in below:
        with suppress(psutil.Error):  # A run may have ended meanwhile.
            sizes.append((process.memory_info().rss, process.memory_full_info().uss))
    sizes.sort(reverse=True)
    worker = sizes[0][0] if sizes else 0
    return server.memory_info().rss / 2**20, worker / 2**20, sum(own for _, own in sizes[1:]) / 2**20


if __name__ == "__main__":
    main()
