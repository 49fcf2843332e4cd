"""The second step: how much of a document runs for its newest text. A plan is made of what is known, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shapelens import protocol
from shapelens.lsp.documents.analysis import Analysis, KeptObservations
from shapelens.lsp.documents.document import Document
from shapelens.lsp.runs.choose import Chosen
from shapelens.lsp.runs.incremental import left_to_run, still_seen


@dataclass(frozen=True)
class StayAsShown:
    """The text does not parse, so nothing can run. What was seen before stays, at the places where it has gone."""


@dataclass(frozen=True)
class FollowEdit:
    """The edit changed no code that the last run came to: nothing runs, and what was seen is moved to the newest text."""

    analysis: Analysis


@dataclass(frozen=True)
class RunAffected:
    """Only the examples that come to what the edit changed run again; `analysis.kept` has what the others saw.

    before: the trace of the last run. classes: those that are searched for an example, by qualified name.
    """

    analysis: Analysis
    kept: KeptObservations
    before: protocol.Trace
    classes: Sequence[str]


@dataclass(frozen=True)
class RunAll:
    """Everything runs, as it is not certain what the edit left alone, or as nothing has run before."""


Plan = StayAsShown | FollowEdit | RunAffected | RunAll


def plan(document: Document, chosen: Chosen, known: Callable[[], Sequence[protocol.Known]], *, whole: bool) -> Plan:
    """Returns how much runs. whole: no less than everything will do. `known` gives the examples that were found for `chosen.lacking`
    before.
    """
    if chosen.analysis.module.errors:
        shown = document.analysis
        return StayAsShown() if shown is not None and shown.trace is not None else RunAll()
    return RunAll() if whole else _after_edit(document, chosen, known)


def _after_edit(document: Document, chosen: Chosen, known: Callable[[], Sequence[protocol.Known]]) -> Plan:
    analysis, last = chosen.analysis, document.complete
    if last is None or last.own is None:
        return RunAll()
    found = known()
    left = left_to_run(document, analysis, chosen.lacking, found)
    if left is None:
        return RunAll()
    kept = KeptObservations(lambda: still_seen(last, analysis.module, found, left.examples), left.examples)
    if not left:
        if kept.trace is None:
            return RunAll()
        return FollowEdit(replace(analysis, own=kept.trace, named=last.named, unfinished=last.unfinished))
    found_before = [run.target for run in map(last.own.examples.__getitem__, left.examples) if run.evidence]
    return RunAffected(replace(analysis, kept=kept, unfinished=last.unfinished), kept, last.own, [*found_before, *left.classes])
