"""`check`: which files it looks at, what it says again without running, what one file does not do to another."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from command_line.commands import HEAD, NOTEBOOK, RECIPE, SHAPELENS, WRONG, run
from shapelens.batch import Batch, read
from shapelens.protocol import Run


def test_check_says_in_which_cell_of_a_notebook_something_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "cells.ipynb").write_text(NOTEBOOK.read_text())
    (tmp_path / "torch.ipynb").write_text("no notebook, but about torch")
    done = run("check", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    *findings, closing = done.stdout.splitlines()
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
        "1 file was run with examples that were found rather than given",
        "1 file with module classes has no example and was not run",
    ]
    clean = run("check", "b.py", cwd=tmp_path)
    assert (clean.returncode, clean.stdout) == (0, "1 file checked: nothing is wrong\n")


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
        wrong = [line.split(":")[0] for line in done.stdout.splitlines()[:-1]]
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
