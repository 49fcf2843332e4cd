"""Logits of a large vocabulary in float32 that dominate the peak of a training step, which a loss in chunks would not hold at once.

The loss of [B·T, vocab] numbers keeps its log-probabilities and makes a gradient of the same size, in float32 under autocast as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapelens.analysis.shapes import memory_text, shape_text
from shapelens.analysis.structure.training_memory import MemoryEstimate
from shapelens.profiles import ModelProfile, Step
from shapelens.traces import FileSpan

SMALLEST_VOCABULARY = 4096
SHARE = 1 / 3  # of the peak, from which on something is said
CHUNK = 1024  # tokens, in the advice

_PRODUCTS = {"linear", "matmul", "__matmul__", "__rmatmul__", "einsum", "addmm", "mm", "bmm", "baddbmm"}


@dataclass(frozen=True)
class LargeLogits:
    """span: where the logits are made."""

    message: str
    span: FileSpan | None


def large_logits(profile: ModelProfile, found: MemoryEstimate | None) -> LargeLogits | None:
    """Returns the finding about a model's logits; None where they are small beside the rest."""
    memory = profile.training
    if memory is None or found is None or found.error:
        return None
    step = next((step for step in reversed(profile.steps) if _is_product(profile, step)), None)
    given = step.output.shape or [] if step is not None else []
    shape = [size for size in given if size is not None]
    if step is None or not shape or len(shape) < len(given) or shape[-1] < SMALLEST_VOCABULARY:
        return None
    size = 4 * math.prod(shape)
    at_peak = [made for made in memory.allocations if made.born <= found.peak_time and (made.died is None or made.died > found.peak_time)]
    held = [made for made in at_peak if made.bytes == size and made.kind == "activation"]
    tokens = size // 4 // shape[-1]
    if tokens <= CHUNK or len(held) * size < SHARE * found.peak:
        return None
    message = (
        f"{memory_text(len(held) * size)} of the peak are {len(held)} float32 tensors of the size of the logits "
        f"{shape_text(step.output, 'names')}: a loss over chunks of {CHUNK} tokens, each under `torch.utils.checkpoint`, "
        f"holds {memory_text(len(held) * size * CHUNK // tokens)} of them at a time"
    )
    while step.span is None and step.parent is not None:
        step = profile.steps[step.parent]
    return LargeLogits(message, step.span)


def _is_product(profile: ModelProfile, step: Step) -> bool:
    if step.kind == "operation":
        return step.name in _PRODUCTS
    return step.kind == "module" and step.module is not None and profile.modules[step.module].class_name == "Linear"
