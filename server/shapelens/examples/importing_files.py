"""Finds the files of the workspace that import a file. Their examples show it when it has none; how they use it is evidence.

Notebooks, and documentation with blocks of code, are among them.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapelens import notebooks, python_sources
from shapelens.examples.choose import called_as_models
from shapelens.examples.settings import Settings
from shapelens.regular_files import read_regular
from shapelens.source.module import Module

# Folders that hold other people's code, or none at all.
SKIPPED_FOLDERS = {"node_modules", "site-packages", "dist-packages", "__pycache__", "venv", "env", "build", "dist", "__pypackages__"}
MOST_FILES = 5000
MOST_FOLDERS = 5000  # data sets may lie in a workspace
LARGEST_FILE = 1 << 20  # bytes
LARGEST_NOTEBOOK = 1 << 23  # bytes, most of which are pictures
MOST_FOUND = 16  # that are worth a look
MOST_RUN = 6  # that are worth a run
ENOUGH = 2  # of them that turned out to import the file
MOST_FOLLOWED = 2  # of them that are followed as programs for what these see of the file
MOST_SEARCHED = 4  # of them in which a model is searched for that the file's classes are parts of
MOST_STEPS = 4  # from file to file that imports it

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]*)?\bimport[ \t]*(?P<names>\([^)]*\)|(?:[^\n#;\\]|\\\r?\n)*)", re.MULTILINE
)
_COMMENT = re.compile(r"#[^\n]*")
_DOTTED = re.compile(r"[\w.]+")
_WORD = re.compile(r"\w+")
_DIRECTIVE = re.compile(r"#[ \t]*shapelens:(?![ \t]*ignore)")


@dataclass(frozen=True)
class _Scanned:
    """Holds what a file's text says of its imports. state: changes whenever the file does."""

    state: tuple[int, int]
    words: frozenset[str]  # of its import statements
    modules: frozenset[str]  # what it may import by absolute names, their parts joined by slashes, packages and names of modules included
    paths: frozenset[str]  # what it may import by relative names, as paths without a suffix
    has_directive: bool


@dataclass(frozen=True)
class ImportingFile:
    """A file that imports another. state: changes whenever its text does; steps: how many imports lead from one to the other."""

    path: str
    has_example: bool
    state: tuple[int, int]
    steps: int = 1


class ImportingFiles:
    """Finds the files that import a file, without parsing: by the end of the file's path, as nobody knows what will stand on `sys.path`.

    A file that only seems to import another costs a run and does no harm.
    """

    def __init__(self, *, unchanging: bool = False) -> None:
        """`unchanging`: the files stay as they are, so that each folder is read once."""
        self._unchanging = unchanging
        self._scanned: dict[str, _Scanned] = {}  # by path
        self._scanning = threading.Lock()  # A second thread waits, and finds the files scanned.
        self._of_root: dict[str, dict[str, _Scanned]] = {}

    def of(self, path: str, root: str, settings: Settings, texts: Mapping[str, str], classes: Collection[str] = ()) -> list[ImportingFile]:
        """At most MOST_FOUND files below `root` that import the file at `path`, directly or not.

        The nearest come first, and of those equally near the ones whose imports name one of `classes`. `texts`: those of open documents by
        path, where they differ from what is on disk.
        """
        with self._scanning:
            scanned = self._scan_all(root, texts)
        reached, imported, importing, steps = {path}, [path], list[str](), dict[str, int]()
        for step in range(1, MOST_STEPS + 1):
            ends = {end for file in imported for end in _ends_of(file)}
            paths = {_without_suffix(file) for file in imported}
            importers = [
                file
                for file, found in scanned.items()
                if file not in reached
                and (not paths.isdisjoint(found.paths) or _imports_one(file, ends & found.modules, imported, scanned))
            ]
            importing += sorted(importers, key=lambda file: (scanned[file].words.isdisjoint(classes), -_shared(file, path)))
            steps.update(dict.fromkeys(importers, step))
            reached.update(importers)
            imported = importers
        scripts = [file for file in importing if file.endswith(".py")]
        runs = {file for file in scripts if scanned[file].has_directive or settings.examples_for(file)}
        found = [ImportingFile(file, file in runs, scanned[file].state, steps[file]) for file in importing]
        run = [each for each in found if each.has_example][:MOST_RUN]
        return run + [each for each in found if not each.has_example][: MOST_FOUND - len(run)]

    def look_around(self, root: str) -> None:
        """Read all files below `root` ahead of time: those that don't change are not read again."""
        with self._scanning:
            self._scan_all(root, {})

    def _scan_all(self, root: str, texts: Mapping[str, str]) -> dict[str, _Scanned]:
        if self._unchanging and root in self._of_root:
            return self._of_root[root]
        scanned = {file: found for file in _files_with_code(root) if (found := self._scan(file, texts.get(file))) is not None}
        self._scanned = {**self._scanned, **scanned}
        if self._unchanging:
            self._of_root[root] = scanned
        return scanned

    def _scan(self, file: str, text: str | None) -> _Scanned | None:
        try:
            stat = Path(file).stat()
            state = (stat.st_mtime_ns, stat.st_size) if text is None else (hash(text), -1)
            known = self._scanned.get(file)
            if known is not None and known.state == state:
                return known
            if text is None:
                largest = LARGEST_NOTEBOOK if file.endswith(notebooks.SUFFIX) else LARGEST_FILE
                text = python_sources.as_python(file, read_regular(file, largest).decode("utf-8", "replace"))
        except OSError:
            return None
        words, modules, paths, folders = set[str](), set[str](), set[str](), Path(file).parents
        for statement in _IMPORT.finditer(text):
            words.update(_WORD.findall(statement[0]))
            for level, name in _imported(statement["module"], statement["names"]):
                if level == 0:
                    modules.update("/".join(name[:count]) for count in range(1, len(name) + 1))
                elif level <= len(folders):
                    paths.add(folders[level - 1].joinpath(*name).as_posix())
        return _Scanned(state, frozenset(words), frozenset(modules), frozenset(paths), _DIRECTIVE.search(text) is not None)


@dataclass(frozen=True)
class Around:
    """A file that imports another, and its classes that are made of those of the other, by qualified name."""

    importer: ImportingFile
    classes: list[str]


def models_around(importers: Sequence[ImportingFile], module_of: Callable[[str], Module | None], parts: Collection[str]) -> list[Around]:
    """Returns the importing files with classes that are made of `parts`, directly or by way of classes that are made of them.

    Of the nearest MOST_SEARCHED, the ones furthest away come first: the more of the project takes part, the less of how it builds its parts
    has to be guessed. importers: the nearest first; module_of: the parsed file at a path, None where it does not parse.
    """
    names, found = set(parts), list[Around]()
    for importer in importers if parts else ():
        module = module_of(importer.path)
        classes = _made_of(module, names) if module is not None and not module.errors else []
        if classes:
            names.update(name.rpartition(".")[2] for name in classes)
            found.append(Around(importer, classes))
        if len(found) == MOST_SEARCHED:
            break
    return sorted(found, key=lambda around: -around.importer.steps)


def _made_of(importer: Module, parts: Collection[str]) -> list[str]:
    """The classes of an importing file whose text names one of `parts`, or a class of the file for which that holds, by qualified name."""
    lines = importer.text.splitlines()
    classes = [*importer.classes, *called_as_models(importer)]
    words = {cls.qualname: set(_WORD.findall("\n".join(lines[cls.first_line - 1 : cls.span.end_line]))) for cls in classes}
    names, found = set(parts), dict[str, None]()
    while more := [name for name, said in words.items() if name not in found and not said.isdisjoint(names)]:
        found.update(dict.fromkeys(more))
        names.update(name.rpartition(".")[2] for name in more)
    return [name for name in words if name in found]


def _imported(module: str | None, names: str) -> Iterator[tuple[int, list[str]]]:
    """Yields what a statement may import, as (level, parts of the name).

    `from ..a import b` gives (2, [a]) and (2, [a, b]), as b may be a module.
    """
    parts = [part.split() for part in _COMMENT.sub("", names).strip("() \t\r\n").replace("\\", " ").split(",")]
    imported = [words[0] for words in parts if words and _DOTTED.fullmatch(words[0])]
    if module is None:
        yield from ((0, name.split(".")) for name in imported)
        return
    name = module.lstrip(".")
    level, package = len(module) - len(name), name.split(".") if name else []
    yield level, package
    yield from ((level, [*package, name]) for name in imported)


def _without_suffix(path: str) -> str:
    """The path that an import of the file leads to: for an `__init__.py` that of its folder."""
    file = Path(path)
    return (file.parent if file.stem == "__init__" else file.with_suffix("")).as_posix()


def _ends_of(path: str) -> Iterator[str]:
    """The names by which the file may be imported, depending on the folder that stands on `sys.path`, parts joined by slashes."""
    parts = _without_suffix(path).strip("/").split("/")
    yield from ("/".join(parts[start:]) for start in range(len(parts)))


def _imports_one(file: str, names: Collection[str], imported: Collection[str], known: Collection[str]) -> bool:
    """True if a file imports one of some files by one of these names. What its own folder has under that name comes first."""
    folder = Path(file).parent.as_posix()
    for name in names:
        own = [each for each in (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py") if each in known]
        if not own or own[0] in imported:
            return True
    return False


def _shared(one: str, other: str) -> int:
    """The number of folders that two files have in common."""
    return next((number for number, pair in enumerate(zip(Path(one).parts, Path(other).parts, strict=False)) if pair[0] != pair[1]), 0)


def _files_with_code(root: str) -> Iterator[str]:
    left = MOST_FILES
    for number, (place, folders, files) in enumerate(os.walk(root)):
        if number > MOST_FOLDERS:
            return
        folders[:] = sorted(name for name in folders if not is_skipped(Path(place, name)))
        for name in sorted(files):
            if name.endswith(python_sources.SUFFIXES):
                left -= 1
                if left < 0:
                    return
                yield str(Path(place, name))


def is_skipped(folder: Path) -> bool:
    """True if a folder holds no code of the user's. Hidden ones are tools' (.git, .venv, .tox); a virtual environment may have any name."""
    return folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()
