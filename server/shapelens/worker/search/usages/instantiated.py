"""Constructions of classes in configuration files.

    net:
      _target_: src.models.dense.Dense     # Hydra; Lightning has class_path and init_args
      input_size: 784

Projects have loaders of their own, whose words differ: `target` and `params`, `type` and what stands beside it, `name` and `args`,
`Dense: {…}`. A mapping counts whatever its words are, where it names a class of the document and all of its keys are parameters of
that class. YAML, JSON, and the `dict(type="Dense", …)` of Python files are read.

Source: https://hydra.cc/docs/advanced/instantiate_objects/overview/ and
https://lightning.ai/docs/pytorch/stable/cli/lightning_cli_advanced_3.html
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import json
import os
import re
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set

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


def instantiated(file: str, folders: Iterable[str], classes: Mapping[str, type], known: Collection[str]) -> Iterator[Candidate]:
    """The ways in which configuration files of the workspace build the classes of a document.

    folders: those beside the document and above it. Their own files are read, and all below those that are named like folders of
        configurations.
    known: names that an example may use beside those of the document, the first parts of `torch.optim.Adam`.
    """
    if not classes:
        return
    mentions = re.compile(r"\b(?:%s)\b" % "|".join(map(re.escape, classes)))
    parameters = {name: _parameters(cls) for name, cls in classes.items()}
    seen = set()
    for path in _files(folders):
        text = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = read_regular(path, LARGEST).decode("utf-8") if path != file else ""
        if not mentions.search(text):
            continue
        with contextlib.suppress(Exception):  # Without PyYAML, and for a file that is none of its kind, nothing is known.
            for document in _documents(path, text):
                for candidate in _ConfigurationWriter(document, file, parameters, known).candidates(os.path.basename(path)):
                    if (candidate.target, candidate.constructor) not in seen:
                        seen.add((candidate.target, candidate.constructor))
                        yield candidate


class _Parameters(NamedTuple):
    """Of a constructor."""

    named: Set[str]
    required: Set[str]
    takes_others: bool


def _parameters(cls: type) -> Optional[_Parameters]:
    """None where nobody can tell."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return None
    named = [item for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    takes_others = any(item.kind == item.VAR_KEYWORD for item in parameters)
    return _Parameters({item.name for item in named}, {item.name for item in named if item.default is item.empty}, takes_others)


def _files(folders: Iterable[str]) -> Iterator[str]:
    """The configuration files, those of the nearest folder first, at most `MOST_FILES`."""
    left = MOST_FILES
    for folder in folders:
        is_of_configurations = os.path.basename(folder) in OF_CONFIGURATIONS
        for inner, folders_in_it, names in os.walk(folder):
            if not is_of_configurations or inner.count(os.sep) - folder.count(os.sep) >= MOST_DEPTH:
                folders_in_it.clear()
            folders_in_it.sort()
            for name in sorted(names):
                if name.endswith((".yaml", ".yml", ".json")) or (is_of_configurations and name.endswith(".py")):
                    left -= 1
                    if left < 0:
                        return
                    yield os.path.join(inner, name)


def _documents(path: str, text: str) -> Iterator[Any]:
    """The values that a configuration file holds."""
    if path.endswith(".json"):
        yield json.loads(text)
    elif path.endswith(".py"):
        yield from _Literals(text).values()
    else:
        yield from importlib.import_module("yaml").safe_load_all(text)


class _Literals:
    """The dicts that a Python file writes down: `model = dict(type="Dense", width=width)`."""

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self._known: Dict[str, Any] = {}

    def values(self) -> Iterator[Any]:
        for statement in self._tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
                with contextlib.suppress(ValueError):
                    value = self._known[statement.targets[0].id] = self._value(statement.value)
                    if isinstance(value, (dict, list)):
                        yield value

    def _value(self, node: ast.expr) -> Any:
        """Raises ValueError for what is no literal."""
        if isinstance(node, ast.Name) and node.id in self._known:
            return self._known[node.id]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            return {item.arg: self._value(item.value) for item in node.keywords if item.arg is not None}
        if isinstance(node, ast.Dict):
            return {ast.literal_eval(key): self._value(value) for key, value in zip(node.keys, node.values) if key is not None}
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self._value(part) for part in node.elts]
            return parts if isinstance(node, ast.List) else tuple(parts)
        return ast.literal_eval(node)


class _ConfigurationWriter:
    """Writes what one configuration says down as expressions that the document can evaluate."""

    def __init__(
        self,
        document: Any,
        file: str,
        classes: Mapping[str, Optional[_Parameters]],
        known: Collection[str],
    ) -> None:
        self._document = document
        self._module = os.path.splitext(file)[0].split(os.sep)
        self._classes = classes
        self._known = known
        self._left = MOST_VALUES
        self._builds_inner = True  # whether objects in the arguments are built before

    def candidates(self, where: str) -> Iterator[Candidate]:
        for name, arguments, builds_inner in self._objects(self._document, MOST_DEPTH):
            self._builds_inner = builds_inner
            expression = self._call(name, arguments)
            if expression is not None:
                yield Candidate(name, expression, None, "usage", where)

    def _objects(self, value: Any, depth: int) -> "Iterator[tuple[str, Dict[Any, Any], bool]]":
        """(class, its arguments, whether objects in them are built before) of all that the configuration builds, the outer ones first."""
        self._left -= 1
        if isinstance(value, dict) and depth:
            found = _taken_apart(value)
            if found is None:
                yield from self._named(value)
            elif not value.get(_PARTIAL):
                name = self._own(found[0])
                if name is not None:
                    yield name, found[1], True
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
            if depth and self._left > 0:
                yield from self._objects(part, depth - 1)

    def _named(self, value: Dict[Any, Any]) -> "Iterator[tuple[str, Dict[Any, Any], bool]]":
        """The same of one mapping whose words are a project's own."""
        for key, said in value.items():
            name = self._own(said) if isinstance(said, str) else None
            if name is not None:
                beside = {other: part for other, part in value.items() if other != key}
                inner = [part or {} for part in beside.values() if isinstance(part, dict) or part is None]
                for arguments in [*inner, beside]:
                    if self._takes(name, arguments):
                        yield name, arguments, False
                        break
            elif key in self._classes and isinstance(said, dict) and self._takes(key, said):
                yield key, said, False

    def _takes(self, name: str, arguments: Dict[Any, Any]) -> bool:
        known = self._classes[name]
        if known is None:
            return False
        return known.required <= set(arguments) and (known.takes_others or set(arguments) <= known.named)

    def _own(self, target: str) -> Optional[str]:
        """The name of the class of the document that a path leads to, by its file or by a package that it is in; None for another one.

        A name without a path is looked up by whoever reads the configuration.
        """
        *modules, name = target.split(".")
        folder = self._module[:-1]
        is_here = not modules or modules in (self._module[-len(modules) :], folder[-len(modules) :])
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
            found = _taken_apart(value) if self._builds_inner else None
            if found is not None:
                name = self._own(found[0]) or (found[0] if found[0].partition(".")[0] in self._known else None)
                return None if name is None else self._call(name, found[1], depth - 1, partial=bool(value.get(_PARTIAL)))
            items = {str(key): self._expression(part, depth - 1) for key, part in value.items()}
            written = ["%r: %s" % item for item in items.items()]
            return "{%s}" % ", ".join(written) if None not in items.values() else None
        if isinstance(value, (list, tuple)):
            parts = [self._expression(part, depth - 1) for part in value]
            written_parts = ", ".join(map(str, parts))
            form = "[%s]" if isinstance(value, list) else "(%s,)" if len(parts) == 1 else "(%s)"
            return form % written_parts if None not in parts else None
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
        """Returns the value of `${a.b}` in this file; None where another file has the value."""
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
