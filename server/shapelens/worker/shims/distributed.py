"""Several processes and devices, played by one: wrappers hold their module, collectives leave tensors as they are, workers work at once."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.context
import multiprocessing.pool
import multiprocessing.process
import os
import subprocess
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Iterator, List

import torch
import torch.multiprocessing
import torch.nn.parallel

from .compilers import Replacement, nothing, unchanged

# What `torchrun` sets, for code that reads it without a default.
ENVIRONMENT = {
    "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "0", "GROUP_RANK": "0",
    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
}  # fmt: skip


class Parallel(torch.nn.Module):
    """DataParallel, DistributedDataParallel or FullyShardedDataParallel of one device."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.module = module
        self.device_ids: List[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module does."""
        return self.module(*inputs, **kwargs)

    def no_sync(self) -> Any:
        """A context without gradient synchronisation."""
        return contextlib.nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Of a sharded model."""
        return torch.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)

    join = no_sync
    register_comm_hook = _set_static_graph = set_requires_gradient_sync = nothing


class DataParallel(Parallel):
    """torch.nn.DataParallel"""


class DistributedDataParallel(Parallel):
    """torch.nn.parallel.DistributedDataParallel"""


class _Work:
    """The handle of an operation that is done."""

    def wait(self, *args: Any) -> bool:
        """Nothing to wait for."""
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True


class _Group:
    """The only process group, of one process."""

    initialised = False

    def size(self) -> int:
        """Processes."""
        return 1

    def rank(self) -> int:
        """Of this process."""
        return 0


def _collective(*args: Any, **kwargs: Any) -> Any:
    return _Work() if kwargs.get("async_op") else None


def _gather_objects(objects: List[Any], value: Any = None, *args: Any, **kwargs: Any) -> None:
    if objects:
        objects[:] = [value] * len(objects)


def _initialise(*args: Any, **kwargs: Any) -> None:
    _Group.initialised = True


def _destroy(*args: Any, **kwargs: Any) -> None:
    _Group.initialised = False


def _distributed() -> List[Replacement]:
    dist = torch.distributed
    if not dist.is_available():
        return []
    answers = {
        "is_initialized": lambda: _Group.initialised, "init_process_group": _initialise, "destroy_process_group": _destroy,
        "get_rank": lambda *args, **kwargs: 0, "get_world_size": lambda *args, **kwargs: 1, "get_backend": lambda *args: "gloo",
        "new_group": lambda *args, **kwargs: _Group(), "all_gather_object": _gather_objects, "broadcast_object_list": nothing,
        "is_torchelastic_launched": lambda: False, "get_group_rank": lambda *args: 0, "get_global_rank": lambda *args: 0,
        "isend": lambda *args, **kwargs: _Work(), "irecv": lambda *args, **kwargs: _Work(), "recv": lambda *args, **kwargs: 0,
    }  # fmt: skip
    collectives = (
        "barrier monitored_barrier broadcast reduce all_reduce all_reduce_coalesced send scatter gather reduce_scatter all_to_all "
        "all_to_all_single all_gather all_gather_into_tensor reduce_scatter_tensor _all_gather_base _reduce_scatter_base gather_object "
        "scatter_object_list"
    )
    answers.update(dict.fromkeys(collectives.split(), _collective))
    owners = (dist, getattr(dist, "distributed_c10d", dist))
    return [(owner, name, value) for owner in owners for name, value in answers.items() if name in owner.__dict__]


def sharded(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.distributed.fsdp`."""
    out: List[Replacement] = [(module, name, Parallel) for name in ("FullyShardedDataParallel",) if name in module.__dict__]
    return out + [(module, name, unchanged) for name in ("fully_shard",) if name in module.__dict__]


# --- processes and threads ---


def _spawn(fn: Callable[..., Any], args: Any = (), nprocs: int = 1, *rest: Any, **kwargs: Any) -> None:
    """torch.multiprocessing.spawn: what its first process would do."""
    fn(0, *args)


def _pool(*args: Any, **kwargs: Any) -> Any:
    """A pool of one thread in the place of one of processes."""
    return multiprocessing.pool.ThreadPool(1, *args[1:3])


class _ThreadExecutor(concurrent.futures.ThreadPoolExecutor):
    """In the place of an executor with processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(max_workers=1)


def _completed(command: Any = None, *args: Any, **kwargs: Any) -> Any:
    return subprocess.CompletedProcess(command, 0, _output(**kwargs), _output(**kwargs))


def _output(*args: Any, **kwargs: Any) -> Any:
    return "" if kwargs.get("text") or kwargs.get("universal_newlines") or kwargs.get("encoding") else b""


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


def _in_mode(start: Callable[..., Any], mode: Any) -> Callable[..., Any]:
    def in_mode(thread: threading.Thread) -> None:
        """Modes belong to a thread: one that user code starts gets that of the run."""
        run = thread.run

        def run_in_mode() -> None:
            with mode:
                run()

        thread.run = run_in_mode  # type: ignore[method-assign]
        start(thread)

    return in_mode


def replacements(mode: Any) -> List[Replacement]:
    """What takes the place of torch's and Python's functions for the time of a run under this mode."""
    parallel = torch.nn.parallel
    process: Any = multiprocessing.process.BaseProcess
    places = [torch.nn, parallel, sys.modules.get("torch.nn.parallel.data_parallel"), sys.modules.get("torch.nn.parallel.distributed")]
    wrappers: List[Replacement] = [
        (place, kind.__name__, kind)
        for place in places
        for kind in (DataParallel, DistributedDataParallel)
        if isinstance(getattr(place, kind.__name__, None), type)
    ]
    context: Any = multiprocessing.context.BaseContext
    return (
        wrappers
        + _distributed()
        + [
            (torch.nn.SyncBatchNorm, "forward", torch.nn.BatchNorm2d.forward),  # Its own wants a GPU.
            (torch.multiprocessing, "spawn", _spawn),
            (process, "start", nothing),
            (process, "join", nothing),
            (process, "is_alive", lambda self: False),
            (process, "exitcode", 0),
            (context, "Pool", lambda self, *args, **kwargs: _pool(*args, **kwargs)),
            (multiprocessing, "Pool", _pool),
            (torch.multiprocessing, "Pool", _pool),
            (multiprocessing, "set_start_method", nothing),
            (torch.multiprocessing, "set_start_method", nothing),
            (concurrent.futures, "ProcessPoolExecutor", _ThreadExecutor),
            (subprocess, "run", _completed),
            (subprocess, "call", _zero),
            (subprocess, "check_call", _zero),
            (subprocess, "check_output", _output),
            (subprocess, "getoutput", lambda *args, **kwargs: ""),
            (os, "system", _zero),
            (threading.Thread, "start", _in_mode(threading.Thread.start, mode)),
        ]
    )


@contextlib.contextmanager
def launched() -> Iterator[None]:
    """`os.environ[...]` has what a launcher would set; `in` and `get` say the truth, so that code takes the way of a single process."""
    kind: Any = type(os.environ)
    get_item, get, contains = kind.__getitem__, kind.get, kind.__contains__
    own = [name for name in ("get", "__contains__") if name in kind.__dict__]

    def item(self: Any, key: Any) -> Any:
        try:
            return get_item(self, key)
        except KeyError:
            if key in ENVIRONMENT:
                return ENVIRONMENT[key]
            raise

    def asked(self: Any, key: Any, default: Any = None) -> Any:
        try:
            return get_item(self, key)
        except KeyError:
            return default

    def known(self: Any, key: Any) -> bool:
        try:
            get_item(self, key)
        except KeyError:
            return False
        return True

    kind.__getitem__, kind.get, kind.__contains__ = item, asked, known
    try:
        yield
    finally:
        kind.__getitem__ = get_item
        for name, before in (("get", get), ("__contains__", contains)):
            if name in own:
                setattr(kind, name, before)
            else:
                delattr(kind, name)
        _Group.initialised = False
