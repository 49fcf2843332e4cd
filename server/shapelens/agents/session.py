"""Keeps what lives between the calls of an agent: the worker, the folders that it may ask about, and what was analysed last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from shapelens.batch import Analysed, Batch
from shapelens.cache.inputs import ReadState, ResultInputs
from shapelens.cache.runs import folders_of_missing
from shapelens.commands import RefusedRequest
from shapelens.examples.importing_files import ImportingFiles
from shapelens.examples.settings import Settings
from shapelens.project_scope import ProjectScope, project_root

_Measure = TypeVar("_Measure")

MOST_REMEMBERED = 8  # analyses of files


@dataclass(frozen=True)
class _Remembered:
    """An analysis, and what it depends on: the text, the settings, the files that import it, and all that its run has read."""

    text: str
    settings: Settings
    importers: list[str]
    read: ReadState
    analysed: Analysed

    def holds(self, text: str, settings: Settings, importers: list[str], inputs: ResultInputs) -> bool:
        """True if another run would see the same."""
        return (self.text, self.settings, self.importers) == (text, settings, importers) and inputs.same(self.read)


@dataclass
class Doing:
    """Holds what a call does at the moment, for whoever waits."""

    what: str = "starting"
    done: int = 0
    total: int = 0

    def text(self) -> str:
        """`checking net.py (3 of 12)`"""
        return f"{self.what} ({self.done + 1} of {self.total})" if self.total > 1 else self.what


class AgentSession:
    """One client's. A worker stays between calls, one for all projects that have the same interpreter."""

    def __init__(self, folders: Sequence[Path], python: str | None, allow: Sequence[str], *, named_by_user: bool = True) -> None:
        """folders: of the workspace, the first one is where relative paths start; `python`: None to find it; allow: what code may do.

        named_by_user: they are not just where the process was started.
        """
        self.folders = [folder for each in folders if (folder := each.expanduser().absolute()) != Path(folder.anchor)]
        self._named_by_user = named_by_user
        self.doing = Doing()
        self.python = python
        self._allow = allow
        self._scope = ProjectScope(self.folders, allow)
        self._importing_files = ImportingFiles()
        self._inputs = ResultInputs()
        self._batch: Batch | None = None
        self._measured: list[tuple[Analysed, str | None, object]] = []
        self._remembered: dict[tuple[Path, str | None, bool, bool], _Remembered] = {}

    def add(self, folders: Sequence[Path]) -> None:
        """Folders that the client names. Relative paths start there unless the user has named some."""
        new = [folder for folder in folders if folder != Path(folder.anchor) and folder not in self.folders]
        self.folders = [*self.folders, *new] if self._named_by_user else [*new, *self.folders]

    def begin_call(self) -> None:
        """Settings are read anew: they may have changed since the last call."""
        self._scope = ProjectScope(self.folders, self._allow)
        self.doing = Doing()

    @property
    def scope(self) -> ProjectScope:
        """Where settings and interpreters of this call come from."""
        return self._scope

    def path(self, given: str) -> Path:
        """A file or folder of the workspace; it need not exist. Raises RefusedRequest."""
        path = Path(given).expanduser()
        path = path if path.is_absolute() or not self.folders else self._from_a_folder(path)
        if not self.holds(path):
            there = ", ".join(map(str, self.folders)) or "none: start it with --root FOLDER"
            raise RefusedRequest(f"{given} lies outside of the workspace ({there})")
        return path

    def holds(self, path: Path) -> bool:
        """True if a path lies in the workspace, wherever links lead."""
        real = path.resolve()
        return any(real.is_relative_to(folder.resolve()) for folder in self.folders)

    def _from_a_folder(self, path: Path) -> Path:
        places = [folder / path for folder in self.folders]
        return next((place for place in places if place.exists()), places[0])

    def shown(self, path: Path | str) -> str:
        """A path from the folder of the workspace that it lies in, as tools take it."""
        path = Path(path)
        folder = next((folder for folder in self.folders if path.is_relative_to(folder)), None)
        return path.relative_to(folder).as_posix() if folder is not None and folder == self.folders[0] else str(path)

    async def batch_for(self, path: Path) -> Batch:
        """The batch for a file; the one before ends where another interpreter is needed."""
        root = self._scope.project_root(path)
        python = self._scope.interpreter(root, self.python).python
        if self._batch is not None and self._batch.interpreter != python:
            await self.close()
        if self._batch is None:
            self._batch = Batch(self.python, root=root, scope=self._scope, importing_files=self._importing_files)
        self._batch.scope = self._scope
        self._batch.output.clear()
        return self._batch

    def notices(self, path: Path) -> list[str]:
        """Returns what stands in the way of the settings of a file's project."""
        problems = [f"settings: {problem}" for problem in self._scope.settings(path.parent).problems]
        notice = self._scope.notice(self._scope.project_root(path), self.python)
        return problems if notice is None else [*problems, notice]

    async def analysed(
        self, path: Path, text: str, *, only: str | None = None, fixes: bool = False, programs: bool = False, patient: bool = True
    ) -> Analysed:
        """A file with this text, as last time if nothing that its run depends on has changed. Raises batch.Unavailable."""
        key, settings, root = (path, only, programs, patient), self._scope.settings(path.parent), str(project_root(path))
        importers = [each.path for each in self._importing_files.of(str(path), root, settings, {})]
        known = self._remembered.get(key)
        if known is not None and not fixes and known.holds(text, settings, importers, self._inputs):
            return known.analysed
        self.doing.what = f"running {path.name}"
        analysed = await (await self.batch_for(path)).analyse(path, text, only=only, fixes=fixes, programs=programs, patient=patient)
        if analysed.complete:
            self._remembered.pop(key, None)
            read = self._inputs.now(analysed.read - {analysed.path}, folders_of_missing(analysed.trace, root))
            self._remembered[key] = _Remembered(text, settings, importers, read, analysed)
            for oldest in list(self._remembered)[:-MOST_REMEMBERED]:
                del self._remembered[oldest]
        return analysed

    async def measured(self, analysed: Analysed, name: str | None, measure: Callable[[], Awaitable[_Measure]]) -> _Measure:
        """Returns what was measured of a model of what was analysed: once, as long as that is remembered."""
        for known, its_name, measured in self._measured:
            if known is analysed and its_name == name:
                return cast(_Measure, measured)
        measured = await measure()
        self._measured = [*self._measured[1 - MOST_REMEMBERED :], (analysed, name, measured)]
        return measured

    def begin_early(self) -> None:
        """Start the worker ahead of the first call, unless its interpreter is a program of the workspace that the user has not named."""
        if not self.folders:
            return
        chosen = self._scope.interpreter(self._scope.project_root(self.folders[0]), self.python).python
        if self.python is None and any(Path(chosen).absolute().is_relative_to(folder) for folder in self.folders):
            return
        root = self._scope.project_root(self.folders[0])
        self._batch = Batch(self.python, root=root, scope=self._scope, importing_files=self._importing_files)
        self._batch.worker.begin()

    async def close(self) -> None:
        """End the worker."""
        if self._batch is not None:
            await self._batch.worker.stop()
            self._batch = None
