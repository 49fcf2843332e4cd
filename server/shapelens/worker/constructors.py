"""Layers of torch whose constructor refuses its arguments: the half-built layer goes on, and its calls give stand-ins."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, List, Tuple

import torch

from .meta import NotRecovered

Module = torch.nn.Module


def _layers() -> List[Any]:
    found = [value for name, value in vars(torch.nn).items() if isinstance(value, type) and issubclass(value, Module)]
    return [cls for cls in dict.fromkeys(found) if cls is not Module and "__init__" in cls.__dict__]


LAYERS = _layers()


@contextlib.contextmanager
def guarding(refused: Callable[[Any, Exception], None]) -> Iterator[None]:
    """Hand the exceptions of constructors of torch's layers to `refused(module, error)`; they go on if it raises NotRecovered."""
    before: List[Tuple[Any, Any]] = [(cls, cls.__init__) for cls in LAYERS]
    for cls, initialise in before:
        cls.__init__ = _guarded(cls, initialise, refused)
    try:
        yield
    finally:
        for cls, initialise in before:
            cls.__init__ = initialise


def _guarded(cls: Any, initialise: Any, refused: Callable[[Any, Exception], None]) -> Any:
    @functools.wraps(initialise)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            initialise(self, *args, **kwargs)
        except Exception as error:
            if type(self) is not cls:
                raise  # It is for the constructor of the subclass to say.
            if "_modules" not in self.__dict__:
                Module.__init__(self)
            try:
                refused(self, error)
            except NotRecovered:
                raise error  # noqa: B904  It is the same exception, that was not looked at.

    return guarded
