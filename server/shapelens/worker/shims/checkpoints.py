"""Saved weights: none are read, downloaded or written, as a model's shapes are those that it was built with.

What `torch.load` gives is asked for more than weights (`checkpoint["epoch"]`, `checkpoint["args"]`). A file that is there is read without
its weights; for one that is not, and for a download, a stand-in answers. What was saved in the same run is what is loaded again.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Dict, List

import torch
import torch.hub
from torch.nn.modules.module import _IncompatibleKeys

from ..trace.devices import devices
from ..unknown import stand_ins
from .compilers import Replacement
from .pretrained import torch_hub

_load = torch.load
_saved: Dict[Any, Any] = {}  # by path, or by the id of a buffer


def _place(file: Any) -> Any:
    return os.path.abspath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else id(file)


def _save(value: Any, file: Any = None, *args: Any, **kwargs: Any) -> None:
    """torch.save: kept in memory until the end of the run."""
    _saved[_place(file)] = value


def _loaded(file: Any = None, *args: Any, **kwargs: Any) -> Any:
    """torch.load"""
    place = _place(file)
    if place in _saved:
        if isinstance(_saved[place], torch.nn.Module):
            devices.is_lost = True  # It may come back on another device than the one that it was saved on.
        return _saved[place]
    if isinstance(place, str) and os.path.isfile(place):
        try:
            with torch._C.DisableTorchFunction(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _load(place, map_location="meta", weights_only=False)
        except Exception:  # An older format, classes that are gone: what it held is unknown.
            pass
    return stand_ins.absent("what %s holds" % (os.path.basename(place) if isinstance(place, str) else "a file"), "missing-file")


def _downloaded(url: Any = "", *args: Any, **kwargs: Any) -> Any:
    """torch.hub.load_state_dict_from_url"""
    return stand_ins.absent("what %s holds" % str(url).rpartition("/")[2], "missing-file")


def _load_state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Module.load_state_dict: everything fitted."""
    return _IncompatibleKeys([], [])


def _nothing(*args: Any, **kwargs: Any) -> None:
    """No file is fetched."""


def _optimizer_state(optimizer: Any, state_dict: Any) -> None:
    """Optimizer.load_state_dict"""


def replacements() -> List[Replacement]:
    """What takes the place of torch's functions for the time of a run; what an earlier run saved is forgotten."""
    _saved.clear()
    out: List[Replacement] = [
        (torch, "load", _loaded),
        (torch, "save", _save),
        (torch.jit, "load", _loaded),
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
