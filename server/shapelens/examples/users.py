"""Files of the workspace that import a file and have examples: what such a file is seen from when it has no example of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shapelens.examples.settings import Settings

# Folders that hold other people's code, or none at all.
SKIPPED_FOLDERS = {"node_modules", "site-packages", "dist-packages", "__pycache__", "venv", "env", "build", "dist", "__pypackages__"}
MOST_FILES = 5000
MOST_FOLDERS = 5000  # data sets may lie in a workspace
LARGEST_FILE = 1 << 20  # bytes
MOST_USERS = 6  # that are worth a run
ENOUGH = 2  # of them that turned out to import the file
MOST_STEPS = 4  # from file to file that imports it

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(?:\([^)]*\)|[^\n#;]*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_DIRECTIVE = re.compile(r"#[ \t]*shapelens:(?![ \t]*ignore)")


@dataclass(frozen=True)
class _Scanned:
    """What a file's text says of its imports. state: changes whenever the file does."""

    state: tuple[int, int]
    words: frozenset[str]  # of its import statements
    has_directive: bool


class Users:
    """Looks for them by words, without parsing: a file that only seems to import another costs a run and does no harm."""

    def __init__(self) -> None:
        self._scanned: dict[str, _Scanned] = {}  # by path

    def of(self, path: str, root: str, settings: Settings, texts: Mapping[str, str]) -> list[str]:
        """At most MOST_USERS files below `root` that have an example and import the file at `path`, directly or not; the nearest first.

        `texts`: those of open documents by path, where they differ from what is on disk.
        """
        scanned = {file: found for file in _python_files(root) if (found := self._scan(file, texts.get(file))) is not None}
        self._scanned = {**self._scanned, **scanned}
        with_example = {file for file, found in scanned.items() if found.has_directive or settings.examples_for(file)}
        reached, names, users = {path}, _names_of(path), []
        for _ in range(MOST_STEPS):
            importers = [file for file, found in scanned.items() if file not in reached and not names.isdisjoint(found.words)]
            users += [file for file in importers if file in with_example]
            reached.update(importers)
            names = {name for file in importers for name in _names_of(file)}
        return users[:MOST_USERS]

    def _scan(self, file: str, text: str | None) -> _Scanned | None:
        try:
            stat = Path(file).stat()
            state = (stat.st_mtime_ns, stat.st_size) if text is None else (hash(text), -1)
            known = self._scanned.get(file)
            if known is not None and known.state == state:
                return known
            if text is None and stat.st_size > LARGEST_FILE:
                return None
            text = Path(file).read_text(encoding="utf-8", errors="replace") if text is None else text
        except OSError:
            return None
        words = frozenset(word for statement in _IMPORT.findall(text) for word in _WORD.findall(statement))
        return _Scanned(state, words, _DIRECTIVE.search(text) is not None)


def _names_of(path: str) -> set[str]:
    """What an import of the file has in it: its name; for an `__init__.py` that of its folder."""
    file = Path(path)
    return {file.parent.name if file.stem == "__init__" else file.stem}


def _python_files(root: str) -> Iterator[str]:
    left = MOST_FILES
    for number, (place, folders, files) in enumerate(os.walk(root)):
        if number > MOST_FOLDERS:
            return
        folders[:] = sorted(name for name in folders if not is_skipped(Path(place, name)))
        for name in sorted(files):
            if name.endswith(".py"):
                left -= 1
                if left < 0:
                    return
                yield str(Path(place, name))


def is_skipped(folder: Path) -> bool:
    """Whether a folder holds no code of the user's. Hidden ones are tools' (.git, .venv, .tox); a virtual environment may have any name."""
    return folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()
