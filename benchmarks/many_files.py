"""What `shapelens check` needs for a repository of many files, file by file: time, memory, findings, and what is not run and why.

    python benchmarks/many_files.py FOLDER [--python PYTHON] [--every 3 [--from 1]] [--json OUT] [--seconds 3600]

Each file is a line: the seconds since its turn came, how it went, the path; below it its findings. `--every 3` takes every third
file, `--from 1` begins with the second; `--seconds` takes no further file after that time. Once a second it is looked at what this process
and its workers hold together, each shared page counted once, and how long they have computed, which a busy machine leaves about as it is:
what a process did in its last second is not seen. Nothing is taken from the cache, and nothing written to it.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import sys
import time
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from shapelens.checking import CheckedFile, Checker
from shapelens.commands.check import files_of
from shapelens.project_scope import ProjectScope

MB = 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--every", type=int, default=1, help="every n-th file only")
    parser.add_argument("--from", dest="first", type=int, default=0, help="beginning with this one")
    parser.add_argument("--json", type=Path, help="where to write each file's time and findings")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further file is taken")
    asyncio.run(_measure(parser.parse_args()))


async def _measure(options: argparse.Namespace) -> None:
    files = list(files_of([options.folder]))[options.first :: options.every]
    started: dict[Path, float] = {}
    rows: list[dict[str, Any]] = []
    kinds: collections.Counter[str] = collections.Counter()
    used = _Used()
    watching = asyncio.create_task(used.watch())
    checker = Checker(options.python, None, ProjectScope([options.folder]))
    begin = time.perf_counter()
    taken = itertools.takewhile(lambda _: time.perf_counter() - begin < options.seconds, files)
    # In parts, so that a limit of time holds; each part has workers of its own.
    while part := list(itertools.islice(taken, 100)):
        async with aclosing(checker.check(part, lambda path: started.setdefault(path, time.perf_counter()))) as results:
            async for path, checked in results:
                seconds = time.perf_counter() - started[path]
                kind = _kind(checked)
                kinds[kind] += 1
                rows.append({"path": str(path), "kind": kind, "seconds": seconds, "findings": _findings(checked)})
                print(f"{seconds:7.2f} s  {kind:<12} {path}", flush=True)
                for finding in rows[-1]["findings"]:
                    print(f"           {finding['line']}: {finding['severity']} {finding['code']}: {finding['message']}", flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1))
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    passed = time.perf_counter() - begin
    computed = sum(used.computed.values())
    print(f"{len(rows)} of {len(files)} files in {passed:.0f} s ({computed:.0f} s of computing), at most {used.memory:.0f} MB")
    print(f"files: {dict(kinds.most_common())}")
    severities = collections.Counter(finding["severity"] for row in rows for finding in row["findings"])
    print(f"findings: {dict(severities)}, in {sum(bool(row['findings']) for row in rows)} files")


def _kind(checked: CheckedFile | None) -> str:
    if checked is None:
        return "no torch"
    if checked.ran:
        return "run"
    return "no example" if checked.has_classes else "nothing"


def _findings(checked: CheckedFile | None) -> list[dict[str, Any]]:
    return [asdict(finding) for finding in checked.findings] if checked is not None else []


class _Used:
    """What this process and all below it use. memory: the most MB at a time; computed: seconds, by process."""

    def __init__(self) -> None:
        self.memory = 0.0
        self.computed: dict[tuple[int, float], float] = {}

    async def watch(self) -> None:
        """Look once a second."""
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(1.0)

    def _look(self) -> None:
        memory = 0.0
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self.computed[process.pid, process.create_time()] = times.user + times.system
                memory += process.memory_full_info().pss / MB
        self.memory = max(self.memory, memory)


if __name__ == "__main__":
    main()
