"""Tells what is known of an interpreter and its libraries without starting it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shapelens.cache.inputs import digest, version
from shapelens.cache.store import Store

if TYPE_CHECKING:
    from shapelens.protocol import Hello

LIBRARIES = ("site-packages", "dist-packages")


@dataclass
class Environments:
    """An environment is told apart by its Python, its torch, and the state of its folders of libraries: installing anything changes it."""

    store: Store
    _facts: dict[str, list[object]] = field(default_factory=dict)
    _started: dict[str, str] = field(default_factory=dict)  # the identity that an interpreter had when its worker began

    def identity(self, interpreter: str) -> str | None:
        """Returns what changes whenever the environment of an interpreter does; None where none of its workers has said anything yet."""
        facts = self._facts.get(interpreter)
        if facts is None:
            facts = self.store.get(_key(interpreter))
            if not isinstance(facts, list) or len(facts) != 3 or not isinstance(facts[2], list):
                return None
            self._facts[interpreter] = facts
        return _identity(interpreter, facts)

    def learn(self, interpreter: str, hello: Hello) -> None:
        """A worker has begun under an interpreter."""
        facts: list[object] = [hello.python, hello.torch, hello.path]
        if self._facts.get(interpreter) != facts:
            self._facts[interpreter] = facts
            self.store.put(_key(interpreter), facts)
        self._started[interpreter] = _identity(interpreter, facts)

    def worked_in(self, interpreter: str) -> str | None:
        """The identity that what the worker of an interpreter sees belongs to; None where the environment has changed since it began."""
        identity = self.identity(interpreter)
        return identity if identity is not None and self._started.get(interpreter) == identity else None


def _key(interpreter: str) -> str:
    return digest("environment", version(), interpreter, os.environ.get("PYTHONPATH", ""))


def _identity(interpreter: str, facts: list[object]) -> str:
    folders = facts[2] if isinstance(facts[2], list) else []
    libraries = [folder for folder in folders if isinstance(folder, str) and os.path.basename(folder) in LIBRARIES]  # noqa: PTH119
    return digest(version(), interpreter, facts, [_changed(interpreter), *map(_changed, libraries)])


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0
