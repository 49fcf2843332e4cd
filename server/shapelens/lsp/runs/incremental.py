"""The incremental run after an edit: which examples come to the code that the edit changed, and what the others saw."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from shapelens import protocol
from shapelens.examples.affected import Affected, affected, same_given
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_traces import moved_whole
from shapelens.source.changes import changed_functions
from shapelens.source.module import Module


def left_to_run(document: Document, analysis: Analysis, lacking: Sequence[str], known: Sequence[protocol.Known]) -> Affected | None:
    """Returns what of a document's last run has to be done again for a new analysis; None for all of it, or where that is not known.

    `lacking`: the classes without a given example; `known`: what was found for them.
    """
    shown = document.complete
    if document.outdated or shown is None or shown.own is None or shown.settings != analysis.settings:
        return None
    if not same_given(shown.own, [(example.target, example.expression) for example in analysis.examples]):
        return None
    functions = changed_functions(shown.module, analysis.module)
    if functions is None or (functions and document.importer_traces.runs()):
        return None  # Of the functions of this file, what the runs of other files came to is not known.
    if not _others_hold(shown, analysis, anything=bool(functions) or bool(shown.own.mismatches)):
        return None
    return affected(shown.module, analysis.module, functions, shown.own, lacking, known)


def _others_hold(shown: Analysis, newest: Analysis, *, anything: bool) -> bool:
    """True if the open files that a run imported have the same code still. anything: any other text counts, as places there matter."""
    for path in shown.own.files if shown.own is not None else ():
        before, now = shown.others.get(path), newest.others.get(path)
        if before is now:
            continue
        if anything or before is None or now is None or changed_functions(before, now) != frozenset():
            return False
    return True


def still_seen(shown: Analysis, module: Module, known: Iterable[protocol.Known], again: Collection[int]) -> protocol.Trace | None:
    """Returns what the last run of a document saw, at its places in a newer text; None where one of them is not known.

    Of the examples numbered `again` nothing is left but that they are there.
    """
    assert shown.own is not None
    where = {each.target: each.where for each in known}
    whole = shown.own
    left = replace(
        whole,
        observations=[seen for seen in whole.observations if seen.example not in again],
        layers=[layer for layer in whole.layers if layer.example not in again],
        mismatches=[seen for seen in whole.mismatches if seen.example not in again],
        remarks=[seen for seen in whole.remarks if seen.example not in again],
    )
    trace = moved_whole(left if again else whole, shown.module.lines, module.lines)
    if trace is None:
        return None
    return replace(trace, examples=[replace(run, where=where.get(run.target, run.where)) for run in trace.examples])
