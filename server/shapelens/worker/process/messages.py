"""The messages between a worker's own processes. The server never sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

from ...protocol import MESSAGES, Run

# --- from a process that has done something ---


@dataclass
class Imported:
    """Holds what a run has imported of the user's files and would like to find ready the next time."""

    files: List[str]


@dataclass
class Rehearsal:
    """A run as it is best done ahead of the next one, which will be much like it: with the examples that were found.

    latest: the run that was done last, where it is another one.
    """

    run: Run
    latest: Optional[Run] = None


@dataclass
class ProjectLoaded:
    """Holds what a zygote has loaded: it is ready."""

    modules: List[str]


@dataclass
class RunUnsuitable:
    """A run could not be done with what the zygote has loaded: it has to be done by a process that has loaded nothing."""

    run_id: int
    reason: str


@dataclass
class OpCacheAdditions:
    """Holds what a run has learnt about operations (`meta/op_cache.py`)."""

    additions: str


@dataclass
class Outdated:
    """Says that what the zygote has loaded is no longer what the next run needs."""


@dataclass
class RunBegun:
    """A child that has rehearsed begins with its run: what becomes of the child now is the run's doing."""

    run_id: int


# --- to and from the process that has loaded libraries ---


@dataclass
class Import:
    """Import these libraries. allow: what the user allows, as in `Run`."""

    modules: List[str]
    allow: List[str]


@dataclass
class ImportEnded:
    """The import of a library has ended, well or not. uncompiled: its files that Python would have compiled, which it may not here.

    offered: "library:name" for what it loads only when it is asked for it.
    """

    module: str
    uncompiled: List[str] = field(default_factory=list)
    offered: List[str] = field(default_factory=list)


@dataclass
class Prepare:
    """Parse, rewrite and compile these files of the user's, as the next runs will import them."""

    files: List[str]


@dataclass
class Fork:
    """Fork a process that is a "child", a "zygote", "libraries" or a "compiler"; the descriptors that it gets come with the message.

    run: what a zygote loads, or what a child rehearses. awaited: the zygote's run is still to be done. files: to be compiled.
    """

    role: str
    run: Optional[Run] = None
    awaited: bool = False
    files: List[str] = field(default_factory=list)


@dataclass
class Forked:
    """The answer to `Fork`."""

    pid: int


@dataclass
class Ended:
    """A process that was forked has ended. status: as `os.waitpid` gives it."""

    pid: int
    status: int = field(default=0)


_CLASSES = (
    Imported, Rehearsal, ProjectLoaded, RunUnsuitable, OpCacheAdditions, Outdated, RunBegun,
    Import, ImportEnded, Prepare, Fork, Forked, Ended,
)  # fmt: skip
INTERNAL = {cls.__name__: cls for cls in _CLASSES}
MESSAGES.update(INTERNAL)
