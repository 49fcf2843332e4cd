"""Runs the tests: what one runs before a commit, everything (`--all`), or what a change has to do with (`--changed`).

    python tools/run_tests.py [--all] [STAGE ...]
    python tools/run_tests.py --changed [REVISION]

Stages stand in two lanes that run side by side: in the first one the tests of the server, spread over processes by pytest-xdist, and after
them the flows in a real VS Code, which want the processors for themselves; in the second one what waits for registries and npm. The output
of the first lane is shown as it comes, that of a stage of the second one when the stage has ended; test-output/STAGE.log keeps all of it.
Every stage runs, also if another one fails. Tests that fail beside others, or take too long there, run once more alone, and the output says
how many passed then. A stage that ends badly without having counted a failure counts as one. The last lines are the twenty slowest tests,
what failed and why, and the counts: `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.import_graph import affected_tests, changed_files  # noqa: E402

LOGS = ROOT / "test-output"
PROCESSES = max(2, round(1.5 * (os.cpu_count() or 1)))  # of pytest: tests wait for servers and workers for a third of their time
MAKE = ["make", "--no-print-directory"]
NPM = ["npm", "--no-update-notifier", "--prefix"]
SLOWEST = 20


def pytest(stage: str, *arguments: str, processes: int = PROCESSES) -> list[str]:
    """Returns the command that runs tests spread over processes, and writes their durations down."""
    colour = "--color=yes" if sys.stdout.isatty() else "--color=no"
    spread = ["-n", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder"]
    return [sys.executable, "-m", "pytest", colour, "-q", *spread, f"--durations-file={_durations(stage)}", *arguments]


def failed_alone(*arguments: str) -> list[str]:
    """Returns the command that runs the tests which failed last, one after the other."""
    return [sys.executable, "-m", "pytest", "-q", "--last-failed", "--last-failed-no-failures=none", *arguments]


def _durations(stage: str) -> Path:
    return LOGS / f"{stage}-durations.json"


@dataclass(frozen=True)
class Stage:
    """Commands that run one after the other; the first one that fails ends the stage."""

    title: str
    commands: list[list[str]]
    lane: int = 0
    again: list[str] = field(default_factory=list)
    """Runs the tests that failed once more, with nothing beside them; where none fails then, the stage has passed and says so."""


WITHOUT_PACKAGES = "--ignore=tests/with_packages"
FAILED_FLOWS = [*NPM, "tests/editor", "test", "--", "--failed"]
STAGES = {
    "core": Stage(
        "unit, worker, fixtures, the core of language server and command line",
        [pytest("core", "--core", "tests", WITHOUT_PACKAGES)],
        again=failed_alone("--core", "tests", WITHOUT_PACKAGES),
    ),
    "server": Stage(
        "unit, worker, fixtures, language server, command line, attacks",
        [pytest("server", "tests", WITHOUT_PACKAGES)],
        again=failed_alone("tests", WITHOUT_PACKAGES),
    ),
    "packages": Stage(
        "programs with the packages that a user has installed",
        [pytest("packages", "tests/with_packages")],
        again=failed_alone("tests/with_packages"),
    ),
    "lint": Stage("ruff, mypy --strict", [[*MAKE, "lint"]], lane=1),
    "extension": Stage(
        "the .vsix, tsc, the extension's unit tests",
        [[*MAKE, "vsix"], [*NPM, "vscode-extension", "run", "check"], [*NPM, "vscode-extension", "test"]],
        lane=1,
    ),
    "browser": Stage("VS Code and Chromium for the flows", [["bash", "tests/editor/setup.sh"]], lane=1),
    "environment": Stage("the packages that a user has installed", [["tools/user_environment.sh"]], lane=1),
    "flow": Stage("one flow in a real VS Code", [[*NPM, "tests/editor", "test", "--", "core"]], again=FAILED_FLOWS),
    "editor": Stage(
        "all flows in a real VS Code in Chromium",
        [[*NPM, "tests/editor", "test"]],
        again=FAILED_FLOWS,
    ),
}
BEFORE_A_COMMIT = ["core", "flow", "extension", "browser", "lint"]
ALL = ["server", "packages", "editor", "environment", "extension", "browser", "lint"]
NEEDS = {"packages": ["environment"], "flow": ["extension", "browser"], "editor": ["extension", "browser"]}  # where these run, too

PASSED = (r"^=* ?.*?\b(\d+) passed", r"^(?:ℹ|#) pass (\d+)", r"^\s+(\d+) passing\b")
FAILED = (r"^=* ?.*?\b(\d+) failed", r"^=* ?.*?\b(\d+) errors? in", r"^(?:ℹ|#) fail (\d+)", r"^\s+(\d+) failing\b")
TOO_SLOW = "TOO SLOW "  # as tests/conftest.py begins such a line
FAILURE = re.compile(rf"(FAILED|ERROR|E  |{TOO_SLOW}|\s*✖ |\s*not ok |\s+\w*Error\b)")
MOST_CHARACTERS = 300  # of a line that says what failed
LAST_LINES = 20  # of a stage that failed without a test that did
CLOSING = re.compile(r"=+ .* =+$|[ℹ#] (pass|fail) \d|\s+\d+ (passing|failing)\b|\d+ (passed|failed|errors?)\b.* in ")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NODE_TEST = re.compile(r"^\s*[✔✖] (?P<title>.+) \((?P<milliseconds>[\d.]+)ms\)")


def counts(output: str) -> tuple[int, int]:
    """Returns (passed, failed) as the closing lines of pytest, node's test runner and mocha in `output` say it."""

    def total(patterns: tuple[str, ...], lines: list[str]) -> int:
        return sum(int(match.group(1)) for line in lines for pattern in patterns for match in [re.search(pattern, line)] if match)

    lines = [line for line in COLOURS.sub("", output).splitlines() if not line.startswith(("PASSED", "FAILED", "ERROR", "SKIPPED"))]
    closing = [line for line in lines if CLOSING.match(line)]
    too_slow = sum(line.startswith(TOO_SLOW) for line in lines)
    return total(PASSED, closing) - too_slow, total(FAILED, closing) + too_slow


def failures(output: str) -> list[str]:
    """Returns the lines of `output` that name a test which failed, and those in which pytest says why."""
    lines = COLOURS.sub("", output).splitlines()
    return [line[:MOST_CHARACTERS] for line in lines if FAILURE.match(line)]


@dataclass
class Result:
    """How a stage ended."""

    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    durations: dict[str, float] = field(default_factory=dict)
    """Seconds by test."""
    complaints: list[str] = field(default_factory=list)
    """What the output says of the tests that failed."""


class Stages:
    """The stages of one run of the tests, in two lanes."""

    def __init__(self, stages: dict[str, Stage]) -> None:
        self._stages = stages
        self._ended = {name: threading.Event() for name in stages}
        self._printing = threading.Lock()
        self._streaming = False  # whether a stage of the first lane shows its output as it comes
        self._kept_back: list[str] = []  # output of stages that have ended meanwhile
        self.results: dict[str, Result] = {}

    def run(self) -> dict[str, Result]:
        """Runs all stages; returns their results in the order of the stages."""
        lanes = [[name for name, stage in self._stages.items() if stage.lane == lane] for lane in (0, 1)]
        with ThreadPoolExecutor(len(lanes)) as pool:
            for done in [pool.submit(self._lane, names) for names in lanes]:
                done.result()
        return {name: self.results[name] for name in self._stages}

    def _lane(self, names: list[str]) -> None:
        for name in names:
            for needed in NEEDS.get(name, ()):
                if needed in self._ended:
                    self._ended[needed].wait()
            try:
                self.results[name] = self._run(name)
            finally:
                self._ended[name].set()

    def _run(self, name: str) -> Result:
        stage = self._stages[name]
        streams = stage.lane == 0
        output: list[str] = []

        def show(text: str) -> None:
            output.append(text)
            if streams:
                print(text, end="", flush=True)

        if streams:
            with self._printing:
                self._streaming = True
        show(f"\n── {name}: {stage.title}\n")
        started = time.monotonic()
        code = _run_commands(stage.commands, show)
        seconds = time.monotonic() - started
        text = "".join(output)
        passed, failed = counts(text)
        last, complaints = text, failures(text)
        if failed and stage.again:
            show(f"── {name}: {failed} failed beside others; once more, alone\n")
            before, length = failed, len(output)
            code = _run_commands([stage.again], show)
            last = "".join(output[length:])
            failed = counts(last)[1]
            if code and not failed:  # It did not run them.
                failed = before
            else:
                complaints = failures(last)
            passed += before - failed
            show(f"── {name}: {before - failed} of {before} passed alone\n")
        if code and not failed:
            failed, complaints = 1, complaints or last.splitlines()[-LAST_LINES:]
        show(f"── {name}: {'ok' if not failed else 'FAILED'} in {seconds:.0f} s\n")
        with self._printing:
            self._streaming = self._streaming and not streams
            if not streams:
                self._kept_back.append("".join(output))
            if not self._streaming:
                print("".join(self._kept_back), end="", flush=True)
                self._kept_back.clear()
        (LOGS / f"{name}.log").write_text("".join(output), encoding="utf-8")
        return Result(passed, failed, seconds, _durations_of(name, text), complaints if failed else [])


def _run_commands(commands: Sequence[Sequence[str]], show: Callable[[str], None]) -> int:
    for command in commands:
        if shutil.which(command[0]) is None and not (ROOT / command[0]).exists():
            show(f"{command[0]} is not installed\n")
            return 1
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", **pipes) as process:
            assert process.stdout is not None
            for line in process.stdout:
                show(line)
        if process.returncode:
            return process.returncode
    return 0


def _durations_of(name: str, output: str) -> dict[str, float]:
    """Returns the seconds of each test of a stage: as pytest has written them down, or as node's test runner prints them."""
    file = _durations(name)
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    matches = map(NODE_TEST.match, COLOURS.sub("", output).splitlines())
    return {f"{name}: {match['title']}": float(match["milliseconds"]) / 1000 for match in matches if match}


def _chosen(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Stage]:
    if options.changed is not None:
        return _changed(options.changed, parser)
    names = options.stages or (ALL if options.all else BEFORE_A_COMMIT)
    if unknown := [name for name in names if name not in STAGES]:
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
    return {name: STAGES[name] for name in names}


def _changed(revision: str, parser: argparse.ArgumentParser) -> dict[str, Stage]:
    try:
        changed = changed_files(revision)
    except subprocess.CalledProcessError as error:
        parser.error(f"git cannot compare with {revision}: {error.stderr.strip()}")
    if not changed:
        parser.error(f"nothing differs from {revision}")
    tests = affected_tests(changed)
    stages = {}
    if tests is None:
        stages["server"] = STAGES["server"]
    elif tests:
        stages["changed"] = Stage(f"what {len(changed)} changed files have to do with", [pytest("changed", *tests)])
    if any(path.endswith(".py") for path in changed):
        stages["lint"] = STAGES["lint"]
    if any(path.startswith("vscode-extension/") for path in changed):
        stages["extension"] = STAGES["extension"]
    if any(path.startswith(("vscode-extension/", "tests/editor/")) for path in changed):
        stages["flow"] = STAGES["flow"]
    if not stages:
        parser.error(f"no test has to do with {', '.join(changed)}")
    return stages


def main() -> int:
    """Runs the chosen stages; returns 1 if a test failed or none ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ", ".join(BEFORE_A_COMMIT)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)} (default: {default})")
    parser.add_argument("--all", action="store_true", help=f"all tests: {', '.join(ALL)}")
    since = "what the change since a revision has to do with (default: HEAD)"
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REVISION", help=since)
    options = parser.parse_args()
    stages = _chosen(options, parser)
    LOGS.mkdir(exist_ok=True)
    # Hundreds of servers and workers start: with compiled modules each takes a fifth less.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(ROOT / "server", quiet=1)
    for name in stages:
        _durations(name).unlink(missing_ok=True)
    started = time.monotonic()
    results = Stages(stages).run()
    durations = {test: seconds for result in results.values() for test, seconds in result.durations.items()}
    print(f"\nthe {SLOWEST} slowest tests, in seconds beside others:")
    for test in sorted(durations, key=durations.__getitem__, reverse=True)[:SLOWEST]:
        print(f"  {durations[test]:6.1f}  {test}")
    print(
        "\nstages: "
        + ", ".join(f"{name} {result.seconds:.0f} s" for name, result in results.items())
        + f"; together {time.monotonic() - started:.0f} s"
    )
    for name, result in results.items():
        if result.failed:
            print(f"failed: {name} (test-output/{name}.log)", *result.complaints[-LAST_LINES:], sep="\n  ")
    passed, failed = (sum(getattr(result, count) for result in results.values()) for count in ("passed", "failed"))
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
