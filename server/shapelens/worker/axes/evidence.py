"""Which axis of the inputs holds the samples of a batch, and which one the steps of a sequence, as the user's code itself says.

It says so by what it calls variables of that size, and by what it does: a convolution takes dim 0 for the samples, positions are added
along the steps, the last step is picked along dim 1.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Callable, List, Optional, Sequence

from .factors import INPUT, Axis, Dim, Dims, roots_of

_SAMPLES = {"b", "bs", "bsz", "bz", "batch", "batch_size", "batchsize", "batch_sz", "n_batch", "nbatches", "num_batch", "batch_dim"}
_STEPS = {
    "t", "l", "seq", "time", "length", "seq_len", "seqlen", "seq_length", "seq_size", "sequence_length", "steps", "n_steps", "num_steps",
    "timesteps", "time_steps", "tgt_len", "src_len", "max_len", "n_tokens", "num_tokens",
}  # fmt: skip
_MOST_FRAMES = 40


def names_samples(name: str) -> bool:
    """True if a name is one that people give to the samples of a batch."""
    return name.lower() in _SAMPLES


def names_steps(name: str) -> bool:
    """True if a name is one that people give to the steps of a sequence."""
    return name.lower() in _STEPS


def note_names(axis: Axis, is_user_frame: Callable[[FrameType], bool]) -> None:
    """Note on an axis whether a variable with its size is named as the samples of a batch, or as the steps of a sequence."""
    frame: Optional[FrameType] = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        if is_user_frame(frame):
            for name, value in frame.f_locals.items():
                if type(value) is int and value == axis.size:
                    axis.is_samples = axis.is_samples or names_samples(name)
                    axis.is_steps = axis.is_steps or names_steps(name)
        frame = frame.f_back


def note_samples(dim: Dim) -> None:
    """The code treats a dim as the samples of a batch: a convolution or normalisation takes it for that."""
    axis = input_axis(dim)
    if axis is not None:
        axis.is_samples = True


def note_heads(dims: Dims) -> None:
    """Attention by heads, over dim 2 of `[B, heads, T, size]`: what stands in front of the heads are the samples."""
    heads = dims[1] if len(dims) == 4 else ()
    if heads and not roots_of([heads]) and not roots_of(dims[:1]) & roots_of(dims[2:3]):
        note_samples(dims[0])


def note_pooled(dims: Dims, place: int) -> None:
    """One number or one place is left of dim 0 or 1 of three: that one holds the steps, the other one the samples."""
    if len(dims) == 3 and place in (0, 1):
        steps, samples = input_axis(dims[place]), input_axis(dims[1 - place])
        if samples is not None and steps is not samples:
            samples.is_samples = True
            if steps is not None:
                steps.is_steps = True


def input_axis(dim: Dim) -> Optional[Axis]:
    """The axis of an input that a dim is, as it came; None for any other dim."""
    return dim[0].axis if len(dim) == 1 and dim[0].axis.kind == INPUT and dim[0].size == dim[0].axis.size else None


def note_positions(operands: Sequence[Dims], dims: Dims) -> None:
    """Notes positions: tensors added along one axis of the inputs and broadcast along another are positions: the other one is that of the
    samples."""
    for constant, data in (operands, operands[::-1]):
        if roots_of(constant) or len(constant) < 2 or not roots_of(data):
            continue
        steps: List[Axis] = []
        samples: List[Axis] = []
        for place, dim in enumerate(dims[:-1]):
            own = len(constant) - len(dims) + place
            axis = input_axis(dim)
            if axis is not None:
                (steps if own >= 0 and constant[own] else samples).append(axis)
        if len(steps) == 1 and len(samples) == 1:
            steps[0].is_steps = samples[0].is_samples = True
