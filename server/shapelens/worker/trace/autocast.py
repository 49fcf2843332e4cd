"""The dtype that autocast brings dtypes to. One for a missing accelerator turns itself off, but the code counts on it."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional, Tuple

import torch

_enter, _exit, _init = torch.autocast.__enter__, torch.autocast.__exit__, torch.autocast.__init__
_nested: List[Optional[torch.dtype]] = []  # what those under way bring dtypes to; None for one that is off


class _Listener:
    changed: Optional[Callable[[], None]] = None
    """Called when an autocast begins or ends."""


state = _Listener()


def autocast_dtype() -> Optional[torch.dtype]:
    """Returns the dtype of the innermost active autocast, whatever its device; None where it is off, or where there is none."""
    return _nested[-1] if _nested else None


def is_under_way() -> bool:
    """True if an autocast is under way, on or off."""
    return bool(_nested)


@contextlib.contextmanager
def under(dtype: Optional[torch.dtype]) -> Iterator[None]:
    """As inside of an autocast to this dtype; of none where that is None."""
    if dtype is None:
        yield
        return
    _begin(dtype)
    try:
        yield
    finally:
        _end()


def _begin(dtype: Optional[torch.dtype]) -> None:
    _nested.append(dtype)
    if state.changed is not None:
        state.changed()


def _end() -> None:
    if _nested:
        _nested.pop()
    if state.changed is not None:
        state.changed()


def autocast_is_on() -> bool:
    """True if the innermost autocast under way is on, whatever its device."""
    if _nested:
        return _nested[-1] is not None
    if torch.is_autocast_enabled():
        return True
    try:
        return bool(torch.is_autocast_enabled("cpu"))
    except TypeError:  # Before torch 2.4.
        return bool(torch.is_autocast_cpu_enabled())


def _noted_init(self: Any, *args: Any, **kwargs: Any) -> None:
    _init(self, *args, **kwargs)
    self._shapelens_on = bool(args[2] if len(args) > 2 else kwargs.get("enabled", True))


def _noted_enter(self: Any) -> Any:
    _begin(getattr(self, "fast_dtype", torch.float16) if getattr(self, "_shapelens_on", True) else None)
    return _enter(self)  # type: ignore[no-untyped-call]


def _noted_exit(self: Any, *args: Any) -> Any:
    _end()
    return _exit(self, *args)


def replacements() -> List[Tuple[Any, str, Any]]:
    """(owner, name, value): what notes when an autocast begins and ends, for the time of a run."""
    _nested.clear()
    return [
        (torch.autocast, "__init__", _noted_init),
        (torch.autocast, "__enter__", _noted_enter),
        (torch.autocast, "__exit__", _noted_exit),
    ]
