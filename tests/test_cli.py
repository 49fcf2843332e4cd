"""The command line, run as a user runs it: real processes, a real worker, real torch."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import pytest_asyncio

from real_tensors import Place, replay
from shapelens import __version__
from shapelens.batch import Batch, read
from shapelens.examples.settings import Settings
from shapelens.protocol import Run
from shapelens.report.document import document, schema
from shapelens.report.model_document import schema as model_schema
from shapelens.worker.sandbox import kernel_boundary, system_calls

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "fixtures" / "recipe" / "recipe.py"
WRONG = ROOT / "fixtures" / "recipe" / "wrong_in_features.py"
NOTEBOOK = ROOT / "fixtures" / "notebooks" / "mistakes.ipynb"
SHAPELENS = Path(sys.executable).with_name("shapelens")

ATTENTION = """
import torch
from torch import nn


# shapelens: Encoder()(i64[B:2, T:7])
class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(100, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(2))

    def forward(self, tokens):
        x = self.embed(tokens)
        x, (h, c) = self.rnn(x)
        for block in self.blocks:
            x = x + block(x)
        pooled = x.mean(1)
        mask = tokens > 0
        return {"pooled": pooled, "mask": mask, "state": (h, c)}
"""

ENDLESS_BACKWARD = """
import torch
from torch import nn


class Endless(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        while True:
            pass


# shapelens: Net()(f32[B:4, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return Endless.apply(self.fc(x))
"""
HEAD = """\
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(24, 4)

    def forward(self, features):
        return self.fc(features)
"""


def run(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(SHAPELENS), *map(str, arguments)]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS", "VIRTUAL_ENV")}
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", env={**plain, "PYTHONUTF8": "1", **environment}, timeout=100
    )


def validated(document: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


Shown = Callable[..., Awaitable[dict[str, Any]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown() -> AsyncIterator[Shown]:
    """The JSON of a file, as `show` makes it; one worker for all of the tests."""
    async with Batch(sys.executable, root=ROOT) as batch:

        async def show(file: Path, *examples: str) -> dict[str, Any]:
            return validated(document(await batch.analyse(file, read(file), examples=list(examples))))

        yield show


# --- show ---


def test_show_prints_the_source_with_hints_in_the_margin() -> None:
    done = run("show", RECIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = {line.split("│", 1)[1].split("→")[0].strip(): line for line in done.stdout.splitlines() if "→" in line}
    assert lines["self.conv1 = nn.Conv2d(3, 6, 5)"].endswith("→ [B, 6, 28, 28]")
    assert lines["x = torch.flatten(x, 1)"].endswith("→ [B, 400]")
    source = [line.split("│ ", 1)[1] if "│ " in line else "" for line in done.stdout.splitlines() if line.split("│")[0].strip().isdigit()]
    for line, printed in zip(RECIPE.read_text().splitlines(), source, strict=True):
        assert printed.startswith(line)


def test_show_underlines_what_is_wrong_and_exits_with_1() -> None:
    done = run("show", f"{WRONG}::Net")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    (carets,) = (number for number, line in enumerate(lines) if "^" in line)
    start = lines[carets].index("^")
    assert lines[carets - 1][start : start + lines[carets].count("^")] == "16 * 6 * 6"
    assert "error: " in lines[carets] and "[linear-in-features]" in lines[carets] and "400" in lines[carets]
    assert any("= fix: " in line and "400" in line for line in lines)
    assert lines[-1] == "1 error"


def test_show_fits_a_narrow_coloured_terminal_without_cutting_anything() -> None:
    done = run("show", WRONG, FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="60")
    assert done.returncode == 1 and "\x1b[" in done.stdout
    assert "→ [B, 6, 28, 28]" in done.stdout and "…" not in done.stdout.replace("· …", "")
    words = " ".join(done.stdout.replace("│", " ").split())
    assert "in_features" in words


def place(seen: dict[str, Any]) -> Place:
    """Where a replay has what an observation is of."""
    span = (0, 0, 0, 0) if seen["kind"] == "layer" else (seen["line"], seen["column"], seen["end_line"], seen["end_column"])
    return (seen["kind"], *span, seen["name"])


@pytest.mark.parametrize("model", ["recipe", "attention"])
async def test_json_says_what_real_tensors_hold(model: str, tmp_path: Path, shown: Shown) -> None:
    file = RECIPE
    if model == "attention":
        file = tmp_path / "attention.py"
        file.write_text(ATTENTION)
    seen_of = await shown(file)
    assert (seen_of["version"], seen_of["file"], seen_of["findings"]) == (1, str(file), [])
    (example,) = seen_of["examples"]
    assert example["error"] is None and example["evidence"] == "directive"
    truth = replay(file, example["expression"])
    assert truth.pop(("layer", 0, 0, 0, 0, ""))  # The model itself: no line of the file constructs it.
    said = {place(seen): seen["shapes"] for seen in seen_of["observations"]}
    for seen in seen_of["observations"]:
        text = file.read_text().splitlines()[seen["line"] - 1]
        if seen["kind"] == "assign":
            assert text[seen["column"] :].startswith(seen["name"])
    assert {kind for kind, *_ in said} == {"parameter", "assign", "return", "expression", "layer"}
    assert said == truth, {key: (truth.get(key), said.get(key)) for key in truth.keys() | said.keys() if said.get(key) != truth.get(key)}


async def test_json_says_where_an_example_was_found_and_what_was_seen_in_it(tmp_path: Path, shown: Shown) -> None:
    file = tmp_path / "plain.py"
    file.write_text(RECIPE.read_text().replace("# shapelens: Net()(f32[B:1024, 3, 32, 32])\n", "") + "\n\n" + HEAD)
    seen_of = await shown(file)
    net, head = sorted(seen_of["examples"], key=lambda example: str(example["class"]), reverse=True)
    assert (net["expression"], net["evidence"], net["doubtful"]) == ("Net()(f32[B:2, 3, 32, 32])", "inferred", False)
    assert (head["class"], head["error"]) == ("Head", None)
    number = seen_of["examples"].index(net)
    (flat,) = [seen for seen in seen_of["observations"] if seen["kind"] == "assign" and seen["named"] == ["[B, 400]"]]
    assert flat["example"] == number
    truth = replay(file, net["expression"])
    said = {place(seen): seen["shapes"] for seen in seen_of["observations"] if seen["example"] == number}
    of_x = {key: shapes for key, shapes in truth.items() if key[0] == "assign" and key[-1] == "x"}
    assert len(of_x) == 6 and of_x == {key: said.get(key) for key in of_x}


def test_summary_of_a_class_that_derives_from_one_of_another_file(tmp_path: Path) -> None:
    """An example says that it is a module."""
    (tmp_path / "library.py").write_text("from torch import nn\n\n\nclass Stack(nn.Sequential):\n    pass\n")
    derived = "class Derived(Stack):\n    def __init__(self):\n        super().__init__(nn.Linear(8, 4))\n"
    file = tmp_path / "derived.py"
    file.write_text(f"from torch import nn\nfrom library import Stack\n\n\n# shapelens: Derived()(f32[B:2, 8])\n{derived}")
    found = run("summary", f"{file}::Derived")
    assert found.returncode == 0, found.stderr
    assert "[B, 4]" in found.stdout
    assert "has no module class Other" in run("summary", f"{file}::Other").stderr


def test_summary_prints_the_tree_with_memory_and_marks_what_fails() -> None:
    """Sizes and the optimizer can be chosen; a failing layer has its message, and what comes after it is there."""
    right = run("summary", f"{RECIPE}::Net", "--batch", "64", "--optimizer", "sgd", "--memory", "100MB")
    assert right.returncode == 0, right.stderr
    assert re.search(r"conv1 \(Conv2d\) +\[B, 6, 28, 28\] +456 +45\.16 M", right.stdout)
    assert "state of" not in right.stdout
    assert re.search(r"largest B that fits 100\.00 MB: 15\d\d\n", right.stdout)
    wrong = run("summary", str(WRONG))
    assert wrong.returncode == 1
    assert "✗ fc1 gets 400 features" in wrong.stdout
    assert re.search(r"fc3 \(Linear\) +\[B, 10\]", wrong.stdout)
    assert "Training step  not known" in wrong.stdout


def test_summary_says_why_a_training_step_is_not_known(tmp_path: Path) -> None:
    """A backward that never ends costs the rest of the table nothing."""
    (tmp_path / "pyproject.toml").write_text("[tool.shapelens]\ndeadline = 0.5\n")
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS_BACKWARD)
    found = run("summary", f"{file}::Net", "--memory", "1GB")
    assert found.returncode == 2
    assert re.search(r"fc \(Linear\) +\[B, 3\] +27", found.stdout)
    assert "Training step  not known: the run took longer than its deadline of 3 s" in found.stdout
    assert found.stderr.endswith("its training step cannot be run: the run took longer than its deadline of 3 s\n")


def test_show_prints_a_model_as_a_picture() -> None:
    """Each module and operation is a box, in the order of the calls, with the shapes between them; what fails is marked."""
    shown = run("show", f"{WRONG}::Net", "--format", "svg")
    root = ElementTree.fromstring(shown.stdout)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    boxes = [text for text in texts if text and not text.startswith("[")]
    assert boxes[:8] == ["x", "Net", "conv1 Conv2d", "relu", "pool MaxPool2d", "conv2 Conv2d", "relu", "pool MaxPool2d"]
    assert "[B, 16, 5, 5]" in texts
    assert texts.count("[B, 10]") == 2  # Out of the last layer, and out of the model.
    assert [box.get("class") for box in root.iter("{http://www.w3.org/2000/svg}rect")].count("failed") == 1


def test_show_prints_a_model_as_markdown_and_as_json() -> None:
    """The table has a row for each module, the JSON is as its schema says."""
    table = run("show", f"{RECIPE}::Net", "--format", "markdown")
    assert "| &nbsp;&nbsp;&nbsp;&nbsp;fc1 (Linear) | `[B, 120]` | 48\u202f120 | 98.30 M |  | 15 |" in table.stdout
    model = json.loads(run("show", f"{RECIPE}::Net", "--format", "model").stdout)
    jsonschema.validate(model, model_schema())
    assert [row["path"] for row in model["tree"][0]["rows"]] == ["conv1", "pool", "conv2", "fc1", "fc2", "fc3"]


def test_an_example_on_the_command_line_replaces_the_files_own() -> None:
    done = run("show", RECIPE, "--format", "json", "--example", "Net()(f32[N:3, 3, 32, 32])")
    assert (done.returncode, done.stderr) == (0, "")
    said = validated(json.loads(done.stdout))
    assert [(example["evidence"], example["dims"]) for example in said["examples"]] == [("command line", {"N": 3})]
    layers = {seen["name"]: seen for seen in said["observations"] if seen["kind"] == "layer"}
    assert layers["pool"]["shapes"] == [[3, 6, 14, 14], [3, 16, 5, 5]]
    assert layers["pool"]["named"] == ["[N, 6, 14, 14]", "[N, 16, 5, 5]"]
    assert (layers["pool"]["count"], layers["pool"]["dtype"]) == (2, "float32")


async def test_json_has_the_finding_with_a_fix_that_mends_it(tmp_path: Path, shown: Shown) -> None:
    (finding,) = (await shown(WRONG))["findings"]
    assert (finding["code"], finding["severity"]) == ("linear-in-features", "error")
    lines = WRONG.read_text().splitlines(keepends=True)
    (edit,) = finding["fix"]["edits"]
    line = lines[edit["line"] - 1]
    assert line[edit["column"] : edit["end_column"]] == "16 * 6 * 6"
    lines[edit["line"] - 1] = line[: edit["column"]] + edit["new_text"] + line[edit["end_column"] :]
    mended = tmp_path / "mended.py"
    mended.write_text("".join(lines))
    assert (await shown(mended))["findings"] == []


# --- what cannot be done ---


REFUSALS = {
    "no such file": (["show", "nothing.py"], "nothing.py: no such file"),
    "a folder": (["show", "."], ". is a folder, not a Python file"),
    "binary": (["show", "binary.py"], "binary.py is a binary file"),
    "another encoding": (["show", "latin.py"], "latin.py is not Python text"),
    "not Python": (["show", "notes.txt"], "notes.txt is not a Python file"),
    "no such class": (["show", "model.py::Nett"], "model.py has no module class Nett; it has Net"),
    "class without example": (["show", "model.py::Net"], "Net has no example"),
    "bad example": (["show", "model.py", "--example", "Net()(f32[B:2, "], "--example: "),
    "no such interpreter": (["show", "model.py", "--example", "Net()", "--interpreter", "/no/python"], "/no/python does not exist"),
    "interpreter without torch": (["show", "model.py", "--example", "Net()", "--interpreter", "{bare}"], "PyTorch is not installed for"),
    "no such path to check": (["check", "model.py", "nothing"], "nothing: no such file or folder"),
    "no such folder for the doctor": (["doctor", "nothing"], "nothing: no such folder"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "binary.py").write_bytes(b"\x7fELF\x00\x01\x02")
    (folder / "latin.py").write_bytes(b"x = '\xe9'\n")
    (folder / "notes.txt").write_text("These are notes, not code.\n")
    (folder / "model.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    return folder


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_one_clear_line(case: str, folder: Path) -> None:
    arguments, message = REFUSALS[case]
    done = run(
        *(argument.format(bare=folder / "bare" / "bin" / "python") if "{bare}" in argument else argument for argument in arguments),
        cwd=folder,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("shapelens: ") and message in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_a_bad_example_says_at_which_column(folder: Path) -> None:
    assert "column" in run("show", "model.py", "--example", "Net()(f32[B:2], x y)", cwd=folder).stderr


def test_a_file_that_does_not_parse_is_shown_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x:\n        return x\n")
    done = run("show", "half.py", cwd=tmp_path)
    assert done.returncode == 1 and not done.stderr
    assert "[syntax]" in done.stdout and "1 error" in done.stdout


def test_a_file_without_an_example_is_shown_and_says_how_to_get_one(folder: Path) -> None:
    done = run("show", "model.py", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("no example to run: write one above the class, `# shapelens: Net(...)")


def test_show_prints_a_notebook_cell_by_cell() -> None:
    done = run("show", NOTEBOOK)
    assert (done.returncode, done.stderr) == (1, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    first = lines.index("   │ ── cell 4 ──")
    assert lines[first + 1].startswith(" 1 │ y = x @ weights + bias")
    assert any(line.startswith(" 2 │ %timeit -n 3 still @ still") for line in lines)
    assert any("cell 5, line 1: the size comes from out_features of Linear" in line for line in lines)


async def test_json_says_in_which_cell_something_is(shown: Shown) -> None:
    said = await shown(NOTEBOOK)
    (first, *_) = said["observations"]
    assert (first["cell"], first["cell_line"], first["line"], first["name"]) == (2, 4, 4, "x")
    found = {each["code"]: each for each in said["findings"]}
    assert (found["syntax"]["cell"], found["syntax"]["cell_line"]) == (3, 2)
    assert (found["linear-in-features"]["cell"], found["linear-in-features"]["cell_line"]) == (8, 6)
    assert {(each["cell"], each["cell_line"]) for each in found["linear-in-features"]["related"]} == {(5, 1), (5, 2), (8, 8), (8, 9)}


# --- check ---


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


def test_what_has_not_changed_is_said_again_without_running(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    (project / "layers.py").write_text(f"from torch import nn\n\n\n{HEAD}")
    uses = "import torch\nfrom torch import nn\n\nfrom layers import Head\n\n\n# shapelens: Net()(f32[B:2, {}])\nclass Net(nn.Module):\n"
    body = "    def __init__(self):\n        super().__init__()\n        self.head = Head()\n"
    body += "\n    def forward(self, x):\n        return self.head(x)\n"
    (project / "right.py").write_text(uses.format(24) + body)
    (project / "wrong.py").write_text(uses.format(25) + body)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ -e "{tmp_path}/hold" ] && exit 7\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    def checked(*options: str) -> tuple[int, str, str]:
        done = run("check", project, "--interpreter", python, *options, SHAPELENS_CACHE_DIR=str(cache))
        return done.returncode, done.stdout, done.stderr

    first = checked()
    assert first[0] == 1 and "wrong.py" in first[1] and "3 files checked" in first[1] and not first[2]
    (tmp_path / "hold").touch()
    assert checked() == first
    assert checked("--no-cache")[0] == 2, "there is no worker, and one is needed"
    (tmp_path / "hold").unlink()
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


# --- doctor, lsp, the rest ---


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


def test_doctor_says_that_all_is_well(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--interpreter", sys.executable)
    assert done.returncode == 0, done.stdout
    assert "✗" not in done.stdout and f"✓ ShapeLens {__version__}" in done.stdout and "✓ torch 2." in done.stdout
    assert "✓ a model with one Linear layer ran" in done.stdout


def test_doctor_says_what_the_kernel_holds(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--interpreter", sys.executable)
    held = "✓ the kernel holds each run to it as well, by "
    assert (held + "Landlock" in done.stdout) == bool(kernel_boundary.version())
    assert (held + "seccomp" in done.stdout) == system_calls.are_filtered()
    assert ("C code may" in done.stdout) != (bool(kernel_boundary.version()) and system_calls.are_filtered())


def test_a_report_of_a_bug_has_versions_and_nothing_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "secret_model.py").write_text(RECIPE.read_text())
    (tmp_path / "pyproject.toml").write_text("[tool.shapelens]\ndeadline = 3\nbaseline = 'private.json'\n")
    done = run("report-bug", ".", "--interpreter", sys.executable, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"- ShapeLens {__version__} on Python" in done.stdout and "torch 2." in done.stdout
    assert "settings that are not their defaults: baseline, deadline" in done.stdout
    assert "secret" not in done.stdout and "private" not in done.stdout and str(tmp_path) not in done.stdout


def test_doctor_says_what_to_do(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.shapelens]\ncolour = "red"\n')
    done = run("doctor", ".", "--interpreter", folder / "bare" / "bin" / "python", cwd=folder)
    assert done.returncode == 1
    assert "✗ PyTorch is not installed for" in done.stdout and "-m pip install torch" in done.stdout
    assert "colour" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter here is a shell script")
def test_an_interpreter_that_a_project_names_runs_on_the_users_word_only(tmp_path: Path) -> None:
    project, ran = tmp_path / "project", tmp_path / "ran"
    python = project / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch {ran}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (project / "pyproject.toml").write_text("[tool.shapelens]\ninterpreter = 'env'\ndeadline = 1e308\n")
    (project / "net.py").write_text(RECIPE.read_text())
    for command in ("show", "check"):
        done = run(command, "net.py", cwd=project, XDG_DATA_HOME=str(tmp_path / "home"), SHAPELENS_CACHE_DIR="")
        assert done.returncode == 0 and not ran.exists()
        assert sorted(done.stderr.splitlines()) == [
            f"shapelens: {project}/pyproject.toml names the interpreter {python}, which runs only on your word: --interpreter {python}",
            f"shapelens: settings: {project}/pyproject.toml: deadline must be at most 3600, which holds instead of 1e+308",
        ]
    done = run("check", "net.py", "--interpreter", "env", cwd=project, SHAPELENS_CACHE_DIR="")
    assert done.returncode == 0 and "on your word" not in done.stderr and ran.exists()


def test_version_and_help_answer_without_torch_or_libcst() -> None:
    assert run("--version").stdout == f"shapelens {__version__}\n"
    assert all(command in run("--help").stdout for command in ("show", "check", "doctor", "lsp"))


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = "# shapelens: Net()\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    text = open('pipe').read()\n"
    (tmp_path / "slow.py").write_text(code)
    process = subprocess.Popen(
        [SHAPELENS, "show", "slow.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores interrupts, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Opening the pipe for writing waits until the model reads from it, and the model waits for what is never written.
    with (tmp_path / "pipe").open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


def test_init_adds_settings_that_change_nothing_and_refuses_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"')
    done = run("init", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "x"\n\n[tool.shapelens]\n') and "# memory-limit = 4096\n" in text
    commented = text.replace("\n# ignore", "\nignore").replace("\n# deadline", "\ndeadline").replace("\n# lints", "\nlints")
    (tmp_path / "pyproject.toml").write_text(commented)
    settings = Settings.from_pyproject(str(tmp_path), str(tmp_path))
    assert settings.problems == [] and settings.deadline == Settings().deadline and settings.lints == Settings().lints
    again = run("init", cwd=tmp_path)
    assert again.returncode == 2 and "has a table tool.shapelens already" in again.stderr and len(again.stderr.splitlines()) == 1
