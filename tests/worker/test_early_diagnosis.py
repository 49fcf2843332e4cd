"""What an edit has nothing to do with is taken over from what was rehearsed, and what is said by that is what the run says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shapelens.protocol import Finished, Output, Traced
from worker.process import WorkerProcess
from worker.test_reload import comparable

EDITS = Path(__file__).parents[1] / "differential" / "edits.py"

NETWORK = """import copy
import functools
from dataclasses import dataclass

import torch
from torch import nn

SEEN = []


@dataclass
class Config:
    width: int = 16
    heads: int = 4


class Attention(nn.Module):
    def __init__(self, config, drop=0.0):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in (q, k, v)]
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, config, norm, drop):
        super().__init__()
        self.norm, self.attention = norm(config.width), Attention(config)
        self.drop = nn.Dropout(drop)
        self.mlp = nn.Sequential(nn.Linear(config.width, 64), nn.GELU(), nn.Linear(64, config.width))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return {"x": self.drop(x + self.mlp(x)), "rest": [x, None]}


class Body(nn.Module):
    def __init__(self, config, depth):
        super().__init__()
        norm = functools.partial(nn.LayerNorm, eps=1e-6)
        self.blocks = nn.ModuleList([Block(config, norm, 0.01 * number) for number in range(depth)])
        self.last = copy.deepcopy(self.blocks[0])
        self.names = ["a", "b"]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)["x"]
        return self.last(x)["x"], x.mean(1)


class Head(nn.Module):
    def __init__(self, config, classes):
        super().__init__()
        self.fc = nn.Linear(config.width, classes)

    def forward(self, x):
        pooled = x.mean(dim=1)
        return self.fc(pooled)


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        config = Config()
        self.embed = nn.Linear(8, 16)
        self.body = Body(config, 12)
        self.head = Head(config, classes)
        self.apply(self.fill)

    def fill(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, x):
        h = self.embed(x)
        tokens, pooled = self.body(h)
        return self.head(tokens) + pooled.sum()
"""
EXAMPLE = "Net()(f32[B:2, 5, 8])"


def edited(folder: Path, old: str, new: str, text: str = NETWORK) -> Any:
    """What becomes of one edit of the network."""
    file = folder / "net.py"
    file.write_text(text)
    assert old in text
    command = [sys.executable, str(EDITS), str(file), "--example", EXAMPLE, "--always", "--json", "--change", old, new]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    return found


# An edit, the code of what is wrong after it, and how many modules and calls are taken over, and how many are built and made.
EDITED = [
    ("pooled = x.mean(dim=1)", "pooled = x.mean(dim=2)", "linear-in-features", (1, 0), (2, 3)),
    ("self.fc = nn.Linear(config.width, classes)", "self.fc = nn.Linear(config.heads, classes)", "linear-in-features", (1, 2), (2, 3)),
    ("nn.Linear(64, config.width)", "nn.Linear(65, config.width)", "linear-in-features", (62, 28), (73, 37)),
    ("self.embed = nn.Linear(8, 16)", "self.embed = nn.Linear(8, 17)", "norm-normalized-shape", (2, 2), (53, 64)),
    ("Body(config, 12)", "Body(config, 20)", "", (14, 34), (49, 43)),
    ('x = block(x)["x"]', 'x = block(x * 2)["x"]', "", (1, 0), (14, 12)),
    ("weights @ v", "v @ weights", "matmul", (1, 0), (75, 37)),
]


@pytest.mark.parametrize("old, new, code, built, called", EDITED)
def test_what_has_nothing_to_do_with_an_edit_is_taken_over(
    tmp_path: Path, old: str, new: str, code: str, built: tuple[int, int], called: tuple[int, int]
) -> None:
    found = edited(tmp_path, old, new)
    assert found["said"] and not found["differs"], found["words"]
    assert [word.split(" @")[0] for word in found["words"][0]][:1] == [code][: bool(code)]
    assert ((found["built"], found["constructed"]), (found["known"], found["called"])) == (built, called)


def test_autocast_gives_other_dtypes_to_calls_that_look_the_same(tmp_path: Path) -> None:
    before = "        tokens, pooled = self.body(h)\n"
    text = NETWORK.replace(before, "        with torch.autocast('cpu', enabled=False):\n    " + before)
    found = edited(tmp_path, "enabled=False", "enabled=True", text)
    assert found["said"] and not found["differs"], found["words"]
    assert found["built"] == 1 and found["known"] == 2  # All is built, but what the body gives is not known.


# What leaves traces is done again.
STATEFUL = """        self.seen = []

    def forward(self, x):
        self.seen.append(len(self.seen))
        return self.fc(x[:, len(self.seen) :].mean(dim=1))
"""


def test_a_module_that_changes_itself_is_built_and_called_again(tmp_path: Path) -> None:
    text = NETWORK.replace(
        """
    def forward(self, x):
        pooled = x.mean(dim=1)
        return self.fc(pooled)
""",
        STATEFUL,
    )
    found = edited(tmp_path, "self.embed(x)", "self.embed(x[:, :1])", text)
    assert found["said"] and not found["differs"], found["words"]
    assert (found["built"], found["constructed"]) == (3, 2)


def ready(forking: WorkerProcess, file: Path, text: str, pause: float = 1.0) -> None:
    """Run a text until it is loaded, and let it be rehearsed for some seconds."""
    for _ in range(50):
        forking.run(file, text, EXAMPLE, findings_first=True)
        if forking.runs not in forking.loading:
            time.sleep(pause)
            return
        time.sleep(0.1)


def stages_of(forking: WorkerProcess, file: Path, text: str) -> list[Traced]:
    """What a run says, one after the other, but for what a long one shows while it still runs: how long that is depends on the machine."""
    forking.start(file, text, EXAMPLE, findings_first=True)
    told = []
    while not isinstance(message := forking.read(), Finished):
        if isinstance(message, Traced) and message.stage != "partial":
            told.append(message)
        elif isinstance(message, Output):
            forking.output += message.text
    return told


def test_what_the_run_finds_holds(forking: WorkerProcess, tmp_path: Path) -> None:
    """Only the edited function changes what another one reads: nothing tells of that before the run does."""
    (tmp_path / "sizes.py").write_text("WIDTHS = {'extra': 0}\n")
    text = NETWORK.replace("import copy\n", "import copy\nimport sizes\n").replace(
        "self.fc = nn.Linear(config.width, classes)", "self.fc = nn.Linear(config.width + sizes.WIDTHS['extra'], classes)"
    )
    text = text.replace("Body(config, 12)", "Body(config, 48)")  # Large enough for any machine.
    for pause in (1.0, 3.0, 9.0):  # Where the machine is busy, a rehearsal takes longer.
        ready(forking, tmp_path / "net.py", text, pause)
        told = stages_of(forking, tmp_path / "net.py", text.replace("config = Config()", "config = Config(); sizes.WIDTHS['extra'] = 1"))
        if not told[0].trace.mismatches:
            break
    said = [(each.stage, [found.code for found in each.trace.mismatches]) for each in told]
    assert said[:2] == [("findings", []), ("findings", ["linear-in-features"])]
    assert said[-1] == ("named", ["linear-in-features"])


def test_what_is_printed_is_printed_once(forking: WorkerProcess, tmp_path: Path) -> None:
    text = NETWORK.replace("        h = self.embed(x)\n", '        print("embedded")\n        h = self.embed(x)\n')
    file = tmp_path / "net.py"
    ready(forking, file, text)
    before = stages_of(forking, file, text)
    once = forking.output.count("embedded")
    told = stages_of(forking, file, text.replace("nn.Linear(config.width, classes)", "nn.Linear(config.width + 1, classes)"))
    # On a busy machine the names of dims are worth a message of their own, which "run" goes before.
    stages = [[each.stage for each in traces if each.stage != "run"] for traces in (before, told)]
    assert stages == [["findings", "named"], ["first", "findings", "named"]]
    assert forking.output.count("embedded") == once


def test_what_an_edit_has_changed_for_all_is_loaded_anew(forking: WorkerProcess, unforked: WorkerProcess, tmp_path: Path) -> None:
    """What comes first has changed the document: the run is done where nothing has."""
    file = tmp_path / "net.py"
    ready(forking, file, NETWORK)
    edited = NETWORK.replace("config = Config()", "config = Config(); SEEN.append(1); self.seen = nn.Linear(len(SEEN), 2)")
    told = stages_of(forking, file, edited)
    fresh, _ = unforked.run(file, edited, EXAMPLE)
    assert told[0].stage == "findings"
    assert comparable(told[-1].trace) == comparable(fresh)
