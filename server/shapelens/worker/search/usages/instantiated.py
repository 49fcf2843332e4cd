"""How configuration files say that a class is built, for Hydra's `instantiate` and for Lightning's command line.

    net:
      _target_: src.models.dense.Dense     # Hydra; Lightning has class_path and init_args
      input_size: 784

Source: https://hydra.cc/docs/advanced/instantiate_objects/overview/ and
https://lightning.ai/docs/pytorch/stable/cli/lightning_cli_advanced_3.html
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from typing import Any, Collection, Dict, Iterable, Iterator, List, Optional

from ....regular_files import read_regular
from ....stated.syntax_trees import expression_of
from ..evidence import Candidate
from .project_settings import LARGEST, OF_CONFIGURATIONS

MOST_FILES = 300  # that are read for one document
MOST_DEPTH = 8  # of folders, and of values
MOST_VALUES = 5000  # of one configuration: with anchors a short one may hold millions
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
_TARGET, _PARTIAL = "_target_", "_partial_"
_OF_HYDRA = (_TARGET, _PARTIAL, "_recursive_", "_convert_", "_args_")


def instantiated(file: str, folders: Iterable[str], classes: Collection[str], known: Collection[str]) -> Iterator[Candidate]:
    """The ways in which YAML files of the workspace build the classes of a document.

    folders: those beside the document and above it; of them, those that are named like folders of configurations are read.
    known: names that an example may use beside those of the document, the first parts of `torch.optim.Adam`.
    """
    if not classes:
        return
    mentions = re.compile(r"(?:_target_|class_path)['\"]?[ \t]*:[ \t]*['\"]?[\w.]+\.(?:%s)\b" % "|".join(map(re.escape, classes)))
    for path in _yaml_files(folders):
        text = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = read_regular(path, LARGEST).decode("utf-8")
        if not mentions.search(text):
            continue
        with contextlib.suppress(Exception):  # Without PyYAML, and for a file that is none of YAML, nothing is known.
            for document in importlib.import_module("yaml").safe_load_all(text):
                yield from _ConfigurationWriter(document, file, classes, known).candidates(os.path.basename(path))


def _yaml_files(folders: Iterable[str]) -> Iterator[str]:
    left = MOST_FILES
    for folder in folders:
        if os.path.basename(folder) not in OF_CONFIGURATIONS:
            continue
        for inner, folders_in_it, names in os.walk(folder):
            if inner.count(os.sep) - folder.count(os.sep) >= MOST_DEPTH:
                folders_in_it.clear()
            folders_in_it.sort()
            for name in sorted(names):
                if name.endswith((".yaml", ".yml")):
                    left -= 1
                    if left < 0:
                        return
                    yield os.path.join(inner, name)


class _ConfigurationWriter:
    """Writes what one configuration says down as expressions that the document can evaluate."""

    def __init__(self, document: Any, file: str, classes: Collection[str], known: Collection[str]) -> None:
        self._document = document
        self._module = os.path.splitext(file)[0].split(os.sep)
        self._classes = classes
        self._known = known
        self._left = MOST_VALUES

    def candidates(self, where: str) -> Iterator[Candidate]:
        for target, value in self._objects(self._document, MOST_DEPTH):
            name = self._own(target)
            if name is not None:
                expression = self._call(name, value)
                if expression is not None:
                    yield Candidate(name, expression, None, "usage", where)

    def _objects(self, value: Any, depth: int) -> "Iterator[tuple[str, Dict[Any, Any]]]":
        """All that the configuration builds, the outer ones first."""
        self._left -= 1
        if isinstance(value, dict) and depth:
            found = _taken_apart(value)
            if found is not None and not value.get(_PARTIAL):
                yield found
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if depth and self._left > 0:
                yield from self._objects(part, depth - 1)

    def _own(self, target: str) -> Optional[str]:
        """The name of the class of the document that a path leads to, by its file or by a package that it is in; None for another one."""
        *modules, name = target.split(".")
        folder = self._module[:-1]
        is_here = bool(modules) and modules in (self._module[-len(modules) :], folder[-len(modules) :])
        return name if name in self._classes and is_here else None

    def _expression(self, value: Any, depth: int = MOST_DEPTH) -> Optional[str]:
        """A value as text; None where the document cannot evaluate it."""
        self._left -= 1
        if not depth or self._left < 0:
            return None
        if isinstance(value, str) and "${" in value:
            value = self._referred(value)
            return None if value is None else self._expression(value, depth - 1)
        if isinstance(value, dict):
            found = _taken_apart(value)
            if found is not None:
                name = self._own(found[0]) or (found[0] if found[0].partition(".")[0] in self._known else None)
                return None if name is None else self._call(name, found[1], depth - 1, partial=bool(value.get(_PARTIAL)))
            items = {str(key): self._expression(part, depth - 1) for key, part in value.items()}
            written = ["%r: %s" % item for item in items.items()]
            return "{%s}" % ", ".join(written) if None not in items.values() else None
        if isinstance(value, list):
            parts = [self._expression(part, depth - 1) for part in value]
            return "[%s]" % ", ".join(map(str, parts)) if None not in parts else None
        return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else None

    def _call(self, name: str, given: Dict[Any, Any], depth: int = MOST_DEPTH, partial: bool = False) -> Optional[str]:
        """The call of a class. What cannot be said is left to its default."""
        positional = [self._expression(part, depth) for part in given.get("_args_", ())]
        if None in positional:
            return None
        arguments: List[str] = [str(part) for part in positional]
        for key, value in given.items():
            text = self._expression(value, depth) if isinstance(key, str) and key.isidentifier() and key not in _OF_HYDRA else None
            if text is not None:
                arguments.append("%s=%s" % (key, text))
        written = "partial(%s)" % ", ".join([name, *arguments]) if partial else "%s(%s)" % (name, ", ".join(arguments))
        return written if expression_of(written) is not None else None

    def _referred(self, text: str) -> Any:
        """What `${a.b}` stands for in this file; None where that stands elsewhere."""
        match = _REFERENCE.fullmatch(text.strip())
        value: Any = self._document if match is not None else None
        for key in match.group(1).split(".") if match is not None else ():
            value = value.get(key) if isinstance(value, dict) else None
        return value


def _taken_apart(value: Dict[Any, Any]) -> "Optional[tuple[str, Dict[Any, Any]]]":
    """(path of the class, its arguments) of what is to be built; None where nothing is."""
    if isinstance(value.get(_TARGET), str):
        return value[_TARGET], value
    if isinstance(value.get("class_path"), str):
        given = value.get("init_args")
        return value["class_path"], given if isinstance(given, dict) else {}
    return None
