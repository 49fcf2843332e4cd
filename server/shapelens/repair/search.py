"""Runs the candidate fixes of findings, and keeps those that work.

A fix works if its finding vanishes and no error or warning comes that was not there. Of several that do, those after which fewer findings
are left come first, as they are at the cause of more; then the likelier ones.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from shapelens.analysis.explanations.related_places import MOST_PLACES, Related
from shapelens.analysis.findings.findings import Finding, findings
from shapelens.analysis.places import OtherModules
from shapelens.analysis.repairs.fixes import Fix
from shapelens.analysis.repairs.given_shapes import moved_batches, shape_at
from shapelens.examples.settings import Settings
from shapelens.protocol import Trace
from shapelens.source.module import Module, parse
from shapelens.source.position_map import TextEdit, apply
from shapelens.source.positions import Lines, Position, Span

# Runs the document with these texts, by absolute path, in the place of those that it has, and these of its examples (None: all), some by
# other expressions. Gives None where the run did not come to its end. May raise GivenUp.
Attempt = Callable[[Mapping[str, str], Sequence[int] | None, Mapping[str, str]], Awaitable[Trace | None]]

MOST_RUNS = 32  # for one finding
MOST_FIXES = 3  # that are offered for one finding
COUNTED = ("error", "warning")

_T = TypeVar("_T")
_Working = tuple[float, int, int, int, Fix]  # findings that are left, batches that moved, likelihood, number, and the fix
Clock = Callable[[], float]  # seconds since whenever: of the wall where somebody waits, of the runs' own work where nobody does
Key = tuple[str, str, int]  # code, file, offset in the text


class GivenUp(Exception):
    """There is no time for a run, nor for those that would follow."""


@dataclass(frozen=True)
class FileToMend:
    """A file that was run: its text, settings, examples (their number) and findings, and the modules of other files."""

    file: str
    module: Module
    settings: Settings
    examples: int
    findings: Sequence[Finding]
    other_modules: OtherModules


@dataclass(frozen=True)
class KnownByPart:
    """The fixes that a search found by attempts that run a part only, which is `finding` there: the fixes that work."""

    search: RepairSearch
    finding: Finding
    fixes: Sequence[Fix]

    async def works(self, fix: Fix) -> bool:
        """True if a fix works as far as that part shows it. Raises GivenUp when the attempt does."""
        return fix in self.fixes or await self.search.works(self.finding, fix)


@dataclass(frozen=True)
class Limits:
    """Limits of a search, in seconds of its clock. The first candidate of a finding is tried in any case, as long as there is time for the
    document at all."""

    seconds_per_finding: float
    seconds: float  # for all findings of a document
    seconds_for_others: float  # once a fix has been found
    own_file_first: bool = False  # another one is changed where nothing else works: it may have to be loaded anew, with its importers


async def with_fixes(document: FileToMend, attempt: Attempt, limits: Limits, clock: Clock) -> list[Finding]:
    """The findings of a document with those of their candidates as `fix` and `alternatives` that were tried and work."""
    search = RepairSearch(document, attempt, limits, clock)
    found = [await search.mended(finding) for finding in document.findings]
    return [await search.mended_by_others(finding) for finding in found]


class RepairSearch:
    """The search for the fixes of one document's findings. What was run for one finding is not run again for another."""

    def __init__(self, document: FileToMend, attempt: Attempt, limits: Limits, clock: Clock = time.monotonic) -> None:
        self._document = document
        self._attempt = attempt
        self._limits = limits
        self._clock = clock
        self._end = clock() + limits.seconds
        self._tried: dict[object, Counter[Key] | None] = {}  # what was run → the findings that are left
        self._gives: dict[object, str] = {}  # what was run → the shape that the changed expression gave
        self._moved_batches: dict[object, int] = {}  # what was run → the models that gave another first dim than they were given
        self._worked: list[Fix] = []  # for the findings so far: one may mend others as well

    async def mended(self, finding: Finding, by_a_part: KnownByPart | None = None) -> Finding:
        """The finding with the fixes that work. Raises GivenUp when an attempt does.

        by_a_part: what is known of it by a part of what an attempt runs. Fixes that work there are tried first, and are taken to work where
        there is no time for that.
        """
        end = min(self._end, self._clock() + self._limits.seconds_per_finding)
        likely = by_a_part.fixes if by_a_part is not None else []
        working: list[_Working] = []
        for number, fix in enumerate([*likely, *self._others(finding, likely)]):
            if len(_good(working)) == MOST_FIXES or (working and self._limits.own_file_first and fix.file != self._document.file):
                break
            if any(_place(other) == _place(fix) and not moved for _, moved, *_, other in working):
                continue  # A likelier fix works in this place already.
            if self._clock() > (end if number else self._end):
                if fix not in likely:
                    break
                working.append((math.inf, 0, fix.likelihood, number, fix))
                continue
            if by_a_part is not None and not await by_a_part.works(fix):
                continue
            left = await self._left(finding, fix)
            if left is not None:
                moved = self._known_of(fix, self._moved_batches) or 0
                if not moved:  # Else a better one is still looked for.
                    end = min(end, self._clock() + self._limits.seconds_for_others)
                working.append((left, moved, fix.likelihood, number, fix))
        if not working:
            return finding
        best, *others = [replace(fix, gives=self._known_of(fix, self._gives) or fix.gives) for fix in _ranked(working)[:MOST_FIXES]]
        self._worked += [fix for fix in (best, *others) if fix not in self._worked]
        return replace(finding, fix=best, alternatives=others, related=self._with_places(finding, [best, *others]))

    def _others(self, finding: Finding, likely: Sequence[Fix]) -> list[Fix]:
        """The candidates for a finding beside the likely ones: for one that counts, what has mended others comes first."""
        candidates = finding.candidates()[:MOST_RUNS] if self._clock() < self._end else []
        if finding.severity in COUNTED and candidates:
            candidates = [*self._worked, *candidates]
        others = [fix for number, fix in enumerate(candidates) if fix not in likely and fix not in candidates[:number]]
        if self._limits.own_file_first:
            others.sort(key=lambda fix: fix.file != self._document.file)
        return others

    async def mended_by_others(self, finding: Finding) -> Finding:
        """A finding whose fix leaves others, with a fix of one of those in front that leaves fewer. Raises GivenUp when an attempt does."""
        if finding.fix is None or self._clock() > self._end or len(self._document.findings) < 2:
            return finding
        left = await self._left(finding, finding.fix) or 0
        known = [finding.fix, *finding.alternatives]
        for fix in [each for each in self._worked if each not in known] if left else []:
            if self._clock() > self._end:
                break
            others = await self._left(finding, fix)
            if others is not None and others < left:
                fix = replace(fix, gives=self._known_of(fix, self._gives) or "")
                return replace(finding, fix=fix, alternatives=known[: MOST_FIXES - 1], related=self._with_places(finding, [fix]))
        return finding

    async def works(self, finding: Finding, fix: Fix) -> bool:
        """True if a fix of a finding works. Raises GivenUp when the attempt does."""
        return await self._left(finding, fix) is not None

    async def _left(self, finding: Finding, fix: Fix) -> int | None:
        """Returns how many findings are left with a fix made; None where it does not work."""
        module = self._document.module if fix.file == self._document.file else self._document.other_modules(fix.file)
        if module is None:
            return None
        text = apply(module.text, fix.edits)
        # A note may have become an error: what is judged by itself is not told from a guess.
        before = Counter(self._key(each, fix, module) for each in self._document.findings)
        # Most candidates do not work, which is quickly seen: by the examples that the finding is of.
        some = [finding.examples] if finding.examples and self._document.examples > len(finding.examples) else []
        for examples in [*some, None]:
            after = await self._findings_of(fix, text, examples)
            if after is None or after - before or self._key(finding, fix, module) in after:
                return None
        return after.total() if after is not None else None

    def _key(self, finding: Finding, fix: Fix, module: Module) -> Key:
        """Where a finding will be once a fix is made."""
        offset = self._document.module.lines.offset(finding.span.start)
        return finding.code, finding.file, _moved(offset, fix.edits, module.lines) if finding.file == fix.file else offset

    def _known_of(self, fix: Fix, by_run: Mapping[object, _T]) -> _T | None:
        """Returns the result of a run of a fix."""
        module = self._document.module if fix.file == self._document.file else self._document.other_modules(fix.file)
        return by_run.get(_run_of(fix, apply(module.text, fix.edits))) if module is not None else None

    async def _findings_of(self, fix: Fix, text: str, examples: tuple[int, ...] | None) -> Counter[Key] | None:
        tried = (_run_of(fix, text), examples)
        if tried not in self._tried:
            self._tried[tried] = await self._run(fix, text, examples)
        return self._tried[tried]

    async def _run(self, fix: Fix, text: str, examples: tuple[int, ...] | None) -> Counter[Key] | None:
        document, file = self._document, fix.file
        own = file == document.file
        changed = parse(text, document.module if own else document.other_modules(file))
        if changed.errors:
            return None
        trace = await self._attempt({file: text}, examples, fix.calls)
        if trace is None:
            return None
        module = changed if own else document.module
        self._moved_batches[_run_of(fix, text)] = moved_batches(trace)
        if own:
            self._gives[_run_of(fix, text)] = shape_at(changed, trace, *_start_after(fix))
        found = findings(module, trace, document.settings, lambda path: changed if path == file else document.other_modules(path))
        return Counter((each.code, each.file, module.lines.offset(each.span.start)) for each in found if each.severity in COUNTED)

    def _with_places(self, finding: Finding, fixes: Sequence[Fix]) -> list[Related]:
        """The related places of a finding: where a fix works, then where it fails and where its sizes are set, one of which is kept."""
        places: list[Related] = []
        for fix in fixes:
            span = fix.edits[0].span
            elsewhere = fix.file != finding.file
            if elsewhere or not (finding.span.start <= span.start and span.end <= finding.span.end):
                places.append(Related(fix.file if elsewhere else None, span, f"or here: {fix.title[0].lower()}{fix.title[1:]}"))
        others = [each for each in finding.related if not any(_same_place(each, better) for better in places)]
        return [*places[: MOST_PLACES - 1 if others else MOST_PLACES], *others][:MOST_PLACES]


def _ranked(working: Sequence[_Working]) -> list[Fix]:
    """The fixes that work, the best first, of one place the best. What moves samples from one batch to another is worth something only
    where nothing else works."""
    ranked = [fix for *_, fix in sorted(_good(working) or working, key=lambda each: each[:4])]
    return [fix for number, fix in enumerate(ranked) if not any(_place(fix) == _place(better) for better in ranked[:number])]


def _good(working: Sequence[_Working]) -> list[_Working]:
    """Those after which no batch has moved."""
    return [each for each in working if not each[1]]


def _same_place(related: Related, better: Related) -> bool:
    """True if there is nothing to say of a place, as another says more of it, or of a part of it that is suspected."""
    if related.file != better.file:
        return False
    inside = related.span.start <= better.span.start and better.span.end <= related.span.end
    return related.span == better.span or (related.suspected and inside)


def _run_of(fix: Fix, text: str) -> object:
    return fix.file, text, tuple(fix.calls.items())


def _start_after(fix: Fix) -> tuple[Position, str]:
    """Where the first edit of a fix begins, before and after it, and what it writes there."""
    first = min(fix.edits, key=lambda edit: edit.span)
    return first.span.start, first.new_text


def _place(fix: Fix) -> tuple[str, Span]:
    return fix.file, fix.edits[0].span


def _moved(offset: int, edits: Sequence[TextEdit], lines: Lines) -> int:
    """Where an offset is after edits; inside of a replaced text its start stands for all of it."""
    shift = 0
    for edit in sorted(edits, key=lambda each: each.span):
        start, end = lines.offset(edit.span.start), lines.offset(edit.span.end)
        if offset >= end and offset > start:
            shift += len(edit.new_text) - (end - start)
        elif offset > start:
            return start + shift
    return offset + shift
