"""Are the shapes true? Each example that ShapeLens reports is run on the CPU, and what it showed compared with what real tensors held.

    python benchmarks/replay.py CASES.jsonl CORPUS [--python PYTHON] [--only TEXT] [--limit N] [--seconds S] [--json OUT]

Each line of CASES names a file: {"repo": FOLDER of CORPUS, "file": PATH in it}. The document of `shapelens show --format json` says which
examples it took and what parameters, assigned names, results, expressions and layers held. `PYTHON` (with torch and what the models
import; the one that runs this, unless given) evaluates them again in processes of their own. Then each named dim gets another size, alone
and all together, and formulas such as `B·T` or `H/4` are evaluated at these. Printed are, per file and in total, doubtful examples apart:

  examples    that ShapeLens reports; of them `failed` there, `ran` on the CPU or `raised` on it
  shapes      observed ones whose place the CPU came to; `equal`, `different` (listed), `unknown` (a size is `?`, the others fit)
  elsewhere   observed ones at places that the CPU did not come to, or that are not watched
  formulas    shapes with names that were evaluated at other sizes: `right`, `wrong` (listed), `fixed` (a dim shown as a number changed too)
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from shapelens.batch import Batch
from shapelens.project_scope import project_root
from shapelens.report.document import document
from shapelens.source.files import read
from shapelens.worker.trace.module_names import package_of, search_path

HERE = Path(__file__).resolve().parent
FORMULA = re.compile(r"(?:(\d+)·)?([^\W\d]\w*(?:·[^\W\d]\w*)*)(?:/(\d+))?([+-]\d+)?")
DIMS = re.compile(r"\[([^\[\]]*)\](?: ×(\d+))?")
LIMIT = 12 << 30  # bytes of address space for one example
WORDS = (
    "examples",
    "failed",
    "ran",
    "raised",
    "shapes",
    "equal",
    "different",
    "unknown",
    "elsewhere",
    "formulas",
    "right",
    "wrong",
    "fixed",
)


@dataclass
class Comparison:
    """Counts by `WORDS`, and what is worth reading: differences, wrong formulas, exceptions."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def __iadd__(self, other: Comparison) -> Comparison:
        self.counts += other.counts
        self.lines += other.lines
        return self

    def __str__(self) -> str:
        return "  ".join(f"{word} {self.counts[word]}" for word in WORDS)


# --- formulas ---


def evaluated(dim: str, sizes: dict[str, int]) -> Fraction | None:
    """The size that a dim of a label stands for; None for `?`. Raises ValueError for what is no formula of these names."""
    if dim == "?":
        return None
    if dim.isdigit():
        return Fraction(int(dim))
    parts = FORMULA.fullmatch(dim)
    if parts is None or not all(name in sizes for name in parts[2].split("·")):
        raise ValueError(dim)
    product = Fraction(int(parts[1] or 1), int(parts[3] or 1))
    for name in parts[2].split("·"):
        product *= sizes[name]
    return product + int(parts[4] or 0)


def dims_of(label: str) -> list[list[str]]:
    """The dims of each tensor in a label: `([B, T], [B] ×2)` gives [["B", "T"], ["B"], ["B"]]."""
    found: list[list[str]] = []
    for inside, times in DIMS.findall(label):
        found += [[dim.strip() for dim in inside.split(",") if dim.strip()]] * int(times or 1)
    return found


def tensors(shapes: Any) -> list[Any]:
    """A document's shape as a list of tensors' dims, be it one tensor's or those of several."""
    return shapes if shapes and isinstance(shapes[0], list) else [shapes]


def fits(said: list[list[Any]], real: Any) -> bool:
    """Whether real tensors have these dims, where None is any size."""
    held = tensors(real)
    return [len(dims) for dims in said] == [len(dims) for dims in held] and all(
        size is None or size == other for dims, others in zip(said, held, strict=True) for size, other in zip(dims, others, strict=True)
    )


# --- comparing ---


def compare(said: list[dict[str, Any]], dims: dict[str, int], runs: list[dict[str, Any]], name: str) -> Comparison:
    """What a document says of one example (its observations and named dims) against records of CPU runs, the first at the same sizes."""
    found = Comparison()
    records = [(run["sizes"], {tuple(place): shapes for place, shapes in run["record"]}) for run in runs]
    for seen in said:
        line = f"{name}:{seen['line']} {seen['name']}"
        span = (0, 0, 0, 0) if seen["kind"] == "layer" else (seen["line"], seen["column"], seen["end_line"], seen["end_column"])
        place = (seen["kind"], *span, seen["name"])
        for shapes, label in zip(seen["shapes"], seen["named"], strict=True):
            _, held = records[0]
            if place not in held or (place[0] == "layer" and not place[-1]):  # A layer without a path is not part of the model.
                found.counts["elsewhere"] += 1
                continue
            found.counts["shapes"] += 1
            unsure = any(None in dims for dims in tensors(shapes))
            if not any(fits(tensors(shapes), real) for real in held[place]):
                found.counts["different"] += 1
                found.lines.append(f"different  {line}: observed {shapes}, real {held[place]}")
                continue
            found.counts["unknown" if unsure else "equal"] += 1
            for sizes, record in records[1:]:
                if place in record:
                    found += _at_other_sizes(label, shapes, {**dims, **sizes}, record[place], f"{line} at {sizes}")
    return found


def _at_other_sizes(label: str, shapes: Any, sizes: dict[str, int], real: list[Any], line: str) -> Comparison:
    """A label's formulas at other sizes; nothing where it has none, is cut short, or a quotient is no whole number there."""
    found = Comparison()
    groups = dims_of(label)
    says_nothing = all(dim.isdigit() or dim == "?" for dims in groups for dim in dims)
    if says_nothing or [len(dims) for dims in groups] != [len(dims) for dims in tensors(shapes)]:
        return found
    found.counts["formulas"] = 1
    try:
        values = [[evaluated(dim, sizes) for dim in dims] for dims in groups]
    except ValueError as error:
        return Comparison(Counter(formulas=1, wrong=1), [f"wrong  {line}: {label} has no formula of these names: {error}"])
    if any(value is not None and value.denominator != 1 for dims in values for value in dims):
        return Comparison()
    formulas = [[None if dim.isdigit() else value for dim, value in zip(*pair, strict=True)] for pair in zip(groups, values, strict=True)]
    if any(fits(values, other) for other in real):
        found.counts["right"] += 1
    elif any(fits(formulas, other) for other in real):
        found.counts["fixed"] += 1
    else:
        found.counts["wrong"] += 1
        found.lines.append(f"wrong  {line}: {label}, real {real}")
    return found


# --- running ---


class Cpu:
    """The process that runs examples on real tensors."""

    def __init__(self, python: str, seconds: int) -> None:
        self.python = python
        self.seconds = seconds
        self.process: asyncio.subprocess.Process | None = None

    async def run(self, file: Path, example: dict[str, Any]) -> list[dict[str, Any]]:
        """The answers for an example (real_runs.py); the last one has an "error" where it did not run."""
        if self.process is None:
            command = [self.python, str(HERE / "real_runs.py")]
            environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "tests"), "TORCHDYNAMO_DISABLE": "1"}
            pipe = asyncio.subprocess.PIPE
            self.process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment, limit=1 << 30)
        assert self.process.stdin is not None and self.process.stdout is not None
        levels = max([node.level for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.ImportFrom)] or [0])
        job = {
            "file": str(file),
            "folders": search_path(str(file), str(project_root(file)), levels),
            "name": package_of(str(file), levels)[1],
            "expression": example["expression"],
            "dims": {name: others(size) for name, size in example["dims"].items()},
            "seconds": self.seconds,
            "bytes": LIMIT,
        }
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        await self.process.stdin.drain()
        answer = json.loads(await self.process.stdout.readline())
        found: list[dict[str, Any]] = answer["answers"]
        if not any("record" in each or "error" in each for each in found):
            found.append({"error": f"ended by signal {answer['signal']}" if answer["signal"] else "the file cannot be loaded"})
        return found

    async def stop(self) -> None:
        """End the process."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            await self.process.wait()


def others(size: int) -> list[int]:
    """Other sizes for a dim, to be tried in this order: an odd one, then ones that keep the powers of two in it."""
    power = min(size & -size, 32) if size else 1
    return [size + 1, size + 3 * power, size + 4 * power, *([size - power] if size > power else [])]


async def replay(batch: Batch, cpu: Cpu, file: Path, name: str) -> tuple[Comparison, Comparison]:
    """One file: what its certain and what its doubtful examples show, compared with the CPU."""
    shown = document(await batch.analyse(file, read(file), fixes=False))
    sure, doubtful = Comparison(), Comparison()
    for number, example in enumerate(shown["examples"]):
        into = doubtful if example["doubtful"] else sure
        if example["evidence"] == "importing file":
            continue
        into.counts["examples"] += 1
        if example["error"] is not None:
            into.counts["failed"] += 1
            into.lines.append(f"failed  {name}: {example['expression']}: {' '.join(example['error'].split())[:300]}")
            continue
        answers = await cpu.run(file, example)
        runs = [answer for answer in answers if "record" in answer]
        if not runs:
            into.counts["raised"] += 1
            into.lines.append(f"raised  {name}: {example['expression']}: {' '.join(answers[-1]['error'].split())[:300]}")
            continue
        into.counts["ran"] += 1
        said = [seen for seen in shown["observations"] if seen["example"] == number]
        into += compare(said, example["dims"], runs, name)
    return sure, doubtful


async def main() -> None:
    """Replay the files of the command line's cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--limit", type=int, help="files at most")
    parser.add_argument("--seconds", type=int, default=60, help="for one example on the CPU")
    parser.add_argument("--json", type=Path, help="where to write each file's counts and lines")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text().splitlines() if line.strip()]
    names = list(dict.fromkeys(f"{case['repo']}/{case['file']}" for case in cases if options.only in f"{case['repo']}/{case['file']}"))
    sure, doubtful, rows = Comparison(), Comparison(), []
    cpu = Cpu(options.python, options.seconds)
    async with Batch(options.python, root=options.corpus.resolve()) as batch:
        for name in names[: options.limit]:
            certain, in_doubt = await replay(batch, cpu, options.corpus.resolve() / name, name)
            print(f"{name}: {certain}", *([f"  in doubt: {in_doubt}"] if in_doubt.counts["examples"] else []), sep="\n", flush=True)
            for line in certain.lines + [f"in doubt: {line}" for line in in_doubt.lines]:
                print("  " + line, flush=True)
            rows.append({"file": name, "sure": vars(certain), "doubtful": vars(in_doubt)})
            sure += certain
            doubtful += in_doubt
    await cpu.stop()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    compared = max(1, sure.counts["shapes"])
    print(f"{len(names[: options.limit])} files: {sure}\n  in doubt: {doubtful}")
    print(f"{100 * sure.counts['different'] / compared:.2f} % of the shapes differ; {sure.counts['wrong']} formulas are wrong")


if __name__ == "__main__":
    asyncio.run(main())
