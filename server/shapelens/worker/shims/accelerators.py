"""Accelerators: there is one as far as code wants to know its size or clock, but none that tensors could be moved to."""

from __future__ import annotations

import contextlib
import linecache
import sys
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import torch

from ..trace.devices import devices, names
from .compilers import Replacement, nothing, unchanged
from .data_sets import absences


class Stream:
    """A CUDA stream or graph on which everything has happened already."""

    device = torch.device("cpu")
    cuda_stream = stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what torch's takes."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *args: Any) -> None:
        """Nothing to end."""

    def record_event(self, event: Any = None) -> Any:
        """An event that is over."""
        return event or Event()

    def query(self) -> bool:
        """True if all work is done."""
        return True

    def pool(self) -> Any:
        """The memory pool of a graph."""
        return (0, 0)

    wait_stream = wait_event = synchronize = replay = reset = capture_begin = capture_end = nothing


class Event:
    """A CUDA event that is over."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what torch's takes."""

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds; one, as code divides by it."""
        return 1.0

    def query(self) -> bool:
        """True if it is over."""
        return True

    record = wait = synchronize = nothing


class Generator(torch.Generator):
    """A generator of random numbers, of whatever device."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def _is_available() -> bool:
    """False, so that code goes the way that needs no accelerator; True where it would end otherwise."""
    frame = sys._getframe(1)
    file, number = frame.f_code.co_filename, frame.f_lineno
    line, following = (linecache.getline(file, number + step).strip() for step in (0, 1))
    return line.startswith("assert") or (line.startswith("if not") and ("raise" in following or "exit" in following))


def _properties(*args: Any, **kwargs: Any) -> Any:
    return SimpleNamespace(name="none", major=8, minor=0, total_memory=1 << 34, multi_processor_count=80, warp_size=32)


def _says(answer: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer


def _context(*args: Any, **kwargs: Any) -> Any:
    return contextlib.nullcontext()


ANSWERS: Dict[str, Any] = {
    "is_available": _is_available, "device_count": _says(1), "current_device": _says(0), "is_bf16_supported": _says(False),
    "get_device_name": _says("none"), "get_device_capability": _says((8, 0)), "get_device_properties": _properties,
    "get_arch_list": _says([]), "mem_get_info": _says((1 << 34, 1 << 34)), "memory_summary": _says(""), "memory_stats": _says({}),
    "get_rng_state_all": _says([]), "utilization": _says(0), "is_initialized": _says(False),
    "current_device_index": _says(0),
    "device_index": _context,
    "stream": _context, "device": _context, "graph": _context, "current_stream": Stream, "default_stream": Stream,
    "Stream": Stream, "Event": Event, "CUDAGraph": Stream, "make_graphed_callables": unchanged,
    "get_rng_state": lambda *args, **kwargs: torch.zeros(16, dtype=torch.uint8),
}  # fmt: skip
NOTHING = (
    "init manual_seed manual_seed_all seed seed_all synchronize empty_cache set_device ipc_collect reset_peak_memory_stats "
    "reset_max_memory_allocated reset_max_memory_cached reset_accumulated_memory_stats set_per_process_memory_fraction set_rng_state "
    "set_rng_state_all set_sync_debug_mode set_device_idx set_device_index _lazy_init set_stream"
)
ZERO = (
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached current_allocated_memory "
    "driver_allocated_memory"
)


def _current_accelerator(original: Callable[..., Any]) -> Callable[..., Any]:
    """torch.accelerator.current_accelerator: user code asks for its type, and may not be prepared for None; torch's own code is."""
    return lambda *args, **kwargs: names.device_for("accelerator") if absences.is_asked_by_user() else original(*args, **kwargs)


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run."""
    out: List[Replacement] = [(torch, "Generator", Generator), (torch, "manual_seed", nothing)]
    without_effect = ("set_num_threads", "set_num_interop_threads", "set_rng_state")
    out += [(torch, name, nothing) for name in without_effect if hasattr(torch, name)]
    out += [(torch, "set_default_device", devices.set_default)] if hasattr(torch, "set_default_device") else []
    answers = dict(ANSWERS)
    answers.update(dict.fromkeys(NOTHING.split(), nothing))
    answers.update(dict.fromkeys(ZERO.split(), _says(0)))
    for owner in ("cuda", "mps", "xpu", "accelerator"):
        module = getattr(torch, owner, None)
        if module is not None:
            out += [(module, name, value) for name, value in answers.items() if name in module.__dict__]
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        out.append((accelerator, "current_accelerator", _current_accelerator(accelerator.current_accelerator)))
    nvtx = getattr(torch.cuda, "nvtx", None)
    if nvtx is not None:
        out += [(nvtx, name, value) for name, value in (("range_push", nothing), ("range_pop", nothing), ("mark", nothing))]
        out.append((nvtx, "range", _context))
    return out
