"""Computes what a convolution on a CPU allocates while it runs: oneDNN computes on copies whose channels are in blocks, which are padded.

Source: `mkldnn_convolution` and `mkldnn_convolution_backward` in torch's ATen/native/mkldnn/Conv.cpp. On a CUDA device cuDNN chooses a
workspace by what is free; that is not counted.
"""

from __future__ import annotations

import math
from typing import Any, Tuple

import torch

Tensor = torch.Tensor
_aten = torch.ops.aten


def _channels_of_a_block() -> int:
    capability = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", lambda: "")()
    return 16 if "AVX512" in capability else 8


_BLOCK = _channels_of_a_block()


def workspace(func: Any, args: Tuple[Any, ...]) -> int:
    """The bytes that this operation allocates on a CPU beside its result, and frees; 0 for what is no convolution that oneDNN does."""
    if func is _aten.convolution.default:
        given, weight, transposed = args[0], args[1], args[6]
        out_channels = weight.shape[1] * args[8] if transposed else weight.shape[0]
        dims = list(zip(given.shape[2:], args[4] * 3, args[5] * 3, weight.shape[2:], args[3] * 3, args[7] * 3))
        # The result is blocked, too.
        if transposed:
            positions = math.prod(
                (size - 1) * stride - 2 * pad + dilation * (kernel - 1) + more + 1 for size, pad, dilation, kernel, stride, more in dims
            )
        else:
            positions = math.prod(
                (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size, pad, dilation, kernel, stride, _ in dims
            )
        result = (given.shape[0], out_channels, positions)
        return _of_given(given) + _padded(result, given.element_size()) + _blocked(weight) if _is_done_by_onednn(given) else 0
    if func is _aten.convolution_backward.default:
        gradient, given, weight = args[:3]
        return _blocked(gradient) + _of_given(given) + _blocked(weight) if _is_done_by_onednn(given) else 0
    return 0


def _is_done_by_onednn(given: Tensor) -> bool:
    """True if it is computed on copies: what has its channels last is not."""
    if given.dtype not in (torch.float32, torch.bfloat16) or not 3 <= given.dim() <= 5 or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(given.dim())
    return given.is_contiguous() or last is None or not given.is_contiguous(memory_format=last)


def _of_given(given: Tensor) -> int:
    """Pictures of one or three channels are taken as they are: oneDNN's kernels for a first convolution."""
    return 0 if given.shape[1] in (1, 3) else _blocked(given)


def _blocked(tensor: Tensor) -> int:
    return _padded(tuple(tensor.shape), tensor.element_size())


def _padded(shape: Tuple[int, ...], size: int) -> int:
    blocks = -(-shape[1] // _BLOCK) * _BLOCK
    return size * shape[0] * blocks * math.prod(shape[2:])
