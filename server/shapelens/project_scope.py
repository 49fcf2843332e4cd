"""Which project a file of the command line belongs to: where its imports start, which settings hold, which interpreter runs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shapelens.examples.settings import Settings
from shapelens.runner.allowed_interpreters import AllowedInterpreters, ChosenInterpreter

# What marks the folder that a project's own imports start from.
PROJECT_MARKS = ("pyproject.toml", ".git", "setup.py", "setup.cfg")


def project_root(path: Path) -> Path:
    """The nearest folder above `path` that holds a project's mark; without one, the folder of the file."""
    folder = path if path.is_dir() else path.parent
    return next((place for place in (folder, *folder.parents) if any((place / mark).exists() for mark in PROJECT_MARKS)), folder)


class ProjectScope:
    """The highest folder above a file in which its project's settings may stand, and its environment.

    That is the root of its repository. Without one, it is the current folder or one that the user has named, if the file lies in it.
    Otherwise it is the file's own folder.

    The files above that may be anybody's.
    """

    def __init__(self, named: Iterable[Path] = (), allow: Sequence[str] = (), memory: int | None = None) -> None:
        """named: folders that the user has named; allow: what user code may do, as the user has said; memory: of the device, in bytes."""
        self._folders = [Path.cwd(), *(_absolute(path) for path in named if path.is_dir())]
        self._tops: dict[Path, Path] = {}
        self._settings: dict[Path, Settings] = {}
        self._allowed = AllowedInterpreters()
        self._said: dict[str, Any] = {"allow": list(allow)} | ({"device_memory": memory} if memory is not None else {})

    def settings(self, folder: Path) -> Settings:
        """The settings for the files of a folder."""
        folder = _absolute(folder)
        if folder not in self._settings:
            self._settings[folder] = replace(Settings.from_pyproject(str(folder), str(self._top(folder))), **self._said)
        return self._settings[folder]

    def project_root(self, path: Path) -> Path:
        """The project that a file or folder belongs to, as far as it lies in the scope."""
        path = _absolute(path)
        folder = path if path.is_dir() else path.parent
        root = project_root(path)
        return root if root.is_relative_to(self._top(folder)) else folder

    def interpreter(self, root: Path, said: str | None) -> ChosenInterpreter:
        """The interpreter for a project; `said`: the one that the user has named."""
        settings = self.settings(root)
        return self._allowed.choose(str(root), said, settings.proposed_interpreter, settings.folder)

    def notice(self, root: Path, said: str | None) -> str | None:
        """Returns the message for the user about the interpreter for a project; None where there is none."""
        named = self.interpreter(root, said).not_allowed
        file = Path(self.settings(root).folder, "pyproject.toml")
        return f"{file} names the interpreter {named}, which runs only on your word: --interpreter {named}" if named is not None else None

    def _top(self, folder: Path) -> Path:
        if folder not in self._tops:
            repository = next((place for place in (folder, *folder.parents) if _is_repository(place)), None)
            around = [place for place in self._folders if folder.is_relative_to(place)]
            self._tops[folder] = repository or min(around, key=lambda place: len(place.parts), default=folder)
        return self._tops[folder]


def _absolute(path: Path) -> Path:
    """Without `..`, which would seem to lie in the folder before it; links stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _is_repository(folder: Path) -> bool:
    """True if a folder is the root of a repository of this user's: as for git itself, one of somebody else's does not count."""
    try:
        (folder / ".git").lstat()
        return not hasattr(os, "getuid") or folder.stat().st_uid in (os.getuid(), 0)
    except OSError:
        return False
