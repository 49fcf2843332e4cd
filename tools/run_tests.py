"""Runs the test stages, all of them even if one fails, and closes with one line of counts: `N passed, N failed`.

    python tools/run_tests.py [STAGE ...]

They run one after the other, but for two that mostly wait (`TOGETHER`): these run side by side where the machine has two processors, and
the output of the second is shown when the first has ended. Each stage's output is kept in test-output/STAGE.log. A stage that ends badly
without having counted a failure counts as one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "test-output"
PYTEST = [sys.executable, "-m", "pytest", "--color=yes" if sys.stdout.isatty() else "--color=no"]
NOT_WITH_PACKAGES = "--ignore=tests/with_packages"
OF_DOCUMENTS = ["tests/lsp", "tests/test_fixtures.py"]
NPM = ["npm", "--prefix"]

STAGES: dict[str, tuple[str, list[list[str]]]] = {
    "lint": ("ruff, mypy --strict", [["make", "--no-print-directory", "lint"]]),
    "server": ("unit, worker, command line", [[*PYTEST, "tests", NOT_WITH_PACKAGES, *(f"--ignore={each}" for each in OF_DOCUMENTS)]]),
    "documents": ("language server, fixtures", [[*PYTEST, *OF_DOCUMENTS]]),
    "packages": ("programs with the packages that a user has installed", [["tools/user_environment.sh"], [*PYTEST, "tests/with_packages"]]),
    "fast": (
        "unit, worker, fixtures, command line, without slow ones",
        [[*PYTEST, "tests", NOT_WITH_PACKAGES, "-m", "not slow", "--ignore=tests/lsp", "-x"]],
    ),
    "extension": ("tsc, the extension's unit tests", [[*NPM, "vscode-extension", "run", "check"], [*NPM, "vscode-extension", "test"]]),
    "editor": ("a real VS Code in Chromium", [[*NPM, "tests/editor", "test"]]),
}

TOGETHER = ("server", "documents")

PASSED = (r"^=* ?.*?\b(\d+) passed", r"^(?:ℹ|#) pass (\d+)", r"^\s+(\d+) passing\b")
FAILED = (r"^=* ?.*?\b(\d+) failed", r"^=* ?.*?\b(\d+) errors? in", r"^(?:ℹ|#) fail (\d+)", r"^\s+(\d+) failing\b")
CLOSING = re.compile(r"=+ .* =+$|[ℹ#] (pass|fail) \d|\s+\d+ (passing|failing)\b|\d+ (passed|failed|errors?)\b.* in ")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def counts(output: str) -> tuple[int, int]:
    """(passed, failed) as the closing lines of pytest, node's test runner and mocha in `output` say it."""

    def total(patterns: tuple[str, ...], lines: list[str]) -> int:
        return sum(int(match.group(1)) for line in lines for pattern in patterns for match in [re.search(pattern, line)] if match)

    lines = [line for line in COLOURS.sub("", output).splitlines() if not line.startswith(("PASSED", "FAILED", "ERROR", "SKIPPED"))]
    closing = [line for line in lines if CLOSING.match(line)]
    return total(PASSED, closing), total(FAILED, closing)


def run(stage: str, shows: threading.Event | None = None) -> tuple[int, int]:
    """Runs one stage with its output shown; (passed, failed). shows: what its output is kept back for."""
    title, commands = STAGES[stage]
    output: list[str] = []
    shown = 0

    def show(text: str) -> None:
        nonlocal shown
        output.append(text)
        if shows is None or shows.is_set():
            print("".join(output[shown:]), end="", flush=True)
            shown = len(output)

    show(f"\n── {stage}: {title}\n")
    code = 0
    started = time.monotonic()
    for command in commands:
        if shutil.which(command[0]) is None:
            show(f"{command[0]} is not installed\n")
            code = 1
            break
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", **pipes) as process:
            assert process.stdout is not None
            for line in process.stdout:
                show(line)
        code = process.returncode
        if code:
            break
    LOGS.mkdir(exist_ok=True)
    (LOGS / f"{stage}.log").write_text("".join(output), encoding="utf-8")
    passed, failed = counts("".join(output))
    if code and not failed:
        failed = 1
    if shows is not None:
        shows.wait()
    show(f"── {stage}: {'ok' if not failed else 'FAILED'} in {time.monotonic() - started:.0f} s\n")
    return passed, failed


def run_all(stages: list[str]) -> dict[str, tuple[int, int]]:
    """Runs the stages in their order; (passed, failed) of each."""
    results = {}
    with ThreadPoolExecutor() as pool:
        beside: dict[str, Future[tuple[int, int]]] = {}
        for stage in stages:
            ended = threading.Event()
            if stage == TOGETHER[0] and TOGETHER[1] in stages and (os.cpu_count() or 1) > 1:
                beside[TOGETHER[1]] = pool.submit(run, TOGETHER[1], ended)
            try:
                results[stage] = beside[stage].result() if stage in beside else run(stage)
            finally:
                ended.set()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)} (default: all but fast)")
    stages = parser.parse_args().stages or [stage for stage in STAGES if stage != "fast"]
    if unknown := [stage for stage in stages if stage not in STAGES]:
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
    os.environ.setdefault("NO_UPDATE_NOTIFIER", "1")
    results = run_all(stages)
    passed, failed = (sum(column) for column in zip(*results.values(), strict=True))
    if bad := [stage for stage, (_, count) in results.items() if count]:
        print(f"\nfailed: {', '.join(f'{stage} (test-output/{stage}.log)' for stage in bad)}")
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
