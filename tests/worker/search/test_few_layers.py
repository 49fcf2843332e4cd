"""A model of many layers is tried with few of them; the example has them all, as far as that runs to its end in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shapelens.protocol import Search
from worker.process import WorkerProcess, shapes

NET = """import time
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Config:
    dim: int = 48
    num_layers: int = 12

class Block(nn.Module):
    def __init__(self, dim, pause):
        super().__init__()
        self.fc, self.pause = nn.Linear(dim, dim), pause
    def forward(self, x):
        print("block", flush=True)
        end = time.process_time() + self.pause
        while time.process_time() < end: pass
        return self.fc(x)

class Net(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.blocks = nn.ModuleList([Block(config.dim, {pause}) for _ in range(config.num_layers)])
        self.head = nn.Linear(config.dim * {factor}, 7)
    def forward(self, x, mask=None):
        for block in self.blocks:
            x = block(x)
        if mask is not None:
            x = x * mask
        out = self.head(x)
        return out
"""
ALL_BUT_FOUR = "(1 if config.num_layers < 12 else 2)"


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    worker.close()


def found(worker: WorkerProcess, folder: Path, *, pause: float = 0.0, factor: str = "1") -> tuple[str, list[object], int]:
    """The example of the model, what its result was, and how often a layer was called."""
    text = NET.format(pause=pause, factor=factor)
    trace, finished = worker.run(folder / "net.py", text, search=Search([], [], ["Net"], 10.0), named=False, deadline=60.0)
    assert finished.outcome == "ok" and trace is not None
    return trace.examples[-1].expression, shapes(trace, "out"), worker.output.count("block")


def test_the_attempts_have_few_layers_and_the_example_all(worker: WorkerProcess, tmp_path: Path) -> None:
    expression, out, calls = found(worker, tmp_path)
    assert expression.startswith("Net(config=Config())(f32[") and "bool" in expression, "the mask is given, too"
    assert out[0][0][-1] == 7
    assert calls < 3 * 12 + 2 * 20


@pytest.mark.slow("a search lasts until its deadline")
def test_what_takes_too_long_with_all_layers_has_few(worker: WorkerProcess, tmp_path: Path) -> None:
    expression, out, _ = found(worker, tmp_path, pause=0.5)
    assert expression.startswith("Net(config=Config(num_layers=2))(f32[")
    assert out[0][0][-1] == 7


def test_what_fails_with_all_layers_is_told_of(worker: WorkerProcess, tmp_path: Path) -> None:
    expression, _, _ = found(worker, tmp_path, factor=ALL_BUT_FOUR)
    assert expression.startswith("Net(config=Config())(f32[")
