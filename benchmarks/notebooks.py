"""Notebooks of other people, opened as an editor opens them: how many of their tensor lines show a shape, and what is wrongly said of them?

    python benchmarks/notebooks.py PROGRAMS --python PYTHON [--every K] [--from N] [--count N] [--only TEXT]
        [--list FILE] [--json OUT] [--verbose]

`PROGRAMS` holds repositories; every *.ipynb in them that mentions torch and has tensor lines (tensor_lines.py) is opened in a workspace
of its repository, but for copies of the same code. `PYTHON` has torch and what the notebooks import. A line counts as shown if a hint on
it holds sizes or a `?`. Counted are also notebooks with an error, which has to be their own, and what the server logs as an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tensor_lines import KINDS, TensorLine, tensor_lines
from wire import Client

from shapelens import notebooks

SHOWN = re.compile(r"[\[(]|\?")
LEFT_OUT = {".git", "test", "tests"}
AT_ONCE = 25  # notebooks that one server sees, one after the other


@dataclass
class Found:
    """A notebook, and what was said of it. lines, missing: tensor lines and those without a shape, as (kind, cell and line)."""

    name: str
    lines: dict[str, int]
    shown: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    seconds: float = 0.0
    settled: bool = True


def main() -> None:
    """Open them, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, help="a folder of repositories")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs them (default: this one)")
    parser.add_argument("--every", type=int, default=1, help="each K-th notebook only")
    parser.add_argument("--from", type=int, default=0, dest="first", help="leave out as many")
    parser.add_argument("--count", type=int, default=1 << 30, help="at most so many")
    parser.add_argument("--only", default="", help="notebooks whose path holds this text")
    parser.add_argument("--list", type=Path, dest="listed", help="a file of notebooks, one a line, relative to PROGRAMS: only those")
    parser.add_argument("--quiet", type=float, default=1.5, help="seconds without a word after which nothing more is expected")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds after which that is not waited for any more")
    parser.add_argument("--json", type=Path, help="write what was found there")
    parser.add_argument("--verbose", action="store_true", help="print each notebook")
    options = parser.parse_args()
    options.programs = options.programs.resolve()
    found = asyncio.run(_all(options))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))
    print(json.dumps(summary(found)))


def summary(found: list[Found]) -> dict[str, Any]:
    """The numbers of all notebooks."""
    lines, shown = Counter[str](), Counter[str]()
    for each in found:
        lines.update(each.lines)
        shown.update(each.shown)
    lines["all"], shown["all"] = lines.total(), shown.total()
    told = {kind: f"{shown[kind]}/{lines[kind]} = {100 * shown[kind] / lines[kind]:.1f} %" for kind in ("all", *KINDS) if lines[kind]}
    return {
        "notebooks": len(found),
        **told,
        "with_errors": sum(bool(each.errors) for each in found),
        "errors": sum(len(each.errors) for each in found),
        "server_errors": sum(bool(each.logged) for each in found),
        "not_settled": sum(not each.settled for each in found),
        "median_seconds": round(statistics.median([each.seconds for each in found] or [0.0]), 2),
    }


async def _all(options: argparse.Namespace) -> list[Found]:
    chosen = list(_chosen(options))
    found: list[Found] = []
    for repository in dict.fromkeys(each[0] for each in chosen):
        own = [each[1:] for each in chosen if each[0] == repository]
        for first in range(0, len(own), AT_ONCE):
            await _in_one_server(repository, own[first : first + AT_ONCE], found, options)
    return found


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Path, Path, list[notebooks.Cell], list[TensorLine]]]:
    """Repository, file, cells and tensor lines of each notebook that is to be opened."""
    seen: set[str] = set()
    listed = set(options.listed.read_text().splitlines()) if options.listed else None
    number = 0
    for repository in sorted(path for path in options.programs.iterdir() if path.is_dir()):
        for path in sorted(repository.rglob("*" + notebooks.SUFFIX)):
            if LEFT_OUT & set(path.parts) or (listed is not None and str(path.relative_to(options.programs)) not in listed):
                continue
            content = path.read_text(encoding="utf-8", errors="replace")
            read = notebooks.read(content)
            if read is None or "torch" not in read.text or read.text in seen:
                continue
            seen.add(read.text)
            try:
                lines = tensor_lines(read.text)
            except (SyntaxError, ValueError):
                continue
            if not lines or options.only not in str(path):
                continue
            if number >= options.first and (number - options.first) % options.every == 0:
                if (number - options.first) // options.every >= options.count:
                    return
                yield repository, path, notebooks.cells_of(content), lines
            number += 1


async def _in_one_server(repository: Path, chosen: list[Any], found: list[Found], options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", options.python, "--log-level", "error"]
    async with Client(command, repository) as client:
        for path, cells, lines in chosen:
            each = Found(str(path.relative_to(options.programs)), dict(Counter(line.kind for line in lines)))
            found.append(each)
            await _look(client, path, cells, lines, each, options)
            if options.verbose:
                numbers = {kind: f"{each.shown.get(kind, 0)}/{count}" for kind, count in each.lines.items()}
                print(each.name, numbers, f"{each.seconds:.1f} s" + ("" if each.settled else ", not settled"), flush=True)
                for told in (*each.errors, *each.logged):
                    print("   ", told[:400].replace("\n", " "), flush=True)


async def _look(
    client: Client, path: Path, cells: list[notebooks.Cell], lines: list[TensorLine], found: Found, options: argparse.Namespace
) -> None:
    started = time.perf_counter()
    logged = len(client.errors)
    layout = notebooks.joined([cell.source for cell in cells], [cell.number for cell in cells])
    uris = client.open_notebook(path, [cell.source for cell in cells])
    found.settled = await client.settled(uris, options.quiet, options.settle)
    found.seconds = time.perf_counter() - started - options.quiet * found.settled
    marked: set[int] = set()
    for uri, first, cell in zip(uris, layout.firsts, cells, strict=True):
        for hint in await client.hints(uri):
            if SHOWN.search(str(hint["label"])):
                marked.add(first + hint["position"]["line"])
        for each in client.published.get(uri, (0, 0, []))[2]:
            told = f"cell {cell.number}, line {each['range']['start']['line'] + 1}: {each.get('code')}: {each['message']}"
            (found.errors if each.get("severity", 1) == 1 else found.notes).append(told)
    missing = [line for line in lines if not marked & set(range(line.first, line.last + 1))]
    found.missing = [f"{line.kind}: {layout.place(line.first)}" for line in missing]
    found.shown = {kind: count - sum(line.kind == kind for line in missing) for kind, count in found.lines.items()}
    client.close_notebook(path, uris)
    found.logged = client.errors[logged:]


if __name__ == "__main__":
    main()
