"""`show` and `summary`: what they print of a file, a model and a notebook, as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from command_line.commands import HEAD, NOTEBOOK, RECIPE, WRONG, Shown, run, run_process, validated
from real_tensors import Place, replay
from shapelens.report.model_document import schema as model_schema

OWN_OPERATOR = """
import torch
from torch import nn


@torch.library.custom_op("shapes_of::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)


# shapelens: Net()(f32[B:2, 3])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        return doubled(self.fc(x))
"""

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


@pytest.mark.core
def test_show_prints_the_source_with_hints_in_the_margin() -> None:
    done = run_process("show", RECIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = {line.split("│", 1)[1].split("→")[0].strip(): line for line in done.stdout.splitlines() if "→" in line}
    assert lines["self.conv1 = nn.Conv2d(3, 6, 5)"].endswith("→ [B, 6, 28, 28]")
    assert lines["x = torch.flatten(x, 1)"].endswith("→ [B, 400]")
    source = [line.split("│ ", 1)[1] if "│ " in line else "" for line in done.stdout.splitlines() if line.split("│")[0].strip().isdigit()]
    for line, printed in zip(RECIPE.read_text().splitlines(), source, strict=True):
        assert printed.startswith(line)


@pytest.mark.core
def test_show_underlines_what_is_wrong_and_exits_with_1() -> None:
    done = run("show", f"{WRONG}::Net")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    (carets,) = (number for number, line in enumerate(lines) if "^" in line)
    start = lines[carets].index("^")
    assert lines[carets - 1][start : start + lines[carets].count("^")] == "16 * 6 * 6"
    assert "error: " in lines[carets] and "[linear-in-features]" in lines[carets] and "400" in lines[carets]
    assert any("= fix: " in line and "16 * 5 * 5" in line for line in lines)
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


@pytest.mark.core
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


@pytest.mark.core
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


def test_summary_says_what_each_module_has_of_the_memory() -> None:
    """Of `conv1` 1 800 bytes of weights and 24 of bias, as a CUDA device allocates them: 2 048 and 512; twice that for AdamW."""
    found = run("summary", f"{RECIPE}::Net", "--amounts", "memory")
    assert found.returncode == 0, found.stderr
    heading = next(line for line in found.stdout.splitlines() if line.startswith("Layer"))
    assert heading.split() == ["Layer", "Output", "Parameters", "Gradients", "Optimizer", "Kept", "for", "backward", "Temporary", "Line"]
    assert re.search(r"conv1 \(Conv2d\) +\[B, 6, 28, 28\] +2\.5 KB +2\.5 KB +5\.0 KB +18\.38 MB +12\n", found.stdout)


def test_what_is_not_counted_is_said_in_each_form(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(OWN_OPERATOR)
    said = "the operations of shapes_of.doubled"
    assert re.search(f"Not counted +{said}\n", run("summary", str(file)).stdout)
    assert f"- Not counted: {said}\n" in run("show", f"{file}::Net", "--format", "markdown").stdout
    assert json.loads(run("show", f"{file}::Net", "--format", "model").stdout)["memory"]["uncounted"] == [said]


def test_summary_says_why_a_training_step_is_not_known(tmp_path: Path) -> None:
    """A backward that never ends costs the rest of the table nothing."""
    (tmp_path / "pyproject.toml").write_text("[tool.shapelens]\ndeadline = 0.2\n")
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS_BACKWARD)
    found = run("summary", f"{file}::Net", "--memory", "1GB")
    assert found.returncode == 2
    assert re.search(r"fc \(Linear\) +\[B, 3\] +27", found.stdout)
    assert "Training step  not known: the run took longer than its deadline of 1.2 s" in found.stdout
    assert found.stderr.endswith("its training step cannot be run: the run took longer than its deadline of 1.2 s\n")


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


@pytest.mark.core
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


@pytest.mark.core
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
    assert {(each["cell"], each["cell_line"]) for each in found["linear-in-features"]["related"]} == {(5, 1), (8, 8), (8, 9)}
