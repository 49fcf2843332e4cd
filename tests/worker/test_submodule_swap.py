"""Models that get new modules in the place of those whose constructors an edit has changed (`worker/memo/submodule_swap.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_early_diagnosis import edited

# BUILT stands for what a block does with its attention.
NETWORK = """import copy

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        assert width % heads == 0
        self.heads, self.width = heads, width
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width)
        size = width
        BUILT
        self.mlp = nn.Sequential(nn.Linear(size, 64), nn.GELU(), nn.Linear(64, width))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.drop(self.mlp(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 16)
        self.blocks = nn.Sequential(*[Block(16, 0.01 * number) for number in range(6)])
        self.apply(self.fill)

    def fill(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, x):
        return self.blocks(self.embed(x))
"""

QKV = "nn.Linear(width, 3 * width)", "nn.Linear(width, 2 * width)"
# What a block does with its attention, an edit of the attention, what is wrong then, and whether blocks have to be constructed.
BUILT = [
    ("pass", *QKV, "view", False),
    ("pass", "self.out = nn.Linear(width, width)", "self.out = nn.Linear(width, 8)", "broadcast", False),
    ("pass", "width % heads == 0", "width % heads == 1", "exception", False),  # No construction comes to its end.
    ("size = self.attention.width", "heads, width\n", "heads, 2 * width\n", "linear-in-features", True),
    ("size = self.attention(torch.zeros(1, 2, width)).shape[-1]", "nn.Linear(width, width)", "nn.Linear(width, 8)", "broadcast", True),
    ("self.tied = nn.Linear(width, width); self.tied.weight = self.attention.out.weight", *QKV, "view", True),
    ("self.parts = [self.attention]", *QKV, "view", True),
    ("self.other = copy.deepcopy(self.attention)", *QKV, "view", True),
    ("self.attention.width = 3", *QKV, "view", True),
]


@pytest.mark.parametrize("built, old, new, code, constructed", BUILT)
def test_a_model_gets_the_modules_that_its_constructor_would_build_now(
    tmp_path: Path, built: str, old: str, new: str, code: str, constructed: bool
) -> None:
    found = edited(tmp_path, old, new, NETWORK.replace("BUILT", built))
    assert not found["differs"], found["words"]
    assert found["words"][0][0].split(" @")[0] == code
    assert found["said"] == (code != "exception")  # Of one of these only the run tells.
    # One attention, of which the others are copies, and a layer of it that is not like any that was there before.
    assert (found["constructed"] > 2) == constructed
