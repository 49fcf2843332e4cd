"""The interpreter that a project's own file names is a program that somebody else may have chosen: it runs only on the user's word."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from shapelens.regular_files import read_regular
from shapelens.runner import interpreter

logger = logging.getLogger(__name__)
FILE = "interpreters.json"


@dataclass(frozen=True)
class ChosenInterpreter:
    """The interpreter that runs the user's code, and the one that the project's file names where the user has not allowed that one."""

    python: str
    not_allowed: str | None = None


class AllowedInterpreters:
    """Holds what the user has answered, by the project's folder and the interpreter's path. Kept in a file of the user's data folder."""

    def __init__(self, file: Path | None = None) -> None:
        """`file`: None for the user's own."""
        self._file = file
        self._answers: dict[str, dict[str, bool]] | None = None  # None: not read yet

    @property
    def file(self) -> Path:
        """Where the answers stand."""
        if self._file is None:
            import platformdirs

            self._file = platformdirs.user_data_path("shapelens", appauthor=False) / FILE
        return self._file

    def answer(self, folder: str, python: str) -> bool | None:
        """Returns whether the user allows an interpreter that the pyproject.toml of a folder names; None: nobody has asked yet."""
        if self._answers is None:
            self._answers = self._read()
        return self._answers.get(folder, {}).get(python)

    def remember(self, folder: str, python: str, allowed: bool) -> None:
        """Keep the user's answer."""
        self._answers = self._read()  # Another server may have been told something meanwhile.
        self._answers.setdefault(folder, {})[python] = allowed
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=self.file.parent)
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                json.dump(self._answers, stream, indent=2)
            Path(name).replace(self.file)
        except OSError as error:
            logger.warning("the answer holds until the end of the server only: %s", error)

    def choose(self, root: str, said: str | None, proposed: str | None, folder: str) -> ChosenInterpreter:
        """The interpreter for a workspace folder.

        `said`: what the user has said, by an option, a setting or the choice of the editor: nothing else counts then.
        `proposed`: what the pyproject.toml of `folder` names. Without the user's word what is found without it runs.
        """
        usual = interpreter.find(root, said)
        if said or not proposed:
            return ChosenInterpreter(usual)
        named = interpreter.find(folder, proposed)
        if named == usual or self.answer(folder, named):
            return ChosenInterpreter(named)
        return ChosenInterpreter(usual, not_allowed=named)

    def _read(self) -> dict[str, dict[str, bool]]:
        try:
            content = json.loads(read_regular(self.file))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(content, dict):
            return {}
        return {
            folder: {python: allowed for python, allowed in answers.items() if isinstance(allowed, bool)}
            for folder, answers in content.items()
            if isinstance(answers, dict)
        }
