"""`shapelens show FILE[::CLASS]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from shapelens.batch import Analysed, Batch, read
from shapelens.commands import RefusedRequest
from shapelens.examples.expression import check
from shapelens.project_scope import ProjectScope
from shapelens.report.document import document
from shapelens.report.text import Listing, summary


async def show(target: str, examples: list[str], output: str, python: str | None) -> int:
    """Print one file as "text" or "json". Raises RefusedRequest, batch.Unreadable and batch.Unavailable."""
    path, cls = _file_and_class(target)
    text = read(path)
    for expression in examples:
        if problem := check(expression):
            raise RefusedRequest(f"--example: {problem}")
    scope = ProjectScope()
    async with Batch(python, root=scope.project_root(path.absolute()), scope=scope) as batch:
        if batch.notice is not None:
            sys.stderr.write(f"shapelens: {batch.notice}\n")
        analysed = await batch.analyse(path, text, examples=examples, only=cls)
    _refuse_what_has_no_answer(analysed, path, cls)
    for problem in analysed.settings.problems:
        sys.stderr.write(f"shapelens: settings: {problem}\n")
    if output == "json":
        sys.stdout.write(json.dumps(document(analysed), ensure_ascii=False, indent=2) + "\n")
    else:
        _print_text(analysed)
    return 1 if any(finding.severity == "error" for finding in analysed.findings) else 0


def _file_and_class(target: str) -> tuple[Path, str | None]:
    file, separator, cls = target.rpartition("::")
    if not separator or Path(target).exists():
        return Path(target), None
    return Path(file), cls


def _refuse_what_has_no_answer(analysed: Analysed, path: Path, cls: str | None) -> None:
    module = analysed.module
    if module.errors and path.suffix not in (".py", ".pyi", ".pyw"):
        raise RefusedRequest(f"{path} is not a Python file: {module.errors[0].message} (line {module.errors[0].span.line})")
    names = [known for each in module.classes for known in (each.qualname, each.name)]
    if cls is not None and cls not in names and not module.errors:
        there = ", ".join(dict.fromkeys(each.qualname for each in module.classes))
        raise RefusedRequest(f"{path} has no module class {cls}" + (f"; it has {there}" if there else " (nor any other)"))
    if cls is not None and not analysed.trace.examples and not module.errors:
        advice = f"write one above the class, `# shapelens: {cls}(...)(f32[...])`, or pass it with --example"
        raise RefusedRequest(f"{cls} has no example, and none was found: {advice}")


def _print_text(analysed: Analysed) -> None:
    console = Console(highlight=False)
    Listing(analysed, console).print()
    closing = summary([finding.severity for finding in analysed.findings])
    if not analysed.trace.examples and not analysed.findings:
        names = [each.name for each in analysed.module.classes]
        closing = (
            f"no example to run: write one above the class, `# shapelens: {names[0]}(...)(f32[...])`, or pass it with --example"
            if names
            else "no module class in this file"
        )
    if closing:
        console.print(f"\n{closing}", soft_wrap=True, markup=False)
