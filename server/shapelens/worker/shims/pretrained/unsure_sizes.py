"""Models whose class is known and whose sizes are not: they are built with the sizes that their class has by default, and what comes out
of them has a batch (and for ids a length), all other sizes are unknown.

A model that is not even known by its class gives a tensor of unknown sizes for whatever it is asked.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ...locations import WORKER
from ...meta.mode import made
from ...unknown import stand_ins, unknown_sizes

_plainly = torch._C.DisableTorchFunction
_classes: Dict[type, type] = {}  # of unsure models, by the class that they are made from


class _Depth:
    running = 0  # unsure modules that run inside of each other


def _first_tensor(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[torch.Tensor]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor) and value.dim() > 0:
            return value
    return None


def blurred(value: Any, given: Optional[torch.Tensor]) -> Any:
    """A value with each size of its tensors unknown that does not come from the tensor that was given."""
    if isinstance(value, torch.Tensor):
        return _blurred(value, given)
    if isinstance(value, dict):
        for name in list(value):
            new = blurred(value[name], given)
            if new is not value[name]:
                value[name] = new
        return value
    if type(value) in (tuple, list):
        return type(value)([blurred(part, given) for part in value])
    return value


def _blurred(tensor: torch.Tensor, given: Optional[torch.Tensor]) -> torch.Tensor:
    with _plainly():
        shape = list(tensor.shape)
        if not shape or not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        known = list(given.shape) if given is not None else []
        is_ids = given is not None and given.dim() == 2 and not given.is_floating_point()
        kept = [
            position < len(known) and size == known[position] and (position == 0 or (position == 1 and is_ids and len(shape) > 2))
            for position, size in enumerate(shape)
        ]
        sizes = unknown_sizes.filled_in([size if is_kept else None for size, is_kept in zip(shape, kept)])
        needs_gradient = tensor.requires_grad
    return made(sizes, tensor.dtype, needs_gradient)


def unsure(model: Any) -> Any:
    """Make the sizes of what comes out of a model, and of its parts, unknown."""
    unknown_sizes.size(lasting=True)
    for module in model.modules():
        cls = type(module)
        if not cls.__module__.startswith("torch.nn.") and not hasattr(cls, unknown_sizes.OWN_SIZES):
            module.__class__ = _unsure_class(cls)
    return model


def is_unsure(value: Any) -> bool:
    """True if a model or configuration was made with sizes that nobody knows."""
    return hasattr(type(value), unknown_sizes.OWN_SIZES)


def _unsure_class(cls: type) -> type:
    if cls not in _classes:

        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            _Depth.running += 1
            try:
                result = cls.forward(module, *args, **kwargs)  # type: ignore[attr-defined]
            finally:
                _Depth.running -= 1
            return result if _Depth.running else blurred(result, _first_tensor(args, kwargs))

        forward.__wrapped__ = cls.forward  # type: ignore[attr-defined]
        names = {"forward": forward, "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        _classes[cls] = type(cls)(cls.__name__, (cls,), {**names, unknown_sizes.OWN_SIZES: True})
    return _classes[cls]


def unsure_config(config: Any, library: str) -> Any:
    """A configuration whose numbers are unknown to whoever asks for them, but the library itself."""
    cls: Any = type(config)
    if hasattr(cls, unknown_sizes.OWN_SIZES):
        return config
    if cls not in _classes:

        def __getattribute__(self: Any, name: str) -> Any:
            value = cls.__getattribute__(self, name)
            if type(value) is int and not name.endswith("_id"):
                asks = sys._getframe(1)
                if not asks.f_globals.get("__name__", "").startswith(library) and not asks.f_code.co_filename.startswith(WORKER):
                    return unknown_sizes.UnknownInt(unknown_sizes.size(lasting=True))
            return value

        names = {"__getattribute__": __getattribute__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        try:
            _classes[cls] = type(cls)(cls.__name__, (cls,), {**names, unknown_sizes.OWN_SIZES: True})
        except TypeError:
            return config
    config.__class__ = _classes[cls]
    return config


class UnknownModel(torch.nn.Module):
    """A model of which nothing is known but its name, and what it is for: the number of dims of what comes out of it, but no sizes.

    Its parts and methods are stand-ins; as a module it can be moved, frozen, saved and trained. `gives` makes the output out of the first
    tensor that goes in, or says None where nothing is known of the output.
    """

    def __init__(self, name: str, gives: Optional[Callable[[Optional[torch.Tensor]], Any]] = None) -> None:
        super().__init__()
        self.__dict__["_shapelens_name"] = name
        self.__dict__["_shapelens_gives"] = gives
        self.__dict__["config"] = stand_ins.absent("the configuration of %s" % name, "missing-file")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what comes out of it, whatever goes in."""
        gives = self.__dict__["_shapelens_gives"]
        result = gives(_first_tensor(args, kwargs)) if gives is not None else None
        if result is None:
            result = stand_ins.absent("what %s gives" % self.__dict__["_shapelens_name"], "missing-file")
            stand_ins.called.append(result)
        return result

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return stand_ins.absent("%s of %s" % (name, self.__dict__.get("_shapelens_name", "a model")), "missing-file")

    def __len__(self) -> int:
        return unknown_sizes.size(lasting=True)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return True


def unknown_output(given: Optional[torch.Tensor], rank: int, last: Optional[int] = None) -> torch.Tensor:
    """A tensor of which the batch is known, the length where ids were given, and the last size where it was asked for."""
    shape: List[Optional[int]] = [None] * rank
    if given is not None and given.dim():
        shape[0] = int(given.shape[0])
        if rank > 2 and given.dim() == 2:
            shape[1] = int(given.shape[1])
    if last is not None:
        shape[-1] = last
    return made(unknown_sizes.filled_in(shape), torch.float32)
