"""The messages between a worker's own processes. The server never sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from ...protocol import MESSAGES, Run


@dataclass
class Imported:
    """What a run has imported of the user's files and would like to find ready the next time."""

    files: List[str]


@dataclass
class Rehearsal:
    """A run as it is best done ahead of the next one, which will be much like it: with the examples that were found.

    latest: the run that was done last, where it is another one.
    """

    run: Run
    latest: Optional[Run] = None


@dataclass
class Stands:
    """What a zygote has loaded: it is ready."""

    modules: List[str]


@dataclass
class Unsuited:
    """A run could not be done with what stands loaded: it has to be done by a process that has loaded nothing."""

    run_id: int
    reason: str


@dataclass
class Learnt:
    """What a run has learnt about operations (op_cache.py)."""

    additions: str


@dataclass
class Outdated:
    """What stands loaded is no longer what the next run needs."""


INTERNAL = {cls.__name__: cls for cls in (Imported, Rehearsal, Stands, Unsuited, Learnt, Outdated)}
MESSAGES.update(INTERNAL)
