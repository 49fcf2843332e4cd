"""`shapelens check PATH...`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from shapelens.cache.location import opened
from shapelens.checking import CheckedFile, Checker
from shapelens.commands import RefusedRequest
from shapelens.commands.changed_files import changed_since, with_importing
from shapelens.commands.fixing import Fixes
from shapelens.commands.known_findings import KnownFindings
from shapelens.examples.importing_files import is_skipped
from shapelens.examples.settings import Settings
from shapelens.notebooks import SUFFIX
from shapelens.project_scope import ProjectScope
from shapelens.report.findings import github, gitlab, json_document, junit, sarif
from shapelens.report.findings.report import Report, reported, shown_path
from shapelens.report.findings.text import Tally, has_links, print_finding

TEXT = "text"
# What writes the formats for programs; each with the folder that relative paths start at.
FORMATS: dict[str, Callable[[Report, Path], str]] = {
    "json": json_document.text,
    "github": lambda report, start: github.text(report),
    "gitlab": lambda report, start: gitlab.text(report),
    "sarif": sarif.text,
    "junit": lambda report, start: junit.text(report),
}
WITH_FIXES = ("json", "sarif")
MOST_ROUNDS = 5  # of fixes that build on fixes


@dataclass(frozen=True)
class CheckOptions:
    """Holds what the command line asks for. since: only files that differ from this commit, and those that import them."""

    python: str | None = None
    jobs: int | None = None  # files that are analysed side by side; None: as many as the machine has room for
    use_cache: bool = True
    format: str = TEXT
    output: Path | None = None
    since: str | None = None
    deep: bool = False
    fix: bool = False
    diff: bool = False
    watch: bool = False
    baseline: Path | None = None
    update_baseline: bool = False
    prune: bool = False
    allow: Sequence[str] = ()
    memory: int | None = None  # of the device, in bytes; None: as the settings say
    narrowed: Settings = field(default_factory=Settings)  # select, ignore and exclude of the command line, beside those of the settings
    fail_on: str = "error"  # the least severity that is a failure; "" for none

    @property
    def wants_fixes(self) -> bool:
        """True if fixes are tried."""
        return self.fix or self.diff or self.format in WITH_FIXES


async def check(paths: list[Path], options: CheckOptions) -> int:
    """Report the findings of files and folders; returns 1 if any that is new is a failure.

    Raises RefusedRequest, Unreadable and Unavailable.
    """
    if missing := [path for path in paths if not path.exists()]:
        raise RefusedRequest(f"{missing[0]}: no such file or folder")
    if options.watch and (options.format != TEXT or options.fix or options.diff or options.update_baseline):
        raise RefusedRequest("--watch goes with the text format only, and changes nothing")
    if options.update_baseline and (options.narrowed.select or options.narrowed.ignore):
        raise RefusedRequest("--update-baseline takes all findings of a file: leave --select and --ignore out")
    scope = ProjectScope(paths, options.allow, options.memory)
    known = KnownFindings.read(options.baseline, scope.settings(Path.cwd()), needed=options.update_baseline or options.prune)
    files, excluded = _files(paths, options, scope)
    if options.since is not None:
        wanted = set(with_importing(changed_since(options.since, paths), [file for file, _ in files], scope))
        files = [(file, named) for file, named in files if file in wanted]
    if options.fix:
        await _fix(files, options, known, scope)
    if options.watch:
        return await _watch(paths, files, options, known, scope)
    return await _Check(options, known, scope).go_through(files, excluded)


def _files(paths: Iterable[Path], options: CheckOptions, scope: ProjectScope) -> tuple[list[tuple[Path, bool]], int]:
    """Returns the files to check, each with whether it was named itself, and how many are excluded."""
    files = list(files_of(paths))
    kept = [each for each in files if not options.narrowed.excludes(each[0]) and not scope.settings(each[0].parent).excludes(each[0])]
    return kept, len(files) - len(kept)


async def _watch(
    paths: list[Path], files: list[tuple[Path, bool]], options: CheckOptions, known: KnownFindings, scope: ProjectScope
) -> int:
    """Report the findings of files, then those of what changes, and of what imports it, until it is interrupted."""
    from shapelens.commands.watching import changes_of

    changes = changes_of(paths)
    # Watched from before the first look: what is written meanwhile is looked at again.
    first = asyncio.ensure_future(anext(changes, None))
    code = await _Check(options, known, scope).go_through(files)
    changed = await first
    while changed is not None:
        scope = ProjectScope(paths, options.allow, options.memory)
        files, _ = _files([path for path in paths if path.exists()], options, scope)
        wanted = set(with_importing(changed, [file for file, _ in files], scope))
        if again := [(file, named) for file, named in files if file in wanted]:
            known = KnownFindings.read(options.baseline, scope.settings(Path.cwd()))
            code = await _Check(options, known, scope).go_through(again)
        changed = await anext(changes, None)
    return code


async def _fix(files: list[tuple[Path, bool]], options: CheckOptions, known: KnownFindings, scope: ProjectScope) -> None:
    """Apply the fixes of files, again as long as there are some: one that touched what another one changed comes next."""
    console = Console(highlight=False, stderr=options.format != TEXT)
    for _ in range(MOST_ROUNDS):
        attempt = _Check(options, known, scope)
        await attempt.look_at(files, says_lines=False)
        fixes = attempt.fixes()
        if not fixes.applied:
            return
        fixes.write()
        for finding, fix in fixes.applied:
            place = f"{shown_path(Path(fix.file), attempt.start)}:{fix.edits[0].line}"
            console.print(f"{place}: fixed {finding.code}: {fix.title}", soft_wrap=True, markup=False)


class _Check:
    """Goes through files once, and reports what it finds."""

    def __init__(self, options: CheckOptions, known: KnownFindings, scope: ProjectScope) -> None:
        self.options = options
        self.known = known
        self.start = Path.cwd()
        self.report = Report()
        self.tally = Tally()
        self.not_run: list[str] = []  # models that were not run for real
        store = opened() if options.use_cache else None
        self.checker = Checker(options.python, store, scope, fixes=options.wants_fixes, jobs=options.jobs, deep=options.deep)
        # Where a report for programs goes to stdout, what is for people goes to stderr.
        self.console = Console(highlight=False, stderr=options.format != TEXT or options.diff)
        self.has_links = has_links(self.console)

    async def go_through(self, files: list[tuple[Path, bool]], excluded: int = 0) -> int:
        """Check the files and report; returns the exit code. excluded: how many files were left out."""
        self.tally.excluded = excluded
        await self.look_at(files, says_lines=self.options.format == TEXT and not self.options.diff and not self.options.update_baseline)
        if self.options.diff:
            shown = {Path(file).absolute(): file for file in (each.path for each in self.report.files)}
            self._write(self.fixes().diff(shown))
        elif self.options.format != TEXT:
            self._write(FORMATS[self.options.format](self.report, self.start))
        for notice in self.checker.notices:
            sys.stderr.write(f"shapelens: {notice}\n")
        for each in self.not_run:
            sys.stderr.write(f"shapelens: not run for real: {each}\n")
        for line in [*self.tally.by_code(), *self.tally.by_file()] if self.options.format == TEXT else ():
            self.console.print(line, soft_wrap=True, markup=False)
        self.console.print(self.tally.closing(), soft_wrap=True, markup=False)
        return self._end_with_baseline()

    async def look_at(self, files: list[tuple[Path, bool]], *, says_lines: bool) -> None:
        """Check the files; `says_lines`: and print a line for each finding that is not known, as it comes."""
        bar = Console(stderr=True)
        progress = Progress(
            TextColumn("[dim]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=bar,
            transient=True,
            disable=not bar.is_terminal,
        )
        with progress:
            task = progress.add_task("", total=len(files))
            began = partial(_show_path, progress, task)
            async with aclosing(self.checker.check(files, began)) as results:
                async for path, checked in results:
                    if checked is not None:
                        self._take(path, checked, says_lines=says_lines)
                    progress.advance(task)

    def fixes(self) -> Fixes:
        """The fixes of what was found, but for what is known."""
        fixes = Fixes()
        fixes.add(each.finding for each in self.report.findings())
        return fixes

    def _take(self, path: Path, checked: CheckedFile, *, says_lines: bool) -> None:
        known = self.known.of(path, checked)
        shown = [self.options.narrowed.shows(finding.code) for finding in checked.findings]
        known = [is_known for is_known, is_shown in zip(known, shown, strict=True) if is_shown]
        checked = replace(checked, findings=[finding for finding, is_shown in zip(checked.findings, shown, strict=True) if is_shown])
        self.report.files.append(reported(shown_path(path, self.start), checked, known))
        self.tally.add(checked, known, str(path))
        self.not_run += [f"{shown_path(path, self.start)}: {each}" for each in checked.not_run]
        for finding, is_known in zip(checked.findings, known, strict=True):
            if says_lines and not is_known:
                print_finding(self.console, path, finding, has_link=self.has_links)

    def _write(self, text: str) -> None:
        output = self.options.output
        if output is None:
            sys.stdout.write(text)
            return
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RefusedRequest(f"{output}: {error.strerror or error}") from None

    def _end_with_baseline(self) -> int:
        if self.options.update_baseline:
            self.console.print(f"{self.known.write()} written to {self.known.path}", soft_wrap=True, markup=False)
            return 0
        if said := self.known.shrink(prune=self.options.prune, in_ci=bool(os.environ.get("CI"))):
            self.console.print(said, soft_wrap=True, markup=False)
        return 1 if self.tally.fails(self.options.fail_on) else 0


def _show_path(progress: Progress, task: TaskID, path: Path) -> None:
    progress.update(task, description=str(path))


def files_of(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """The Python files and notebooks of the paths, each once, in order; with each whether it was named itself (rather than its folder)."""
    seen: set[Path] = set()
    for path in paths:
        for file in _below(path) if path.is_dir() else [path]:
            if file.absolute() not in seen:
                seen.add(file.absolute())
                yield file, file is path


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_skipped(Path(place, name)))
        yield from (Path(place, name) for name in sorted(files) if name.endswith((".py", SUFFIX)))
