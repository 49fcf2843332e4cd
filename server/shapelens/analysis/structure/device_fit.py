"""Fits a training step into the memory of a device: the largest batch that does, and what would help, each by a profile of its own.

A profile counts what is there at once, and no more. A device has less than its memory says: what does not fit here fits nowhere, and what
just fits here may not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from shapelens.analysis.findings import codes
from shapelens.analysis.findings.findings import Finding, with_settings
from shapelens.analysis.places import OtherModules, Places
from shapelens.analysis.shapes import memory_text, plural
from shapelens.analysis.structure.largest_size import largest_size
from shapelens.analysis.structure.training_memory import accumulating_peak, training_memory
from shapelens.analysis.traces.trained import TrainedModel, trained_models
from shapelens.examples.settings import Settings
from shapelens.profiles import MemoryProfile, ModelProfile, ProfileRequest
from shapelens.source.autocast import autocast_of
from shapelens.source.module import Module
from shapelens.source.optimizers import optimizer_of
from shapelens.source.positions import Span
from shapelens.traces import ExampleRun, Trace

OUT_OF_MEMORY = "out-of-memory"
DEVICE = "cuda"
MOST_DIVISORS = 6  # that are tried as the size of a smaller batch
LEAST_SHARE = 0.95  # of the peak: what leaves more of it is no help
OTHER_PARTS = 0.1  # of a model, by bytes, that it may have others of when it is trained than when it is built
COPIES = 6  # of a parameter that a training step holds, at most
_IN_EIGHT_BITS = {"Adam": "Adam8bit", "AdamW": "AdamW8bit", "Lion": "Lion8bit"}

Profiler = Callable[[ProfileRequest], Awaitable[ModelProfile]]
ExampleProfiler = Callable[[ExampleRun, ProfileRequest], Awaitable[ModelProfile]]


@dataclass(frozen=True)
class Saving:
    """A way to make a step take less, in words that follow what it takes, and the peak then."""

    words: str
    peak: int

    @property
    def text(self) -> str:
        """The peak with the words."""
        return f"{memory_text(self.peak)} {self.words}"


@dataclass(frozen=True)
class Lack:
    """A training step that does not fit a memory of `limit` bytes.

    largest: the batch that fits; 0 where none does. accumulated: the largest batch of which several make up this one and fit.
    """

    model: TrainedModel
    limit: int
    peak: int
    counted: str  # the optimizer, and what the model is called under
    largest: int
    accumulated: tuple[int, int] | None  # its size and its peak
    savings: list[Saving]

    def finding(self, file: str) -> Finding:
        """A warning at the batch size."""
        model = self.model
        fits = f"up to {self.largest} fit" if self.largest else f"not even {model.dim} = 1 fits"
        if self.accumulated is not None:
            size, peak = self.accumulated
            fits += f", or {model.size // size} × {size} with gradients accumulated ({memory_text(peak)})"
        savings = f"; it takes {', '.join(each.text for each in self.savings)}" if self.savings else ""
        message = (
            f"a training step of {model.name} with {model.written or model.dim} = {model.size} takes {memory_text(self.peak)} "
            f"({self.counted}), more than the {memory_text(self.limit)} of the device: {fits}{savings}"
        )
        return Finding(OUT_OF_MEMORY, codes.severity(OUT_OF_MEMORY), message, model.span, file)


class _Step:
    """A model's training step, with other batches and settings. Each profile is made once."""

    def __init__(self, model: TrainedModel, optimizer: str, autocast: str, profile: Profiler) -> None:
        self.optimizer, self.autocast = optimizer, autocast
        self.counted = f"{optimizer}, autocast to {autocast}" if autocast else optimizer
        self._model, self._profile = model, profile
        self._known: dict[tuple[int, str, bool], ModelProfile] = {}

    async def profile(self, size: int, *, autocast: str | None = None, checkpointed: bool = False) -> ModelProfile:
        key = size, autocast or self.autocast, checkpointed
        if key not in self._known:
            request = ProfileRequest(
                {self._model.dim: size}, DEVICE, key[1], memory_only=True, loss=self._model.loss, checkpointed=checkpointed
            )
            self._known[key] = await self._profile(request)
        return self._known[key]

    async def memory(self, size: int, *, autocast: str | None = None, checkpointed: bool = False) -> MemoryProfile | None:
        """None where that cannot be known."""
        found = await self.profile(size, autocast=autocast, checkpointed=checkpointed)
        return found.training if found.error is None and found.training is not None and not found.training.error else None

    async def peak(self, size: int) -> int | None:
        memory = await self.memory(size)
        return training_memory(memory, self.optimizer, DEVICE).peak if memory is not None else None


async def findings_of_memory(
    module: Module, trace: Trace, settings: Settings, other_modules: OtherModules, profile: ExampleProfiler
) -> list[Finding]:
    """The training steps of a file that do not fit the memory of the device, one at each place; none where that is not known."""
    limit, found = settings.device_memory, dict[Span, Lack]()
    optimizer, autocast = optimizer_of(module.text) or "AdamW", autocast_of(module.text) or ""
    for model in trained_models(Places(module, trace, other_modules)) if limit else ():
        lack = await lack_of_memory(model, limit, optimizer, autocast, partial(profile, model.run))
        if lack is not None and (model.span not in found or lack.peak > found[model.span].peak):
            found[model.span] = lack
    told = (with_settings(module, each.finding(trace.file), settings) for each in found.values())
    return [finding for finding in told if finding is not None]


async def lack_of_memory(model: TrainedModel, limit: int, optimizer: str, autocast: str, profile: Profiler) -> Lack | None:
    """Returns what a model's training step lacks; None where it fits, or that cannot be known. optimizer: one that `training_memory`
    knows."""
    step = _Step(model, optimizer, autocast, profile)
    memory, peak = await step.memory(model.size), await step.peak(model.size)
    if memory is None or peak is None or peak - _other_parts(model, memory, peak) <= limit:
        return None
    largest = await largest_size(limit, model.size, peak, step.peak)
    accumulated = await _accumulated(step, model.size, largest, limit)
    return Lack(model, limit, peak, step.counted, largest, accumulated, await _savings(step, model.size, peak, limit))


def _other_parts(model: TrainedModel, memory: MemoryProfile, peak: int) -> int:
    """Returns the bytes of parts of a step that a model no longer has when it is trained, as a head for other classes; all where it has
    most parts no longer, or in another dtype. Each number has a gradient, a state and what its update takes for a while."""
    built = sum(memory.parameter_storages) + sum(memory.buffer_storages)
    other = abs(built - model.bytes) if model.bytes is not None else 0
    return peak if other > OTHER_PARTS * built else COPIES * other


async def _accumulated(step: _Step, size: int, largest: int, limit: int) -> tuple[int, int] | None:
    for smaller in [number for number in range(min(largest, size // 2), 0, -1) if size % number == 0][:MOST_DIVISORS]:
        memory = await step.memory(smaller)
        peak = accumulating_peak(memory, step.optimizer, DEVICE) if memory is not None else limit + 1
        if peak <= limit:
            return smaller, peak
    return None


async def _savings(step: _Step, size: int, peak: int, limit: int) -> list[Saving]:
    """Returns what helps, the most first: each alone, and where none of them is enough all of them together."""
    in_eight_bits = _IN_EIGHT_BITS.get(step.optimizer, "")
    lower = "" if step.autocast else "bfloat16"
    blocks = (await step.profile(size, checkpointed=True)).checkpointed
    kept = " and ".join(plural(count, cls) for cls, count in blocks.items())
    # Each in words, with what it changes.
    ways = [
        (f"with {kept} under torch.utils.checkpoint", "", True, ""),
        (f"under autocast to {lower}", lower, False, ""),
        (f"with {in_eight_bits}", "", False, in_eight_bits),
    ]
    ways = [way for way, is_possible in zip(ways, (kept, lower, in_eight_bits), strict=True) if is_possible]
    found = [each for way in ways if (each := await _saving(step, size, *way)) is not None and each.peak < LEAST_SHARE * peak]
    if len(found) > 1 and all(each.peak > limit for each in found):
        used = [way for way in ways if way[0] in {each.words for each in found}]
        words, dtypes, checkpoints, optimizers = zip(*used, strict=True)
        together = await _saving(step, size, " and ".join(words), max(dtypes), any(checkpoints), max(optimizers))
        found += [together] if together is not None else []
    return sorted(found, key=lambda each: each.peak)


async def _saving(step: _Step, size: int, words: str, autocast: str, checkpointed: bool, optimizer: str) -> Saving | None:
    memory = await step.memory(size, autocast=autocast, checkpointed=checkpointed)
    return Saving(words, training_memory(memory, optimizer or step.optimizer, DEVICE).peak) if memory is not None else None
