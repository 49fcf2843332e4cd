"""`shapelens check PATH...`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from shapelens.analysis.findings import Finding
from shapelens.batch import Analysed, Batch, Unreadable, project_root, read
from shapelens.commands import Refused
from shapelens.examples.users import is_skipped
from shapelens.report.text import SEVERITY_STYLES, summary


async def check(paths: list[Path], python: str | None) -> int:
    """Print the findings of files and folders; 1 if any is an error. Raises Refused, batch.Unreadable and batch.Unavailable."""
    if missing := [path for path in paths if not path.exists()]:
        raise Refused(f"{missing[0]}: no such file or folder")
    files = list(_files(paths))
    console = Console(highlight=False)
    tally = _Tally()
    batches: dict[Path, Batch] = {}
    progress = Progress(
        TextColumn("[dim]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not console.is_terminal,
    )
    try:
        with progress:
            task = progress.add_task("", total=len(files))
            for path, named in files:
                progress.update(task, description=str(path))
                analysed = await _analysed(path, named, python, batches)
                if analysed is not None:
                    tally.add(analysed)
                    for finding in analysed.findings:
                        _print(console, path, finding)
                progress.advance(task)
    finally:
        for batch in batches.values():
            await batch.worker.stop()
    console.print(tally.closing(), soft_wrap=True, markup=False)
    return 1 if tally.has_errors else 0


class _Tally:
    """What the closing line says."""

    def __init__(self) -> None:
        self.run = self.found = self.without_example = 0
        self.findings: list[Finding] = []

    def add(self, analysed: Analysed) -> None:
        self.findings += analysed.findings
        if analysed.choice.examples or analysed.trace.examples:
            self.run += 1
            self.found += any(run.evidence and run.error is None for run in analysed.trace.examples)
        elif analysed.module.classes:
            self.without_example += 1

    @property
    def has_errors(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def closing(self) -> str:
        nothing = "nothing is wrong" if self.run else "there was nothing to run"
        parts = [f"{_files_text(self.run)} checked: {summary(self.findings) or nothing}"]
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


async def _analysed(path: Path, named: bool, python: str | None, batches: dict[Path, Batch]) -> Analysed | None:
    """The analysis of one file; None for a file of a folder that is not about torch, or that is no text at all."""
    try:
        text = read(path)
    except Unreadable:
        if named:
            raise
        return None
    if not named and "torch" not in text and "shapelens:" not in text:
        return None
    root = project_root(path.absolute())
    if root not in batches:
        # Projects that have the same interpreter share its worker; a run says which project it belongs to.
        batch = Batch(python, root=root)
        batches[root] = next((other for other in batches.values() if other.interpreter == batch.interpreter), batch)
    return await batches[root].analyse(path, text, users=named)


def _print(console: Console, path: Path, finding: Finding) -> None:
    style = SEVERITY_STYLES.get(finding.severity, "bold")
    place = f"{path}:{finding.span.line}:{finding.span.column + 1}"
    console.print(f"{place}: ", end="", soft_wrap=True, markup=False)
    console.print(finding.severity, style=style, end=" ", markup=False)
    console.print(f"{finding.code}: {' '.join(finding.message.split())}", soft_wrap=True, markup=False)


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
