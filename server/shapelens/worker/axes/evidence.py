"""Which axis of the inputs holds the samples of a batch: what variables of the user's code that hold its size are called."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Callable, Optional

from .factors import Axis

_SAMPLES = {"b", "bs", "bsz", "bz", "batch", "batch_size", "batchsize", "batch_sz", "n_batch", "nbatches", "num_batch", "batch_dim"}
_STEPS = {
    "t",
    "l",
    "seq",
    "time",
    "length",
    "seq_len",
    "seqlen",
    "seq_length",
    "seq_size",
    "steps",
    "n_steps",
    "num_steps",
    "timesteps",
    "time_steps",
    "tgt_len",
    "src_len",
    "max_len",
    "sequence_length",
    "n_tokens",
    "num_tokens",
}
_MOST_FRAMES = 40


def names_samples(name: str) -> bool:
    """Whether a name is one that people give to the samples of a batch."""
    return name.lower() in _SAMPLES


def names_steps(name: str) -> bool:
    """Whether a name is one that people give to the steps of a sequence."""
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
