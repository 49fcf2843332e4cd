"""The examples that were found for classes that nobody gave one: remembered, so that an edit costs no search and changes no choice."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Container, Iterable, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from shapelens.examples.expression import SHORTHANDS
from shapelens.protocol import Alternative, ExampleRun, FileSpan, Known, Trace
from shapelens.source.module import Module

_WORD = re.compile(r"[^\W\d]\w*")
# Statements that say nothing of how a class is used: imports, the docstring of the file, what it exports.
_SILENT = re.compile(r"""\s*(?:from\b|import\b|__all__\b|[rRbBuU]?["'])""")
# Comments, docstrings and signatures: where annotations stand.
_SAYING = re.compile(r"""#.*|\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3}|\bdef \w+\((?s:.*?)\)[^:\n]*:""")
_LINE = re.compile(r"line (\d+)\Z")
# Functions that say how to build and call a model without naming its class.
_CONVENTIONS = frozenset({"get_inputs", "get_init_inputs"})
# What any statement may name without having to do with an example.
_COMMON = frozenset({*keyword.kwlist, *dir(builtins), *SHORTHANDS, "torch", "nn", "F", "np", "self", "line", "__main__"})
# `net = Net()`, `x = torch.randn(2, 3)`, `net(x)`: from the class to what it is called with there are this many steps.
_STEPS = 2
_LONGEST_STEP = 400  # characters of a statement whose names are followed further
_IMPORT = re.compile(r"(?:from|import)\b")
_BLOCK = re.compile(r"(?:if|try|for|while|with|match)\b")
_ASSIGNED = re.compile(r"[^=(]+(?==)")  # what stands left of `=`
_DEFINITION = re.compile(r"(?:@.*\n)*(?:async\s+)?(?:def|class)\s+(\w+)")


@dataclass(frozen=True)
class _RememberedExample:
    """What is known of one class. evidence_text and text: what its choice and its failure depend on; line: what its `where` points to;
    call_line: what its `call` points to, where that is in the same file."""

    run: ExampleRun
    evidence_text: object
    text: object
    line: str
    call_line: str
    files: tuple[str, ...]  # that its run imported
    failed: bool  # its run showed something wrong, be it with the code or with the example
    chosen: bool = False
    proven: bool = False  # it ran to its end at least once


@dataclass
class FoundExamples:
    """What was found for the classes of files, by path and qualified name. It lasts as long as the process, be a file open or not.

    state_of: gives for a path what changes whenever the text of that file does.
    """

    state_of: Callable[[str], object]
    _by_class: dict[tuple[str, str], _RememberedExample] = field(default_factory=dict)
    _adopted: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # the programs that have said an expression, by that

    def known(self, path: str, module: Module, classes: Iterable[str], surroundings: object = None) -> list[Known]:
        """What was found for these classes of a file, as far as the text that speaks for it still is the same.

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
            known.append(Known(name, run.expression, run.evidence, where, chosen=chosen, proven=found.proven, call=call))
        return known

    def has_some(self, path: str) -> bool:
        """Whether something was found for a class of this file."""
        return any(file == path for file, _ in self._by_class)

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
        for index, run in enumerate(trace.examples):
            if run.evidence and not run.file:
                before = self._by_class.get((path, run.target))
                same = before is not None and before.run.expression == run.expression
                failed = index in wrong or run.error is not None or run.doubtful
                text = None  # The text is not needed of an example that runs.
                if (failed and remember) or (before is not None and before.run.doubtful):
                    text = self._text(module, run, files, surroundings)
                if before is not None and same and run.tried <= 1 and not run.others:  # It was known, so no other was tried.
                    doubtful = run.doubtful or (before.run.doubtful and before.text == text)
                    run = replace(run, tried=before.run.tried, others=before.run.others, doubtful=doubtful)
                if remember and (whole or run.seconds):
                    chosen = before is not None and before.chosen and same
                    evidence = _evidence_text(module, run, surroundings)
                    failed = failed or run.doubtful
                    proven = not failed or (before is not None and same and before.proven)
                    lines = _lines(path, module, run)
                    self._by_class[path, run.target] = _RememberedExample(run, evidence, text, *lines, files, failed, chosen, proven)
            examples.append(run)
        return replace(trace, examples=examples)

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
        """A program does not call a class of the file at `path` any more that runs with what it called it with: it is searched for anew.

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

    def _text(self, module: Module, run: ExampleRun, files: Iterable[str], surroundings: object) -> object:
        """All that the run of an example may depend on: the imports, what its class and its expression name, what that names, and so on."""
        read = _statements_of(module)
        statements, binding = read.statements, read.binding
        waiting = {run.target.partition(".")[0], *_WORD.findall(run.expression)} & binding.keys()
        reached: set[str] = set()
        while waiting:
            reached |= waiting
            waiting = {word for name in waiting for text in binding[name] for word in words(text) & binding.keys()} - reached
        kept = [text for text in statements if _IMPORT.match(text) or not reached.isdisjoint(bound(text))]
        return kept, [self.state_of(file) for file in files], surroundings


class _ModuleStatements:
    """What the statements of a module say, read when it is asked for, and once."""

    def __init__(self, module: Module) -> None:
        self._texts = [item.statement.text for item in module.statements.placed]
        self._classes = [[cls.qualname for cls in item.statement.classes] for item in module.statements.placed]
        self._module_classes = {cls.qualname for cls in (*module.classes, *module.maybe_modules)}
        self._evidence: dict[tuple[str, ...], tuple[list[str], list[list[str]]]] = {}

    @cached_property
    def statements(self) -> list[str]:
        """The top-level statements."""
        return [text.strip() for text in self._texts]

    @cached_property
    def binding(self) -> dict[str, list[str]]:
        """The statements that bind a name."""
        binding: dict[str, list[str]] = {}
        for text in self.statements:
            for name in bound(text):
                binding.setdefault(name, []).append(text)
        return binding

    @cached_property
    def _inside(self) -> list[int]:
        return [number for number, names in enumerate(self._classes) if not self._module_classes.isdisjoint(names)]

    @cached_property
    def _outside(self) -> list[tuple[int, str]]:
        inside = set(self._inside)
        return [(number, text) for number, text in enumerate(self._texts) if number not in inside and not _SILENT.match(text)]

    @cached_property
    def _names(self) -> frozenset[str]:
        own = (cls.partition(".")[0] for cls in self._module_classes)
        return frozenset().union(*(_names_at_module_level(text) for _, text in self._outside), own)

    def evidence(self, run: ExampleRun) -> tuple[list[str], list[list[str]]]:
        """What speaks for or against an example of a class: the statements outside of module classes that have to do with the class or with
        what the example names. An annotation speaks in the class itself, but not in the code of its methods."""
        key = run.target, run.expression, run.where, run.evidence
        if key not in self._evidence:
            self._evidence[key] = self._evidence_of(*key)
        return self._evidence[key]

    def _evidence_of(self, target: str, expression: str, where: str, evidence: str) -> tuple[list[str], list[list[str]]]:
        # What a function calls its own variables has nothing to do with what others call theirs.
        spoken = ({*_WORD.findall(f"{expression} {where}")} & self._names) | {target.rpartition(".")[2], *_CONVENTIONS}
        kept: set[int] = set()
        for _ in range(_STEPS + 1):
            reached = {number: text for number, text in self._outside if number not in kept and not spoken.isdisjoint(words(text))}
            kept.update(reached)
            spoken |= {word for text in reached.values() if len(text) < _LONGEST_STEP for word in words(text)} & self._names
        said: list[list[str]] = []
        if evidence == "annotation":
            outer = target.partition(".")[0]
            own = [number for number in self._inside if any(name.partition(".")[0] == outer for name in self._classes[number])]
            said = [_SAYING.findall(self._texts[number]) for number in own]
        return [self.statements[number] for number in sorted(kept)], said


_read: WeakKeyDictionary[Module, _ModuleStatements] = WeakKeyDictionary()


def _statements_of(module: Module) -> _ModuleStatements:
    found = _read.get(module)
    if found is None:
        found = _read[module] = _ModuleStatements(module)
    return found


def _evidence_text(module: Module, run: ExampleRun, surroundings: object) -> object:
    return *_statements_of(module).evidence(run), surroundings


def with_users(module: Module, names: Iterable[str]) -> set[str]:
    """These names of a file, and those of its other classes and functions that come to use one of them."""
    found, waiting = set(names), True
    definitions = [(bound(text), words(text)) for text in _statements_of(module).statements if _DEFINITION.match(text)]
    while waiting:
        more = {name for own, used in definitions if not found.isdisjoint(used) for name in own} - found
        found, waiting = found | more, bool(more)
    return found


def mentions(text: str, names: Set[str]) -> bool:
    """Whether the text of a file names one of these."""
    return not names.isdisjoint(_WORD.findall(text))


@lru_cache(maxsize=512)
def words(text: str) -> frozenset[str]:
    """The words of a text that are names of the file, and of what it imports."""
    return frozenset(_WORD.findall(text)) - _COMMON


@lru_cache(maxsize=512)
def _names_at_module_level(statement: str) -> frozenset[str]:
    """The names that a statement may bind in its module: that of a function or class, any of another statement's."""
    definition = _DEFINITION.match(statement)
    return words(statement) if definition is None else frozenset({definition[1]}) - _COMMON


@lru_cache(maxsize=512)
def bound(statement: str) -> frozenset[str]:
    """The names that a statement binds in its module; of an `if` or the like, all that it names."""
    if definition := _DEFINITION.match(statement):
        return frozenset({definition[1]})
    if _BLOCK.match(statement):
        return words(statement)
    target = _ASSIGNED.match(statement)
    return words(target[0]) if target else frozenset()


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
