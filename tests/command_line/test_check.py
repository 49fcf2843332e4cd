"""`check`: which files it looks at, what it says again without running, what one file does not do to another."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from command_line.commands import HEAD, NOTEBOOK, RECIPE, SHAPELENS, WRONG, run
from shapelens.batch import Batch
from shapelens.protocol import Run
from shapelens.source.files import read


def test_check_says_in_which_cell_of_a_notebook_something_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "cells.ipynb").write_text(NOTEBOOK.read_text())
    (tmp_path / "torch.ipynb").write_text("no notebook, but about torch")
    done = run("check", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    *findings, closing = done.stdout.splitlines()
    assert findings[-1] == "" and "  matmul  " in done.stdout, "the findings are counted by code"
    assert findings[0] == "cells.ipynb: cell 3, line 2, column 21: error syntax: '(' was never closed"
    assert findings[1].startswith("cells.ipynb: cell 5, line 3, column 9: error matmul: ")
    assert closing.startswith("1 file checked: 5 errors")
    refused = run("check", "torch.ipynb", cwd=tmp_path)
    why = "it is not JSON (Expecting value: line 1 column 1 (char 0))"
    assert (refused.returncode, refused.stderr) == (2, f"shapelens: torch.ipynb is no notebook: {why}\n")


def test_notebooks_without_python_and_those_with_large_outputs(tmp_path: Path) -> None:
    def write(name: str, source: str, language: str, **cell: object) -> None:
        cells = [{"cell_type": "code", "metadata": {}, "source": source, **cell}]
        content = {"cells": cells, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / name).write_text(json.dumps(content))

    write("r.ipynb", "library(torch)\nx <- 1", "R", outputs=[])
    done = run("show", "r.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no cell of this notebook holds Python\n", "")
    assert run("check", "r.ipynb", cwd=tmp_path).stdout == "0 files checked: there was nothing to run\n"
    write("large.ipynb", "import torch\nx = torch.rand(2, 3)", "python", outputs=[{"data": {"image/png": "A" * (40 << 20)}}])
    done = run("show", "large.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and "2 │ x = torch.rand(2, 3)  → [2, 3]" in done.stdout


@pytest.mark.core
def test_check_goes_through_folders_and_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "wrong.py").write_text(WRONG.read_text())
    (tmp_path / "b.py").write_text(RECIPE.read_text())
    (tmp_path / "no_example.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n")
    (tmp_path / "found.py").write_text(RECIPE.read_text().replace("# shapelens: Net()(f32[B:1024, 3, 32, 32])\n", ""))
    (tmp_path / "plain.py").write_text("print('not about tensors')\n")
    for skipped in (".venv", ".git", "node_modules", "lib/site-packages"):
        (tmp_path / skipped).mkdir(parents=True)
        (tmp_path / skipped / "wrong.py").write_text(WRONG.read_text())
    done = run("check", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    finding, closing = done.stdout.splitlines()
    line = next(number for number, text in enumerate(WRONG.read_text().splitlines(), start=1) if "16 * 6 * 6" in text)
    column = WRONG.read_text().splitlines()[line - 1].index("16 * 6 * 6") + 1
    assert finding.startswith(f"a/wrong.py:{line}:{column}: error linear-in-features: ")
    assert closing.split("; ") == [
        "3 files checked: 1 error",
        "in 1 file ShapeLens chose the input of a model itself",
        "1 file not checked, as no input was found for its models",
    ]
    clean = run("check", "b.py", cwd=tmp_path)
    assert (clean.returncode, clean.stdout) == (0, "1 file checked: nothing is wrong\n")


# Findings of three codes: an error and two warnings.
THREE = """
import torch
import torch.nn.functional as F
from torch import nn


# shapelens: Net()(f32[B:4, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(9, 1)  # linear-in-features

    def forward(self, x):
        pred = self.fc(x)
        p = F.softmax(pred, -1)  # softmax-single-value
        return p * F.softmax(x[None])  # softmax-dim
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a file of three findings, one that does not parse, and one in a folder of generated code."""
    project = tmp_path_factory.mktemp("three")
    (project / "three.py").write_text(THREE)
    (project / "half.py").write_text("import torch\nx = (\n")
    (project / "made").mkdir()
    (project / "made" / "net_pb2.py").write_text(THREE)
    return project


def codes_of(three: Path, *options: str) -> tuple[int, list[str], str]:
    """The exit code of `check`, the codes of the findings that it prints, and its last line."""
    done = run("check", *options, cwd=three, SHAPELENS_CACHE_DIR=str(three.with_name("cache-of-three")))
    assert not done.stderr, done.stderr
    lines = done.stdout.splitlines()
    return done.returncode, [line.split(": ")[1].split(" ")[1] for line in lines if ".py:" in line], lines[-1]


def test_findings_are_selected_and_ignored_by_code(three: Path) -> None:
    every = ["linear-in-features", "softmax-single-value", "softmax-dim"]
    assert codes_of(three, "three.py") == (1, every, "1 file checked: 1 error, 2 warnings")
    assert codes_of(three, "three.py", "--select", "softmax-dim") == (0, every[2:], "1 file checked: 1 warning")
    left = (0, [every[1]], "1 file checked: 1 warning")
    assert codes_of(three, "three.py", "--ignore", "linear-in-features,softmax-dim") == left
    assert codes_of(three, "three.py", "--ignore", "linear-in-features", "--ignore", "softmax-dim") == left
    assert codes_of(three, "three.py", "--select", "broadcast") == (0, [], "1 file checked: nothing is wrong")


def test_a_failure_is_as_severe_as_one_says(three: Path) -> None:
    warnings = ("three.py", "--select", "softmax-dim")
    assert [codes_of(three, *warnings, *more)[0] for more in ([], ["--fail-on", "warning"], ["--fail-on", "error"])] == [0, 1, 0]
    assert codes_of(three, "three.py", "--exit-zero")[0] == 0
    assert codes_of(three, "three.py", "--exit-zero", "--fail-on", "warning")[0] == 0


def test_files_are_excluded_by_their_names_folders_and_paths(three: Path) -> None:
    closing = "1 file checked: 1 error, 2 warnings; 2 files excluded"
    for globs in ("made,half.py", "./made/,./half.py", "*_pb2.py,h?lf.py", "made/*,*/half.py"):
        assert codes_of(three, ".", "--exclude", globs)[2] == closing, globs
    assert codes_of(three, "half.py", "--exclude", "half.py")[2] == "0 files checked: there was nothing to run; 1 file excluded"


def test_a_project_selects_and_excludes_as_the_command_line_does(three: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(three, project)
    (project / "pyproject.toml").write_text(
        '[tool.shapelens]\nselect = ["softmax-dim", "softmax-single-value"]\nexclude = ["made/", "half.py"]\n'
    )
    selected = ["softmax-single-value", "softmax-dim"]
    assert codes_of(project, ".") == (0, selected, "1 file checked: 2 warnings; 2 files excluded")
    assert codes_of(project, ".", "--ignore", selected[0], "--fail-on", "warning")[:2] == (1, selected[1:])
    (project / "pyproject.toml").write_text('[tool.shapelens]\nselect = ["softmax"]\nfindings.severity = { brodcast = "error" }\n')
    done = run("check", "three.py", cwd=project)
    assert sorted(done.stderr.splitlines()) == [
        f"shapelens: settings: {project}/pyproject.toml: findings.severity names brodcast: there is no such code (did you mean broadcast?)",
        f"shapelens: settings: {project}/pyproject.toml: select names softmax: there is no such code (did you mean softmax-dim?)",
    ]


def test_a_file_that_does_not_parse_is_checked(three: Path) -> None:
    assert codes_of(three, "half.py") == (1, ["syntax"], "1 file checked: 1 error")


def test_findings_are_counted_by_code(three: Path) -> None:
    done = run("check", ".", cwd=three, SHAPELENS_CACHE_DIR=str(three.with_name("cache-of-three")))
    counts = done.stdout.split("\n\n")[1].splitlines()
    assert counts[0] == "by code (`shapelens rule CODE` explains one):"
    assert [line.split() for line in counts[1:]] == [
        ["linear-in-features", "2"],
        ["softmax-single-value", "2"],
        ["softmax-dim", "2"],
        ["syntax", "1"],
    ]
    assert "by code" not in run("check", "half.py", cwd=three).stdout, "of one finding there is nothing to count"


def test_a_baseline_keeps_what_is_not_selected(three: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "known.json"
    run("check", "three.py", "--baseline", baseline, "--update-baseline", cwd=three)
    before = baseline.read_text()
    done = run("check", "three.py", "--baseline", baseline, "--select", "softmax-dim", cwd=three)
    assert (done.returncode, baseline.read_text()) == (0, before) and "1 known finding is left out" in done.stdout
    refused = run("check", "three.py", "--baseline", baseline, "--update-baseline", "--ignore", "softmax-dim", cwd=three)
    assert refused.returncode == 2 and "--update-baseline takes all findings" in refused.stderr


@pytest.mark.parametrize("brief", [False, True])
async def test_what_only_findings_are_wanted_of_is_not_done_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief: bool) -> None:
    """In an editor a waiting process does the last run again, for the next edit; `check` goes on to another file, after a program too."""
    file = tmp_path / "program.py"
    file.write_text("import torch\n\nx = torch.zeros(3, 4)\ny = x.T\n")
    sent: list[Run] = []
    async with Batch(sys.executable, root=tmp_path) as batch:
        submit = batch.worker.submit

        async def submitted(run: Run, *rest: Any) -> Any:
            sent.append(run)
            return await submit(run, *rest)

        monkeypatch.setattr(batch.worker, "submit", submitted)
        await batch.analyse(file, read(file), brief=brief)
    assert any(run.program for run in sent)
    assert {run.brief for run in sent} == {brief}


def test_check_shows_how_far_it_is_to_people_only(tmp_path: Path) -> None:
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("import torch\n")
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    done = subprocess.run([SHAPELENS, "check", "."], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # The end, on Linux.
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert b"second.py" in shown
    assert b"2/2" in shown
    assert run("check", ".", cwd=tmp_path).stderr == ""


def _no_process(*_: object, **__: object) -> NoReturn:
    """What becomes of every process that is to be started."""
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.mark.core
def test_what_has_not_changed_is_said_again_without_running(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    (project / "layers.py").write_text(f"from torch import nn\n\n\n{HEAD}")
    uses = "import torch\nfrom torch import nn\n\nfrom layers import Head\n\n\n# shapelens: Net()(f32[B:2, {}])\nclass Net(nn.Module):\n"
    body = "    def __init__(self):\n        super().__init__()\n        self.head = Head()\n"
    body += "\n    def forward(self, x):\n        return self.head(x)\n"
    (project / "right.py").write_text(uses.format(24) + body)
    (project / "wrong.py").write_text(uses.format(25) + body)

    def checked(*options: str) -> tuple[int, str, str]:
        done = run("check", project, *options, SHAPELENS_CACHE_DIR=str(cache))
        return done.returncode, done.stdout, done.stderr

    first = checked()
    assert first[0] == 1 and "wrong.py" in first[1] and "3 files checked" in first[1] and not first[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", _no_process)
        assert checked() == first
        assert checked("--no-cache")[0] == 2, "there is no worker, and one is needed"
    (project / "layers.py").write_text(f"from torch import nn\n\n\n{HEAD.replace('24', '25')}")
    after = checked()
    assert "right.py" in after[1] and "wrong.py" not in after[1]
    assert run("clean", SHAPELENS_CACHE_DIR=str(cache)).stdout.endswith(f" MB removed from {cache}\n") and not cache.exists()


def test_a_patch_of_torch_is_not_seen_by_the_files_beside_it(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    net = f"# shapelens: Head()(f32[B:2, 24])\n{HEAD}".replace("features)\n", "features) @ torch.zeros(4, 2)\n")
    imports = "import torch\nfrom torch import nn\n\n\n"
    patch = "class Wide(nn.Linear):\n    def __init__(self, into, out):\n        super().__init__(into, 7)\n\n\nnn.Linear = Wide\n\n\n"
    for number in range(4):
        (project / f"a{number}.py").write_text(imports + (patch if number % 2 == 0 else "") + net)
    for _ in range(2):
        done = run("check", project, SHAPELENS_CACHE_DIR=str(cache))
        wrong = [line.split(":")[0] for line in done.stdout.partition("\n\n")[0].splitlines()]
        assert [Path(name).name for name in wrong] == ["a0.py", "a2.py"], done.stdout


def test_a_file_is_checked_again_when_one_that_it_opens_has_changed(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    (project / "width.txt").write_text("24")
    text = 'from torch import nn\n\nWIDTH = int(open("width.txt").read())\n\n\n# shapelens: Net()(f32[B:2, 24])\nclass Net(nn.Module):\n'
    text += "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(WIDTH, 8)\n"
    text += "\n    def forward(self, x):\n        return self.fc(x)\n"
    (project / "net.py").write_text(text)

    def checked() -> tuple[int, str]:
        done = run("check", ".", cwd=project, SHAPELENS_CACHE_DIR=str(cache))
        return done.returncode, done.stdout

    assert checked() == checked() == (0, "1 file checked: nothing is wrong\n")
    (project / "width.txt").write_text("32")
    code, said = checked()
    assert code == 1 and "linear-in-features" in said and "32" in said


def test_check_runs_models_for_real_where_it_is_asked_to(tmp_path: Path) -> None:
    """What the cache knows without that is not said for it."""
    text = "import torch\nfrom torch import nn\n\n\n# shapelens: Net({})(f32[B:2, 3], f32[B, 3])\nclass Net(nn.Module):\n"
    text += "    def __init__(self, width):\n        super().__init__()\n        self.layer = nn.Linear(3, width)\n\n"
    text += "    def forward(self, x, mask):\n        return self.layer(x)\n"
    (tmp_path / "net.py").write_text(text.format(8))
    assert run("check", "net.py", cwd=tmp_path).stdout == "1 file checked: nothing is wrong\n"
    for options, code in (((), 0), (("--fail-on", "warning"), 1)):
        done = run("check", "--deep", "net.py", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout.startswith("net.py:11:26: warning ignored-input: mask is never used: Net gives the same whatever it holds\n")
    (tmp_path / "net.py").write_text(text.format(100_000_000))
    done = run("check", "--deep", "net.py", cwd=tmp_path)
    assert done.stderr == "shapelens: not run for real: net.py: Net: it has 400 million parameters, more than 200 million\n"


TRAINING = """\
import torch
from torch import nn

batch_size = 4096
model = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    optimizer.zero_grad()
    model(torch.zeros(batch_size, 1024)).square().mean().backward()
    optimizer.step()
"""


def test_check_says_what_does_not_fit_the_device(tmp_path: Path) -> None:
    """At the batch size, by the option or the setting; nothing where no memory is known. One more than fits is too much."""
    (tmp_path / "train.py").write_text(TRAINING)
    assert run("check", "train.py", cwd=tmp_path).stdout == "1 file checked: nothing is wrong\n"
    assert run("check", "train.py", "--memory", "T4", cwd=tmp_path).stdout == "1 file checked: nothing is wrong\n"
    found = run("check", "train.py", "--memory", "256 MiB", cwd=tmp_path)
    assert (
        found.returncode == 0
        and "train.py:4:14: warning out-of-memory: a training step of Sequential with batch_size = 4096" in found.stdout
    )
    said = re.search(r"more than the 0\.25 GB of the device: up to (\d+) fit, or (\d+) × (\d+) with gradients accumulated", found.stdout)
    assert said is not None, found.stdout
    largest, times, smaller = map(int, said.groups())
    assert smaller <= largest < 4096 == times * smaller
    for size, is_said in ((largest, False), (largest + 1, True)):
        (tmp_path / "train.py").write_text(TRAINING.replace("4096", str(size)))
        assert ("out-of-memory" in run("check", "train.py", "--memory", "256 MiB", cwd=tmp_path).stdout) is is_said
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "pyproject.toml").write_text('[tool.shapelens]\ndevice-memory = "256 MB"\n')
    assert run("check", "train.py", cwd=tmp_path).stdout == found.stdout
    (tmp_path / "train.py").write_text(TRAINING.replace("4096\n", "4096  # shapelens: ignore[out-of-memory]\n", 1))
    assert run("check", "train.py", cwd=tmp_path).stdout == "1 file checked: nothing is wrong\n"
