"""Asks the user whether the interpreter that a project's file names may be run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from shapelens.examples.settings import Settings
from shapelens.runner.allowed_interpreters import AllowedInterpreters

logger = logging.getLogger(__name__)
OnAnswer = Callable[[str | None], None]  # None: none was chosen
USE, NEVER = "Use it", "Don't use it"


class Consent:
    """Asks once for each interpreter. Until there is an answer, what is found without the project's file runs."""

    def __init__(self, ask: Callable[[str, Sequence[str], OnAnswer], None], on_allowed: Callable[[], None]) -> None:
        """`ask`: has the user choose one of some answers to a question, without waiting."""
        self._ask = ask
        self._on_allowed = on_allowed
        self._allowed = AllowedInterpreters()
        self._told: set[tuple[str, str]] = set()
        self._may_ask = False

    def begin(self) -> None:
        """The editor has sent its settings: what they leave open may be asked from now on."""
        self._may_ask = True

    def interpreter(self, root: str, said: str | None, settings: Settings) -> str:
        """The interpreter for a workspace folder. `said`: what the user has said already."""
        folder = settings.folder
        choice = self._allowed.choose(root, said, settings.proposed_interpreter, folder)
        named = choice.not_allowed
        if named is not None and self._may_ask and (folder, named) not in self._told:
            self._told.add((folder, named))
            file = Path(folder, "pyproject.toml")
            logger.info("%s names the interpreter %s, which is not run without your word; %s is used", file, named, choice.python)
            if self._allowed.answer(folder, named) is None:
                question = (
                    f"ShapeLens: {file} names the Python interpreter {named}. Run your models with it? Only if you trust this project."
                )
                self._ask(question, [USE, NEVER], lambda answer: self._answered(folder, named, answer))
        return choice.python

    def _answered(self, folder: str, named: str, answer: str | None) -> None:
        if answer in (USE, NEVER):
            self._allowed.remember(folder, named, answer == USE)
            logger.info("%s is %s from now on (%s)", named, "used" if answer == USE else "not used", self._allowed.file)
        if answer == USE:
            self._on_allowed()
