"""Several processes and devices, played by one: wrappers hold their module, collectives leave tensors as they are."""

from __future__ import annotations

import contextlib
import os
import sys
from types import ModuleType
from typing import Any, Iterator, List

import torch
import torch.nn.parallel

from ..trace.devices import devices
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
        devices.is_lost = True
        self.device_ids: List[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Returns what the module does."""
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
        "get_rank": lambda *args, **kwargs: 0, "get_world_size": lambda *args, **kwargs: 1, "get_backend": lambda *args, **kwargs: "gloo",
        "new_group": lambda *args, **kwargs: _Group(), "all_gather_object": _gather_objects, "broadcast_object_list": nothing,
        "is_torchelastic_launched": lambda: False, "get_group_rank": lambda *args, **kwargs: 0,
        "get_global_rank": lambda *args, **kwargs: 0,
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


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run."""
    parallel = torch.nn.parallel
    places = [torch.nn, parallel, sys.modules.get("torch.nn.parallel.data_parallel"), sys.modules.get("torch.nn.parallel.distributed")]
    wrappers: List[Replacement] = [
        (place, kind.__name__, kind)
        for place in places
        for kind in (DataParallel, DistributedDataParallel)
        if isinstance(getattr(place, kind.__name__, None), type)
    ]
    sync = (torch.nn.SyncBatchNorm, "forward", torch.nn.BatchNorm2d.forward)  # Its own wants a GPU.
    return [*wrappers, *_distributed(), sync]


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
