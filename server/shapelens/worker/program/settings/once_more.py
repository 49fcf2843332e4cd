"""One more evaluation of an example, in which something takes the place of a function: the part of a model is called or built otherwise."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, Dict, Iterator


@contextlib.contextmanager
def in_place_of(holder: Any, name: str, other: Any) -> Iterator[None]:
    """Meanwhile a class, or the names of a module, have something else by this name. What a class inherits it inherits again after that."""
    names = holder if isinstance(holder, dict) else vars(holder)
    is_own, before = name in names, names.get(name)
    put: Callable[[str, Any], None] = holder.__setitem__ if isinstance(holder, dict) else functools.partial(setattr, holder)
    put(name, other)
    try:
        yield
    finally:
        if is_own:
            put(name, before)
        else:
            delattr(holder, name)


def call_once_more(cls: type, settings: Dict[str, Any], example: Callable[[], Any]) -> Any:
    """Returns the result of an example in which a call with other settings precedes the first call of a module of this class."""
    forward: Any = cls.forward  # type: ignore[attr-defined]
    called = False

    @functools.wraps(forward)
    def twice(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal called
        if not called:
            called = True
            forward(self, *args, **{**kwargs, **settings})
        return forward(self, *args, **kwargs)

    with in_place_of(cls, "forward", twice):
        return example()


def build_with(cls: type, settings: Dict[str, Any], example: Callable[[], Any]) -> Any:
    """Returns the result of an example that builds this class's objects with these settings, where its code leaves them out."""
    init: Any = cls.__init__  # type: ignore[misc]
    signature = inspect.signature(init)

    @functools.wraps(init)
    def other(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        init(self, *args, **{**kwargs, **{name: value for name, value in settings.items() if name not in given}})

    with in_place_of(cls, "__init__", other):
        return example()
