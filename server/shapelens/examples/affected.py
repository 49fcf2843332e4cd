"""Finds what has to run again after an edit inside of functions. The last run and the text tell; the rest stays as it was seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from shapelens.examples.statement_names import bound, words
from shapelens.protocol import ExampleRun, Known, Trace
from shapelens.source.module import Module


@dataclass(frozen=True)
class Affected:
    """examples: numbers of the trace's examples that run again. classes: those without one that are searched for, by qualified name."""

    examples: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.examples or self.classes)


def affected(
    old: Module, new: Module, functions: Collection[str], trace: Trace, lacking: Sequence[str], known: Sequence[Known]
) -> Affected | None:
    """Returns what an edit makes run again: `old` is the text of the trace, `functions` are those that the edit changed (`source.changes`).

    `lacking`: the classes without a given example, by qualified name; `known`: what is still known of those that were found for them. None:
    everything.
    """
    if trace.called is None or not functions_apart(functions, trace.called):
        return None
    unusual = any(note.code != "missing-import" for note in trace.notes) or any(seen.example < 0 for seen in trace.mismatches)
    if functions and unusual:
        return None  # It is not known which example a note is of; and where a definition failed, anything may follow.
    links = _Links(old, new)
    wrong = {mismatch.example for mismatch in trace.mismatches}
    expected = {each.target: each.expression for each in known}

    def is_searched_for(number: int, run: ExampleRun) -> bool:
        """Where nobody gave it: as it failed and the text may now say more, or as its evidence is gone."""
        unsettled = run.error is not None or run.doubtful or number in wrong
        return bool(run.evidence) and (links.touch(run.target) if unsettled else expected.get(run.target) != run.expression)

    again = [
        number
        for number, run in enumerate(trace.examples)
        if run.reached is None or not functions_apart(functions, run.reached) or is_searched_for(number, run)
    ]
    targets = {run.target for run in trace.examples}
    called = {layer.class_name for layer in trace.layers if layer.calls}
    untold = [name for name in lacking if name not in targets and name.rpartition(".")[2] not in called]
    return Affected(tuple(again), tuple(name for name in untold if links.touch(name)))


def functions_apart(changed: Collection[str], ran: Collection[str]) -> bool:
    """True if none of the changed functions ran."""
    return not any(name in ran for name in changed)


def same_given(trace: Trace, requests: Sequence[tuple[str, str]]) -> bool:
    """True if the given examples of a trace are these, by target and expression."""
    return [(run.target, run.expression) for run in trace.examples if not run.evidence] == list(requests)


class _Links:
    """Which statements of a file have to do with one another, by the words in them."""

    def __init__(self, old: Module, new: Module) -> None:
        before = {item.statement.text for item in old.statements.placed}
        texts = [item.statement.text for item in new.statements.placed]
        self._words = [words(text) for text in texts]
        self._binds = [bound(text) for text in texts]
        self._changed = [number for number, text in enumerate(texts) if text not in before]

    def touch(self, class_name: str) -> bool:
        """True if a statement that changed speaks of a class, or the class, directly or not, of it."""
        outer = class_name.partition(".")[0]
        if any(outer in self._words[number] for number in self._changed):
            return True
        names, seen = {outer}, set[int]()
        while reached := [number for number in range(len(self._words)) if number not in seen and not names.isdisjoint(self._binds[number])]:
            seen.update(reached)
            names = names.union(*(self._words[number] for number in reached))
        return not seen.isdisjoint(self._changed)
