"""Whether autocast brings dtypes together. One for an accelerator that is not there turns itself off, but the code counts on it."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

_enter, _exit, _init = torch.autocast.__enter__, torch.autocast.__exit__, torch.autocast.__init__
_nested: List[bool] = []


def autocast_is_on() -> bool:
    """Whether the innermost autocast that is under way is one that is on, whatever its device."""
    if _nested:
        return _nested[-1]
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
    _nested.append(getattr(self, "_shapelens_on", True))
    return _enter(self)  # type: ignore[no-untyped-call]


def _noted_exit(self: Any, *args: Any) -> Any:
    if _nested:
        _nested.pop()
    return _exit(self, *args)


def replacements() -> List[Tuple[Any, str, Any]]:
    """(owner, name, value): what notes when an autocast begins and ends, for the time of a run."""
    _nested.clear()
    return [
        (torch.autocast, "__init__", _noted_init),
        (torch.autocast, "__enter__", _noted_enter),
        (torch.autocast, "__exit__", _noted_exit),
    ]
