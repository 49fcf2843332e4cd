"""Are the shapes of programs true? Each is run on the CPU with small made-up data, and what its names held compared with what is shown.

    python benchmarks/program_truth.py PROGRAMS... --python PYTHON [--only TEXT] [--limit N] [--json OUT]

`PROGRAMS` are files, or folders whose *.py files are taken; `PYTHON` has torch and what the programs import. Of the names that are assigned
in steps, functions and at module level (`forward` and `__init__` are for replay.py) are counted, per file and in total:

  exact       each shape that is shown is one that was held; a named dim may stand for any one number in its shape
  unknown     the same but for sizes that are shown as `?`
  other       a shape that was not held, under an example that was found rather than the program itself: another input
  wrong       a shape that was not held (listed)
  none        nothing is shown where a tensor was held
  cut         it is another size where the CPU run takes one batch more of each loader: the run's own size, not the program's; not compared
  doubtful    a statement failed on the CPU that would have filled what it is made of: not compared

A program counts as run where its CPU run came to an end, with tensors in at least one name.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapelens.batch import Batch
from shapelens.protocol import Observation, Trace, Value
from shapelens.source.files import read
from shapelens.traces import PROGRAM

HERE = Path(__file__).resolve().parent
WORDS = ("exact", "unknown", "other", "wrong", "none", "cut", "doubtful")
MORE_BATCHES, MORE_SECONDS = 3, 120
ELSEWHERE = ("forward", "__init__")  # what these hold replay.py compares
CONTRADICTED = ("unknown", "other", "wrong")


@dataclass
class Compared:
    """The counts of one program, and what is worth reading of it."""

    counts: Counter[str] = field(default_factory=Counter)
    listed: list[str] = field(default_factory=list)


class Cpu:
    """Runs programs on the CPU, one after the other, in processes forked from one that has imported their libraries."""

    def __init__(self, python: str) -> None:
        command = [python, str(HERE / "real_program.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> Cpu:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()

    def run(self, file: Path, text: str, **more: Any) -> dict[str, Any] | None:
        """What the run of a program said; None where it did not come to an end. more: of the job (real_program.py)."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            for beside in file.parent.iterdir():
                if beside.name not in ("__pycache__", ".git", "logs", "runs", "lightning_logs"):
                    Path(folder, beside.name).symlink_to(beside)
            self._process.stdin.write(json.dumps({"file": str(file), "text": text, "folder": folder, **more}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line)
        return said if said["finished"] and said["seen"] else None


def files(programs: Sequence[Path]) -> Iterator[Path]:
    """The programs: files as they are named, and the Python files of folders."""
    for program in programs:
        yield from [program] if program.is_file() else sorted(program.rglob("*.py"))


def compare(said: dict[str, Any], trace: Trace, file: str, longer: dict[str, Any] | None = None) -> Compared:
    """What a trace shows of a program against what its CPU run held. longer: what one said that took more batches."""
    compared = Compared()
    shown: dict[tuple[int, str], list[Observation]] = {}
    for seen in trace.observations:
        if seen.kind in ("assign", "parameter") and seen.span.file == file:
            shown.setdefault((seen.span.line, seen.name), []).append(seen)
    of_longer = {(line, name, function): shapes for line, name, function, shapes in (longer or said)["seen"]}
    for line, name, function, shapes in said["seen"]:
        if function.rpartition(".")[2] in ELSEWHERE:
            continue
        values = [(value, seen) for seen in shown.get((line, name), ()) for value in seen.values if _is_shown(value)]
        verdict = _verdict(values, shapes, trace)
        if verdict in CONTRADICTED and of_longer.get((line, name, function)) != shapes:
            verdict = "cut"
        elif verdict in CONTRADICTED and not function and line in said["doubtful"]:
            verdict = "doubtful"
        compared.counts[verdict] += 1
        if verdict in ("wrong", "other", "unknown", "none"):
            texts = [_text(value) for value, _ in values]
            compared.listed.append(f"{verdict}: line {line}: {name} in {function or 'the module'}: shown {texts}, held {shapes}")
    return compared


def _is_shown(value: Value) -> bool:
    return value.kind == "tensor" or (value.kind == "sequence" and any(item.kind == "tensor" for item in value.items or []))


def _verdict(values: list[tuple[Value, Observation]], held: list[Any], trace: Trace) -> str:
    verdicts = Counter(max((_fit(value, shape) for shape in held), default=0) for value, _ in values)
    if not verdicts:
        return "none"
    if verdicts[0]:
        wrong = [seen for value, seen in values if not any(_fit(value, shape) for shape in held)]
        runs = [trace.examples[seen.example] for seen in wrong]
        return "wrong" if any(run.evidence in ("", PROGRAM) for run in runs) else "other"
    return "unknown" if verdicts[1] else "exact"


def _fit(value: Value, held: Any) -> int:
    """2 where a value has this shape, 1 where it has but for unknown sizes, 0 where it has another."""
    if held[:1] == ["sequence"]:
        items = value.items or []
        if value.kind != "sequence" or (len(items) != len(held) - 1):
            return 1 if value.kind == "sequence" and len(items) > len(held) else 0
        return min(_fit(item, shape) if item.kind == "tensor" else 1 for item, shape in zip(items, held[1:], strict=True))
    if value.kind != "tensor" or value.shape is None or len(value.shape) != len(held):
        return 0
    bound: dict[str, int] = {}
    fits = 2
    for number, (size, true) in enumerate(zip(value.shape, held, strict=True)):
        name = value.named[number] if value.named is not None else str(size)
        if size is None or name == "?":
            fits = 1
        elif name.isdecimal():
            if int(name) != true:
                return 0
        elif bound.setdefault(name, true) != true:
            return 0
    return fits


def _text(value: Value) -> str:
    if value.kind == "sequence":
        return "(" + ", ".join(_text(item) for item in value.items or []) + ")"
    return (
        "[" + ", ".join(value.named or ["?" if size is None else str(size) for size in value.shape or []]) + "]"
        if value.kind == "tensor"
        else "…"
    )


async def main() -> int:
    """Compare the programs that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    results: dict[str, Any] = {}
    found = [file.resolve() for file in files(options.programs) if options.only in str(file)]
    cpu = Cpu(options.python)
    for file in found:
        if options.limit and total["programs"] >= options.limit:
            break
        said = cpu.run(file, read(file))
        if said is None:
            total["not run"] += 1
            print(f"{file}: the CPU run did not end", flush=True)
            continue
        async with Batch(options.python, root=file.parent) as batch:
            analysed = await batch.analyse(file, read(file))
        compared = compare(said, analysed.trace, str(file))
        if any(compared.counts[word] for word in CONTRADICTED):
            compared = compare(said, analysed.trace, str(file), cpu.run(file, read(file), batches=MORE_BATCHES, seconds=MORE_SECONDS))
        if not sum(compared.counts.values()):
            continue
        total["programs"] += 1
        total.update(compared.counts)
        counts = ", ".join(f"{word} {compared.counts[word]}" for word in WORDS if compared.counts[word])
        notes = f"; {len(said['failures'])} statements failed on the CPU" if said["failures"] else ""
        print(f"{file}: {counts}{notes}", flush=True)
        for line in compared.listed:
            print(f"    {line}", flush=True)
        results[str(file)] = {"counts": dict(compared.counts), "listed": compared.listed, "failures": said["failures"]}
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    shown = sum(total[word] for word in ("exact", "unknown", "other", "wrong"))
    print(f"{total['programs']} programs, {total['not run']} did not run: " + ", ".join(f"{word} {total[word]}" for word in WORDS))
    if shown:
        print(f"of {shown} that are shown {total['exact'] / shown:.1%} exact")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
