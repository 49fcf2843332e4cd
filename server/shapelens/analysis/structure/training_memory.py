"""The memory of a training step and of an inference, from the storages that they allocate.

The sum of storages that live at once, as `torch.cuda.memory_allocated` counts them. On a CUDA device each is rounded up to 512 bytes
(`kMinBlockSize` in c10/cuda/CUDACachingAllocator.cpp). A step is one after the first: the optimizer has its state, gradients were set to
None. What kernels allocate inside of themselves, fragmentation, the CUDA context and libraries' workspaces are not counted. A recurrent
layer keeps what cuDNN does, on a CPU too, where oneDNN keeps more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from shapelens.profiles import Allocation, MemoryProfile

CUDA_BLOCK = 512
EIGHT_BIT_FROM = 4096  # numbers: bitsandbytes keeps the state of smaller parameters in 32 bits (`min_8bit_size`)
EIGHT_BIT_BLOCK = 256  # numbers that share one float32 scale

# By name in lower case: how many tensors of a parameter's size the state has.
_STATES = {
    "sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "nadam": 2, "radam": 2, "adamax": 2, "amsgrad": 3, "adadelta": 2, "adagrad": 1,
    "rmsprop": 1, "lion": 1, "rprop": 2, "asgd": 1, "lamb": 2, "muon": 1,
}  # fmt: skip
_STEP_COUNTERS = {"adam", "adamw", "nadam", "radam", "adamax", "amsgrad", "adadelta", "adagrad", "rmsprop", "adafactor"}
# How many tensors of a parameter's size are there at once while it is updated: one parameter at a time, or all of them (`foreach`).
_TEMPORARIES = {"adam": 2, "adamw": 2, "amsgrad": 2, "nadam": 2, "radam": 2, "rmsprop": 1, "adadelta": 2, "adagrad": 1, "lion": 1}
OPTIMIZERS = ("SGD", "momentum", "Adam", "AdamW", "Adafactor", "Adam8bit", "AdamW8bit")


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes. The peak is the sum of the parts at the moment at which it is reached; `temporaries` is what no other part has.

    peak_step: the step of the forward in which it is reached, or whose gradient is computed then; None where there is none.
    """

    device: str  # "cuda" | "cpu"
    optimizer: str  # "" for an inference
    parameters: int
    buffers: int
    gradients: int
    optimizer_state: int
    inputs: int
    activations: int  # that backward keeps, once forward is over
    after_forward: int  # all that is there then
    peak: int
    peak_phase: str  # "forward" | "backward" | "optimizer"
    peak_step: int | None
    temporaries: int  # at the peak
    error: str = ""
    peak_time: int = 0  # that of the evaluation, in which `Allocation.born` and `died` count


def training_memory(memory: MemoryProfile, optimizer: str = "AdamW", device: str = "cuda") -> MemoryEstimate:
    """The memory of a training step."""
    round_up = rounding(device)
    state = sum(optimizer_states(memory, optimizer, device))
    gradients = sum(map(round_up, memory.trained_storages))
    return _estimate(memory, device, optimizer, state, gradients)


def accumulating_peak(memory: MemoryProfile, optimizer: str = "AdamW", device: str = "cuda") -> int:
    """The peak of a training step of several batches, whose gradients are added up: those of the batches before are there all the time,
    and each new one until it is added to them."""
    allocations = [replace(made, died=made.born + 1) if made.kind == "gradient" else made for made in memory.allocations]
    later = replace(memory, allocations=allocations)
    state = sum(optimizer_states(memory, optimizer, device))
    gradients = sum(map(rounding(device), memory.trained_storages))
    return max(_estimate(later, device, "", state, 0).peak + gradients, training_memory(memory, optimizer, device).peak)


def inference_memory(memory: MemoryProfile, device: str = "cuda") -> MemoryEstimate:
    """The memory of a forward under `torch.no_grad`."""
    return _estimate(memory, device, "", 0, 0)


def optimizer_states(memory: MemoryProfile, optimizer: str, device: str) -> list[int]:
    """The bytes of an optimizer's state for each of `memory.trained_storages`. Raises ValueError for an optimizer that is not known."""
    name, round_up = optimizer.lower(), rounding(device)
    if _in_full_precision(name) not in (*_STATES, "adafactor"):
        raise ValueError(optimizer)
    counter = 4 if name in _STEP_COUNTERS and device == "cpu" else 0  # A float32: on a CUDA device it stays on the CPU.
    return [counter + _state(name, shape, size, round_up) for shape, size in zip(memory.parameters, memory.trained_storages, strict=True)]


def _state(name: str, shape: list[int], size: int, round_up: Callable[[int], int]) -> int:
    count = math.prod(shape)
    tensors = _STATES.get(_in_full_precision(name), 0)
    if name.endswith("8bit"):
        if count < EIGHT_BIT_FROM:
            return tensors * round_up(4 * count)
        return tensors * (round_up(count) + round_up(4 * math.ceil(count / EIGHT_BIT_BLOCK)))
    if name == "adafactor":
        # The rows' and columns' means of a matrix, or all of a vector: `torch.optim.Adafactor`.
        kept = [math.prod(shape[:-1]), math.prod(shape[:-2]) * shape[-1]] if len(shape) > 1 else [count]
        return sum(round_up(part * (size // max(count, 1))) for part in kept)
    return tensors * round_up(size)


def _in_full_precision(name: str) -> str:
    return name.removeprefix("paged").removesuffix("8bit") if name.endswith("8bit") else name


def _estimate(memory: MemoryProfile, device: str, optimizer: str, state: int, gradients: int) -> MemoryEstimate:
    round_up = rounding(device)
    parameters, buffers = (sum(map(round_up, sizes)) for sizes in (memory.parameter_storages, memory.buffer_storages))
    base = parameters + buffers + state
    events = sorted(
        event
        for number, made in enumerate(memory.allocations)
        for event in ((made.born, number, 1), *(((made.died, number, -1),) if made.died is not None else ()))
    )
    live = peak = after_forward = 0
    peak_at, peak_number = 0, None
    for time, number, sign in events:
        if time > memory.forward_end and not after_forward:
            after_forward = live
        live += sign * round_up(memory.allocations[number].bytes)
        if live > peak:
            peak, peak_at, peak_number = live, time, number
    after_forward = after_forward or live
    inputs = sum(round_up(made.bytes) for made in memory.allocations if made.kind == "input")
    kept = sum(round_up(made.bytes) for made in _living(memory, memory.forward_end) if made.kind == "activation")
    phase = "forward" if peak_at <= memory.forward_end else "backward"
    step = memory.allocations[peak_number].step if peak_number is not None else -1
    living = _living(memory, peak_at)
    temporaries = sum(round_up(made.bytes) for made in living if made.kind == "activation" and not is_kept(made, memory.forward_end))
    if optimizer:
        left = sum(round_up(made.bytes) for made in _living(memory, memory.backward_end) if made.kind != "gradient")
        updating = _updating(memory, optimizer, device)
        if gradients + left + updating > peak:
            peak, phase, step, temporaries = gradients + left + updating, "optimizer", -1, updating
            peak_at = memory.backward_end
    return MemoryEstimate(
        device, optimizer, parameters, buffers, gradients, state, inputs, kept, base + after_forward, base + peak, phase,
        step if step >= 0 else None, temporaries, memory.error, peak_at,
    )  # fmt: skip


def _updating(memory: MemoryProfile, optimizer: str, device: str) -> int:
    """Returns the bytes that an optimizer's step allocates for a while: for all parameters at once on a CUDA device, where it takes them
    together."""
    tensors = _TEMPORARIES.get(optimizer.lower(), 0)
    sizes = memory.trained_storages
    return (sum(sizes) if device == "cuda" and tensors else tensors * max(sizes, default=0)) if sizes else 0


def _living(memory: MemoryProfile, time: int) -> list[Allocation]:
    return [made for made in memory.allocations if made.born <= time and (made.died is None or made.died > time)]


def is_kept(made: Allocation, forward_end: int) -> bool:
    """True if something is there when forward is over."""
    return made.born <= forward_end and (made.died is None or made.died > forward_end)


def rounding(device: str) -> Callable[[int], int]:
    """Returns a function from bytes to the bytes that a device's allocator takes for them."""
    if device == "cuda":
        return lambda size: -(-size // CUDA_BLOCK) * CUDA_BLOCK
    return lambda size: size
