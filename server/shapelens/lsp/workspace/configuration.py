"""The settings that hold for a document: the editor's before the project's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shapelens.examples.settings import Settings
from shapelens.lsp.documents.document import Document

logger = logging.getLogger(__name__)


class Configuration:
    """The settings of documents, read once for each folder until the editor or the project changes them."""

    def __init__(self, root: Callable[[Document], str]) -> None:
        self._root = root  # the workspace folder of a document
        self._editor: dict[str, Any] = {}
        self._first: dict[str, Any] | None = None  # what the editor said when it said hello
        self._by_folder: dict[tuple[str, str], Settings] = {}
        self._said: dict[tuple[str, str], list[str]] = {}  # the problems that were logged, by folder and workspace folder
        self._allow: list[str] = []

    def allow(self, acts: Sequence[str]) -> None:
        """Sets what user code may do by the command line, besides what the editor's settings allow."""
        self._allow = list(acts)

    def of(self, document: Document) -> Settings:
        """The settings for one document."""
        return self._of_folder(str(Path(document.path).parent), self._root(document))

    def _of_folder(self, folder: str, root: str) -> Settings:
        # What is wrong with the settings is logged once until that has changed, and the defaults hold instead.
        if (folder, root) not in self._by_folder:
            settings = self._merged(folder, root, self._editor)
            for problem in settings.problems:
                if problem not in self._said.get((folder, root), ()):
                    logger.warning("settings: %s", problem)
            self._said[(folder, root)] = list(settings.problems)
            self._by_folder[(folder, root)] = settings
        return self._by_folder[(folder, root)]

    def greeted(self) -> None:
        """The editor has said hello: what it says of settings from now on is said later by the next server, too."""
        self._first = self._editor

    def is_as_at_first(self, document: Document) -> bool:
        """True if the settings of a document are those that a new server would begin with."""
        root = self._root(document)
        first = self._merged(str(Path(document.path).parent), root, self._first or {})
        return first == self.of(document)

    def _merged(self, folder: str, root: str, editor: dict[str, Any]) -> Settings:
        settings = Settings.from_pyproject(folder, root).merged(editor, root or None)
        return replace(settings, allow=[*settings.allow, *self._allow])

    def set_editor(self, section: dict[str, Any]) -> bool:
        """The editor's settings (the section `shapelens`). Returns whether anything has changed."""
        if section == self._editor:
            return False
        self._editor = section
        self._by_folder.clear()
        return True

    def reread(self) -> bool:
        """The project's settings may have changed on disk. Returns whether they have."""
        before = dict(self._by_folder)
        self._by_folder.clear()
        return any(self._of_folder(*where) != settings for where, settings in before.items())
