"""`show --dynamic`: what it says may vary is exported by torch itself, and what is fixed is said where."""

from __future__ import annotations

from pathlib import Path
from typing import Any as Anything

import pytest
import torch

from command_line.commands import RECIPE, ROOT, run

MODELS = """
import torch
from torch import nn


# shapelens: Across()(f32[4, 3, 32, 32])
class Across(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 3, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(3, 3, 2, stride=2)

    def forward(self, x):
        return torch.cat([x, self.up(self.down(x))], 1)


# shapelens: Placed()(i64[B:1, T:16])
class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.places = nn.Parameter(torch.zeros(16, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)

    def forward(self, tokens):
        return self.layer(self.embed(tokens) + self.places[: tokens.size(1)])


# shapelens: Both()([f32[6, 5], f32[6, 7]], scale=None)
class Both(nn.Module):
    def forward(self, parts, scale=None):
        return torch.cat(parts, 1)


# shapelens: Recurrent()(f32[B:3, T:9, 8])
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


# shapelens: Looping()(f32[T:5, B:4, 8])
class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x):
        state = torch.zeros_like(x[0])
        for step in x:
            state = torch.tanh(self.cell(state) + step)
        return state


# shapelens: Wide()(f32[B:2, 3, 20])
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 7)

    def forward(self, x):
        return self.conv(x)


# shapelens: Any()(f32[B:2, 3], f32[B, 4])
class Any(nn.Module):
    def forward(self, *inputs):
        return torch.cat(inputs, 1)


# shapelens: Masked()(f32[B:2, T:8, 4])
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)))

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        return scores.masked_fill(self.mask[: x.size(1), : x.size(1)] == 0, -1e9).softmax(-1) @ x


offset = torch.arange(10)  # Of no example.
"""
# What is said of each, and its inputs with sizes that may be exported.
SAID = {
    "Across": (
        '{"x": {0: x_0, 2: 2 * _H, 3: 2 * _W}}',
        lambda: (torch.randn(4, 3, 32, 32),),
        ["x, dim 1 = 3 is fixed: with 4, line 10: down gets 4 channels but in_channels is 3"],
    ),
    "Placed": ('{"tokens": {0: B, 1: T}}', lambda: (torch.randint(50, (2, 8)),), []),
    "Both": (
        '{"parts": [{0: parts_0__0, 1: parts_0__1}, {0: parts_0__0, 1: parts_1__1}], "scale": None}',
        lambda: ([torch.randn(6, 5), torch.randn(6, 7)], None),
        [],
    ),
    "Recurrent": (
        '{"x": {0: B}}',
        lambda: (torch.randn(3, 9, 8),),
        ["x, dim 1 = 9 is fixed: line 42: rnn takes a step for each, which torch.export unrolls"],
    ),
    "Looping": (
        '{"x": {1: B}}',
        lambda: (torch.randn(5, 4, 8),),
        ["x, dim 0 = 5 is fixed: line 53 is reached 5 times, and 6 times with 6"],
    ),
    "Wide": ('{"x": {0: B, 2: x_2}}', lambda: (torch.randn(2, 3, 20),), []),
    "Masked": ('{"x": {0: B, 1: T, 2: x_2}}', lambda: (torch.randn(2, 8, 4),), []),
    "Any": ('{"inputs": ({0: B, 1: input_0_1}, {0: B, 1: input_1_1},)}', lambda: (torch.randn(2, 3), torch.randn(2, 4)), []),
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dynamic") / "models.py"
    path.write_text(MODELS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def blocks(file: Path) -> dict[str, str]:
    """What is printed of each class."""
    done = run("show", file, "--dynamic")
    assert (done.returncode, done.stderr) == (0, "")
    head, *parts = done.stdout.split("\n\n")
    assert head == "from torch.export import Dim"
    return {part.partition(":")[0].removeprefix("# "): part for part in parts}


@pytest.mark.parametrize("name", SAID)
def test_what_may_vary_is_exported_and_what_is_fixed_says_where(file: Path, blocks: dict[str, str], name: str) -> None:
    shapes, inputs, fixed = SAID[name]
    block = blocks[name]
    assert f"dynamic_shapes = {shapes}\n" in block + "\n"
    for line in fixed:
        assert f"# {line}" in block
    made: dict[str, Anything] = {}
    exec("from torch.export import Dim\n" + block, made)
    models: dict[str, Anything] = {}
    exec(MODELS, models)
    torch.export.export(models[name]().eval(), inputs(), dynamic_shapes=made["dynamic_shapes"])


def test_bounds_of_a_dim(blocks: dict[str, str]) -> None:
    assert 'T = Dim("T", max=16)' in blocks["Placed"] and 'x_2 = Dim("x_2", min=8)' in blocks["Wide"]
    assert 'T = Dim("T", max=31)' in blocks["Masked"]  # where the mask is whole, torch.export takes another path
    assert "# Placed: Placed()(i64[B:2, T:8])" in blocks["Placed"]  # torch.export takes a batch of 1, and what is largest, for fixed


def test_a_class_alone_and_what_cannot_be_said(tmp_path: Path) -> None:
    said = run("show", f"{RECIPE}::Net", "--dynamic").stdout
    assert 'dynamic_shapes = {"x": {0: B}}' in said and "x, dim 2 = 32 is fixed: with 64, line 15: fc1 gets 1040 features" in said
    assert run("show", RECIPE, "--dynamic", "--format", "json").returncode == 2
    assert run("show", ROOT / "fixtures" / "recipe" / "wrong_in_features.py", "--dynamic").returncode == 1
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n", encoding="utf-8")
    refused = run("show", empty, "--dynamic")
    assert refused.returncode == 2 and "no example of a model" in refused.stderr
