"""How much modules hold, compared with torch's own count of their parameters and buffers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from shapelens.worker.trace.module_memory import Holdings, own_tensors


def tied() -> nn.Module:
    net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
    net[1].weight = net[0].weight
    return net


def repeated() -> nn.Module:
    block = nn.Linear(4, 4)
    return nn.Sequential(block, nn.ReLU(), block)


@pytest.mark.parametrize("net", [nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), tied(), repeated(), nn.LSTM(3, 4), nn.Identity()])
def test_amounts_are_those_that_torch_lists(net: nn.Module) -> None:
    holdings = Holdings(list(net.modules()))
    for module in net.modules():
        tensors = [*module.parameters(), *module.buffers()]
        expected = sum(each.numel() for each in module.parameters()), sum(each.numel() * each.element_size() for each in tensors)
        assert holdings.of(module) == expected


def test_own_tensors_are_those_of_the_module_alone() -> None:
    seen = own_tensors(nn.BatchNorm2d(4))
    assert [(each.name, each.shape, each.dtype, each.bytes, each.buffer) for each in seen] == [
        ("weight", [4], "float32", 16, False),
        ("bias", [4], "float32", 16, False),
        ("running_mean", [4], "float32", 16, True),
        ("running_var", [4], "float32", 16, True),
        ("num_batches_tracked", [], "int64", 8, True),
    ]
    assert own_tensors(nn.LazyLinear(3)) == [] and own_tensors(nn.Sequential(nn.Linear(2, 2))) == []
    assert own_tensors(nn.Linear(2, 2, device="meta", dtype=torch.float16))[0].dtype == "float16"
