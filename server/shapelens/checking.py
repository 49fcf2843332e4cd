"""The results of `check` for many files: one of several workers analyses each changed file, the others keep their results."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shapelens.analysis.findings.codes import CODES, similar
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.batch import Analysed, Batch, Unavailable
from shapelens.cache.inputs import ResultInputs, digest, version
from shapelens.cache.runs import RunCache, folders_of_missing
from shapelens.cache.store import Store
from shapelens.dataclass_json import build, plain
from shapelens.examples.importing_files import ImportingFiles
from shapelens.examples.settings import Settings
from shapelens.notebooks import SUFFIX, cells_of
from shapelens.project_scope import ProjectScope, project_root
from shapelens.source.files import Unreadable, read
from shapelens.source.module import Module
from shapelens.source.positions import Span

logger = logging.getLogger(__name__)
MEMORY_OF_A_WORKER = 1 << 30  # bytes that torch and an ordinary run take


@dataclass
class CheckedEdit:
    """The text of a span gives way to another one."""

    line: int
    column: int
    end_line: int
    end_column: int
    new_text: str


@dataclass
class CheckedFix:
    """Edits of one file, by its absolute path, that were run and found to mend a finding."""

    title: str
    file: str
    edits: list[CheckedEdit] = field(default_factory=list)


@dataclass
class RelatedPlace:
    """A place that has to do with a finding; file: its absolute path."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str


@dataclass
class CheckedFinding:
    """A finding as it is reported. Lines count from 1, columns are code points from 0, ends are exclusive.

    scope: the function around it by qualified name ("Net.forward"), else the class, else "".
    """

    line: int
    column: int
    end_line: int
    end_column: int
    severity: str
    code: str
    message: str
    scope: str = ""
    related: list[RelatedPlace] = field(default_factory=list)
    fix: CheckedFix | None = None
    alternatives: list[CheckedFix] = field(default_factory=list)  # other fixes that were run and work
    guessed: bool = False  # it rests on an input that nobody gave
    cell: int | None = None  # of a notebook, by its number; the line is one of all of its cells, this one that of the cell:
    cell_line: int | None = None


@dataclass
class CheckedFile:
    """The results of `check` for one file. complete: each run came to an end that it will come to again."""

    findings: list[CheckedFinding] = field(default_factory=list)
    ran: bool = False
    found: bool = False  # it ran to its end with an input that nobody gives or writes
    has_classes: bool = False
    complete: bool = True
    not_run: list[str] = field(default_factory=list)  # models that were not run for real where that was wanted, each with the reason


def workers_at_once() -> int:
    """Returns the number of workers that may run side by side: as many as there are processors, as far as memory goes."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return processors
    return max(1, min(processors, memory // MEMORY_OF_A_WORKER))


class Checker:
    """Goes through files in their order. What it says of one does not depend on how many are analysed side by side."""

    def __init__(
        self,
        python: str | None,
        store: Store | None,
        scope: ProjectScope | None = None,
        *,
        fixes: bool = False,
        jobs: int | None = None,
        lend: Callable[[Path], Awaitable[Batch]] | None = None,
        deep: bool = False,
    ) -> None:
        """`python`: the interpreter that has torch, None to find it for each project; `store`: None to analyse all files anew.

        `fixes`: findings come with the fix that mends them, which is run before; that takes some time for each finding.
        `jobs`: how many files are analysed side by side, at most; None: as many as there are processors and memory for.
        `lend`: gives the batch for a file, which outlives the check: files are analysed one after the other.
        `deep`: models are run for real besides.
        """
        self.notices: list[str] = []  # on what stands in the way of the settings
        self._python = python
        self._fixes = fixes
        self._jobs = jobs if lend is None else 1
        self._lend = lend
        self._deep = deep
        self._scope = scope or ProjectScope()
        self._cache = RunCache(store) if store is not None else None
        self._inputs = self._cache.inputs if self._cache is not None else ResultInputs()
        self._importing_files = ImportingFiles(unchanging=True)
        self._roots: dict[Path, Path] = {}  # by folder
        self._interpreters: dict[Path, str] = {}  # by folder

    async def check(
        self, files: Sequence[tuple[Path, bool]], began: Callable[[Path], None]
    ) -> AsyncGenerator[tuple[Path, CheckedFile | None], None]:
        """Each file with what there is to say of it, in their order; None for one of a folder that is not about torch, or no text at all.

        `files`: with each whether it was named itself, rather than its folder; such a one is also seen from the files that import it.
        `began` is called as a file's turn comes. Raises files.Unreadable for a file that was named, and batch.Unavailable.
        """
        results: list[asyncio.Future[CheckedFile | None]] = [asyncio.get_running_loop().create_future() for _ in files]
        turns = iter(range(len(files)))
        count = min(self._jobs or workers_at_once(), len(files))
        slots = [asyncio.create_task(self._go_through(files, turns, results, began)) for _ in range(count)]
        try:
            for (path, _), result in zip(files, results, strict=True):
                yield path, await result
            await asyncio.gather(*slots)  # Until their workers have ended.
        finally:
            for slot in slots:
                slot.cancel()
            await asyncio.gather(*slots, return_exceptions=True)
            for result in results:
                if not result.cancel() and not result.cancelled():
                    result.exception()  # One error is raised; the others are marked as seen.

    async def _go_through(
        self,
        files: Sequence[tuple[Path, bool]],
        turns: Iterator[int],
        results: Sequence[asyncio.Future[CheckedFile | None]],
        began: Callable[[Path], None],
    ) -> None:
        """Take files, one after the other, as long as there are any left that nobody has taken."""
        batch: Batch | None = None
        try:
            for turn in turns:
                path, named = files[turn]
                began(path)
                await asyncio.sleep(0)
                try:
                    text = _text_of(path, named)
                    checked = self._known(path, text, named) if text is not None else None
                    if text is not None and checked is None:
                        batch = await self._batch_for(path, batch)
                        checked = await self._analysed(batch, path, text, named)
                    results[turn].set_result(checked)
                except (Unreadable, Unavailable) as error:
                    results[turn].set_exception(error)
                except Exception as error:
                    logger.exception("%s could not be checked", path)
                    results[turn].set_result(_not_checked(error))
        finally:
            if batch is not None and self._lend is None:
                await batch.worker.stop()

    async def _batch_for(self, path: Path, batch: Batch | None) -> Batch:
        """The batch of a slot: projects that have the same interpreter share its worker, and there is never more than one."""
        if self._lend is not None:
            return await self._lend(path)
        root = self._scope.project_root(path.absolute())
        python = self._interpreter(path)
        if batch is not None and batch.interpreter == python:
            return batch
        if batch is not None:
            await batch.worker.stop()
        return Batch(python, root=root, scope=self._scope, importing_files=self._importing_files)

    async def _analysed(self, batch: Batch, path: Path, text: str, named: bool) -> CheckedFile:
        if self._cache is not None:
            self._cache.learn(batch.interpreter, await batch.start())
        analysed = await batch.analyse(
            path, text, importers=named, programs=named, fixes=self._fixes, brief=not self._fixes, deep=self._deep, memory=True
        )
        checked = checked_file(analysed)
        if self._cache is not None and analysed.complete:
            await asyncio.to_thread(self._keep, batch.interpreter, path, text, named, analysed, checked)
        return checked

    # --- what is known from before ---

    def _known(self, path: Path, text: str, named: bool) -> CheckedFile | None:
        key = self._key(path, text, named)
        value = self._cache.store.get(key) if self._cache is not None and key is not None else None
        if not isinstance(value, dict):
            return None
        try:
            same = self._inputs.same(value["read"])
            checked: CheckedFile = build(CheckedFile, value["checked"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # Another program wrote this entry.
        return checked if same else None

    def _keep(self, python: str, path: Path, text: str, named: bool, analysed: Analysed, checked: CheckedFile) -> None:
        key = self._key(path, text, named)
        if self._cache is None or key is None or self._cache.environments.worked_in(python) is None:
            return
        read = self._inputs.now(analysed.read - {analysed.path}, folders_of_missing(analysed.trace, str(self._root(path))))
        self._cache.store.put(key, {"read": read, "checked": plain(checked)})

    def _key(self, path: Path, text: str, named: bool) -> str | None:
        """Returns the key of a file's findings, for all that they depend on besides the files that its runs read. None where nothing is
        cached."""
        root = self._root(path)
        identity = self._cache.environments.identity(self._interpreter(path)) if self._cache is not None else None
        if identity is None:
            return None
        file = str(path.absolute())
        settings = self._scope.settings(path.absolute().parent)
        if not settings.cache:
            return None
        importers = [each.path for each in self._importing_files.of(file, str(root), settings, {})]
        return digest("check", version(), identity, file, text, str(root), plain(settings), importers, named, self._fixes, self._deep)

    def _root(self, path: Path) -> Path:
        folder = path.absolute().parent
        if folder not in self._roots:
            self._roots[folder] = project_root(path.absolute())
        return self._roots[folder]

    def _interpreter(self, path: Path) -> str:
        folder = path.absolute().parent
        if folder not in self._interpreters:
            root = self._scope.project_root(path.absolute())
            self._interpreters[folder] = self._scope.interpreter(root, self._python).python
            settings = self._scope.settings(folder)
            problems = [f"settings: {problem}" for problem in [*settings.problems, *_unknown_codes(settings)]]
            notices = [*problems, self._scope.notice(root, self._python)]
            self.notices += [notice for notice in notices if notice is not None and notice not in self.notices]
        return self._interpreters[folder]


def _unknown_codes(settings: Settings) -> list[str]:
    """Says which codes of the settings there are not: a slip in one of them would hide what it was to show."""
    file = Path(settings.folder, "pyproject.toml")
    named = {"select": settings.select, "ignore": settings.ignore, "findings.severity": settings.findings_severity}
    unknown = [(name, code) for name, given in named.items() for code in given if code not in CODES]
    return [f"{file}: {name} names {code}: there is no such code{similar(code)}" for name, code in unknown]


def _text_of(path: Path, named: bool) -> str | None:
    try:
        text = read(path)
    except Unreadable:
        if named:
            raise
        return None
    if path.suffix == SUFFIX and not named and not cells_of(text):
        return None
    return text if named or "torch" in text or "shapelens:" in text else None


def _not_checked(error: Exception) -> CheckedFile:
    """Returns the results for a file in which ShapeLens itself failed: `check` goes on with the others all the same."""
    message = f"ShapeLens failed here, which is a fault of ShapeLens: {type(error).__name__}: {error}"
    return CheckedFile([CheckedFinding(1, 0, 1, 0, "warning", "crash", message)], complete=False)


def checked_file(analysed: Analysed) -> CheckedFile:
    """Returns the results of an analysed file."""
    ran = bool(analysed.choice.examples or analysed.trace.examples)
    # What was followed as a program beside the examples has none of its own.
    found = any(run.evidence in ("inferred", "annotation") and run.error is None for run in analysed.trace.examples)
    findings = [_finding(analysed.module, each) for each in analysed.findings]
    return CheckedFile(findings, ran, found, bool(analysed.module.classes), analysed.complete, analysed.not_run)


def _finding(module: Module, finding: Finding) -> CheckedFinding:
    offered = [finding.fix, *finding.alternatives] if finding.fix is not None else []
    # What is written to a file is Python; the file of a notebook is none.
    fixes = [_fix(fix) for fix in offered if not fix.file.endswith(SUFFIX)]
    return CheckedFinding(
        *_place(finding.span),
        finding.severity,
        finding.code,
        " ".join(finding.message.split()),
        module.scope_at(finding.span.start),
        [RelatedPlace(each.file or finding.file, *_place(each.span), each.message) for each in finding.related],
        fixes[0] if fixes else None,
        fixes[1:],
        finding.guessed,
        *(module.notebook.locate(finding.span.line) if module.notebook is not None else ()),
    )


def _fix(fix: Fix) -> CheckedFix:
    return CheckedFix(fix.title, fix.file, [CheckedEdit(*_place(edit.span), edit.new_text) for edit in fix.edits])


def _place(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column
