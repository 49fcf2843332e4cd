"""What takes the place of an import that failed: it can be called, subclassed, decorated with and asked for any attribute."""

from __future__ import annotations

from types import ModuleType
from typing import Any, List

called: List[str] = []  # the stand-ins that were called since this list was cleared: what comes out of them is unknown


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _named("%s.%s" % (cls.__name__, name))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_shapelens_absent"):
            called.append(cls.__name__)
            # As a decorator it hands back what it decorates.
            return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else cls
        return super().__call__(*args, **kwargs)

    def __iter__(cls) -> Any:
        return iter(())

    def __bool__(cls) -> bool:
        return False

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


def _named(name: str) -> Any:
    return _Meta(name, (), {"_shapelens_absent": True})


class StandInModule(ModuleType):
    """A module that could not be imported."""

    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _named("%s.%s" % (self.__name__, name))
