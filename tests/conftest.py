"""Holds for all tests: which of them `--core` takes, how they are spread over processes, how long one may take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

# No test is answered from what an earlier one has left on disk, and none leaves anything in the user's own cache.
os.environ["SHAPELENS_CACHE_DIR"] = ""

TESTS = Path(__file__).parent
# Of these folders and files `--core` takes only the tests that are marked `core`; of everything else it takes all.
CORE_BY_MARK = (
    "lsp",
    "command_line",
    "differential",
    "hostile",
    "with_packages",
    "editor",
    "test_packaging.py",
    "test_pipelines.py",
    "test_replay.py",
)
# What runs first: the tests that take longest, so that the last ones to end are short.
LONGEST_FIRST = (
    "hostile",
    "differential",
    "lsp",
    "with_packages",
    "command_line",
    "test_pipelines.py",
    "test_packaging.py",
    "test_fixtures.py",
)
# Each case of these stands for itself, so that a part of them can run in any process: their cases are spread by the folder they come from.
SPREAD = ("test_fixtures.py", "test_notebook_edits.py")
MOST_SECONDS = 10.0  # of a test that is not marked `slow`, on a machine that does nothing else


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="of the slower folders, only the tests that are marked `core`")
    parser.addoption("--durations-file", type=Path, help="write the seconds of each test to this file, as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--core"):
        left_out = [item for item in items if _top(item) in CORE_BY_MARK and item.get_closest_marker("core") is None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    order = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(_top(item), len(order)))
    for item in items:
        if _top(item) == "with_packages":
            item.add_marker(pytest.mark.slow("imports libraries such as transformers, which takes many seconds"))
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _top(item: pytest.Item) -> str:
    """The folder below tests/ that a test lies in, or its file where that lies in tests/ itself."""
    path = item.path
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else path.name


def _group(item: pytest.Item) -> str:
    """The tests of a group share a process (`--dist loadgroup`), and with it what their module's fixtures have started."""
    file = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else item.path.as_posix()
    callspec = getattr(item, "callspec", None)
    if item.path.name in SPREAD and callspec is not None:
        return f"{file}:{str(next(iter(callspec.params.values()))).partition('/')[0]}"
    return file


class Durations:
    """How long each test took, set-up and teardown included; known where the tests are counted, in the process that starts the others."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: dict[str, float] = {}
        self.too_slow: dict[str, float] = {}
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("@")[0]
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration
        if "slow" in report.keywords:
            self.slow.add(name)
        # A test that shares its processors is given as much more time: the load says among how many programs a processor is divided.
        processes = int(getattr(self.config.option, "numprocesses", None) or 1)
        seconds = report.duration / max(1.0, _load(), processes / (os.cpu_count() or 1))
        if report.when == "call" and seconds > MOST_SECONDS and name not in self.slow:
            self.too_slow[name] = seconds

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.too_slow:
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            if getattr(self.config, "cache", None) is not None:  # `--last-failed` runs them again, alone.
                failed = self.config.cache.get("cache/lastfailed", {})
                self.config.cache.set("cache/lastfailed", {**failed, **dict.fromkeys(self.too_slow, True)})
        file = self.config.getoption("--durations-file")
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self.seconds, indent=1), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, seconds in self.too_slow.items():
            needed = f"more than {MOST_SECONDS:.0f} s need the mark `slow` and its reason"
            terminalreporter.write_line(f"TOO SLOW {name}: {seconds:.0f} s of a processor's time; {needed}", red=True)


def _load() -> float:
    """How many programs want each processor, as the system's load average of a minute says; 1 where no system says it."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return 1.0


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config), "shapelens-durations")
