"""Layers of torch whose constructor refuses its arguments: the half-built layer goes on, and its calls give stand-ins."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, List, Tuple

import torch

from ..meta.mode import MetaMode, NotRecovered
from ..trace.devices import devices
from ..unknown.stand_ins import absent, is_absent
from . import misused_layers

Module = torch.nn.Module
# What shapes do not depend on: where it is not known, a layer is made without it.
WITHOUT_SHAPE = {"padding_idx", "dropout", "p", "eps", "momentum", "max_norm", "weight", "ignore_index", "label_smoothing", "pos_weight"}

PARAMETERS = ("weight", "bias")  # of most layers


def _layers() -> List[Any]:
    """The classes that torch's layers get their constructors from."""
    named = [value for value in vars(torch.nn).values() if isinstance(value, type) and issubclass(value, Module)]
    found = [cls for value in named for cls in value.__mro__ if issubclass(cls, Module)]
    return [cls for cls in dict.fromkeys(found) if cls is not Module and "__init__" in cls.__dict__]


LAYERS = _layers()


@contextlib.contextmanager
def recovering_constructors(meta: MetaMode, refused: Callable[[Any, Exception], None], applied: Callable[[Any], None]) -> Iterator[None]:
    """Hand the exceptions of constructors of torch's layers to `refused(module, error)`; they go on if it raises NotRecovered.
    `applied(module)` is told of layers whose class was called like a function, as `nn.ReLU(x)`.

    What a layer builds inside of itself counts as part of its own constructor.
    """
    before: List[Tuple[Any, Any]] = [(cls, cls.__init__) for cls in LAYERS]
    for cls, initialise in before:
        cls.__init__ = _guarded(cls, initialise, meta, refused, applied)
    try:
        yield
    finally:
        for cls, initialise in before:
            cls.__init__ = initialise


def _guarded(cls: Any, initialise: Any, meta: MetaMode, refused: Callable[[Any, Exception], None], applied: Callable[[Any], None]) -> Any:
    @functools.wraps(initialise)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        is_applied = not meta.inside_layer and len(args) > 0 and misused_layers.is_applied_class(cls, args)
        args = () if is_applied else args
        meta.inside_layer += 1
        if any(is_absent(value) for value in kwargs.values()):
            kwargs = {name: value for name, value in kwargs.items() if not (name in WITHOUT_SHAPE and is_absent(value))}
        try:
            initialise(self, *args, **kwargs)
            if devices.active and meta.inside_layer == 1:
                devices.constructed(self, args, kwargs)
            if is_applied:
                applied(self)
            return
        except Exception as raised:
            error = raised
        finally:
            meta.inside_layer -= 1
        if meta.inside_layer or next(base for base in type(self).__mro__ if "__init__" in base.__dict__) is not cls:
            raise error  # It is for the constructor around it to say.
        if "_modules" not in self.__dict__:
            Module.__init__(self)
        for name in PARAMETERS:
            if name not in self._parameters and not hasattr(type(self), name):  # What fills or shares them is not wrong for that.
                self.__dict__.setdefault(name, absent("%s.%s" % (type(self).__name__, name), "definition"))
        if is_applied:
            applied(self)
            return
        try:
            refused(self, error)
        except NotRecovered:
            raise error  # noqa: B904  It is the same exception, that was not looked at.
        except BaseException as ended:
            raise ended from error  # What an attempt ends with; the search looks at both.

    return guarded
