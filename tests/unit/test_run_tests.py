"""Which tests a change has to do with, and how the closing lines of test runners are counted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tools import run_tests
from tools.import_graph import ROOT, affected_tests
from tools.run_tests import ALL, BEFORE_A_COMMIT, STAGES, Stage, Stages, counts, failures


def test_a_changed_module_runs_what_imports_it_and_what_starts_it() -> None:
    chosen = affected_tests(["server/shapelens/source/scanner.py"])
    assert chosen is not None
    assert {"tests/unit/test_scanner.py", "tests/test_fixtures.py", "tests/lsp/test_typing.py", "tests/command_line/test_show.py"} <= {
        *chosen
    }
    assert "tests/worker/test_keys.py" not in chosen  # the worker never sees libcst


def test_a_changed_room_of_the_worker_runs_what_starts_a_worker() -> None:
    chosen = affected_tests(["server/shapelens/worker/meta/op_cache.py"])
    assert chosen is not None
    assert {"tests/worker/test_runs.py", "tests/test_fixtures.py", "tests/lsp/test_typing.py"} <= {*chosen}
    assert "tests/unit/test_scanner.py" not in chosen


def test_a_changed_table_runs_what_its_folder_runs() -> None:
    chosen = affected_tests(["server/shapelens/report/show.schema.json"])
    assert chosen is not None and "tests/command_line/test_show.py" in chosen


def test_a_changed_test_runs_itself_and_a_changed_fixture_alone() -> None:
    changed = ["tests/unit/test_scanner.py", "fixtures/recipe/recipe.py", "README.md"]
    assert affected_tests(changed) == ["tests/unit/test_scanner.py", "tests/test_fixtures.py::test_fixture[recipe/recipe.py]"]


def test_a_changed_dependency_runs_everything() -> None:
    assert affected_tests(["requirements.lock"]) is None


def test_each_test_file_is_reached_by_some_module_of_the_server_or_stands_alone() -> None:
    """A test that no change of the server leads to would be left out by `--changed` for ever."""
    everything = [path.relative_to(ROOT).as_posix() for path in (ROOT / "server" / "shapelens").rglob("*.py")]
    chosen = set(affected_tests(everything) or [])
    folders = [path for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "editor"]
    files = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("test_*.py")}
    assert files - chosen <= {"tests/unit/test_walkthrough.py", "tests/unit/test_run_tests.py"}


@pytest.mark.parametrize(
    ("output", "passed_failed"),
    [
        ("== 3 passed, 1 failed in 2.00s ==\n", (3, 1)),
        ("\x1b[32m12 passed\x1b[0m in 2.00s\n", (12, 0)),
        ("ℹ pass 4\nℹ fail 2\n", (4, 2)),
        ("  5 passing (3s)\n", (5, 0)),
        ("FAILED tests/x.py - 7 failed in it\n2 passed in 1.0s\n", (2, 0)),
        ("1 passed, 2 errors in 3.1s\n", (1, 2)),
        ("TOO SLOW tests/x.py::test_a: 12 s of a processor's time\n3 passed in 14.1s\n", (2, 1)),
    ],
)
def test_closing_lines_are_counted(output: str, passed_failed: tuple[int, int]) -> None:
    assert counts(output) == passed_failed


def test_the_last_lines_say_which_tests_failed_and_why() -> None:
    said = ["E       assert 1 == 2", "FAILED tests/x.py::test_a - assert 1 == 2", "TOO SLOW tests/x.py::test_b: 12 s", "✖ a flow (3ms)"]
    assert failures("\n".join(["  def test_a(): ...", *said])) == said


def test_what_runs_before_a_commit_is_a_part_of_everything() -> None:
    parts = {"core": "server", "flow": "editor"}
    assert {parts.get(stage, stage) for stage in BEFORE_A_COMMIT} <= {*ALL} <= {*STAGES}


def _says(text: str, code: int) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"]


@pytest.mark.parametrize(
    ("again", "passed_failed"),
    [
        (_says("1 passed in 1.0s", 0), (3, 0)),
        (_says("FAILED tests/x.py::test_a - once more\n1 failed in 1.0s", 1), (2, 1)),
        (_says("there is no such test", 2), (2, 1)),
    ],
)
def test_what_failed_beside_others_has_passed_only_where_it_ran_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: list[str], passed_failed: tuple[int, int]
) -> None:
    monkeypatch.setattr(run_tests, "LOGS", tmp_path)
    first = _says("FAILED tests/x.py::test_a - assert 1 == 2\n2 passed, 1 failed in 2.0s", 1)
    result = Stages({"some": Stage("some tests", [first], again=again)}).run()["some"]
    assert (result.passed, result.failed) == passed_failed
    assert bool(result.complaints) == bool(result.failed)
    assert all("test_a" in complaint for complaint in result.complaints)
