"""Saved weights: none are downloaded or written, and of those that are read only names, shapes and dtypes.

What `torch.load` gives is asked for more than weights (`checkpoint["epoch"]`, `checkpoint["args"]`). A file that is there is read without
its numbers (`weight_files`); for one that is not, and for a download, a stand-in answers. What was saved in the same run is what is loaded
again, as it was then. What a program loads into a module is compared with it (calls/state_dicts.py), and nothing is copied.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Dict, Iterator, List

import torch
import torch.hub

from ..calls.state_dicts import FROM, state_dicts
from ..trace.devices import devices
from ..unknown import stand_ins
from . import file_access
from .compilers import Replacement
from .pretrained import torch_hub, weight_files

DEEPEST = 8  # lists and dicts inside of each other

_saved: Dict[Any, Any] = {}  # by path, or by the id of a buffer


def _place(file: Any) -> Any:
    return os.path.abspath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else id(file)


def _name(place: Any) -> str:
    return os.path.basename(place) if isinstance(place, str) else ""


def keep(value: Any, file: Any) -> None:
    """Save something until the end of the run."""
    place = _place(file)
    _saved[place] = _as_saved(value, _name(place))


def is_kept(file: Any) -> bool:
    """True if the run has saved something there."""
    return _place(file) in _saved


def _save(value: Any, file: Any = None, *args: Any, **kwargs: Any) -> None:
    """torch.save: kept in memory until the end of the run."""
    keep(value, file)


def _as_saved(value: Any, name: str, depth: int = 0) -> Any:
    """Dicts and lists of their own, as what is done to the others later is not saved; the tensors say where they come from."""
    kind = type(value)
    if kind is torch.Tensor:
        with torch._C.DisableTorchFunction():
            alias = value.detach()
        alias.__dict__.update(value.__dict__)
        alias.__dict__[FROM] = name
        return alias
    if kind in (list, tuple) and depth < DEEPEST:
        return kind([_as_saved(each, name, depth + 1) for each in value])
    if kind in (dict, OrderedDict, defaultdict) and depth < DEEPEST:
        copied = copy.copy(value)  # With its attributes, as a state has.
        copied.update((key, _as_saved(each, name, depth + 1)) for key, each in value.items())
        return copied
    return value


@contextlib.contextmanager
def files_of_its_own() -> Iterator[None]:
    """Forgets files that are saved meanwhile, and what was saved before is not there: another example has saved it."""
    before = dict(_saved)
    _saved.clear()
    try:
        yield
    finally:
        _saved.clear()
        _saved.update(before)


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Forgets files that are saved meanwhile."""
    before = dict(_saved)
    try:
        yield
    finally:
        _saved.clear()
        _saved.update(before)


def load(file: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Returns what a file holds; a stand-in where that is not known."""
    place = _place(file)
    if place in _saved:
        if isinstance(_saved[place], torch.nn.Module):
            devices.is_lost = True  # It may come back on another device than the one that it was saved on.
        return _as_saved(_saved[place], _name(place))
    if isinstance(place, str):
        found = weight_files.read(place) or weight_files.read(file_access.place_next_to_script(file) or place)
        if found is not None:
            return found[0]
    return stand_ins.absent("what %s holds" % (os.path.basename(place) if isinstance(place, str) else "a file"), "missing-file")


def _downloaded(url: Any = "", *args: Any, **kwargs: Any) -> Any:
    """torch.hub.load_state_dict_from_url"""
    return stand_ins.absent("what %s holds" % str(url).rpartition("/")[2], "missing-file")


def _load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Module.load_state_dict"""
    state = args[0] if args else kwargs.get("state_dict")
    return state_dicts.load(module, state, bool(args[1] if len(args) > 1 else kwargs.get("strict", True)))


def _nothing(*args: Any, **kwargs: Any) -> None:
    """No file is fetched."""


def _optimizer_state(optimizer: Any, state_dict: Any) -> None:
    """Optimizer.load_state_dict"""


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run; what an earlier run saved is forgotten."""
    _saved.clear()
    out: List[Replacement] = [
        (torch, "load", load),
        (torch, "save", _save),
        (torch.jit, "load", load),
        (torch.jit, "save", _save),
        (torch.hub, "load_state_dict_from_url", _downloaded),
        (torch.hub, "load", torch_hub.load),
        (torch.hub, "download_url_to_file", _nothing),
        (torch.nn.Module, "load_state_dict", _load_state_dict),
        (torch.optim.Optimizer, "load_state_dict", _optimizer_state),
        (torch.optim.lr_scheduler.LRScheduler, "load_state_dict", _optimizer_state),
    ]
    return [(owner, name, value) for owner, name, value in out if name in owner.__dict__]


def model_zoo(module: Any) -> List[Replacement]:
    """`torch.utils.model_zoo`, the old name of the hub's function."""
    zoo: Callable[..., Any] = _downloaded
    return [(module, "load_url", zoo)]
