"""The runs of several files, from the point of view of one file: its own run, and the runs of files that import it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from shapelens.analysis.evidence import rests_on_guess
from shapelens.protocol import ExampleRun, Mismatch, Observation, Trace
from shapelens.source.module import Module
from shapelens.source.statements import Placed
from shapelens.trace_numbering import without_examples
from shapelens.traces import PROGRAM

_FUNCTION = re.compile(r"(?:@.*\n)*(?:async[ \t]+)?def[ \t]+(\w+)")
# What a function has in it that computes with tensors.
_OF_TENSORS = re.compile(
    r"\b(?:torch|F|nn|np|einops)\.\w|\b(?:rearrange|einsum)\(|\w @ \w|\[[^\]\n]*, *None|\[None"
    r"|\.(?:shape|size|view|reshape|permute|transpose|flatten|squeeze|unsqueeze|mean|sum|softmax|argmax|detach|backward|to|cuda)\b"
)


def seen_from(trace: Trace, file: str) -> Trace:
    """A run of another file as this file sees it: what the run saw in it, and the mismatches that its code led to. The examples stay the
    other file's, and say so; those that may be wrong are left out."""
    trace = _trusted(trace)
    observations = [seen for seen in trace.observations if seen.span.file == file]
    examples = [replace(example, file=trace.file) for example in trace.examples]
    mismatches = [mismatch for mismatch in trace.mismatches if _leads_through(trace, mismatch, file)]
    wanted = {span.file for mismatch in mismatches for span in mismatch.trail} - {file}
    # What is said of a mismatch may need the values of the files that it was called through.
    observations += [seen for seen in trace.observations if seen.span.file in wanted]
    remarks = [remark for remark in trace.remarks if remark.span is not None and remark.span.file == file]
    # What the other file lacks matters where an example of its own was to show this file, not where one was only looked for.
    is_given = any(not example.evidence for example in examples)
    notes = [note for note in trace.notes if is_given or (note.span is not None and note.span.file == file)]
    return replace(trace, file=file, examples=examples, observations=observations, mismatches=mismatches, remarks=remarks, notes=notes)


def seen_by_program(trace: Trace, file: str) -> Trace:
    """Returns the values that a program of another file saw in this one, and the mistakes that stand in this one.

    A mistake counts only where the program shows it for sure: nothing that stands in for the world may be behind it. The lines of the
    others show nothing here.
    """
    if not reaches(trace, file):  # It means another file of that name.
        return Trace(file)
    wrong = {(seen.span.file, seen.span.line) for seen in trace.mismatches if seen.span is not None}
    observations = [
        seen for seen in trace.observations if seen.span.file == file and (file, seen.span.line) not in wrong and _says_something(seen)
    ]
    examples = [replace(example, file=trace.file) for example in trace.examples]
    mismatches = [
        seen for seen in trace.mismatches if seen.span is not None and seen.span.file == file and _is_sure_of_program(trace, seen)
    ]
    return replace(trace, file=file, examples=examples, observations=observations, mismatches=mismatches, remarks=[], notes=[], held=[])


def _is_sure_of_program(trace: Trace, seen: Mismatch) -> bool:
    """True if the program itself comes to a mismatch, or no input of a model that the program builds avoids it."""
    run = trace.examples[seen.example] if 0 <= seen.example < len(trace.examples) else None
    return run is not None and run.evidence in (PROGRAM, "usage") and not rests_on_guess(trace, seen)


def unshown(module: Module, trace: Trace | None, seen_elsewhere: Collection[str] = ()) -> set[str]:
    """Returns the names of a file's module classes that no trusted example shows.

    Its functions of tensors are among them if they show nothing, or only values of guessed arguments.
    """
    texts = {function.group(1): text for text in map(_text_of, module.statements.placed) if (function := _FUNCTION.match(text))}
    runs = trace.examples if trace is not None else []
    guesses = {number for number, run in enumerate(runs) if run.evidence == "inferred" and run.target in texts}
    observations = trace.observations if trace is not None else []
    shown = {seen.function.partition(".")[0] for seen in observations if seen.example not in guesses and _says_something(seen)}
    functions = {name for name, text in texts.items() if name not in shown and _OF_TENSORS.search(text)}
    return unsure_classes(module, trace, seen_elsewhere) | functions


def uses(trace: Trace) -> set[str]:
    """Returns the names of the file's classes and functions that the run has called."""
    functions = {seen.function.partition(".")[0] for seen in trace.observations if seen.span.file == trace.file}
    return (functions | classes_called(trace)) - {""}


def _says_something(seen: Observation) -> bool:
    return any(value.kind != "unknown" for value in seen.values)


def _text_of(placed: Placed) -> str:
    return placed.statement.text.lstrip()


def reaches(trace: Trace, file: str) -> bool:
    """True if the run has imported the file, or has seen a value in it."""
    return file in trace.files or any(seen.span.file == file for seen in trace.observations)


def see_all(module: Module, traces: Iterable[Trace]) -> bool:
    """True if trusted examples used each module class of the file; in a file without classes, if they used any class at all."""
    seen = {name for trace in traces for name in classes_used(_trusted(trace))}
    return bool(seen) and all(cls.name in seen for cls in module.classes)


def unsure_classes(module: Module, own: Trace | None, seen_elsewhere: Collection[str]) -> set[str]:
    """Returns the names of the file's module classes that no trusted example shows, neither the file's own nor another file's."""
    called = classes_called(_trusted(own)) if own is not None else set()
    return {cls.name for cls in module.classes} - called - set(seen_elsewhere)


def parts_to_see(module: Module, own: Trace | None, seen_elsewhere: Collection[str]) -> set[str]:
    """Returns the names of the file's module classes that a model made of them may show better than their own examples do.

    These are the classes that no trusted example shows, and those whose construction and input ShapeLens guessed.
    """
    inferred = {run.target for run in own.examples if run.evidence == "inferred"} if own is not None else set()
    return unsure_classes(module, own, seen_elsewhere) | ({cls.name for cls in module.classes} & inferred).difference(seen_elsewhere)


def constructed(trace: Trace) -> set[str]:
    """Returns the names of the classes that the run has constructed."""
    return {layer.class_name for layer in trace.layers}


def classes_used(trace: Trace) -> set[str]:
    """Returns the names of the file's classes that an example has called. A class of the same name in another file is another class.

    After a mistake, those that it only constructed count too: the mistake may have kept it from calling them.
    """
    failed = {seen.example for seen in trace.mismatches}
    path = Path(trace.file)
    module = path.parent.name if path.stem == "__init__" else path.stem
    own = [layer for layer in trace.layers if {module, "__main__"} & {*layer.qualified_name.split(".")[:-1]} or not layer.qualified_name]
    return {layer.class_name for layer in own if layer.calls or layer.example in failed}


def classes_called(trace: Trace) -> set[str]:
    """Returns the names of the classes that the run has called."""
    return {layer.class_name for layer in trace.layers if layer.calls}


def with_evidence(trace: Trace, known: Iterable[ExampleRun]) -> Trace:
    """Returns the trace with source and certainty of the found examples, taken from the runs in `known`."""
    found = {(run.target, run.expression): run for run in known if run.evidence}
    examples = []
    for run in trace.examples:
        same = found.get((run.target, run.expression))
        examples.append(run if same is None else replace(run, evidence=same.evidence, where=same.where, doubtful=same.doubtful))
    return replace(trace, examples=examples)


def without_found(trace: Trace, classes: Collection[str]) -> Trace:
    """Returns the trace without the examples that were found for these classes, by name. The others get new numbers."""
    return without_examples(trace, _found(trace, classes))


def only_found(trace: Trace, classes: Collection[str]) -> Trace:
    """Returns a trace of only the examples that were found for these classes, by name, and are not doubtful. They get new numbers."""
    sure = {number for number in _found(trace, classes) if not trace.examples[number].doubtful}
    return without_examples(trace, set(range(len(trace.examples))) - sure)


def _found(trace: Trace, classes: Collection[str]) -> set[int]:
    return {number for number, run in enumerate(trace.examples) if run.evidence and run.target.rpartition(".")[2] in classes}


def without_doubtful(trace: Trace, names: Collection[str]) -> Trace:
    """Returns the trace without the doubtful examples that were found for these classes and functions. The others get new numbers."""
    found = [run.doubtful and bool(run.evidence) and run.target.rpartition(".")[2] in names for run in trace.examples]
    return without_examples(trace, {number for number, is_doubtful in enumerate(found) if is_doubtful})


def _trusted(trace: Trace) -> Trace:
    """Returns the trace without doubtful examples."""
    return without_examples(trace, {number for number, run in enumerate(trace.examples) if run.doubtful})


def _leads_through(trace: Trace, mismatch: Mismatch, file: str) -> bool:
    """True if a call in this file led to a mismatch, which may lie in a file that it imports, or a layer was built here for it."""
    constructed = trace.layers[mismatch.layer].span if mismatch.layer is not None else None
    spans = [mismatch.span, *mismatch.trail, constructed if mismatch.argument else None]
    return any(span is not None and span.file == file for span in spans)
