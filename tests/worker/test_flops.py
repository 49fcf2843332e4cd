"""The operations that a hover says are those that torch.utils.flop_counter counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from forked_workers import forked_workers as forked_workers
from shapelens.analysis.display.flops import flops, flops_text
from shapelens.batch import Batch

NET = """
import torch
from torch import nn

# shapelens: Net()(f32[2, 8, 12, 12])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(8, 12, 3, stride=2, groups=4), nn.BatchNorm2d(12), nn.ReLU())
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.lstm = nn.LSTM(60, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.attention = nn.MultiheadAttention(20, 4, batch_first=True)
        self.block = nn.TransformerEncoderLayer(20, 2, 32, batch_first=True)
        self.heads = nn.ModuleList([nn.Linear(20, 3) for _ in range(2)])

    def forward(self, x):
        x = self.up(self.down(x)).flatten(1, 2)[:, :, :].reshape(2, 10, 60)
        x, _ = self.lstm(x)
        x, _ = self.attention(x, x, x)
        self.block(x)
        return [head(x) for head in self.heads]
"""


@pytest.mark.asyncio
async def test_operations_are_counted_as_torch_does(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(NET, names)
    with torch.device("meta"):
        model = names["Net"]().eval()  # type: ignore[operator]
        model.block = torch.nn.Identity()  # eager takes a path of its own through it.
        with FlopCounterMode(display=False) as counter:
            model(torch.randn(2, 8, 12, 12))
    async with Batch(sys.executable, root=tmp_path) as batch:
        said = await batch.analyse(tmp_path / "net.py", NET)
    layers = {layer.path: layer for layer in said.trace.layers if layer.calls}
    for path in ("down", "up", "lstm", "attention", "heads.0"):
        expected = sum(counter.get_flop_counts()[f"Net.{path}" if path else "Net"].values())
        assert flops(said.trace.layers, layers[path]) == (expected, True), path
        assert expected > 0
    assert flops(said.trace.layers, layers["down.1"]) == (0, True)
    count, exact = flops(said.trace.layers, layers["block"])
    # Its attention returns no weights, which would say how long the source is.
    assert not exact
    assert count == 2 * 20 * 20 * 32 * 2


def test_counts_are_written_in_the_unit_that_suits_them() -> None:
    assert [flops_text(count) for count in (18, 92160, 9_410_000_000)] == [
        "18 FLOPs (9 MACs)",
        "92.2 kFLOPs (46.1 kMACs)",
        "9.41 GFLOPs (4.71 GMACs)",
    ]
