"""Keeps what the editor showed of unchanged files, as LSP's JSON. A server that is still loading shows it again.

Nothing is imported here that takes time: the standard library, and where the cache lies.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from shapelens.cache.environments import Environments
from shapelens.cache.inputs import ReadState, ResultInputs, digest, version
from shapelens.cache.store import Store
from shapelens.runner.allowed_interpreters import AllowedInterpreters

# What finding an interpreter depends on, besides the project.
VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "PATH")
# Params of `initialize` that are others each time.
PASSING = ("processId", "workDoneToken", "clientInfo", "trace")


@dataclass
class Display:
    """Holds what is shown of one document, as LSP has it in JSON. Versions in it are those of the document that it is shown for."""

    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    hints: list[dict[str, Any]] = field(default_factory=list)
    lenses: list[dict[str, Any]] = field(default_factory=list)

    def of_version(self, version: int) -> Display:
        """Set the versions in what is shown to that of the document as it is opened now. Returns the display itself."""
        for each in [*self.diagnostics, *self.hints]:
            if isinstance(each.get("data"), dict):
                each["data"]["version"] = version
        return self


class DisplayCache:
    """The displays of one client, on disk: another client, other settings or another workspace may see other things."""

    def __init__(self, store: Store, interpreter: str | None, params: dict[str, Any]) -> None:
        """`interpreter`: the option of the command line; `params`: those of `initialize`."""
        self._store = store
        self._inputs = ResultInputs()
        self._environments = Environments(store)
        lasting = {name: value for name, value in params.items() if name not in PASSING}
        self._client = digest(version(), interpreter, lasting, [os.environ.get(name) for name in VARIABLES])
        self._greeting = digest("greeting", version(), params.get("capabilities"))

    def greeting(self) -> dict[str, Any] | None:
        """The answer to `initialize` that a client with these capabilities got before."""
        found = self._store.get(self._greeting)
        return found if isinstance(found, dict) else None

    def keep_greeting(self, result: dict[str, Any]) -> None:
        """Remember the answer to `initialize`."""
        if self.greeting() != result:
            self._store.put(self._greeting, result)

    def find(self, uri: str, text: str) -> Display | None:
        """Returns what is shown of a document with this text; None where that is not known, or something that it depends on has changed."""
        value = self._store.get(self._key(uri, text))
        try:
            display = Display(*value["display"]) if value is not None else None
            if display is None or self._environments.identity(value["interpreter"]) != value["environment"]:
                return None
            return display if self._inputs.same(value["read"]) else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # Another program wrote this entry.

    def keep(self, uri: str, text: str, display: Display, interpreter: str, environment: str, read: list[ReadState]) -> None:
        """Remember what is shown of a document that is on disk with this text, and what the runs behind it have read."""
        files = {path: state for files, _ in read for path, state in files.items()}
        folders = {path: names for _, folders in read for path, names in folders.items()}
        parts = [display.diagnostics, display.hints, display.lenses]
        self._store.put(
            self._key(uri, text), {"display": parts, "interpreter": interpreter, "environment": environment, "read": [files, folders]}
        )

    def settings_files(self, path: str) -> ReadState:
        """The state of all files that settings for a document may stand in, and of the user's answers about its interpreter."""
        folders, place = [], os.path.dirname(path)  # noqa: PTH120
        while place not in folders:
            folders.append(place)
            place = os.path.dirname(place)  # noqa: PTH120
        files = [os.path.join(folder, "pyproject.toml") for folder in folders]  # noqa: PTH118
        return self._inputs.now([*files, str(AllowedInterpreters().file)])

    def _key(self, uri: str, text: str) -> str:
        return digest("display", self._client, uri, text)
