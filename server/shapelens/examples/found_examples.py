"""The examples that were found for classes that nobody gave one: remembered, so that an edit costs no search and changes no choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from shapelens.examples.statement_names import WORD, bound, statements_of, words
from shapelens.protocol import Alternative, ExampleRun, FileSpan, Known, Mismatch, Trace
from shapelens.source.changes import changed_functions
from shapelens.source.module import Module, parse

_LINE = re.compile(r"line (\d+)\Z")
MOST_FIRST = 4  # first choices of one class, by their evidence
_OfClass = TypeVar("_OfClass")
_IMPORT = re.compile(r"(?:from|import)\b")


@dataclass(frozen=True)
class _RememberedExample:
    """Holds what is known of one class. evidence_text and text: what its choice and its failure depend on; line: what its `where` points
    to; call_line: what its `call` points to, where that is in the same file.
    """

    run: ExampleRun
    evidence_text: object
    text: tuple[list[str], list[object], object] | None
    line: str
    call_line: str
    files: tuple[str, ...]  # that its run imported
    failed: bool  # its run showed something wrong, be it with the code or with the example
    chosen: bool = False
    proven: bool = False  # it ran to its end at least once
    established: bool = False  # it ran when it was what opening the file shows
    guessed: frozenset[object] = frozenset()  # of its mismatches those that rest on a guess, where others are certain

    @property
    def is_unsure(self) -> bool:
        """True if the example, or something that it showed, may be wrong."""
        return self.run.doubtful or bool(self.guessed)

    def is_run_again_by(self, run: ExampleRun) -> bool:
        """True if a run is of this example as it was known, so that no other was tried."""
        return self.run.expression == run.expression and run.tried <= 1 and not run.others


@dataclass(frozen=True)
class _FirstChoice:
    """The first example of a class that ran with this evidence: a search finds it again where it runs again."""

    run: ExampleRun
    evidence_text: object


@dataclass
class FoundExamples:
    """Holds what was found for the classes of files, by path and qualified name. It lasts as long as the process, be a file open or not.

    state_of: gives for a path what changes whenever the text of that file does.
    """

    state_of: Callable[[str], object]
    _by_class: dict[tuple[str, str], _RememberedExample] = field(default_factory=dict)
    _first: dict[tuple[str, str], list[_FirstChoice]] = field(default_factory=dict)
    _adopted: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # the programs that have said an expression, by that

    def known(self, path: str, module: Module, classes: Iterable[str], surroundings: object = None) -> list[Known]:
        """Returns what was found for these classes of a file, as far as the text that speaks for it still is the same.

        `surroundings`: the files that import this one, as what they say of the class is evidence too. An example that failed in a text that
        has not changed since, nor what it imports, counts as chosen, as looking for a better one would end alike.
        """
        known = []
        for name in classes:
            found = self._by_class.get((path, name))
            if found is None or not found.run.expression:
                continue
            run = found.run
            if not found.chosen and found.evidence_text != _evidence_text(module, run, surroundings):
                del self._by_class[path, name]
                continue
            settled = found.failed and found.text == self._text(module, run, found.files, surroundings)
            where = _moved(module, run.where, found.line)
            chosen, call = found.chosen or settled, _moved_call(module, run.call, found.call_line)
            former = self._former(path, module, run, surroundings) if not found.chosen else None
            known.append(Known(name, run.expression, run.evidence, where, chosen, found.proven, call, former))
        return known

    def in_order(self, path: str, classes: Iterable[str]) -> list[str]:
        """Classes of a file in the order in which examples of them were found, then the others. Of those that come later in it, the ones
        before may show most.
        """
        numbers = {name: number for number, (file, name) in enumerate(self._by_class) if file == path}
        return sorted(classes, key=lambda name: numbers.get(name, len(numbers)))

    def has_some(self, path: str) -> bool:
        """True if something was found for a class of this file."""
        return any(file == path for file, _ in self._by_class)

    def files(self) -> set[str]:
        """The files with a class for which something was found."""
        return {file for file, _ in self._by_class}

    def begun_anew(self, module_of: Callable[[str], Module | None], classes: Container[tuple[str, str]] = ()) -> FoundExamples:
        """Returns what is to be known where all else is searched for anew: what the user has chosen, the examples of these classes, by path
        and name, and what was established and fails with the texts as they are.

        The edits since then are to blame, and another example might hide that. module_of: gives the module of a file by its path.
        """
        kept = {
            key: found
            for key, found in self._by_class.items()
            if found.chosen or key in classes or (found.established and found.failed and self._still_fails(found, key[0], module_of))
        }
        first = {key: list(self._first[key]) for key in kept.keys() & self._first.keys()}
        adopted = {key: dict(self._adopted[key]) for key in kept.keys() & self._adopted.keys()}
        return FoundExamples(self.state_of, kept, first, adopted)

    def establish(self, files: Container[str]) -> None:
        """Of the classes of these files those examples are known that opening the files would find."""
        for key, found in self._by_class.items():
            if key[0] in files and not found.failed:
                self._by_class[key] = replace(found, established=True)

    def take_over(self, other: FoundExamples, files: Container[str]) -> None:
        """Of the classes of these files nothing is known any more but what the other one knows, and what ran with other evidence."""
        self._by_class = {**_of_files(self._by_class, files, but=True), **_of_files(other._by_class, files)}
        self._adopted = {**_of_files(self._adopted, files, but=True), **_of_files(other._adopted, files)}
        for key, first in other._first.items():
            if key[0] in files:
                evidence = [each.evidence_text for each in first]
                before = [each for each in self._first.get(key, []) if each.evidence_text not in evidence]
                self._first[key] = [*before, *first][-MOST_FIRST:]

    def keep(
        self, path: str, module: Module, trace: Trace, surroundings: object = None, *, whole: bool = True, remember: bool = True
    ) -> Trace:
        """Remember what a run found. Returns its trace with what is known of the same examples from before: how many were tried, and which
        others run.

        whole: the run has come to its end; else only examples count that did. remember: False where more is to come of the same run.
        """
        files = tuple(trace.files)
        examples = []
        wrong = {mismatch.example for mismatch in trace.mismatches}
        again = set[tuple[int, object]]()  # mismatches that were known to rest on a guess: an example that is known is not judged anew
        for index, run in enumerate(trace.examples):
            if _is_found(run):
                before = self._by_class.get((path, run.target))
                failed = index in wrong or run.error is not None or run.doubtful
                was_unsure = before is not None and before.is_unsure
                # The text is not needed of an example that runs.
                text = self._text(module, run, files, surroundings) if (failed and remember) or was_unsure else None
                if before is not None and before.is_run_again_by(run):
                    doubtful = run.doubtful or (before.run.doubtful and before.text == text)
                    run = replace(run, tried=before.run.tried, others=before.run.others, doubtful=doubtful)
                    again |= {(index, same_words) for same_words in before.guessed} if before.text == text else set()
                if remember and (whole or run.seconds):
                    guessed = frozenset(_words(each) for each in trace.mismatches if each.example == index and _is_guessed(each, again))
                    self._remember(path, module, run, text, files, guessed, surroundings, failed=failed or run.doubtful)
            examples.append(run)
        if again:
            mismatches = [replace(each, guessed=_is_guessed(each, again)) for each in trace.mismatches]
            trace = replace(trace, mismatches=mismatches)
        return replace(trace, examples=examples)

    def _remember(
        self,
        path: str,
        module: Module,
        run: ExampleRun,
        text: tuple[list[str], list[object], object] | None,
        files: tuple[str, ...],
        guessed: frozenset[object],
        surroundings: object,
        *,
        failed: bool,
    ) -> None:
        """Have an example be the one of its class. What the user has chosen, or has been established of the same one, still holds."""
        before = self._by_class.get((path, run.target))
        same = before if before is not None and before.run.expression == run.expression else None
        chosen = same is not None and same.chosen
        proven = not failed or (same is not None and same.proven)
        established = same is not None and same.established
        evidence, lines = _evidence_text(module, run, surroundings), _lines(path, module, run)
        self._by_class[path, run.target] = _RememberedExample(
            run, evidence, text, *lines, files, failed, chosen, proven, established, guessed
        )
        if not (failed or chosen or run.call is not None):
            self._note_first(path, run, evidence)

    def completed(self, path: str, trace: Trace) -> Trace:
        """A trace with all that is known of its examples, for another process to go on from."""
        examples = []
        for run in trace.examples:
            found = self._by_class.get((path, run.target))
            examples.append(found.run if found is not None and found.run.expression == run.expression else run)
        return replace(trace, examples=examples)

    def choose(self, path: str, class_name: str, expression: str) -> bool:
        """Have a class run with one of the examples that were found for it from now on. Returns whether there is such a one."""
        found = self._by_class.get((path, class_name))
        if found is None:
            return False
        run = found.run
        if run.expression != expression:
            other = next((each for each in run.others if each.expression == expression), None)
            if other is None:
                return False
            others = [Alternative(run.expression, run.evidence, run.where), *(each for each in run.others if each is not other)]
            run = ExampleRun(class_name, other.expression, evidence=other.evidence, where=other.where, tried=run.tried, others=others)
        self._by_class[path, class_name] = replace(found, run=run, chosen=True)
        return True

    def adopt(self, path: str, module: Module, program: str, examples: Iterable[ExampleRun], surroundings: object = None) -> bool:
        """Have classes of a file run with what a program has called them with: once each, as the program says it each time.

        What was found stays among those that may be chosen. Returns whether there was one that is new.
        """
        adopted = False
        for run in examples:
            found = self._by_class.get((path, run.target))
            said = self._adopted.setdefault((path, run.target), {})
            if found is None or found.chosen or found.run.expression == run.expression or run.expression in said:
                continue
            said[run.expression] = program
            before = Alternative(found.run.expression, found.run.evidence, found.run.where)
            others = [before, *(each for each in found.run.others if each.expression != run.expression)]
            run = replace(run, tried=found.run.tried, others=others)
            evidence, lines = _evidence_text(module, run, surroundings), _lines(path, module, run)
            self._by_class[path, run.target] = _RememberedExample(run, evidence, None, *lines, found.files, failed=False, proven=True)
            adopted = True
        return adopted

    def disown(self, path: str, program: str, called: Container[str]) -> bool:
        """Searches anew for classes of the file at `path` that ran with what a program called them with, and does not call any more.

        called: the names of the classes that it does call. Returns whether there is one.
        """
        gone = []
        for (file, target), said in self._adopted.items():
            found = self._by_class.get((file, target)) if file == path else None
            by_program = found is not None and said.get(found.run.expression) == program
            if by_program and target.rpartition(".")[2] not in called:
                gone.append(target)
        for target in gone:
            del self._by_class[path, target], self._adopted[path, target]
        return bool(gone)

    def forget(self) -> None:
        """Everything but the user's own choices: another environment may run what this one did not."""
        self._by_class = {key: found for key, found in self._by_class.items() if found.chosen}
        self._first.clear()

    def _still_fails(self, found: _RememberedExample, path: str, module_of: Callable[[str], Module | None]) -> bool:
        """True if nothing has changed since an example failed but comments and layout, for which it does not run again."""
        module = module_of(path)
        if module is None or module.errors or found.text is None:
            return False
        (own, states, _), (own_now, states_now, _) = found.text, self._text(module, found.run, found.files, None)
        changed = [(state, file) for file, state, now in zip(found.files, states, states_now, strict=True) if state != now]
        return own == own_now and all(_is_same_code(state, module_of(file)) for state, file in changed)

    def _note_first(self, path: str, run: ExampleRun, evidence: object) -> None:
        first = self._first.setdefault((path, run.target), [])
        if all(each.evidence_text != evidence for each in first):
            self._first[path, run.target] = [*first, _FirstChoice(run, evidence)][-MOST_FIRST:]

    def _former(self, path: str, module: Module, run: ExampleRun, surroundings: object) -> Alternative | None:
        """Returns what ran before the example of a class that is known, and speaks for itself as it did then; None where it is the same."""
        first = self._first.get((path, run.target), [])
        for each in first if any(other.run.expression != run.expression for other in first) else ():
            if each.evidence_text == _evidence_text(module, each.run, surroundings):
                former = Alternative(each.run.expression, each.run.evidence, each.run.where)
                return former if former.expression != run.expression else None
        return None

    def _text(self, module: Module, run: ExampleRun, files: Iterable[str], surroundings: object) -> tuple[list[str], list[object], object]:
        """All that the run of an example may depend on: the imports, what its class and its expression name, what that names, and so on."""
        read = statements_of(module)
        statements, binding = read.statements, read.binding
        waiting = {run.target.partition(".")[0], *WORD.findall(run.expression)} & binding.keys()
        reached: set[str] = set()
        while waiting:
            reached |= waiting
            waiting = {word for name in waiting for text in binding[name] for word in words(text) & binding.keys()} - reached
        kept = [text for text in statements if _IMPORT.match(text) or not reached.isdisjoint(bound(text))]
        return kept, [self.state_of(file) for file in files], surroundings


def _is_found(run: ExampleRun) -> bool:
    """True if an example was found for a class of the file, rather than given."""
    return bool(run.evidence) and not run.file


def _is_guessed(mismatch: Mismatch, again: Container[tuple[int, object]]) -> bool:
    """True if a mismatch rests on a guess. again: those that were known to, each by its example and its words."""
    return mismatch.guessed or (mismatch.example, _words(mismatch)) in again


def _words(mismatch: Mismatch) -> object:
    """Returns what tells the mismatches of an example apart wherever its text stands."""
    return mismatch.code, mismatch.operation, mismatch.argument, mismatch.message


def _is_same_code(state: object, module: Module | None) -> bool:
    """True if a module has the code of a text. state: of its file before; that of a file as it is on disk is no text."""
    return module is not None and isinstance(state, str) and changed_functions(parse(state), module) == frozenset()


def _of_files(known: Mapping[tuple[str, str], _OfClass], files: Container[str], *, but: bool = False) -> dict[tuple[str, str], _OfClass]:
    """Returns what is known of the classes of these files, or of all other ones."""
    return {key: each for key, each in known.items() if (key[0] in files) is not but}


def _evidence_text(module: Module, run: ExampleRun, surroundings: object) -> object:
    return *statements_of(module).evidence(run), surroundings


def _lines(path: str, module: Module, run: ExampleRun) -> tuple[str, str]:
    """The lines that an example's `where` and its `call` point to, as far as they are of its file."""
    in_file = run.call is not None and run.call.file == path
    return _line_of(module, run.where), _text_of_line(module, run.call.line if run.call is not None and in_file else 0)


def _line_of(module: Module, where: str) -> str:
    """The line that `line 88` speaks of."""
    found = _LINE.match(where)
    return _text_of_line(module, int(found[1])) if found else ""


def _text_of_line(module: Module, number: int) -> str:
    return module.lines.line(number) if 0 < number <= module.lines.count else ""


def _moved(module: Module, where: str, line: str) -> str:
    """`line 90` for `line 88` where the line is further down now."""
    found = _LINE.match(where)
    return f"line {_nearest(module, int(found[1]), line)}" if found else where


def _moved_call(module: Module, call: FileSpan | None, line: str) -> FileSpan | None:
    if call is None:
        return None
    down = _nearest(module, call.line, line) - call.line
    return replace(call, line=call.line + down, end_line=call.end_line + down)


def _nearest(module: Module, number: int, line: str) -> int:
    """The line with this text that is nearest to where it was; where it was, if there is none or it is empty."""
    if not line or _text_of_line(module, number) == line:
        return number
    same = [other for other in range(1, module.lines.count + 1) if module.lines.line(other) == line]
    return min(same, key=lambda other: abs(other - number), default=number)
