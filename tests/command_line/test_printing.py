"""How results are printed: counts by code and file, several files at once, links on a terminal, plain signs where others are lacking."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line.commands import RECIPE, ROOT, SHAPELENS, WRONG, run, run_process
from shapelens.checking import CheckedFile, CheckedFinding, Checker
from shapelens.report.findings.text import MOST_FILES, Tally

OUTER = """\
from torch import nn


# shapelens: Loss()(f32[B:4, 1], f32[B])
class Loss(nn.Module):
    def forward(self, pred, target):
        return (pred - target).pow(2).mean()
"""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    for number in range(6):
        (tmp_path / f"model_{number}.py").write_text((WRONG if number else RECIPE).read_text())
    return tmp_path


def test_files_that_are_run_side_by_side_are_reported_in_their_order(many: Path) -> None:
    files = [f"model_{number}.py" for number in range(3)]
    one, three = (run("check", *files, "--jobs", jobs, cwd=many) for jobs in ("1", "3"))
    assert (one.returncode, one.stderr) == (1, "") and one.stdout == three.stdout
    assert [line.partition(":")[0] for line in one.stdout.splitlines()[:2]] == files[1:]
    assert run("check", ".", "--jobs", "0", cwd=many).returncode == 2


def test_no_more_files_are_run_at_once_than_was_said(monkeypatch: pytest.MonkeyPatch, many: Path) -> None:
    taken: list[object] = []
    go_through = Checker._go_through
    monkeypatch.setattr(Checker, "_go_through", lambda self, *rest: taken.append(self) or go_through(self, *rest))
    run("check", ".", "--jobs", "2", cwd=many)
    assert len(taken) == 2


def test_where_many_files_have_findings_they_are_counted(many: Path) -> None:
    done = run("check", ".", cwd=many)
    lines = done.stdout.split("by file:\n")[1].splitlines()
    assert lines[:5] == [f"  model_{number}.py  1" for number in range(1, 6)]
    assert lines[-1] == "6 files checked: 5 errors"
    assert "by file" not in run("check", "model_1.py", "model_2.py", cwd=many).stdout


def test_the_count_by_file_is_short_and_no_count_contradicts_itself() -> None:
    tally = Tally()
    for number in range(MOST_FILES + 2):
        tally.add(CheckedFile([CheckedFinding(1, 0, 1, 1, "error", "matmul", "")], ran=True), [False], f"{number}.py")
    assert tally.by_file()[-2:] == ["  … and 2 files more", ""] and len(tally.by_file()) == MOST_FILES + 3
    note = CheckedFile([CheckedFinding(1, 0, 1, 1, "hint", "no-example", "")], has_classes=True)
    none = Tally()
    none.add(note, [False], "a.py")
    assert none.closing() == "no file could be run: 1 hint; 1 file not checked, as no input was found for its models"


def test_silent_broadcasts_fail_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(OUTER)
    assert run("check", "loss.py", cwd=tmp_path).returncode == 0
    assert run("check", "loss.py", "--fail-on", "warning", cwd=tmp_path).returncode == 1
    (tmp_path / "pyproject.toml").write_text('[tool.shapelens]\nfindings.severity = { outer-product = "error" }\n')
    done = run("check", "loss.py", cwd=tmp_path)
    assert done.returncode == 1 and "loss.py:7:17: error outer-product: [B, 1] - [B] makes an outer product" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals of this kind")
@pytest.mark.parametrize("program", ["xterm", "vscode"])
def test_places_are_links_on_a_terminal(many: Path, program: str) -> None:
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "TERM_PROGRAM": program, "SHAPELENS_CACHE_DIR": ""}
    process = subprocess.Popen([SHAPELENS, "check", "model_1.py"], cwd=many, env=environment, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(10) == 1
    link = (many / "model_1.py").as_uri().encode()
    assert (b"\x1b]8;" in written and link in written) == (program == "xterm"), "VS Code links places to their lines itself"
    assert b"model_1.py:15:30" in written


def test_what_is_piped_has_neither_links_nor_colours(many: Path) -> None:
    done = run_process("check", "model_1.py", cwd=many)
    assert "\x1b" not in done.stdout and "model_1.py:15:30: error " in done.stdout


def test_signs_that_an_encoding_lacks_are_plain() -> None:
    done = run_process("show", WRONG, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (1, "") and done.stdout.isascii()
    assert "13 |         self.pool = nn.MaxPool2d(2, 2)         -> [B, 6, 14, 14] | [B, 16, 5, 5]" in done.stdout.splitlines()


def test_shells_complete_commands() -> None:
    done = run_process("--show-completion", "bash")
    assert done.returncode == 0 and "complete " in done.stdout and "shapelens" in done.stdout
    asked = {"_SHAPELENS_COMPLETE": "complete_bash", "COMP_WORDS": "shapelens su", "COMP_CWORD": "1"}
    assert run_process(**asked).stdout.split() == ["summary"]


def test_summary_says_which_sizes_are_guessed(tmp_path: Path) -> None:
    code = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    (tmp_path / "net.py").write_text(
        f"{code}        self.fc = nn.Linear(width, 4)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    )
    guessed = [line for line in run("summary", "net.py", cwd=tmp_path).stdout.splitlines() if line.startswith("Guessed")]
    [line] = guessed
    assert "B = " in line and "and the arguments of Net(width=" in line
    assert "B = " not in run("summary", "net.py", "--batch", "7", cwd=tmp_path).stdout.partition("Guessed")[2].splitlines()[0]
    assert "Guessed" not in run("summary", "net.py", "--example", "Net(8)(f32[B:2, 8])", cwd=tmp_path).stdout
    assert "Guessed" not in run("summary", f"{RECIPE}::Net", cwd=ROOT).stdout
