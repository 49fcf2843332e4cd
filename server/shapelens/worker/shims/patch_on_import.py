"""Replacements in modules that are imported while a run is under way, or were before it: made as soon as the module is there."""

from __future__ import annotations

import contextlib
import importlib.abc
import sys
from types import ModuleType
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence

import torch

from ..loading.definitions import KEPT
from ..sandbox.monkeypatches import REPLACED
from ..unknown import settings_objects as settings_objects
from . import box_operators, checkpoints, command_line, compilers, distributed, flex_attention, processes
from .compilers import Replacement
from .data_sets import files, hugging_face, large_arrays, pictures, recordings, vision
from .data_sets.environments import gym
from .pretrained.libraries import IN_LIBRARY
from .training import engines as engines
from .training import hydra as hydra
from .training import lightning, metrics, plots, trackers

# By name of the module: what takes the place of what in it.
IN_MODULE: Dict[str, Callable[[ModuleType], List[Replacement]]] = {
    "torch._dynamo": compilers.dynamo,
    "torch._functorch.eager_transforms": compilers.transforms,
    "torch.export": compilers.export,
    "torch.onnx": compilers.onnx,
    "torch.ao.quantization": compilers.quantization,
    "torch.quantization": compilers.quantization,
    "torch.nn.attention.flex_attention": flex_attention.attention,
    "torch.distributed.fsdp": distributed.sharded,
    "torch.utils.tensorboard": trackers.tensorboard,
    "tensorboardX": trackers.tensorboard,
    "wandb": trackers.tracker,
    "mlflow": trackers.tracker,
    "absl.flags": command_line.absl,
    "torch.utils.model_zoo": checkpoints.model_zoo,
    "gym": gym.replacements,
    "datasets": hugging_face.hub,
    "gymnasium": gym.replacements,
    "cv2": files.opencv,
    "h5py": files.h5,
    "joblib": lambda module: files.joblib(module) + processes.joblib(module),
    "numpy": lambda module: pictures.numpy(module) + files.arrays(module) + large_arrays.filled(module),
    "numpy.random": large_arrays.drawn,
    "pandas": files.tables,
    "scipy.io": files.mat,
    "soundfile": files.sound,
    "yaml": files.yaml,
    "PIL.Image": pictures.pil,
    "tqdm.notebook": trackers.bars_of_notebooks,
    "torchmetrics": metrics.classes,
    "torchmetrics.functional": metrics.functions,
    **{"torchmetrics." + name: metrics.refusing for name in ("audio", "detection", "image", "multimodal", "text")},
    "torchvision.transforms.functional": pictures.functional,
    "torchvision.transforms.v2.functional": pictures.functional,
    "torchvision.io": pictures.decoders,
    "torchvision.ops": box_operators.replacements,
    "torchvision.utils": pictures.grids,
    "torchvision.datasets": vision.torchvision,
    "torchaudio": recordings.loading,
    "torchaudio.datasets": recordings.torchaudio,
    **lightning.IN_MODULE,
    **plots.IN_MODULE,
    **IN_LIBRARY,
}

_NOT_THERE = object()  # of a name that its owner inherits, or gets when it is first asked for


# What has to find torch as it is while it is loaded.
UNTOUCHED = "torch._dynamo"


class _After(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and replaces when it has been executed."""

    def __init__(self, replace: Callable[[ModuleType], None], untouched: Callable[[], ContextManager[None]]) -> None:
        self._replace = replace
        self._untouched = untouched

    def find_spec(self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if fullname not in IN_MODULE:
            return None
        for finder in sys.meta_path:
            found = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(fullname, path, target)
            if found is not None:
                if found.loader is not None and hasattr(found.loader, "exec_module"):
                    untouched = self._untouched if fullname == UNTOUCHED else contextlib.nullcontext
                    found.loader = _PatchingLoader(found.loader, self._replace, untouched)
                return found
        return None


class _PatchingLoader(importlib.abc.Loader):
    def __init__(self, loader: Any, replace: Callable[[ModuleType], None], untouched: Callable[[], ContextManager[None]]) -> None:
        self._loader = loader
        self._replace = replace
        self._untouched = untouched

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with self._untouched():
            self._loader.exec_module(module)
        self._replace(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


@contextlib.contextmanager
def replaced(replacements: List[Replacement]) -> Iterator[None]:
    """Put replacements in place, now and in modules that are imported later, and take all of them back at the end."""
    before: List[Replacement] = []

    def replace(found: List[Replacement]) -> None:
        for owner, name, value in found:
            before.append((owner, name, owner.__dict__.get(name, _NOT_THERE)))
            setattr(owner, name, value)
            REPLACED[id(owner), name] = value

    @contextlib.contextmanager
    def untouched() -> Iterator[None]:
        held = [(owner, name, owner.__dict__.get(name, _NOT_THERE)) for owner, name, _ in before]
        put_back(before[::-1])
        try:
            with torch._C.DisableTorchFunction():
                yield
        finally:
            put_back(held)

    def replace_in(module: ModuleType, in_module: Callable[[ModuleType], List[Replacement]]) -> None:
        if KEPT not in vars(module):  # A file of the project may have the name of a package: `datasets.py`.
            replace(in_module(module))

    finder = _After(lambda module: replace_in(module, IN_MODULE[module.__name__]), untouched)
    replace(replacements)
    for name, in_module in IN_MODULE.items():
        module = sys.modules.get(name)
        if isinstance(module, ModuleType) and type(module).__name__ != "StandInModule":
            replace_in(module, in_module)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        put_back(before[::-1])


def put_back(values: List[Replacement]) -> None:
    """Give names the values that they had."""
    for owner, name, value in values:
        if value is not _NOT_THERE:
            setattr(owner, name, value)
        elif name in owner.__dict__:
            delattr(owner, name)
