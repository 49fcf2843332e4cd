"""Dims that stand elsewhere than an operation or a layer takes them.

A model may be given pictures in another form than its first convolution takes: without a dim for the batch or the channel, or with the
channels last. What fails behind that is no mistake of the model: it is called once more with the picture as it should be, and where
nothing fails then, the call is what is wrong.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch import nn

from ...protocol import Mismatch
from ..trace import provenance
from ..trace.devices import devices
from ..trace.recorder import Recorder
from ..trace.tape import tape
from ..trace.value_summary import STAND_IN
from ..unknown import unknown_sizes

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
_plainly = torch._C.DisableTorchFunction

NO_BATCH = "%s takes a batch, and gets one picture without its dim"
NO_CHANNEL = "%s takes pictures with a dim for the channel, which these lack"
CHANNELS_LAST = "%s takes the channels before height and width, and gets them last"


def _other_form(conv: Any, tensor: Tensor) -> Optional[Tuple[str, Callable[[Tensor], Tensor], str]]:
    """Returns the form in which a convolution needs a picture: the message on the present form, the correction, and the finding's code."""
    if not isinstance(conv, nn.modules.conv._ConvNd) or unknown_sizes.any_unknown(tensor.shape) or not hasattr(conv, "kernel_size"):
        return None  # Its constructor may have failed.
    spatial, channels = len(conv.kernel_size), conv.in_channels
    if tensor.dim() == spatial + 1:
        if tensor.shape[0] == channels:
            return NO_BATCH, lambda given: given.unsqueeze(0), "shape"
        return (NO_CHANNEL, lambda given: given.unsqueeze(1), "conv-in-channels") if channels == 1 else None
    if tensor.dim() == spatial + 2 and tensor.shape[1] != channels == tensor.shape[-1] != tensor.shape[-2]:
        return CHANNELS_LAST, lambda given: given.movedim(-1, 1), "conv-in-channels"
    return None


def found_in(calls: Any, module: Any, args: Args, kwargs: Kwargs, conv: Any, picture: Tensor) -> Optional[Tuple[Mismatch, Any]]:
    """Returns the mistake in a model call with a failure inside, and the result of the corrected call; None for any other mistake.

    conv: the first convolution of the model, which was given `picture`.
    """
    with _plainly():
        form = _other_form(conv, picture)
    if form is None or module is conv:
        return None
    said, rearranged, code = form

    def right(value: Any) -> Any:
        return rearranged(value) if isinstance(value, Tensor) and value.shape == picture.shape else value

    with _plainly():
        other_args, other_kwargs = tuple(map(right, args)), {name: right(value) for name, value in kwargs.items()}
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor) and value.shape == picture.shape]
    if not given:  # What the model makes of its input is its own affair.
        return None
    try:
        with _aside(calls) as failed:
            result = module._call_impl(*other_args, **other_kwargs)
    except (MemoryError, Exception):
        return None
    if failed:
        return None
    with _plainly():
        for tensor in provenance.tensors_in(result):
            tensor.__dict__[STAND_IN] = True
        found = calls.finding(module, code, said % type(module).__name__, given[0])
    found.layer = None
    return found, result


@contextlib.contextmanager
def _aside(calls: Any) -> Iterator[List[Mismatch]]:
    """Nothing of what goes on meanwhile is seen; the mismatches in it."""
    recorder = calls.recorder
    before = calls.mismatches, calls.seen, recorder.seen, calls.depth, calls.picture
    calls.mismatches, calls.seen, recorder.seen, calls.depth = [], {}, {}, 1
    try:
        with tape.aside(), devices.aside():
            yield calls.mismatches
    finally:
        calls.mismatches, calls.seen, recorder.seen, calls.depth, calls.picture = before


def lacks_transpose(tensors: List[Tensor], recorder: Recorder) -> bool:
    """True if two factors fit once one is transposed, as the size of their last dims comes from layers: `q @ k`."""
    if len(tensors) < 2 or tensors[0].dim() < 2 or tensors[0].dim() != tensors[1].dim() or tensors[0].shape[-1] != tensors[1].shape[-1]:
        return False
    steps = [provenance.trace_back(tensor, tensor.dim() - 1, recorder) for tensor in tensors]
    return all(any(step.argument for step in each) for each in steps)


def lacks_dims(tensors: List[Tensor], recorder: Recorder) -> bool:
    """True if one of two tensors is the other one without its last dims, so that dims of size 1 make it fit. An example is `[B, C]` beside
    `[B, C, H, W]`, where a layer sets `C`."""
    if len(tensors) < 2 or tensors[0].dim() == tensors[1].dim():
        return False
    short, long = sorted(tensors[:2], key=lambda tensor: tensor.dim())
    rank = short.dim()
    if rank < 2 or short.shape[-1] == 1:
        return False
    if short.shape != long.shape[:rank]:
        return short.dtype is torch.bool and _lacks_inner_dim(tuple(short.shape), tuple(long.shape))
    return any(step.argument for tensor in (short, long) for step in provenance.trace_back(tensor, rank - 1, recorder))


def _lacks_inner_dim(short: Tuple[int, ...], long: Tuple[int, ...]) -> bool:
    """True if a shape of at least three dims is another one without its second dim, where its other dims agree or are 1."""
    if len(short) < 3 or len(long) != len(short) + 1 or short[0] != long[0] or short[0] == 1:
        return False
    return short[-1] == long[-1] and all(size in (1, other) for size, other in zip(short, (long[0], *long[2:])))


def is_moved(tensor: Tensor, dim: int, need: int, recorder: Recorder) -> bool:
    """True if another dim of the input has the size that a layer needs, and a layer set that size: dims are to be permuted."""
    if any(step.argument for step in provenance.trace_back(tensor, dim, recorder)[:1]):
        return False
    others = [other for other in range(1, tensor.dim()) if other != dim and tensor.shape[other] == need > 1]
    if len(others) != 1:  # The sides of a picture, say, which may be as large as a layer is wide.
        return False
    return any(step.argument for step in provenance.trace_back(tensor, others[0], recorder))
