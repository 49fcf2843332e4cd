"""torchaudio's data sets without their files: recordings of an unknown length, with what its documentation says that stands beside them.

Source: https://docs.pytorch.org/audio/stable/datasets.html
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

import torch

from ...meta.mode import META
from ...unknown import unknown_sizes
from ...unknown.stand_ins import absent
from ..compilers import Replacement
from .absences import say

# What a sample holds, by data set: WAVE (of one channel), a number of samples per second, TEXT, NUMBER, NUMBERS (how many are said).
WAVE, TEXT, NUMBER = "wave", "text", "number"
SAMPLES: Dict[str, Tuple[Any, ...]] = {
    "CMUARCTIC": (WAVE, 16_000, TEXT, TEXT),
    "DR_VCTK": (WAVE, 16_000, WAVE, 16_000, TEXT, TEXT),
    "FluentSpeechCommands": (WAVE, 16_000, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT),
    "GTZAN": (WAVE, 22_050, TEXT),
    "IEMOCAP": (WAVE, 16_000, TEXT, TEXT, TEXT),
    "LIBRISPEECH": (WAVE, 16_000, TEXT, NUMBER, NUMBER, NUMBER),
    "LIBRITTS": (WAVE, 24_000, TEXT, TEXT, NUMBER, NUMBER, TEXT),
    "LJSPEECH": (WAVE, 22_050, TEXT, TEXT),
    "SPEECHCOMMANDS": (WAVE, 16_000, TEXT, TEXT, NUMBER),
    "TEDLIUM": (WAVE, 16_000, TEXT, NUMBER, NUMBER, NUMBER),
    "VCTK_092": (WAVE, 48_000, TEXT, TEXT, TEXT),
    "VoxCeleb1Identification": (WAVE, 16_000, NUMBER, TEXT),
    "YESNO": (WAVE, 8_000, [NUMBER] * 8),
}
_OPEN = "_shapelens_recordings"  # in the __dict__ of a data set that is stood in for


def torchaudio(module: ModuleType) -> List[Replacement]:
    """The replacements in the classes of `torchaudio.datasets`."""
    out: List[Replacement] = []
    for cls in [value for value in module.__dict__.values() if isinstance(value, type) and issubclass(value, torch.utils.data.Dataset)]:
        methods = (("__init__", _init), ("__getitem__", _getitem), ("__len__", _len))
        out += [(cls, name, replace(cls.__dict__[name])) for name, replace in methods if name in cls.__dict__]
    return out


def _init(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def init(self: Any, root: Any = "", *args: Any, **kwargs: Any) -> None:
        if isinstance(root, (str, os.PathLike)) and os.path.isdir(os.fspath(root)):
            try:
                original(self, root, *args, **{**kwargs, "download": False} if "download" in kwargs else kwargs)
                return
            except (OSError, RuntimeError, ValueError):
                pass  # A folder for it, and nothing in it.
        self.__dict__[_OPEN] = True
        name = type(self).__name__
        say("%s is not here: %s" % (name, "its documented samples are used" if _sample_of(self) else "what it holds is unknown"))

    return init


def _sample_of(data_set: Any) -> Tuple[Any, ...]:
    return next((SAMPLES[cls.__name__] for cls in type(data_set).__mro__ if cls.__name__ in SAMPLES), ())


def _getitem(original: Callable[..., Any]) -> Callable[..., Any]:
    def getitem(self: Any, index: Any) -> Any:
        if _OPEN not in self.__dict__:
            return original(self, index)
        sample = _sample_of(self)
        return tuple([_made(part) for part in sample]) if sample else absent("a recording", "missing-file")

    return getitem


def _made(part: Any) -> Any:
    if part == WAVE:
        return torch.empty((1, unknown_sizes.size(lasting=True)), dtype=torch.float32, device=META)
    if part == NUMBER:
        return unknown_sizes.whole(None)
    if part == TEXT:
        return "what is said"
    return [_made(each) for each in part] if isinstance(part, list) else part


def _len(original: Callable[..., Any]) -> Callable[..., Any]:
    def length(self: Any) -> int:
        return unknown_sizes.size(lasting=True) if _OPEN in self.__dict__ else int(original(self))

    return length


def loading(module: ModuleType) -> List[Replacement]:
    """The replacement for `torchaudio.load`: a recording that is not there has an unknown number of channels and is of unknown length."""
    load = module.load

    @functools.wraps(load)
    def loaded(uri: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(uri, (str, os.PathLike)) or os.path.isfile(os.fspath(uri)):
            return load(uri, *args, **kwargs)
        say("%s is not there: what it holds is unknown" % os.fspath(uri))
        shape = (unknown_sizes.count(), unknown_sizes.size(lasting=True))
        if not kwargs.get("channels_first", True):
            shape = shape[::-1]
        return torch.empty(shape, dtype=torch.float32, device=META), unknown_sizes.whole(None)

    return [(module, "load", loaded)]
