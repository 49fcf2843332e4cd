"""Carries out each tool. All of it is what the command line does; nothing is written to the disk."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from shapelens.agents.answers import Answer, finding_data, finding_line, fixes_of, short, with_notices
from shapelens.agents.session import AgentSession
from shapelens.agents.what_if import what_if
from shapelens.analysis.evidence import evidence_text, guessed_sizes
from shapelens.analysis.findings.codes import CODES, similar
from shapelens.analysis.shapes import NARROW_SPACE
from shapelens.analysis.structure.tree import ModuleRow, repeats
from shapelens.cache.location import opened
from shapelens.checking import CheckedFile, CheckedFinding, Checker, checked_file
from shapelens.commands import RefusedRequest
from shapelens.commands.check import files_of
from shapelens.commands.fixing import edits_of, unified_diff
from shapelens.commands.profiled import Wanted, file_and_class, profiled_class, refuse_what_has_no_answer, refuse_wrong_words
from shapelens.examples.settings import Settings
from shapelens.notebooks import SUFFIX
from shapelens.report.document import document
from shapelens.report.findings.text import Tally
from shapelens.report.model_document import ModelView, memory_document
from shapelens.report.model_table import headings, table_rows, totals
from shapelens.report.text import Listing, summary
from shapelens.source.files import Unreadable, read
from shapelens.source.position_map import apply

UNNAMED = "shapelens_source.py"  # what a text without a file is called
MOST_FINDINGS = 100  # that one answer of `check` tells
MOST_ON_THE_WARM_WORKER = 20  # files; of more, several workers take them side by side
DEPTH = 3  # of the modules that a summary lists
_LINES = re.compile(r"\s*(\d+)\s*(?:[-–:]\s*(\d+)?)?\s*")
# Words of the command line in what is refused, as a tool's arguments have them.
_WORDS = {
    "with --example": "as `example` of the tool `summary`",
    "--example": "`example`",
    "--dim": "`sizes`",
    "--optimizer": "`optimizer`",
}


def refusal(error: Exception) -> str:
    """Returns what is wrong with a call, in a tool's terms."""
    text = f"{error} {getattr(error, 'action', '')}".strip()
    for option, word in _WORDS.items():
        text = text.replace(option, word)
    return text


async def answer(session: AgentSession, tool: str, given: Mapping[str, Any]) -> Answer:
    """The answer of a tool. Raises RefusedRequest, files.Unreadable and batch.Unavailable."""
    return await _ASKED[tool](session, given)


# --- check ---


async def _check(session: AgentSession, given: Mapping[str, Any]) -> Answer:
    paths, text = given.get("paths"), given.get("text")
    if (paths is None) == (text is None):
        raise RefusedRequest("check takes either `paths` or `text`")
    if text is None and "file" in given:
        raise RefusedRequest("`file` goes with `text`; what is on disk is named by `paths`")
    narrowed = Settings(select=_codes("select", given), ignore=_codes("ignore", given))
    tally, found = Tally(), list[tuple[Path, CheckedFile]]()
    if text is not None:
        path = session.path(given.get("file", UNNAMED))
        session.doing.what = f"checking {path.name}"
        batch = await session.batch_for(path)
        analysed = await batch.analyse(path, text, fixes=given.get("fixes", True))
        found.append((path, checked_file(analysed)))
        notices = session.notices(path)
    else:
        notices = await _check_files(session, [session.path(each) for each in paths or []], given.get("fixes"), found)
    lines, files, left_out = list[str](), list[dict[str, Any]](), 0
    for path, checked in found:
        checked.findings = [finding for finding in checked.findings if narrowed.shows(finding.code)]
        tally.add(checked, [False] * len(checked.findings), session.shown(path))
        told = checked.findings[: MOST_FINDINGS - len(lines)]
        left_out += len(checked.findings) - len(told)
        lines += [finding_line(session, path, finding) for finding in told]
        if not told and len(found) > MOST_ON_THE_WARM_WORKER:
            continue
        files.append(
            {
                "file": session.shown(path),
                "ran": checked.ran,
                "input": ("found" if checked.found else "given") if checked.ran else None,
                "findings": [finding_data(session, path, finding) for finding in told],
            }
        )
    closing = tally.closing()
    if left_out:
        lines.append(f"… and {left_out} more: narrow `paths`, or `select` codes")
    data = {"ok": not tally.fails("error"), "summary": closing, "files": files, "left_out": left_out}
    return Answer(with_notices("\n".join([*lines, closing]), notices), data)


async def _check_files(session: AgentSession, paths: list[Path], fixes: bool | None, found: list[tuple[Path, CheckedFile]]) -> list[str]:
    """Check files and folders; returns what stands in the way of the settings."""
    for path in paths:
        if not path.exists():
            raise RefusedRequest(f"{session.shown(path)}: no such file or folder")
    below = [each for each in files_of(paths) if session.holds(each[0])]
    files = [each for each in below if not session.scope.settings(each[0].parent).excludes(each[0])]
    wants_fixes = fixes if fixes is not None else len(files) == 1
    lend = session.batch_for if len(files) <= MOST_ON_THE_WARM_WORKER else None
    checker = Checker(session.python, opened(), session.scope, fixes=wants_fixes, lend=lend)
    session.doing.total = len(files)

    def began(path: Path) -> None:
        session.doing.what = f"checking {path.name}"

    async with aclosing(checker.check(files, began)) as results:
        async for path, checked in results:
            session.doing.done += 1
            if checked is not None:
                found.append((path, checked))
    return checker.notices


def _codes(name: str, given: Mapping[str, Any]) -> list[str]:
    for code in given.get(name, []):
        if code not in CODES:
            raise RefusedRequest(f"`{name}`: there is no code {code}{similar(code)}")
    return list(given.get(name, []))


# --- shapes ---


async def _shapes(session: AgentSession, given: Mapping[str, Any]) -> Answer:
    path, only = session.path(given["file"]), given.get("class_name")
    lines = _lines(given.get("lines"))
    session.doing.what = f"running {path.name}"
    analysed = await session.analysed(path, read(path), only=only, programs=True)
    refuse_what_has_no_answer(analysed, path, only)
    count = len(analysed.source.splitlines())
    if lines is not None and lines.start > count:
        raise RefusedRequest(f"{session.shown(path)} has {count} lines")
    console = Console(file=StringIO(), highlight=False, color_system=None, width=10_000)
    with console.capture() as captured:
        Listing(analysed, console).print(lines)
    found = document(analysed)
    kept = [each for each in found["observations"] if lines is None or each["line"] in lines]
    values = [{name: each[name] for name in ("line", "name", "kind", "shapes", "named", "dtype")} for each in kept]
    wrong = [finding for finding in checked_file(analysed).findings if lines is None or finding.line in lines]
    text = "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    if not analysed.trace.examples and not analysed.findings:
        text += "nothing was run: there is no example, and none was found\n"
    data = {
        "file": session.shown(path),
        "examples": [{name: each[name] for name in ("class", "expression", "evidence", "dims", "error")} for each in found["examples"]],
        "values": values,
        "findings": [finding_data(session, path, finding) for finding in wrong],
    }
    return Answer(with_notices(text, session.notices(path)), data)


def _lines(given: str | None) -> range | None:
    """The lines of `10-40`, `10-` or `10`."""
    if given is None:
        return None
    found = _LINES.fullmatch(given)
    if found is None or int(found[1]) < 1:
        raise RefusedRequest("`lines` are written like 10-40")
    first, is_open = int(found[1]), found[2] is None and not given.strip().isdecimal()
    last = int(found[2]) if found[2] is not None else 1 << 30 if is_open else first
    if last < first:
        raise RefusedRequest("`lines` are written like 10-40, the first one first")
    return range(first, last + 1)


# --- what_if ---


async def _what_if(session: AgentSession, given: Mapping[str, Any]) -> Answer:
    path, memory = session.path(given["file"]), given.get("memory", True)
    return await what_if(session, path, given.get("edits"), given.get("text"), given.get("class_name"), memory=memory)


# --- fixes ---


async def _fixes(session: AgentSession, given: Mapping[str, Any]) -> Answer:
    path, line = session.path(given["file"]), given.get("line")
    if path.suffix == SUFFIX:
        raise RefusedRequest("the fixes of a notebook are offered in an editor: its file holds no Python to change")
    text = read(path)
    session.doing.what = f"trying fixes of {path.name}"
    found = checked_file(await session.analysed(path, text, fixes=True)).findings
    chosen = [each for each in found if line is None or each.line <= line <= max(each.end_line, each.line)]
    lines, data = list[str](), list[dict[str, Any]]()
    for finding in chosen:
        offered = [(fix, await _diff(session, path, text, fix.file, fix)) for fix in fixes_of(finding)]
        lines.append(finding_line(session, path, finding).partition("\n")[0])
        lines += [part for fix, diff in offered for part in (f"fix: {fix.title}", diff.rstrip("\n"))] or ["no fix was found that works"]
        fixes = [{"title": fix.title, "file": session.shown(fix.file), "diff": diff} for fix, diff in offered]
        data.append({**finding_data(session, path, finding), "fixes": fixes})
    if not chosen:
        lines.append(_nothing_here(session, path, line, found))
    return Answer(with_notices("\n".join(lines), session.notices(path)), {"file": session.shown(path), "findings": data})


async def _diff(session: AgentSession, path: Path, text: str, file: str, fix: Any) -> str:
    before = text if Path(file) == path else read(Path(file))
    return unified_diff(session.shown(file), before, apply(before, edits_of(fix)))


def _nothing_here(session: AgentSession, path: Path, line: int | None, found: list[CheckedFinding]) -> str:
    if line is None or not found:
        return f"nothing is wrong in {session.shown(path)}"
    there = ", ".join(str(number) for number in sorted({finding.line for finding in found}))
    return f"nothing is wrong at line {line}; findings stand at {there}"


# --- summary ---


async def _summary(session: AgentSession, given: Mapping[str, Any]) -> Answer:
    file, cls = file_and_class(given["target"])
    path = session.path(str(file))
    examples = [given["example"]] if "example" in given else []
    wanted = Wanted(str(path), examples, None, given.get("sizes", {}), given.get("optimizer"))
    refuse_wrong_words(wanted)
    session.doing.what = f"running {path.name}"
    batch, text = await session.batch_for(path), read(path)
    if examples:
        analysed = await batch.analyse(path, text, examples=examples, only=cls, fixes=False)
    else:
        analysed = await session.analysed(path, text, only=cls, programs=True)
    session.doing.what = f"measuring {cls or path.name}"
    found = await profiled_class(batch, analysed, path, cls, wanted)
    view, depth, run = found.view, given.get("depth", DEPTH), found.view.shown.example
    table = _table(view, depth)
    below = [f"{label + ': ' if label else '  '}{words}" for label, words in totals(view)]
    head = f"{view.class_name}: {short(view.shown.example.expression)}"
    failed = [f"the example failed: {view.profile.error}"] if view.profile.error else []
    said = summary([finding.severity for finding in analysed.findings])
    wrong = [f"{said} in {session.shown(path)}: see `check`"] if said else []
    text = "\n".join([head, *table, *failed, *below, *wrong]).replace(NARROW_SPACE, "")
    memory = memory_document(view, lambda place: {"file": session.shown(place["file"]), "line": place["line"]})
    data = {
        "file": session.shown(path),
        "class": view.class_name,
        "example": view.shown.example.expression,
        "input": evidence_text(run.evidence or "directive", run.where, analysed.module) if not examples else "from the call",
        "guessed": guessed_sizes(run, view.profile.dims) or None,
        "dims": view.profile.dims,
        "error": view.profile.error,
        "parameters": sum(row.parameters for row in view.rows),
        "flops": sum(row.flops for row in view.rows),
        "modules": _modules(view.rows, depth),
        "memory": memory,
    }
    return Answer(with_notices(text, session.notices(path)), data)


def _table(view: ModelView, depth: int) -> list[str]:
    """The table with aligned columns."""
    rows = [headings("cost")]
    for row in table_rows(view, "cost", depth):
        rows.append(("  " * row.depth + row.cells[0], *row.cells[1:]))
        if row.error:
            rows.append(("  " * row.depth + "✗ " + row.error,))
    widths = [max(len(row[number]) for row in rows if len(row) > 1) for number in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if number < 2 else cell.rjust(width) for number, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        if len(row) > 1
        else row[0]
        for row in rows
    ]


def _modules(rows: list[ModuleRow], depth: int) -> list[dict[str, Any]]:
    """The modules down to a depth, those that differ in their name alone once, with how many there are."""
    return [
        {
            "name": row.name,
            "class": row.class_name,
            "count": count,
            "outputs": row.outputs,
            "parameters": row.parameters,
            "flops": row.flops,
            "line": row.span.line if row.span is not None else None,
            "error": row.failure.message if row.failure is not None else None,
            "modules": _modules(row.rows, depth - 1) if depth > 0 else [],
        }
        for row, count in repeats(rows)
    ]


_ASKED: dict[str, Callable[[AgentSession, Mapping[str, Any]], Awaitable[Answer]]] = {
    "check": _check,
    "shapes": _shapes,
    "what_if": _what_if,
    "fixes": _fixes,
    "summary": _summary,
}

__all__ = ["Unreadable", "answer", "refusal"]
