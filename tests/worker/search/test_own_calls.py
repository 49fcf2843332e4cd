"""A call that the project makes is never changed to fit its layers: a wrong channel count is found under each form of use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapelens.protocol import FileSpan, Known, Search
from worker.process import WorkerProcess

NET = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv = nn.Conv2d(4, width, 3)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.conv(x).relu().mean((2, 3)))

"""
TEST = "def test():\n    net = Net()\n    assert net(torch.randn(1, 3, 32, 32)).shape == (1, 10)\n"
MAIN = 'if __name__ == "__main__":\n    net = Net(16)\n    x = torch.randn(8, 3, 32, 32)\n    net(x)\n'
LOADER = """def train(net, loader):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(net(images), labels)

train(Net(), DataLoader(TensorDataset(torch.randn(90, 3, 32, 32), torch.zeros(90).long()), batch_size=9))
"""
ELSEWHERE = "import torch\nfrom net import Net\n\nmodel = Net(width=24)\nmodel(torch.randn(5, 3, 32, 32))\n"
NOTEBOOK = json.dumps(
    {
        "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": ELSEWHERE}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)


@pytest.mark.parametrize(
    ("inside", "outside", "expression"),
    [
        (TEST, {}, "Net()(f32[B:1, 3, 32, 32])"),
        (MAIN, {}, "Net(16)(f32[B:8, 3, 32, 32])"),
        (LOADER, {}, "Net()(f32[B:9, 3, 32, 32])"),
        ("", {"train.py": ELSEWHERE}, "Net(width=24)(f32[B:5, 3, 32, 32])"),
        ("", {"look.ipynb": NOTEBOOK}, "Net(width=24)(f32[B:5, 3, 32, 32])"),
    ],
    ids=["test", "main", "loader", "other file", "notebook"],
)
@pytest.mark.parametrize("edited", [False, True], ids=["opened", "edited"])
def test_what_fails_under_the_projects_own_call_is_wrong(
    forking: WorkerProcess, tmp_path: Path, inside: str, outside: dict[str, str], expression: str, edited: bool
):
    file = tmp_path / "net.py"
    for name, text in outside.items():
        (tmp_path / name).write_text(text)
    users = [str(tmp_path / name) for name in outside]
    call = FileSpan(users[0] if users else str(file), 1, 0, 1, 0)
    known = [Known("Net", expression, "usage", "test()", proven=True, call=call)] if edited else []
    trace, finished = forking.run(file, NET + inside, search=Search(known, users, seconds=20), deadline=60)
    assert finished.outcome == "ok"
    assert trace is not None
    (run,) = trace.examples
    assert (run.expression, run.evidence, run.doubtful) == (expression, "usage", False)
    assert run.call is not None and run.call.file == call.file
    (found,) = trace.mismatches
    assert (found.code, found.got, found.need) == ("conv-in-channels", 3, 4)


def test_a_use_that_had_to_be_guessed_is_no_ground_for_an_error(forking: WorkerProcess, tmp_path: Path):
    text = NET + "def test(gray):\n    x = torch.randn(1, 1, 32, 32) if gray else torch.randn(1, 3, 32, 32)\n    Net()(x)\n"
    trace, _ = forking.run(tmp_path / "net.py", text, search=Search(seconds=20), deadline=60)
    assert trace is not None
    assert trace.mismatches == []
    assert trace.examples[0].evidence == "inferred"
    assert trace.examples[0].call is None


def test_a_model_with_another_part_in_it_is_not_said_to_be_the_projects(forking: WorkerProcess, tmp_path: Path):
    text = """import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(784, 10)

    def forward(self, x):
        a, b, c, d, e, f, g = x.size()
        return self.one(x.view(a, -1)) + self.missing


class Net(nn.Module):
    def __init__(self, part: nn.Module, width: int):
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor):
        return self.part(x)


if __name__ == "__main__":
    net = Net(part=Inner(), width=3)
"""
    trace, _ = forking.run(tmp_path / "net.py", text, search=Search(seconds=20), deadline=60)
    assert trace is not None
    (run,) = (run for run in trace.examples if run.target == "Net")
    assert "Inner" not in run.expression, "it runs with no input"
    assert run.evidence == "inferred"
