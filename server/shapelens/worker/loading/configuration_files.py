"""Finds a project's file of settings for a program that requires one: `--config configs/consep.yaml`."""

from __future__ import annotations

import os
import re
from typing import Iterator, Optional, Set, Tuple

MOST_ENTRIES = 2000  # of folders that are looked through
SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg")
_ASKS = re.compile(r"(?:^|_)(?:conf\w*|cfg|yaml|yml|settings?|hparams?|hyperparameters?|params|options?|opt)(?:_|$)", re.IGNORECASE)
_HOLDS = re.compile(r"(?<![a-z])(?:conf|cfg|settings?|hparams?|hyperparameters?|params|options?|experiments?)", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+|\d+")
_COMMON = {"train", "test", "main", "run", "config", "configs", "py", "yaml", "yml", "json"}


def configuration_file(program: str, root: str, option: str) -> Optional[str]:
    """The path of the file that an option of a program most likely asks for; None where the option asks for no settings, or there are none.

    The file is called, or lies in a folder that is called, as settings are. One that has a word of the program's name comes first, then
    the nearest, then the first one by name. option: its name in the parser's result.
    """
    if not root or not os.path.isabs(program) or _ASKS.search(option) is None:
        return None
    words, folder = _words(os.path.splitext(os.path.basename(program))[0]), os.path.dirname(program)

    def rank(path: str) -> Tuple[bool, int, str]:
        return words.isdisjoint(_words(os.path.basename(path))), os.path.relpath(path, folder).count(os.sep), path

    return min((path for path in _files(root) if _HOLDS.search(os.path.splitext(os.path.relpath(path, root))[0])), key=rank, default=None)


def _words(text: str) -> Set[str]:
    return set(_WORD.findall(text.lower())) - _COMMON


def _files(root: str) -> Iterator[str]:
    """Yields the files below a folder that may hold settings, those of hidden folders and of installed packages left out."""
    seen = 0
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in ("site-packages", "node_modules"))
        seen += len(names) + len(folders)
        if seen > MOST_ENTRIES:
            return
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith("."))
