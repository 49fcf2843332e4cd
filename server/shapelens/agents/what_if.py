"""Compares a file as it is with the file after an edit. Both of them run, neither is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from shapelens.agents.answers import Answer, finding_data, finding_line, short, with_notices
from shapelens.agents.session import AgentSession
from shapelens.analysis.findings.codes import is_note
from shapelens.analysis.shapes import NARROW_SPACE, count_text, memory_text
from shapelens.analysis.traces.shown import shown_for
from shapelens.batch import Analysed
from shapelens.checking import CheckedFinding, checked_file
from shapelens.commands import RefusedRequest
from shapelens.commands.profiled import Wanted, profiled_class
from shapelens.notebooks import SUFFIX
from shapelens.report.findings.report import key_of
from shapelens.report.text import summary
from shapelens.source.files import Unreadable, read

MOST_LINES = 40  # of which changed shapes are told


def edited(name: str, text: str, edits: Sequence[Mapping[str, str]]) -> str:
    """The text after edits, one after the other. Raises RefusedRequest where a place is not clear."""
    for number, edit in enumerate(edits, 1):
        count = text.count(edit["old"]) if edit["old"] else 0
        if count != 1:
            which = f"edit {number}: its `old`" if len(edits) > 1 else "`old`"
            why = "is empty" if not edit["old"] else "does not stand in" if count == 0 else f"stands {count} times in"
            advice = "; take more lines around it" if count > 1 else "; copy it from the file, indentation included" if edit["old"] else ""
            raise RefusedRequest(f"{which} {why}{f' {name}' if edit['old'] else ''}{advice}")
        text = text.replace(edit["old"], edit["new"])
    return text


async def what_if(
    session: AgentSession, path: Path, edits: Sequence[Mapping[str, str]] | None, text: str | None, class_name: str | None, *, memory: bool
) -> Answer:
    """Compare a file as it is with the file as it would be. Raises RefusedRequest, files.Unreadable and batch.Unavailable."""
    if (edits is None) == (text is None):
        raise RefusedRequest("what_if takes either `edits` or `text`")
    if path.suffix == SUFFIX:
        raise RefusedRequest("what_if takes Python files: for a notebook, give `check` its `text`")
    name = session.shown(path)
    before: str | None = None
    try:
        before = read(path)
    except Unreadable:
        if text is None or path.exists():
            raise
    after = text if text is not None else edited(name, before or "", edits or [])
    session.doing.what = f"running {name} as it is"
    old = await session.analysed(path, before, patient=False) if before is not None else None
    session.doing.what = f"running {name} as it would be"
    new = await (await session.batch_for(path)).analyse(path, after, programs=False, fixes=False, before=old, patient=False)
    comparison = _Comparison(old, new)
    sizes = await _sizes(session, path, old, new, class_name) if memory else None
    return _answer(session, path, comparison, sizes)


class _Comparison:
    """Findings and shapes of two texts of a file."""

    def __init__(self, old: Analysed | None, new: Analysed) -> None:
        self.old = old
        self.new = new
        was, now = (_mistakes(old) if old is not None else []), _mistakes(new)
        had, has = Counter(map(key_of, was)), Counter(map(key_of, now))
        self.come = _beyond(now, had)
        self.gone = _beyond(was, has)
        self.stay = [finding for finding in now if finding not in self.come]
        self.shapes = _changed_shapes(old, new)


def _mistakes(analysed: Analysed) -> list[CheckedFinding]:
    """Returns the findings, but for notes on what was taken for granted. Those are not about an edit."""
    return [finding for finding in checked_file(analysed).findings if not is_note(finding.code)]


def _beyond(findings: Sequence[CheckedFinding], known: Counter[Any]) -> list[CheckedFinding]:
    """The findings of which there are more than are known; of one kind, the last ones."""
    left = Counter(known)
    beyond = []
    for finding in findings:
        key = key_of(finding)
        left[key] -= 1
        if left[key] < 0:
            beyond.append(finding)
    return beyond


@dataclass(frozen=True)
class _Shape:
    """Holds what a line of the new text shows. was: what the same line showed before; None where it was not there, or showed nothing."""

    line: int
    source: str
    now: str
    was: str | None
    is_edited: bool


def _changed_shapes(old: Analysed | None, new: Analysed) -> list[_Shape]:
    """The lines that were edited, and those that show something else than before, as far as they show anything."""
    labels = _labels(new)
    known = _labels(old) if old is not None else {}
    new_lines = new.source.splitlines()
    old_lines = old.source.splitlines() if old is not None else []
    found = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        for offset in range(new_end - new_start):
            line = new_start + offset + 1
            same = start + offset + 1 if kind == "equal" or end - start == new_end - new_start else 0
            now, was = labels.get(line, ""), known.get(same)
            if not now and new.hurried:
                continue  # It may just not have been come to.
            if (now or was) and (kind != "equal" or now != (was or "")):
                found.append(_Shape(line, new_lines[line - 1].strip(), now, was, kind != "equal"))
    return found


def _labels(analysed: Analysed) -> dict[int, str]:
    """Returns what stands in the margin of each line."""
    labels: dict[int, str] = {}
    for hint in analysed.hints:
        line = hint.position.line
        labels[line] = "  ".join(filter(None, [labels.get(line), hint.label]))
    return labels


# --- parameters and memory ---


@dataclass(frozen=True)
class _Model:
    """Holds what a model has and takes. peak: bytes of a training step; None where that is not known, as `problem` says."""

    name: str
    expression: str
    parameters: int | None
    peak: int | None
    optimizer: str = ""
    problem: str = ""


async def _sizes(
    session: AgentSession, path: Path, old: Analysed | None, new: Analysed, class_name: str | None
) -> tuple[_Model | None, _Model | None]:
    before = await session.measured(old, class_name, lambda: _model(session, path, old, class_name)) if old is not None else None
    return before, await _model(session, path, new, class_name or (before.name if before is not None else None))


async def _model(session: AgentSession, path: Path, analysed: Analysed, class_name: str | None) -> _Model | None:
    """A model of a file; None where the file has none. Raises batch.Unavailable."""
    if not analysed.module.classes and class_name is None:
        return None
    session.doing.what = f"measuring {class_name or path.name}"
    batch = await session.batch_for(path)
    try:
        found = await profiled_class(batch, analysed, path, class_name, Wanted(str(path), [], None, {}), memory_only=True)
    except RefusedRequest as refused:
        return _Model(class_name or "", "", None, None, problem=str(refused))
    view = found.view
    shown = shown_for(analysed.trace, view.class_name)
    count = shown.example.parameter_count if shown is not None and not shown.path else None
    training = view.training
    peak = training.peak if training is not None and not training.error else None
    problem = view.profile.error or (training.error if training is not None else "") or ""
    return _Model(view.class_name, view.shown.example.expression, count, peak, view.optimizer, problem)


# --- the answer ---


def _answer(session: AgentSession, path: Path, found: _Comparison, sizes: tuple[_Model | None, _Model | None] | None) -> Answer:
    name = session.shown(path)
    lines = [f"{name} with this edit (nothing was written): {_verdict(found)}"]
    for word, findings in (("new", found.come), ("gone", found.gone), ("stays", found.stay)):
        lines += [f"{word}: {finding_line(session, path, finding)}" for finding in findings]
    lines += _shape_lines(found.shapes)
    if found.new.hurried:
        lines.append("what the file does as a program was followed for a short time only: shapes of it may be lacking")
    if sizes is not None:
        lines += _model_lines(*sizes)
    data = {
        "file": name,
        "written": False,
        "ok": not any(finding.severity == "error" for finding in [*found.come, *found.stay]),
        "new": [finding_data(session, path, finding) for finding in found.come],
        "gone": [finding_data(session, path, finding) for finding in found.gone],
        "stays": [finding_data(session, path, finding) for finding in found.stay],
        "shapes": [
            {"line": each.line, "source": each.source, "before": each.was, "after": each.now or None, "edited": each.is_edited}
            for each in found.shapes
        ],
        "example": [_example(run) for run in found.new.trace.examples if run.target],
        "model": _model_data(*sizes) if sizes is not None else None,
    }
    return Answer(with_notices("\n".join(lines), session.notices(path)), data)


def _example(run: Any) -> dict[str, Any]:
    return {"class": run.target, "expression": run.expression, "guessed": run.evidence == "inferred", "error": run.error}


def _verdict(found: _Comparison) -> str:
    errors = [finding for finding in [*found.come, *found.stay] if finding.severity == "error"]
    come, gone = (summary([finding.severity for finding in findings]) for findings in (found.come, found.gone))
    parts = [f"new: {come}" if come else "", f"gone: {gone}" if gone else ""]
    changes = "; ".join(filter(None, parts)) or "no finding comes or goes"
    if errors:
        return f"{changes}; {summary([finding.severity for finding in errors])} in all"
    ran = any(run.error is None for run in found.new.trace.examples)
    return f"{changes}; it runs" if ran else f"{changes}; nothing of it was run"


def _shape_lines(shapes: Sequence[_Shape]) -> list[str]:
    if not shapes:
        return ["no shape changes"]
    lines = ["shapes of the edited lines, and those that change:"]
    width = max(len(str(each.line)) for each in shapes[:MOST_LINES])
    for each in shapes[:MOST_LINES]:
        before = f"   (was {each.was})" if each.was is not None and each.was != each.now else "" if each.was is not None else "   (new)"
        lines.append(f"{each.line:>{width}} │ {each.source}   {each.now or '→ nothing'}{before}")
    more = len(shapes) - MOST_LINES
    return [*lines, f"… and {more} more"] if more > 0 else lines


def _model_lines(old: _Model | None, new: _Model | None) -> list[str]:
    if new is None:
        return []
    if new.parameters is None and new.peak is None:
        return [f"{new.name}: parameters and memory are not known: {new.problem}".removeprefix(": ")]
    parts = []
    if new.parameters is not None:
        parts.append(f"parameters {_change(old.parameters if old is not None else None, new.parameters, count_text)}")
    if new.peak is not None:
        was = old.peak if old is not None else None
        parts.append(f"a training step ({new.optimizer}) takes {_change(was, new.peak, memory_text)} at its peak")
    elif new.problem:
        parts.append(f"memory not known: {new.problem}")
    lines = [f"{new.name}: {'; '.join(parts)}", f"measured with {short(new.expression)}"]
    if old is not None and old.expression and old.expression != new.expression:
        lines[-1] += f" (as it is: {short(old.expression)})"
    return [line.replace(NARROW_SPACE, "") for line in lines]


def _change(was: int | None, now: int, text: Any) -> str:
    if was is None or was == now:
        return f"{text(now)}{' (unchanged)' if was is not None else ''}"
    return f"{text(was)} → {text(now)} ({'+' if now > was else '-'}{text(abs(now - was))})"


def _model_data(old: _Model | None, new: _Model | None) -> dict[str, Any] | None:
    if new is None:
        return None
    return {
        "class": new.name,
        "expression": new.expression,
        "parameters": {"before": old.parameters if old is not None else None, "after": new.parameters},
        "training_step_bytes": {"before": old.peak if old is not None else None, "after": new.peak},
        "optimizer": new.optimizer,
        "problem": new.problem or None,
    }
