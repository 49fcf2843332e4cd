"""Loads torch, and what torch loads only when a kernel is first used on the meta device, ahead of the first run."""

from __future__ import annotations

from typing import Any


def load_kernels() -> None:
    """Run one of each common layer on the meta device: the first convolution or linear alone costs about 1.3 s of imports."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    with torch.device("meta"):
        image = torch.empty(2, 3, 16, 16)
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.GELU(), nn.AdaptiveAvgPool2d(2))(image)
        tokens = torch.empty(2, 5, 8)
        layers: Any = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        layers(tokens)
        nn.LSTM(8, 8)(tokens)
        nn.LayerNorm(8)(nn.Linear(8, 8)(tokens))
        nn.Embedding(4, 8)(torch.empty(2, 5, dtype=torch.int64))
        torch.cat([tokens, tokens.softmax(-1) + 1], 1).transpose(1, 2).reshape(2, -1) @ torch.empty(80, 3)
        torch.einsum("bij,bkj->bik", tokens, tokens)
    import torch.utils._device
    import torch.utils.checkpoint
