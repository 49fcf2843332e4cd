"""`shapelens show FILE[::CLASS]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from shapelens.batch import Analysed, Batch
from shapelens.commands import RefusedRequest
from shapelens.commands.dynamic import print_dynamic_dims
from shapelens.commands.profiled import ProfiledClass, Wanted, file_and_class, profiled, refuse_what_has_no_answer
from shapelens.examples.expression import check
from shapelens.project_scope import ProjectScope
from shapelens.report.document import document
from shapelens.report.model_document import ModelView, model_document
from shapelens.report.model_html import html
from shapelens.report.model_svg import svg
from shapelens.report.model_table import markdown
from shapelens.report.text import Listing, summary
from shapelens.source.files import read

_PICTURES: dict[str, Callable[[ModelView], str]] = {
    "markdown": markdown,
    "html": html,
    "svg": svg,
    "model": lambda view: json.dumps(model_document(view), ensure_ascii=False, indent=2) + "\n",
}


async def picture(wanted: Wanted, output: str) -> int:
    """Print a class as a whole as "markdown", "svg", "html" or "model". Raises RefusedRequest, files.Unreadable and batch.Unavailable."""

    async def print_it(found: ProfiledClass) -> int:
        sys.stdout.write(_PICTURES[output](found.view))
        return 1 if any(finding.severity == "error" for finding in found.analysed.findings) else 0

    return await profiled(wanted, print_it)


async def show(
    target: str, examples: list[str], output: str, python: str | None, allow: Sequence[str] = (), *, dynamic: bool = False
) -> int:
    """Print one file as "text" or "json", or which dims of its models may vary.

    Raises RefusedRequest, files.Unreadable and batch.Unavailable.
    """
    path, cls = file_and_class(target)
    text = read(path)
    for expression in examples:
        if problem := check(expression):
            raise RefusedRequest(f"--example: {problem}")
    scope = ProjectScope(allow=allow)
    async with Batch(python, root=scope.project_root(path.absolute()), scope=scope) as batch:
        if batch.notice is not None:
            sys.stderr.write(f"shapelens: {batch.notice}\n")
        analysed = await batch.analyse(path, text, examples=examples, only=cls, programs=not dynamic, fixes=not dynamic, memory=not dynamic)
        if dynamic:
            refuse_what_has_no_answer(analysed, path, cls)
            return await print_dynamic_dims(batch, analysed)
    refuse_what_has_no_answer(analysed, path, cls)
    for problem in analysed.settings.problems:
        sys.stderr.write(f"shapelens: settings: {problem}\n")
    if output == "json":
        sys.stdout.write(json.dumps(document(analysed), ensure_ascii=False, indent=2) + "\n")
    else:
        _print_text(analysed)
    return 1 if any(finding.severity == "error" for finding in analysed.findings) else 0


def _print_text(analysed: Analysed) -> None:
    console = Console(highlight=False)
    notebook = analysed.module.notebook
    if notebook is not None and not notebook.numbers:
        console.print("no cell of this notebook holds Python")
        return
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
