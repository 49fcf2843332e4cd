"""What the runs of several files saw, from the point of view of one file: its own run, and the runs of files that import it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from shapelens.protocol import ExampleRun, LayerCall, LayerSeen, Mismatch, Observation, Remark, Trace, Value
from shapelens.source.module import Module
from shapelens.traces import PROGRAM

Numbered = TypeVar("Numbered", Mismatch, Remark)
Number = Callable[[int], int]  # from the number of an example or layer to its new one


def seen_from(trace: Trace, file: str) -> Trace:
    """A run of another file as this file sees it: what the run saw in it, and the mismatches whose place is here. The examples stay the
    other file's, and say so; those that may be wrong are left out."""
    trace = _without(trace, {number for number, run in enumerate(trace.examples) if run.doubtful})
    observations = [seen for seen in trace.observations if seen.span.file == file]
    examples = [replace(example, file=trace.file) for example in trace.examples]
    mismatches = [mismatch for mismatch in trace.mismatches if _lies_in(trace, mismatch, file)]
    wanted = {span.file for mismatch in mismatches for span in mismatch.trail} - {file}
    # What is said of a mismatch may need the values of the files that it was called through.
    observations += [seen for seen in trace.observations if seen.span.file in wanted]
    remarks = [remark for remark in trace.remarks if remark.span is not None and remark.span.file == file]
    return replace(trace, file=file, examples=examples, observations=observations, mismatches=mismatches, remarks=remarks)


def reaches(trace: Trace, file: str) -> bool:
    """Whether a run went through a file: imported it, or saw something of it."""
    return file in trace.files or any(seen.span.file == file for seen in trace.observations)


def see_all(module: Module, traces: Iterable[Trace]) -> bool:
    """Whether each module class of a file was constructed in some run. Where there is none, whether anything was."""
    seen = {layer.class_name for trace in traces for layer in trace.layers}
    return bool(seen) and all(cls.name in seen for cls in module.classes)


def constructed(trace: Trace) -> set[str]:
    """The names of the classes of which a run has constructed something."""
    return {layer.class_name for layer in trace.layers}


def classes_called(trace: Trace) -> set[str]:
    """The names of the classes of which a run has called something."""
    return {layer.class_name for layer in trace.layers if layer.calls}


def with_evidence(trace: Trace, known: Iterable[ExampleRun]) -> Trace:
    """A trace of examples that were run as they are, with what is known of those that were found: where from, and how sure that is."""
    found = {(run.target, run.expression): run for run in known if run.evidence}
    examples = []
    for run in trace.examples:
        same = found.get((run.target, run.expression))
        examples.append(run if same is None else replace(run, evidence=same.evidence, where=same.where, doubtful=same.doubtful))
    return replace(trace, examples=examples)


def without_found(trace: Trace, classes: Collection[str]) -> Trace:
    """A trace without the examples that were found for these classes, by name. The others are numbered anew."""
    dropped = {number for number, run in enumerate(trace.examples) if run.evidence and run.target.rpartition(".")[2] in classes}
    return _without(trace, dropped)


def _without(trace: Trace, dropped: Collection[int]) -> Trace:
    if not dropped:
        return trace
    examples = {old: new for new, old in enumerate(number for number in range(len(trace.examples)) if number not in dropped)}
    kept = [layer for layer in trace.layers if layer.example not in dropped]
    layers = {layer.index: new for new, layer in enumerate(kept)}
    left = replace(
        trace,
        examples=[trace.examples[number] for number in examples],
        observations=[seen for seen in trace.observations if seen.example not in dropped],
        layers=kept,
        mismatches=[seen for seen in trace.mismatches if seen.example not in dropped],
        remarks=[seen for seen in trace.remarks if seen.example not in dropped],
    )
    return renumbered(left, lambda number: examples.get(number, number), lambda number: layers.get(number, number))


def _lies_in(trace: Trace, mismatch: Mismatch, file: str) -> bool:
    innermost = mismatch.span or (mismatch.trail[-1] if mismatch.trail else None)
    constructed = trace.layers[mismatch.layer].span if mismatch.layer is not None else None
    return any(span is not None and span.file == file for span in (innermost, constructed if mismatch.argument else None))


def with_program(shown: Sequence[Trace], program: Trace) -> list[Trace]:
    """What examples showed of a document, then what it saw of itself as a program.

    As classes are loaded, statements of a module run as their names are read; in the program they run in their order. Where one gave a
    tensor there, that it failed as it was loaded is no mistake in it. An input that was only inferred gives way to the program's own.
    """
    held = {(seen.span.file, seen.span.line) for seen in program.observations if any(value.shape is not None for value in seen.values)}
    wrong = [seen.span for seen in program.mismatches if seen.span is not None and seen.code != "definition"]
    right = held - {(span.file, span.line) for span in wrong}

    def holds(seen: Mismatch) -> bool:
        return seen.code != "definition" or seen.span is None or (seen.span.file, seen.span.line) not in right

    if not all(holds(seen) for trace in shown for seen in trace.mismatches):
        shown = [replace(trace, mismatches=[seen for seen in trace.mismatches if holds(seen)]) for trace in shown]
    shown = [_without(trace, _contradicted(trace, program)) for trace in shown]
    return [*shown, _not_shown_by_examples(program, shown)]


def _contradicted(trace: Trace, program: Trace) -> set[int]:
    """The numbers of the examples that were inferred for classes which the program calls with other sizes, all of them known."""
    inferred = {number: run for number, run in enumerate(trace.examples) if run.evidence == "inferred" and run.target}
    if not inferred:
        return set()
    own = {number for number, run in enumerate(program.examples) if run.evidence == PROGRAM}
    calls: dict[str, list[LayerCall]] = {}
    for layer in program.layers:
        if layer.example in own and all(_is_known(value) for call in layer.calls for value in (*call.inputs, call.output)):
            calls.setdefault(layer.class_name, []).extend(layer.calls)
    return {
        layer.example
        for layer in trace.layers
        if layer.path == "" and layer.example in inferred and layer.class_name == inferred[layer.example].target.rpartition(".")[2]
        if (real := calls.get(layer.class_name))
        if not layer.calls or not any(_may_be(call, layer.calls[0]) for call in real)
    }


def _is_known(value: Value) -> bool:
    """Whether each size of the tensors in a value is known."""
    if value.kind == "unknown" or (value.shape is not None and None in value.shape):
        return False
    return all(map(_is_known, value.items or ()))


def _may_be(real: LayerCall, inferred: LayerCall) -> bool:
    """Whether tensors that a layer was called with have the sizes of those that were inferred, where these are no named dims."""
    tensors = [(a.shape, b) for a, b in zip(real.inputs, inferred.inputs, strict=False) if a.shape is not None and b.shape is not None]
    return all(
        len(shape) == len(other.shape or ())
        and all(size == wanted or not name.isdigit() for size, wanted, name in zip(shape, other.shape or (), _names(other), strict=True))
        for shape, other in tensors
    )


def _names(value: Value) -> list[str]:
    shape = value.shape or []
    return value.named if value.named is not None and len(value.named) == len(shape) else [str(size) for size in shape]


def _not_shown_by_examples(program: Trace, shown: Sequence[Trace]) -> Trace:
    """What a document saw of itself as a program, as far as the examples of its classes have not shown it: they come with named dims.

    A mismatch counts only where the code is at fault, rather than what stands in for the world around it.
    """
    # A function that the examples came to need not be called for its own sake.
    reached = {name for trace in shown for run in trace.examples for name in run.reached or ()}
    program = _without(
        program, {number for number, run in enumerate(program.examples) if run.evidence == "inferred" and run.target in reached}
    )
    known = {seen.span for trace in shown for seen in trace.observations}
    said = {seen.span for trace in shown for seen in trace.mismatches}
    constructed_at = {layer.span for trace in shown for layer in trace.layers if layer.calls}
    return replace(
        program,
        examples=[replace(run, file=program.file) for run in program.examples],
        observations=[seen for seen in program.observations if seen.span not in known],
        layers=[replace(layer, calls=[] if layer.span in constructed_at else _once_each(layer)) for layer in program.layers],
        mismatches=[seen for seen in program.mismatches if _is_of_code(program, seen) and seen.span not in said],
        notes=[],
    )


def _once_each(layer: LayerSeen) -> list[LayerCall]:
    """The calls of a layer, one for each shape that it gave: how often they came is of no worth where loops take their first turns only."""
    return list({str(call.output.shape): replace(call, count=1) for call in layer.calls}.values())


def _is_of_code(program: Trace, seen: Mismatch) -> bool:
    doubtful = 0 <= seen.example < len(program.examples) and program.examples[seen.example].doubtful
    return not doubtful and seen.code not in _OF_THE_WORLD


# Codes of mismatches that a program has for what is not there while it is followed.
_OF_THE_WORLD = {"exception", "missing-import", "missing-file", "definition", "data-dependent"}


def merged(file: str, traces: Sequence[Trace]) -> Trace:
    """Several traces of one file as one. Examples and layers are numbered on from those of the trace before."""
    whole = Trace(file)
    for trace in traces:
        examples, layers = len(whole.examples), len(whole.layers)
        moved = trace if not examples and not layers else renumbered(trace, _plus(examples), _plus(layers))
        whole.examples += moved.examples
        whole.observations += moved.observations
        whole.layers += moved.layers
        whole.mismatches += moved.mismatches
        whole.remarks += moved.remarks
        whole.notes += [note for note in moved.notes if note not in whole.notes]
        whole.files += [other for other in moved.files if other not in whole.files]
    return whole


def _plus(offset: int) -> Number:
    return lambda number: number + offset


def renumbered(trace: Trace, example: Number, layer: Number) -> Trace:
    """A trace with other numbers for its examples and layers. Its list of examples stays as it is."""
    return replace(
        trace,
        observations=[_renumbered_values(seen, example(seen.example), layer) for seen in trace.observations],
        layers=[_numbered(each, layer(each.index), example(each.example)) for each in trace.layers],
        mismatches=[_renumbered_one(mismatch, example, layer) for mismatch in trace.mismatches],
        remarks=[_renumbered_one(remark, example, layer) for remark in trace.remarks],
    )


def _renumbered_values(seen: Observation, example: int, layer: Number) -> Observation:
    values = [_of_layers(value, layer) for value in seen.values]
    same = example == seen.example and all(value is before for value, before in zip(values, seen.values, strict=True))
    return seen if same else replace(seen, example=example, values=values)


def _numbered(seen: LayerSeen, index: int, example: int) -> LayerSeen:
    return seen if (index, example) == (seen.index, seen.example) else replace(seen, index=index, example=example)


def _renumbered_one(seen: Numbered, example: Number, layer: Number) -> Numbered:
    origins = [replace(origin, layer=None if origin.layer is None else layer(origin.layer)) for origin in seen.origins]
    number = example(seen.example) if seen.example >= 0 else seen.example
    moved = replace(seen, layer=None if seen.layer is None else layer(seen.layer), example=number, origins=origins)
    if isinstance(moved, Mismatch):
        moved.inside = [layer(index) for index in moved.inside]
        moved.suspects = [replace(each, layer=None if each.layer is None else layer(each.layer)) for each in moved.suspects]
    return moved


def _of_layers(value: Value, layer: Number) -> Value:
    if value.layer is None and not value.items:
        return value
    items = None if value.items is None else [_of_layers(item, layer) for item in value.items]
    number = None if value.layer is None else layer(value.layer)
    same = number == value.layer and all(item is before for item, before in zip(items or [], value.items or [], strict=True))
    return value if same else replace(value, layer=number, items=items)
