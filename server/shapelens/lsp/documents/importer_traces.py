"""Keeps what runs of other files saw in a document: kept by the file that ran, and merged with what the document's own run saw."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from shapelens import protocol
from shapelens.analysis.traces.programs import with_found, with_importing_program, with_program
from shapelens.analysis.traces.views import classes_used, only_found, seen_by_program, seen_from, without_found
from shapelens.lsp.documents.moved_traces import moved_trace
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.source.changes import changed_functions
from shapelens.source.module import Module
from shapelens.trace_numbering import merged, renumbered

_FUNCTION = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


@dataclass(eq=False)
class ImporterTrace:
    """Holds what the run of one file that imports the document saw in the document. Its positions are those of `module`.

    state: of a program, that of the file's text.
    """

    module: Module
    trace: protocol.Trace
    run: RepeatableRun
    state: object = None
    _moved: tuple[Module, protocol.Trace] | None = field(default=None, init=False)  # the last time, which all stages of a run ask for

    def moved_to(self, module: Module) -> protocol.Trace:
        """The trace at the positions of another text."""
        if self._moved is None or self._moved[0] is not module:
            self._moved = module, moved_trace(self.trace, self.module.lines, module.lines)
        return self._moved[1]


class ImporterTraces:
    """The newest trace of each file whose run went through one document, and of the document itself as a program."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._by_file: dict[str, ImporterTrace] = {}
        self._programs: dict[str, ImporterTrace] = {}  # of other files that import it, followed as programs
        self._program: ImporterTrace | None = None
        self._earlier_programs: list[ImporterTrace] = []  # newest first: what `_program` has not come to, where it did not come to its end
        self._program_outdated = False
        self._established: set[tuple[str, str]] = set()  # calls of functions that went well when opening the document showed them
        self._given: list[protocol.ExampleRun] = []  # calls that are known before it is followed as a program
        # The last times, see `merged_with`.
        self._merged: dict[tuple[bool, bool], tuple[protocol.Trace | None, Module, protocol.Trace | None]] = {}

    def reopened(self, module: Module, functions: Container[str] = ()) -> ImporterTraces:
        """Returns what is known of the document where all is found out anew: what these functions are called with, and calls that went well
        when that was done last, and do not with the text of `module`. The edits since then are to blame, and another call might hide that.
        """
        traces = ImporterTraces(self._path)
        program = self._program.trace if self._program is not None else protocol.Trace(self._path)
        numbers = {each.example for each in program.mismatches}
        wrong = {run.target for number, run in enumerate(program.examples) if number in numbers}
        called = self.functions_called(module)
        broken = {(run.target, run.expression) for run in called if run.target in wrong} & self._established
        traces._established = broken
        traces._given = [run for run in called if run.target in functions or (run.target, run.expression) in broken]
        return traces

    def establish(self) -> None:
        """The document is shown as opening it shows it."""
        if self._program is not None:
            wrong = {each.example for each in self._program.trace.mismatches}
            runs = [run for number, run in enumerate(self._program.trace.examples) if number not in wrong and run.error is None]
            self._established |= {(run.target, run.expression) for run in runs if run.target}

    def views(self) -> list[protocol.Trace]:
        """Returns what the document shows in runs of other files' examples."""
        return [each.trace for each in self._by_file.values()]

    def add(self, trace: protocol.Trace, module: Module, run: RepeatableRun) -> None:
        """A run of another file went through the document when its text was that of `module`. Replaces that file's earlier trace."""
        self._merged.clear()
        self._by_file[trace.file] = ImporterTrace(module, seen_from(trace, self._path), run)

    def follow_program(self, trace: protocol.Trace | None, module: Module, run: RepeatableRun, *, is_whole: bool = True) -> None:
        """The document was followed as a program when its text was that of `module`. Replaces the trace of the time before.

        is_whole: else there is more to come. Functions that it has not come to show what they showed before, and so do the places of which
        nothing is known, as a run tells of these in the end.
        """
        earlier = [] if is_whole or self._program is None else [self._program, *self._earlier_programs]
        self._merged.clear()
        self._program = ImporterTrace(module, trace, run) if trace is not None else None
        self._given.clear()
        self._earlier_programs, seen = [], _functions_seen(trace) if trace is not None else set()
        told = False
        for program in earlier:
            tells = not told and any(map(_is_unknown, program.trace.observations))
            if tells or not seen.issuperset(_functions_seen(program.trace)):
                self._earlier_programs.append(program)
                seen |= _functions_seen(program.trace)
                told |= tells
        self._program_outdated = False

    def follow_importer(self, file: str, trace: protocol.Trace, module: Module, run: RepeatableRun, state: object) -> None:
        """A file that imports the document was followed as a program when the document's text was that of `module`."""
        self._merged.clear()
        self._programs[file] = ImporterTrace(module, seen_by_program(trace, self._path), run, state)

    def importer_holds(self, file: str, state: object, module: Module, names: Container[str]) -> bool:
        """True if a file that imports the document would see the same of these classes and functions of it as it saw as a program."""
        known = self._programs.get(file)
        if known is None or known.state != state:
            return False
        changed = changed_functions(known.module, module)
        if changed and known.trace.mismatches:  # The edit may be what mends them.
            return False
        return changed is not None and not any(name.partition(".")[0] in names for name in changed)

    def keep_importers(self, files: Container[str]) -> None:
        """Forget what files saw as programs that do not import the document any more."""
        self._merged.clear()
        self._programs = {file: each for file, each in self._programs.items() if file in files}

    def learns_from(self, file: str) -> bool:
        """True if a file was followed as a program to see the document."""
        return file in self._programs

    def mark_program_outdated(self) -> None:
        """Marks what the document saw as a program as outdated, be its text the same."""
        self._program_outdated = True

    def program_holds(self, module: Module, own: protocol.Trace | None) -> bool:
        """True if the document as a program would see the same in this text as it saw last: the code that it came to is the same.

        Where a function has changed that neither it came to nor `own`, what the examples saw, it may come to that function now.
        """
        if self._program is None or self._program_outdated:
            return False
        changed = changed_functions(self._program.module, module)
        reached = [run.reached for run in self._program.trace.examples]
        if changed is None or not reached or not all(names is not None and changed.isdisjoint(names) for names in reached):
            return False
        return changed <= {name for run in (own.examples if own is not None else []) for name in run.reached or ()}

    def functions_called(self, module: Module) -> list[protocol.ExampleRun]:
        """The examples with which functions were called when the document was last followed as a program, of those that still are as they
        were."""
        found = list(self._given)
        now = _definitions(module)
        for program in (self._program, *self._earlier_programs):
            before, targets = _definitions(program.module) if program is not None else {}, {run.target for run in found}
            runs = program.trace.examples if program is not None else []
            found += [run for run in runs if run.target not in ("", *targets) and before.get(run.target) == now.get(run.target)]
        return found

    def called(self) -> set[str]:
        """The functions that are called with something when the document is followed as a program, by qualified name."""
        known = [self._program, *self._earlier_programs] if self._program is not None else []
        return {run.target for program in known for run in program.trace.examples if run.error is None}

    def drop(self, file: str) -> bool:
        """A file does not run any more, or not through the document. Returns whether there was a trace of it."""
        self._merged.clear()
        return self._by_file.pop(file, None) is not None

    def of(self, files: Container[str]) -> list[protocol.Trace]:
        """Returns what the runs of these files saw."""
        return [each.trace for file, each in self._by_file.items() if file in files]

    def outdated(self, module: Module, but: Container[str] = ()) -> list[str]:
        """The files whose runs went through other code of the document than that of `module`, some left out."""
        left = [(file, each) for file, each in self._by_file.items() if file not in but]
        return [file for file, each in left if changed_functions(each.module, module) != frozenset()]

    def classes(self, but: Container[str] = ()) -> set[str]:
        """The names of the classes that these runs used, those of some files left out."""
        return {name for file, each in self._by_file.items() if file not in but for name in classes_used(each.trace)}

    def runs(self) -> list[RepeatableRun]:
        """The runs of other files that these traces are of."""
        return [each.run for each in self._by_file.values()]

    def runs_with_mistakes(self) -> list[RepeatableRun]:
        """The runs of other files as programs that came to a mistake in the document."""
        return [each.run for each in self._programs.values() if each.trace.mismatches]

    @property
    def is_known_otherwise(self) -> bool:
        """True if anything else than its own examples shows the document."""
        return bool(self._by_file or self._programs) or self._program is not None

    @property
    def program_run(self) -> RepeatableRun | None:
        """The run of the document as a program; None where there was none."""
        return self._program.run if self._program is not None else None

    def merged_with(
        self, own: protocol.Trace | None, module: Module, *, programs: bool = True, only_wrong: bool = False
    ) -> protocol.Trace | None:
        """All that is known of the text of `module`: what the document's own run saw (at positions of that text), and what importers saw.

        Of what importers saw in an older text, that is left which still stands in this one. programs: also what they saw as programs.
        only_wrong: `own` holds what is wrong and nothing else, and no more is asked for.
        """
        asked = programs, only_wrong
        known = self._merged.get(asked)
        if known is None or known[0] is not own or known[1] is not module:
            known = self._merged[asked] = own, module, self._merge(own, module, programs=programs, only_wrong=only_wrong)
        return known[2]

    def _merge(self, own: protocol.Trace | None, module: Module, *, programs: bool, only_wrong: bool) -> protocol.Trace | None:
        views = [each.moved_to(module) for each in self._by_file.values()]
        importers = [each.moved_to(module) for each in self._programs.values()] if programs else []
        found = protocol.Trace(self._path)
        if views and own is not None:  # Where a class is used in earnest, that says more of the class than an example that was found.
            found, own = only_found(own, self.classes()), without_found(own, self.classes())
        shown = [*([own] if own is not None else []), *views]
        program = self._program
        followed = [program.moved_to(module)] if program is not None else []
        for earlier in self._earlier_programs if program is not None else []:
            seen = set[str]().union(*map(_functions_seen, followed))
            followed.append(_other_functions(earlier.moved_to(module), seen))
        for view in followed:
            shown = with_program(shown, view, only_wrong=only_wrong)
        for view in importers:
            shown = with_importing_program(shown, view, only_wrong=only_wrong)
        shown = with_found(shown, found)
        return merged(self._path, shown) if views or followed or importers else own


def _functions_seen(program: protocol.Trace) -> set[str]:
    """The functions and classes of its own file that a program has come to, by name."""
    seen = {seen.function.partition(".")[0] for seen in program.observations if seen.function and seen.span.file == program.file}
    return seen | {run.target for run in program.examples if run.target}


def _other_functions(program: protocol.Trace, known: Container[str]) -> protocol.Trace:
    """Returns what a program has shown of the functions that newer runs have not come to, and the places of which nothing is known."""
    observations = program.observations
    left = [each for each in observations if _is_unknown(each) or (each.function and each.function.partition(".")[0] not in known)]
    used = {number for seen in left for value in seen.values for number in _layers_of(value)}
    layers = [layer for layer in program.layers if layer.index in used]
    numbers = {layer.index: number for number, layer in enumerate(layers)}
    other = replace(program, observations=left, layers=layers, mismatches=[], notes=[], remarks=[], held=[])
    return renumbered(other, lambda number: number, numbers.__getitem__)


def _is_unknown(seen: protocol.Observation) -> bool:
    return all(value.kind == "unknown" for value in seen.values)


def _layers_of(value: protocol.Value) -> Iterator[int]:
    """The numbers of the layers that a value is, or holds."""
    if value.layer is not None:
        yield value.layer
    for item in value.items or []:
        yield from _layers_of(item)


def _definitions(module: Module) -> dict[str, list[str]]:
    """The texts of the functions at module level, by name."""
    found: dict[str, list[str]] = {}
    for placed in module.statements.placed:
        function = _FUNCTION.search(placed.statement.text)
        if function is not None:
            found.setdefault(function.group(1), []).append(placed.statement.text.strip())
    return found
