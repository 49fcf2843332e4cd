"""The default settings of a project: those of its command lines, and the numbers and words in its configuration files.

Only files beside the document and in the folders above it, up to the workspace's own, are read. A setting of which two files say different
things is not known.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ....regular_files import read_regular
from .scripts.parameters import command_line
from .scripts.values import is_guessed

MOST_FOLDERS = 4  # the document's own and those above it
MOST_FILES = 60  # of one folder
LARGEST = 200_000  # bytes of a file
OF_CONFIGURATIONS = ("config", "configs", "conf", "cfg", "cfgs", "experiments", "options")  # folders, beside a script
_SETTING = re.compile(r"^[ \t-]*['\"]?(\w+)['\"]?[ \t]*:[ \t]*([^\s#][^#\n]*?)[ \t]*(?:#.*)?$", re.MULTILINE)  # of a YAML file


class ProjectSettings:
    """The settings of the project that a document belongs to, read when the first of them is asked for."""

    def __init__(self, file: str, root: str) -> None:
        self._file, self._root = file, root
        self._known: Optional[Dict[str, Any]] = None

    def get(self, name: str) -> Any:
        """The default of a setting; None where it is not known."""
        if self._known is None:
            self._known = dict(_agreed(_all_settings(self._file, self._root)))
        return self._known.get(name)

    @property
    def folders(self) -> List[str]:
        """The document's folder and those above it inside of the workspace, each with its folders of configurations."""
        return _folders(self._file, self._root)


class Current:
    """The settings of the project that is looked at."""

    settings = ProjectSettings("", "")  # set by whoever searches for examples


def argument_defaults(tree: ast.Module) -> Iterator[Tuple[str, Any]]:
    """The defaults that a file's command lines say, as values."""
    for name, default in command_line(tree):
        with contextlib.suppress(ValueError, TypeError):
            value = ast.literal_eval(default)
            if value is not None and not is_guessed(default):
                yield name, value


def _agreed(settings: Iterator[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
    known: Dict[str, List[Any]] = {}
    for name, value in settings:
        known.setdefault(name, []).append(value)
    return ((name, values[0]) for name, values in known.items() if all(value == values[0] for value in values))


def _all_settings(file: str, root: str) -> Iterator[Tuple[str, Any]]:
    for folder in _folders(file, root):
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(folder))[:MOST_FILES]:
                path = os.path.join(folder, name)
                if path != file and name.endswith((".py", ".yaml", ".yml", ".json")):
                    with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):
                        yield from _of_text(_read(path), name)


def _folders(file: str, root: str) -> List[str]:
    """The document's folder and those above it inside of the workspace, each with its folders of configurations."""
    folder = os.path.dirname(file)
    found: List[str] = []
    while root and (folder == root or folder.startswith(os.path.join(root, ""))) and len(found) < MOST_FOLDERS:
        found.append(folder)
        folder = os.path.dirname(folder)
    inner = [os.path.join(folder, name) for folder in found for name in OF_CONFIGURATIONS]
    return found + [folder for folder in inner if folder not in found and os.path.isdir(folder)]


def _read(path: str) -> str:
    return read_regular(path, LARGEST).decode("utf-8")


def _of_text(text: str, name: str) -> Iterator[Tuple[str, Any]]:
    if name.endswith(".py"):
        if "add_argument(" in text:
            yield from argument_defaults(ast.parse(text))
    elif name.endswith(".json"):
        yield from _leaves(json.loads(text))
    else:
        for key, value in _SETTING.findall(text):
            words = {"true": True, "false": False}
            with contextlib.suppress(ValueError, SyntaxError):
                yield key, words[value.lower()] if value.lower() in words else ast.literal_eval(value)


def _leaves(value: Any, depth: int = 0) -> Iterator[Tuple[str, Any]]:
    for name, part in value.items() if isinstance(value, dict) and depth < 6 else ():
        if isinstance(part, dict):
            yield from _leaves(part, depth + 1)
        elif part is not None:
            yield str(name), part
