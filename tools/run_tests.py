"""Runs the test stages one after the other, all of them even if one fails, and closes with one line of counts: `N passed, N failed`.

    python tools/run_tests.py [STAGE ...]

Each stage's output is shown and kept in test-output/STAGE.log. A stage that ends badly without having counted a failure counts as one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "test-output"
PYTEST = [sys.executable, "-m", "pytest", "--color=yes" if sys.stdout.isatty() else "--color=no"]
NOT_WITH_PACKAGES = "--ignore=tests/with_packages"
NPM = ["npm", "--prefix"]

STAGES: dict[str, tuple[str, list[list[str]]]] = {
    "lint": ("ruff, mypy --strict", [["make", "--no-print-directory", "lint"]]),
    "server": ("unit, worker, fixtures, language server, command line", [[*PYTEST, "tests", NOT_WITH_PACKAGES]]),
    "packages": ("programs with the packages that a user has installed", [["tools/user_environment.sh"], [*PYTEST, "tests/with_packages"]]),
    "fast": (
        "unit, worker, fixtures, command line, without slow ones",
        [[*PYTEST, "tests", NOT_WITH_PACKAGES, "-m", "not slow", "--ignore=tests/lsp", "-x"]],
    ),
    "extension": ("tsc, the extension's unit tests", [[*NPM, "vscode-extension", "run", "check"], [*NPM, "vscode-extension", "test"]]),
    "editor": ("a real VS Code in Chromium", [[*NPM, "tests/editor", "test"]]),
}

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


def run(stage: str) -> tuple[int, int]:
    """Runs one stage with its output shown; (passed, failed)."""
    title, commands = STAGES[stage]
    print(f"\n── {stage}: {title}", flush=True)
    output: list[str] = []
    code = 0
    started = time.monotonic()
    for command in commands:
        if shutil.which(command[0]) is None:
            output.append(f"{command[0]} is not installed\n")
            print(output[-1], end="")
            code = 1
            break
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", **pipes) as process:
            assert process.stdout is not None
            for line in process.stdout:
                output.append(line)
                print(line, end="", flush=True)
        code = process.returncode
        if code:
            break
    LOGS.mkdir(exist_ok=True)
    (LOGS / f"{stage}.log").write_text("".join(output), encoding="utf-8")
    passed, failed = counts("".join(output))
    if code and not failed:
        failed = 1
    print(f"── {stage}: {'ok' if not failed else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)} (default: all but fast)")
    stages = parser.parse_args().stages or [stage for stage in STAGES if stage != "fast"]
    if unknown := [stage for stage in stages if stage not in STAGES]:
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
    os.environ.setdefault("NO_UPDATE_NOTIFIER", "1")
    results = {stage: run(stage) for stage in stages}
    passed, failed = (sum(column) for column in zip(*results.values(), strict=True))
    if bad := [stage for stage, (_, count) in results.items() if count]:
        print(f"\nfailed: {', '.join(f'{stage} (test-output/{stage}.log)' for stage in bad)}")
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
