"""Reads what `fixtures/**.py` expect, runs them through the real worker, and compares.

A fixture is a Python file with its expectations in comments at line ends:

    self.fc1 = nn.Linear(576, 120)  #> → [B, 120]            the hints of the line, all of them, separated by ` | `
    self.fc1 = nn.Linear(576, 120)  #! linear-in-features @ 576: fc1 gets 400 features
                                                             a finding: code, text of its span, part of its message;
                                                             `(no fix)` at the end where no quick fix is offered,
                                                             `(fix: Change …)` for the title of the first one, the shape that it gives
                                                             behind it or not
    x = self.fc1(x)                 #? self.fc1: 48 120 parameters     part of the hover on the first `self.fc1` of the line

All hints and findings of the file have to be there, and no others. Every fix is applied, and the result run again: the finding has to be
gone, and no new one may have come. What runs is the file without these comments. `x.expected.py` holds the expectations of `x.py`, for
files that are to be shown without them, or of the cells of `x.ipynb`.

`python tests/fixtures.py FILE...` prints how the files differ from what ShapeLens says; `--update` writes what ShapeLens says into them
instead. An expectation that holds stays as it was written, so that `git diff` shows what a change has changed.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from interpreters import TORCH_PYTHON
from shapelens.analysis.display.hints import hints
from shapelens.analysis.display.hovers import hover
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.batch import Analysed, Batch
from shapelens.notebooks import SUFFIX
from shapelens.source.module import Module
from shapelens.source.position_map import TextEdit, apply
from shapelens.source.positions import Position, Span

FOLDER = Path(__file__).parent.parent / "fixtures"
DEEP = "deep"  # the folder of fixtures whose models are run for real
WITH_PACKAGES = "with_packages"  # the fixtures that need the packages of a user: see tools/user_environment.sh
USER_PYTHON = FOLDER.parent / ".user-environment" / "bin" / "python"
_COMMENT = re.compile(r"[ \t]*#([>!?]) ?(.*?)(?=[ \t]*#[>!?] |$)")
_FINDING = re.compile(r"(?P<code>[\w-]+)(?: @ (?P<text>.+?))?: (?P<message>.*?)(?P<unfixed> \(no fix\))?(?: \(fix: (?P<fix>.*)\))?$")


@dataclass
class Expected:
    """What the comments of one line say."""

    hints: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    hovers: list[str] = field(default_factory=list)


def names(with_packages: bool = False) -> list[str]:
    """The fixtures, by their path inside the folder; those that are only parts of others, or hold no expectation, left out.

    with_packages: those that need the packages of a user, and no others.
    """
    found = [
        path
        for path in sorted(FOLDER.rglob("*.py"))
        if not path.with_suffix("").with_suffix(".expected.py").exists() or ".expected" in path.name
    ]
    relative = [path.relative_to(FOLDER) for path in found if not path.name.startswith("_")]
    return [str(path) for path in relative if (path.parts[0] == WITH_PACKAGES) is with_packages]


def read(path: Path) -> tuple[str, dict[int, Expected]]:
    """The text of a fixture without its expectations, and these by line."""
    kept, expected = [], {}
    for number, line in enumerate(path.read_bytes().decode().split("\n"), start=1):
        code, end = (line[:-1], "\r") if line.endswith("\r") else (line, "")
        first = _COMMENT.search(code)
        if first is not None:
            here = expected[number] = Expected()
            for kind, text in _COMMENT.findall(code):
                {">": here.hints, "!": here.findings, "?": here.hovers}[kind] += (
                    text.strip().split(" | ") if kind == ">" else [text.strip()]
                )
            code = code[: first.start()]
        kept.append(code + end)
    return "\n".join(kept), expected


async def check(batch: Batch, name: str, update: bool = False, *, fixes: bool = True) -> None:
    """Compares a fixture with what ShapeLens says, and applies its fixes.

    update: write what ShapeLens says into the file rather than compare. fixes: False if no fix is looked for, which takes most of the time.
    Raises AssertionError, with the difference as a diff of the file, or with the fix that leaves a finding.
    """
    path = FOLDER / name
    text, expected = read(path)
    shown = path.with_name(path.name.replace(".expected.py", ".py"))
    if shown != path and not shown.exists():
        shown = shown.with_suffix(SUFFIX)
    content = shown.read_bytes().decode() if shown != path else text
    said = await batch.analyse(shown, content, fixes=fixes, deep=path.relative_to(FOLDER).parts[0] == DEEP, memory=True)
    assert said.source == text, f"{shown.name} is not {path.name} without its comments"
    old, new = path.read_bytes().decode(), annotated(text, expected, said, fixes=fixes)
    if update and old != new:
        path.write_bytes(new.encode())
        old = new
    assert expected or update, f"{name} expects nothing"
    assert old == new, "\n" + "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), "expected", "said", lineterm=""))
    found = [(finding, fix) for finding in said.findings for fix in (finding.fix, *finding.alternatives) if fix is not None]
    if found:
        with tempfile.TemporaryDirectory() as folder:
            project = FOLDER / shown.relative_to(FOLDER).parts[0]
            copy = Path(shutil.copytree(project, Path(folder) / project.name))
            for finding, fix in found:
                await _check_fix(batch, shown, copy, said, finding, fix)


def annotated(text: str, expected: dict[int, Expected], said: Analysed, *, fixes: bool = True) -> str:
    """The text with what ShapeLens says in comments; an expectation that holds stands as it was written."""
    lines = text.split("\n")
    shown = hints(said.module, said.trace, replace(said.settings, hints_unchanged=True))  # All that is seen is compared.
    for number, line in enumerate(lines, start=1):
        here = expected.get(number, Expected())
        code, end = (line[:-1], "\r") if line.endswith("\r") else (line, "")
        labels = [hint.label for hint in shown if hint.position.line == number]
        comments = [f"#> {' | '.join(labels)}"] if labels else []
        found = [finding for finding in said.findings if finding.span.line == number]
        comments += ["#! " + _finding_comment(finding, said.module, here.findings, fixes=fixes) for finding in found]
        comments += ["#? " + _hover_comment(wanted, number, said) for wanted in here.hovers]
        lines[number - 1] = code + "".join(f"  {comment}" for comment in comments) + end
    return "\n".join(lines)


def _finding_comment(finding: Finding, module: Module, wanted: list[str], *, fixes: bool) -> str:
    text = text_of(module, finding.span)
    for comment in wanted:
        fields = _FINDING.match(comment)
        if fields is None or fields["code"] != finding.code or (fixes and (fields["unfixed"] is None) != (finding.fix is not None)):
            continue
        if fixes and fields["fix"] is not None and (finding.fix is None or fields["fix"] not in (finding.fix.title, finding.fix.label)):
            continue
        if fields["text"] in (None, text) and fields["message"] in finding.message:
            return comment
    return f"{finding.code} @ {text}: {finding.message} " + (f"(fix: {finding.fix.label})" if finding.fix is not None else "(no fix)")


def _hover_comment(wanted: str, line: int, said: Analysed) -> str:
    name, _, part = wanted.partition(": ")
    column = said.module.lines.line(line).find(name)
    if column < 0:
        return f"{name}: is not on this line"
    # On the last part of a dotted name, as one would point at `conv1` of `self.conv1`.
    position = Position(line, column + len(name) - len(name.rpartition(".")[2]))
    shown = hover(said.module, said.trace, position, said.settings)
    if shown is None:
        return f"{name}: no hover"
    flat = " ".join(shown.markdown.replace("\u202f", " ").split())
    return wanted if part in flat else f"{name}: {flat}"


def text_of(module: Module, span: Span) -> str:
    """The text of a span; its first line, where it has several, with an ellipsis."""
    line = module.lines.line(span.line)
    return line[span.column : span.end_column] if span.end_line == span.line else line[span.column :] + "…"


def _line_after(span: Span, edits: Sequence[TextEdit]) -> int:
    """The line at which a span begins once edits are made."""
    before = [edit for edit in edits if edit.span.end <= span.start]
    return span.line + sum(edit.new_text.count("\n") - (edit.span.end_line - edit.span.line) for edit in before)


async def _check_fix(batch: Batch, path: Path, copy: Path, said: Analysed, finding: Finding, fix: Fix) -> None:
    """The finding is gone when the fix is made, and none has come that was not there.

    copy: of the fixture's folder; it is left as it was.
    """
    text, project = said.module.text, FOLDER / path.relative_to(FOLDER).parts[0]
    fixed = copy / Path(fix.file).relative_to(project)
    original = fixed.read_bytes()
    before = text if fix.file == str(path) else original.decode()
    fixed.write_bytes(apply(before, fix.edits).encode())
    changed = fixed.read_bytes().decode() if fix.file == str(path) else text
    run = copy / path.relative_to(project)
    if run.suffix == SUFFIX:  # Its text as a script in cells.
        run, changed = run.with_suffix(".py"), changed + "\n# %%\n"
    left = await batch.analyse(run, changed, brief=True)
    fixed.write_bytes(original)
    # The words of another finding may change with the sizes that the fix changes.
    edits = fix.edits if fix.file == str(path) else []
    others = [(found.code, _line_after(found.span, edits)) for found in said.findings if found is not finding]
    surplus = [found.message for found in left.findings if (found.code, found.span.line) not in others]
    assert not surplus, f"{fix.title!r} leaves {surplus}"


async def _print_differences(paths: list[str], update: bool) -> bool:
    """Prints how the fixtures differ from what ShapeLens says, and which were written; returns True if nothing was to be said."""
    same = True
    for with_packages, python in ((False, TORCH_PYTHON), (True, str(USER_PYTHON))):
        wanted = [str(Path(path).resolve().relative_to(FOLDER)) for path in paths] or names(with_packages)
        chosen = [name for name in wanted if (Path(name).parts[0] == WITH_PACKAGES) is with_packages]
        if not chosen or (with_packages and not paths):
            continue
        async with Batch(python, root=FOLDER) as batch:
            for name in chosen:
                before = (FOLDER / name).read_bytes()
                try:
                    await check(batch, name, update)
                except AssertionError as difference:
                    print(name, difference)
                    same = False
                if (FOLDER / name).read_bytes() != before:
                    print(f"{name} updated")
                    same = False
    return same


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="fixtures (default: all but those with packages)")
    parser.add_argument("--update", action="store_true", help="write what ShapeLens says into the fixtures")
    options = parser.parse_args()
    sys.exit(0 if asyncio.run(_print_differences(options.files, options.update)) else 1)
