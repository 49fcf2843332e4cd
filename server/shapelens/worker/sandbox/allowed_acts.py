"""Holds what the user allows the code of a run besides what is allowed to any: the network, other processes, writing below some folders."""

from __future__ import annotations

from typing import List, Sequence

from .originals import os


class AllowedActs:
    """Of one run."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.network = "network" in names
        self.processes = "processes" in names
        self.folders: List[str] = [name for name in names if os.path.isabs(name) and os.path.isdir(name)]


class _Allowed:
    acts = AllowedActs()


def allow(names: Sequence[str]) -> None:
    """From now on, in this process and those that are forked from it. The kernel's boundary is made for it once."""
    _Allowed.acts = AllowedActs(names)


def allowed() -> AllowedActs:
    """Returns what is allowed now."""
    return _Allowed.acts
