"""`shapelens check PATH...`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from shapelens.cache.location import opened
from shapelens.checking import CheckedFile, Checker, PrintedFinding
from shapelens.commands import RefusedRequest
from shapelens.examples.importing_files import is_skipped
from shapelens.project_scope import ProjectScope
from shapelens.report.text import SEVERITY_STYLES, summary


async def check(paths: list[Path], python: str | None, *, use_cache: bool) -> int:
    """Print the findings of files and folders; 1 if any is an error. Raises RefusedRequest, batch.Unreadable and batch.Unavailable."""
    if missing := [path for path in paths if not path.exists()]:
        raise RefusedRequest(f"{missing[0]}: no such file or folder")
    files = list(_files(paths))
    console = Console(highlight=False)
    tally = _Tally()
    progress = Progress(
        TextColumn("[dim]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not console.is_terminal,
    )
    checker = Checker(python, opened() if use_cache else None, ProjectScope(paths))
    with progress:
        task = progress.add_task("", total=len(files))
        async with aclosing(checker.check(files, lambda path: progress.update(task, description=str(path)))) as results:
            async for path, checked in results:
                if checked is not None:
                    tally.add(checked)
                    for said in checked.findings:
                        _print(console, path, said)
                progress.advance(task)
    for notice in checker.notices:
        sys.stderr.write(f"shapelens: {notice}\n")
    console.print(tally.closing(), soft_wrap=True, markup=False)
    return 1 if tally.has_errors else 0


class _Tally:
    """What the closing line says."""

    def __init__(self) -> None:
        self.run = self.found = self.without_example = 0
        self.severities: list[str] = []

    def add(self, checked: CheckedFile) -> None:
        self.severities += [said.severity for said in checked.findings]
        if checked.ran:
            self.run += 1
            self.found += checked.found
        elif checked.has_classes:
            self.without_example += 1

    @property
    def has_errors(self) -> bool:
        return "error" in self.severities

    def closing(self) -> str:
        nothing = "nothing is wrong" if self.run else "there was nothing to run"
        parts = [f"{_files_text(self.run)} checked: {summary(self.severities) or nothing}"]
        if self.found:
            parts.append(
                f"{_files_text(self.found)} {'was' if self.found == 1 else 'were'} run with examples that were found rather than given"
            )
        if self.without_example:
            verbs = ("has", "was") if self.without_example == 1 else ("have", "were")
            parts.append(f"{_files_text(self.without_example)} with module classes {verbs[0]} no example and {verbs[1]} not run")
        return "; ".join(parts)


def _files_text(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _print(console: Console, path: Path, said: PrintedFinding) -> None:
    style = SEVERITY_STYLES.get(said.severity, "bold")
    console.print(f"{path}:{said.line}:{said.column + 1}: ", end="", soft_wrap=True, markup=False)
    console.print(said.severity, style=style, end=" ", markup=False)
    console.print(f"{said.code}: {said.message}", soft_wrap=True, markup=False)


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """The Python files of the paths, each once, in order; with each whether it was named itself (rather than its folder)."""
    seen: set[Path] = set()
    for path in paths:
        for file in _below(path) if path.is_dir() else [path]:
            if file.absolute() not in seen:
                seen.add(file.absolute())
                yield file, file is path


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_skipped(Path(place, name)))
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))
