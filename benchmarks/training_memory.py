"""Compares the memory that a profile says with what a real training step on the CPU allocates.

    python benchmarks/training_memory.py FILE EXAMPLE ... [--python PYTHON] [--list LISTFILE]

LISTFILE holds lines `FILE<tab>EXPRESSION`. Each model is built anew in a process of its own, on the CPU with real tensors, and takes a step
under torch.profiler with memory: forward in training mode, backward from the sum of its results, an AdamW step (state allocated before).
Printed for each: what is kept after forward and the peak, said and real, in MiB, the difference, with MemTracker's (`torch.distributed`)
behind it; parameters and FLOPs against torch's own counters (`model.parameters()`, `torch.utils.flop_counter`) and torchinfo's, where the
interpreter has it; at the end how many are within 5 % (kept) and 10 % (peak). Of the modules that are called, one by one: how many have
exactly the gradients and the optimizer's state that are said, and how many keep what is said within 5 %, and have as much for a while
within 10 % (or within 4 KB), with those that differ most with `--modules`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from shapelens.analysis.structure.training_memory import training_memory
from shapelens.analysis.structure.tree import ModuleRow, tree, walk
from shapelens.protocol import ExampleRequest, ModelProfile, ProfileRequest, Run
from shapelens.runner import Worker

MIB = 1 << 20
MODULES = {"gradients": 0.0, "state": 0.0, "kept": 0.05, "temporary": 0.1}  # how much of it may be off
REAL = Path(__file__).with_name("training_step.py")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="FILE EXAMPLE")
    parser.add_argument("--list", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--modules", action="store_true", help="print the modules that differ")
    options = parser.parse_args()
    pairs = list(zip(options.pairs[::2], options.pairs[1::2], strict=True))
    if options.list:
        pairs += [tuple(line.split("\t", 1)) for line in options.list.read_text().splitlines() if "\t" in line]
    asyncio.run(_compare(pairs, options.python, options.modules))


async def _compare(pairs: list[tuple[str, str]], python: str, each_module: bool) -> None:
    worker = Worker(python, root="/")
    within = {"kept": 0, "peak": 0, "parameters": 0, "gradients": 0, "state": 0, "flops": 0}
    others = {"tracked_kept": 0, "tracked_peak": 0, "torchinfo_parameters": 0, "torchinfo_mult_adds": 0}
    modules = dict.fromkeys(("modules", *MODULES), 0)
    count = 0
    for number, (path, expression) in enumerate(pairs):
        real = _real(path, expression, python)
        said: list[ModelProfile] = []
        run = Run(
            number + 1, path, Path(path).read_text(), str(Path(path).parent), [ExampleRequest("", expression)], named=False, deadline=60
        )
        run.profile = ProfileRequest(device="cpu")
        finished = await worker.submit(run, lambda traced: None, said.append)
        label = f"{Path(path).name}: {re.sub(r'[(].*', '', expression)}"
        if isinstance(real, str) or not said or said[-1].training is None or said[-1].training.error or said[-1].error:
            why = said[-1].error or (said[-1].training.error if said[-1].training else "") if said else finished.detail
            print(f"{label:<44} not compared: {real if isinstance(real, str) else ''} | {why}"[:220], flush=True)
            continue
        count += 1
        profile = said[-1]
        assert profile.training is not None
        found = training_memory(profile.training, "AdamW", "cpu")
        rows = tree(profile, (), "AdamW", "cpu")
        mine = {
            "kept": found.after_forward,
            "peak": found.peak,
            "parameters": found.parameters,
            "gradients": found.gradients,
            "state": found.optimizer_state,
            "flops": sum(row.flops for row in rows),
        }
        limits = {"kept": 0.05, "peak": 0.1}
        off = {name: (mine[name] - real[name]) / max(real[name], 1) for name in mine}
        for name in within:
            within[name] += abs(off[name]) <= limits.get(name, 0.0)
        exact = [name for name in ("parameters", "gradients", "state", "flops") if off[name]]
        tracked = {name: (real[f"tracked_{name}"] - real[name]) / max(real[name], 1) for name in limits if f"tracked_{name}" in real}
        for name, share in tracked.items():
            others[f"tracked_{name}"] += abs(share) <= limits[name]
        notes = [f"{name} {mine[name]} != {real[name]}" for name in exact]
        notes += [str(real[name]) for name in ("tracker_error", "torchinfo_error") if name in real]
        if "torchinfo_parameters" in real:
            totals = {"parameters": sum(row.parameters for row in rows), "mult_adds": mine["flops"] // 2}
            for name, total in totals.items():
                others[f"torchinfo_{name}"] += total == real[f"torchinfo_{name}"]
                notes += [f"torchinfo {name} {real['torchinfo_' + name]} != {total}"] if total != real[f"torchinfo_{name}"] else []
        differing = _add_modules(modules, rows, real["modules"])
        kept = real["activations"]
        mine_kept = found.activations
        print(
            f"{label:<44} kept {mine['kept'] / MIB:9.2f} {real['kept'] / MIB:9.2f} {off['kept']:+7.2%} "
            f"(activations {mine_kept / MIB:8.2f} {kept / MIB:8.2f} {(mine_kept - kept) / max(kept, 1):+7.2%})  "
            f"peak {mine['peak'] / MIB:9.2f} {real['peak'] / MIB:9.2f} {off['peak']:+7.2%}  "
            f"MemTracker {' '.join(f'{name} {share:+7.2%}' for name, share in tracked.items())}  {'; '.join(notes)}",
            flush=True,
        )
        for line in differing if each_module else ():
            print(f"    {line}")
    print("of each module: " + ", ".join(f"{name} {number}" for name, number in modules.items()))
    print(
        f"{count} compared; kept within 5 %: {within['kept']}, peak within 10 %: {within['peak']}; exact: "
        + ", ".join(f"{name} {within[name]}" for name in ("parameters", "gradients", "state", "flops"))
        + f"; MemTracker: kept within 5 %: {others['tracked_kept']}, peak within 10 %: {others['tracked_peak']}; equal to torchinfo: "
        + ", ".join(f"{name} {others['torchinfo_' + name]}" for name in ("parameters", "mult_adds"))
    )
    await worker.stop()


def _add_modules(totals: dict[str, int], rows: list[ModuleRow], real: dict[str, list[int]]) -> list[str]:
    """Count the modules of which what is said is right. Returns what is not, a line each."""
    differing = []
    for _, row in walk(rows):
        if row.path not in real:
            continue
        totals["modules"] += 1
        said = (row.gradient_bytes, row.optimizer_bytes, row.kept_bytes, row.temporary_bytes)
        for (name, limit), mine, other in zip(MODULES.items(), said, real[row.path], strict=True):
            near = abs(mine - other) <= max(limit * other, 4096 if limit else 0)
            totals[name] += near
            if not near:
                differing.append(f"{row.path or row.class_name} ({row.class_name}): {name} {mine} != {other}")
    return differing


def _real(path: str, expression: str, python: str) -> dict[str, Any] | str:
    try:
        done = subprocess.run([python, str(REAL), path, expression], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "it takes longer than 300 s"
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT")), None)
    if line is None:
        return (done.stderr.strip().splitlines() or ["nothing"])[-1]
    result: dict[str, Any] = json.loads(line[6:])
    return result


if __name__ == "__main__":
    main()
