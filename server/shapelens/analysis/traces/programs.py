"""A document as a program beside the examples of its classes: which of the two is shown where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from shapelens.analysis.evidence import rests_on_guess
from shapelens.analysis.shapes import SHORT_DTYPES
from shapelens.analysis.traces.views import uses, without_doubtful
from shapelens.examples.expression import with_tensors
from shapelens.protocol import ExampleRun, FileSpan, LayerCall, LayerSeen, Mismatch, Observation, Trace, Value
from shapelens.trace_numbering import with_fields, without_examples
from shapelens.traces import PROGRAM, outermost

# Codes of mismatches that a program has for what is not there while it is followed.
_OF_THE_WORLD = {"exception", "missing-import", "missing-file", "definition", "data-dependent"}
_OF_USE = ("inferred", "usage", "factory")  # evidence that gives way to the use itself
_SHORTHANDS = {**SHORT_DTYPES, "int64": "i64", "bool": "bool"}


def with_program(shown: Sequence[Trace], program: Trace, *, only_wrong: bool = False) -> list[Trace]:
    """Returns the traces of a document's examples, then that of the document as a program.

    As classes are loaded, statements of a module run as their names are read; in the program they run in their order. Where one gave a
    tensor there, or was executed without a failure, that it failed as it was loaded is no mistake in it. An input that was only inferred
    gives way to the program's own. only_wrong: nothing is asked but what is wrong, which is known sooner.
    """
    program = without_examples(program, _guessed_of_what_is_shown(program, shown))
    if any(seen.code == "definition" for trace in shown for seen in trace.mismatches):
        right = _lines_that_hold(program)
        shown = [replace(trace, mismatches=[seen for seen in trace.mismatches if not _is_refuted(seen, right, program)]) for trace in shown]
    shown = [without_examples(trace, _contradicted(trace, program).keys() | _built_otherwise(trace, program)) for trace in shown]
    left = _not_shown_by_examples(program, shown, only_wrong=only_wrong)
    return [*shown, left]


def with_importing_program(shown: Sequence[Trace], view: Trace, *, only_wrong: bool = False) -> list[Trace]:
    """Returns the traces shown of a file, then the view of a program that imports the file (views.py).

    What a class or function showed when it was given what may be wrong gives way, unless that shows more of it. So do the steps of a
    class, but where the program builds it as its example does and does not come to call it; and the methods of a class that is no module,
    but for those of which the program shows nothing.
    """
    kept = _shown_better(shown, view)
    alone = _methods_alone(shown, view)
    shown = [_giving_way(without_doubtful(trace, uses(view) - kept), view, kept, alone) for trace in shown]
    observations = [seen for seen in view.observations if outermost(seen) not in kept]
    return with_program(shown, replace(view, observations=observations), only_wrong=only_wrong)


def _shown_better(shown: Sequence[Trace], view: Trace) -> set[str]:
    """The classes and functions of which doubtful examples show more lines than a program, and classes that it does not come to call."""
    guessed = set[tuple[str, int]]()  # the lines that show something, each with the class or function that it stands in
    own = [seen for seen in view.observations if seen.span.file == view.file]
    used = {outermost(seen) for seen in own if not seen.function.endswith(".__init__")}
    built_so = {run.target for trace in shown for run in trace.examples if run.evidence == "usage" and not run.doubtful} - used
    kept = set[str]()
    for trace in shown:
        targets = {number: run.target for number, run in enumerate(trace.examples) if run.doubtful and run.evidence and run.target}
        guessed |= {(outermost(seen), seen.span.line) for seen in trace.observations if targets.get(seen.example) == outermost(seen)}
        # Steps of a class that is built as the program builds it, which does not come to call it.
        steps = {number for number, run in enumerate(trace.examples) if run.doubtful and run.target.partition(".")[0] in built_so}
        kept |= {outermost(seen) for seen in trace.observations if seen.example in steps}
    return kept | _with_more_lines(guessed, {(outermost(seen), seen.span.line) for seen in own})


def _with_more_lines(guessed: Collection[tuple[str, int]], in_view: Collection[tuple[str, int]]) -> set[str]:
    """The names in both that have more lines in the first. Each line stands with a name."""
    lines_guessed, lines_in_view = (Counter(name for name, _ in lines) for lines in (guessed, in_view))
    return {name for name in lines_in_view if lines_in_view[name] < lines_guessed[name]}


def with_found(shown: Sequence[Trace], found: Trace) -> list[Trace]:
    """Returns the traces shown of a file, then those of found examples on lines of which the others show nothing: branches that a file
    which uses the classes does not come to. What is wrong with these examples does not count.

    A method with such a line shows what it was given there as well: `x: [B, T, 8] | [B, 3, 64, 64]`. An example that runs past what is an
    error where the class is used shows nothing: its shapes below would say that nothing is wrong.
    """
    found = without_examples(found, _going_past_errors(found, shown))
    if not found.examples:
        return [*shown]
    left = _not_shown_by_examples(replace(found, mismatches=[], remarks=[]), shown)
    spans = {seen.span for seen in left.observations}
    entered = {
        seen.function for seen in left.observations if any(value.kind not in ("unknown", "scalar", "other") for value in seen.values)
    }
    given = [seen for seen in found.observations if seen.kind == "parameter" and seen.function in entered and seen.span not in spans]
    return [*shown, replace(left, observations=[*left.observations, *given])]


def _going_past_errors(found: Trace, shown: Sequence[Trace]) -> set[int]:
    """The numbers of the examples that come to a line on which what is shown fails for sure, and do not fail there."""
    sure = [seen.span for trace in shown for seen in trace.mismatches if seen.span is not None and not rests_on_guess(trace, seen)]
    wrong = {(span.file, span.line) for span in sure}
    reached = {(seen.example, seen.span.file, seen.span.line) for seen in found.observations}
    failed = {(seen.example, span.file, span.line) for seen in found.mismatches for span in (*seen.trail, seen.span) if span is not None}
    return {example for example, *place in reached - failed if tuple(place) in wrong}


def _methods_alone(shown: Sequence[Trace], view: Trace) -> set[str]:
    """The methods with an example, of classes that have none, in which a program that imports the file saw no tensor."""
    targets = {run.target for trace in shown for run in trace.examples}
    own = [seen for seen in view.observations if seen.span.file == view.file]
    seen_in = {seen.function for seen in own if any(value.kind != "unknown" for value in seen.values)}
    return {target for target in targets if "." in target and target.partition(".")[0] not in targets and target not in seen_in}


def _giving_way(trace: Trace, view: Trace, kept: Collection[str], alone: Collection[str]) -> Trace:
    """A trace without what examples that may be wrong show of classes and functions that a program shows too.

    A function that the program does not call may build the classes that it does. Nothing gives way for those that are `kept`, and for the
    methods `alone`.
    """
    runs = enumerate(trace.examples)
    giving = {number for number, run in runs if run.doubtful and run.evidence and run.target not in alone}
    doubtful = {number for number in giving if trace.examples[number].target.partition(".")[0] not in kept}
    names = {outermost(seen) for seen in view.observations if seen.span.file == view.file}.difference(kept)
    built = {layer.span for layer in view.layers if layer.calls and layer.span is not None}
    return replace(
        trace,
        observations=[seen for seen in trace.observations if seen.example not in doubtful or outermost(seen) not in names],
        layers=[with_fields(layer, calls=[]) if layer.example in doubtful and layer.span in built else layer for layer in trace.layers],
    )


def _lines_that_hold(program: Trace) -> set[tuple[str, int]]:
    """The lines on which a program saw a tensor, and nothing wrong."""
    held = {(seen.span.file, seen.span.line) for seen in program.observations if any(value.shape is not None for value in seen.values)}
    wrong = [seen.span for seen in program.mismatches if seen.span is not None and seen.code != "definition"]
    return held - {(span.file, span.line) for span in wrong}


def _is_refuted(seen: Mismatch, right: Collection[tuple[str, int]], program: Trace) -> bool:
    if seen.code != "definition" or seen.span is None:
        return False
    way = [span for span in (*seen.trail, seen.span) if span.file == program.file]
    return (seen.span.file, seen.span.line) in right or (
        seen.span.file == program.file and all(any(held.line <= span.line <= held.end_line for held in program.held) for span in way)
    )


def examples_of_program(trace: Trace, program: Trace) -> list[ExampleRun]:
    """For classes whose examples are built as a program builds them: those with what the program calls them with, where that is another."""
    found = []
    failing = {(span.file, span.line) for seen in program.mismatches for span in seen.trail}  # What led there the program knows better.
    for number, (layer, call) in _contradicted(trace, program).items():
        run, line = trace.examples[number], layer.call_span
        tensors = tensors_of(call)
        expression = with_tensors(run.expression, tensors) if tensors is not None and run.evidence != "inferred" else None
        if expression is not None and line is not None and (line.file, line.line) not in failing:
            found.append(ExampleRun(run.target, expression, evidence="usage", where=_place(line, trace.file), call=line))
    return found


def tensors_of(call: LayerCall) -> list[tuple[str, list[int]]] | None:
    """The dtypes (as shorthands) and shapes of what a layer is called with; None where that is not tensors alone."""
    tensors = [(_SHORTHANDS.get(value.dtype, ""), [size or 0 for size in value.shape or ()]) for value in call.inputs]
    is_plain = all(value.kind == "tensor" and dtype for value, (dtype, _) in zip(call.inputs, tensors, strict=True))
    return tensors if is_plain else None


def _is_the_same(run: ExampleRun, layer: LayerSeen, file: str) -> bool:
    """True if the model of an example stands for one that a program has built."""
    if run.call is not None:
        return run.call == layer.call_span
    if run.evidence == "inferred" or layer.span is None:
        return run.evidence == "inferred"
    return run.where == _place(layer.span, file) or (run.where == "__main__" and layer.span.file == file)


def _place(span: FileSpan, file: str) -> str:
    """A place as an example's `where` words it."""
    return f"line {span.line}" if span.file == file else f"{PurePath(span.file).name}:{span.line}"


def classes_of_program(program: Trace) -> set[str] | None:
    """The names of the classes that a program calls; None where it did not come to its end, or something failed on the way."""
    own = {number for number, run in enumerate(program.examples) if run.evidence == PROGRAM}
    if program.mismatches or any(program.examples[number].error is not None for number in own):
        return None
    return {layer.class_name for layer in program.layers if layer.example in own and layer.calls}


def guessed_classes(trace: Trace, views: Iterable[Trace] = ()) -> set[str]:
    """The names of the classes whose examples have inputs that nobody spoke of.

    views: of a file, from runs of others that import it; there they are parts of models with such inputs.
    """
    runs = [run for run in trace.examples if run.evidence in _OF_USE and run.call is None and not run.file]
    return {run.target.rpartition(".")[2] for run in runs if run.target}.union(*map(_parts_of_guessed, views))


def _parts_of_guessed(view: Trace) -> set[str]:
    """The names of a file's classes that only examples with inputs that nobody spoke of are seen to call."""
    guessed = {number for number, run in enumerate(view.examples) if run.evidence in _OF_USE and run.call is None}
    seen = [(outermost(each), each.example in guessed) for each in view.observations if each.span.file == view.file]
    return {name for name, is_guessed in seen if is_guessed and name} - {name for name, is_guessed in seen if not is_guessed}


def _contradicted(trace: Trace, program: Trace) -> dict[int, tuple[LayerSeen, LayerCall]]:
    """The numbers of the examples of classes which the program calls with other sizes, all of them known, and how it first does. They are
    examples that were inferred as a whole, or whose models are built where the program builds them, or called where it calls them.
    """
    inferred = {number: run for number, run in enumerate(trace.examples) if run.target and run.evidence in _OF_USE}
    if not inferred:
        return {}
    own = {number for number, run in enumerate(program.examples) if run.evidence == PROGRAM}
    calls: dict[str, list[tuple[LayerSeen, LayerCall]]] = {}
    for layer in program.layers:
        if layer.example in own and all(_is_known(value) for call in layer.calls for value in (*call.inputs, call.output)):
            calls.setdefault(layer.class_name, []).extend((layer, call) for call in layer.calls)
    return {
        layer.example: real[0]
        for layer in trace.layers
        if layer.path == "" and layer.example in inferred and layer.class_name == inferred[layer.example].target.rpartition(".")[2]
        if (real := [each for each in calls.get(layer.class_name, ()) if _is_the_same(inferred[layer.example], each[0], trace.file)])
        if not layer.calls or not any(_may_be(call, layer.calls[0]) for _, call in real)
        if layer.calls or inferred[layer.example].call is None
    }


def _built_otherwise(trace: Trace, program: Trace) -> set[int]:
    """The numbers of the examples that were inferred as a whole, and run, for classes which a program builds and does not call."""
    failed = {seen.example for seen in program.mismatches}
    runs = [run for number, run in enumerate(program.examples) if run.error is None and number not in failed]
    built = {run.target for run in runs if run.evidence == "usage" and run.target}
    wrong = {seen.example for seen in trace.mismatches}
    guesses = (number for number, run in enumerate(trace.examples) if run.target in built and run.evidence == "inferred")
    return {number for number in guesses if number not in wrong}


def _guessed_of_what_is_shown(program: Trace, shown: Sequence[Trace]) -> set[int]:
    """The numbers of the examples with guessed inputs, for classes that a program builds, where the project's own calls show the class."""
    known = set[str]()
    for trace in shown:
        guesses = {number for number, run in enumerate(trace.examples) if run.doubtful or run.evidence == "inferred"}
        programs = {number for number, run in enumerate(trace.examples) if run.evidence == PROGRAM}
        used = [seen for seen in trace.observations if seen.example not in guesses and not seen.function.endswith(".__init__")]
        known |= {outermost(seen) for seen in used if seen.example not in programs or _is_given_known(seen)}
    runs = enumerate(program.examples)
    return {number for number, run in runs if run.evidence == "usage" and run.doubtful and run.target.partition(".")[0] in known}


def _is_given_known(seen: Observation) -> bool:
    """True if a function is given a tensor of which all sizes are known."""
    return seen.kind == "parameter" and any(value.shape and None not in value.shape for value in seen.values)


def _is_known(value: Value) -> bool:
    """True if each size of the tensors in a value is known."""
    if value.kind == "unknown" or (value.shape is not None and None in value.shape):
        return False
    return all(map(_is_known, value.items or ()))


def _may_be(real: LayerCall, inferred: LayerCall) -> bool:
    """True if the tensors of a layer's call have the sizes of those that were inferred, where these are no named dims."""
    pairs = [*zip(real.inputs, inferred.inputs, strict=False), (real.output, inferred.output)]
    tensors = [(a.shape, b) for a, b in pairs if a.shape is not None and b.shape is not None]
    return all(
        len(shape) == len(other.shape or ())
        and all(size == wanted or not name.isdigit() for size, wanted, name in zip(shape, other.shape or (), _names(other), strict=True))
        for shape, other in tensors
    )


def _names(value: Value) -> list[str]:
    shape = value.shape or []
    return value.named if value.named is not None and len(value.named) == len(shape) else [str(size) for size in shape]


def _not_shown_by_examples(program: Trace, shown: Sequence[Trace], *, only_wrong: bool = False) -> Trace:
    """Returns the trace of a document as a program, as far as the examples of its classes have not shown it: they come with named dims.

    A mismatch counts only where the code is at fault, rather than what stands in for the world around it.
    """
    program = _without_reached(program, shown)
    known = {seen.span for trace in shown for seen in trace.observations if any(value.kind != "unknown" for value in seen.values)}
    said = {seen.span for trace in shown for seen in trace.mismatches if not rests_on_guess(trace, seen)}
    mismatches = [seen for seen in program.mismatches if _is_of_code(program, seen) and seen.span not in said]
    if only_wrong and not mismatches and not program.remarks:
        return replace(program, examples=[], observations=[], layers=[], mismatches=[], notes=[])
    constructed_at = {layer.span for trace in shown for layer in trace.layers if layer.calls}
    return replace(
        program,
        examples=[replace(run, file=run.file or program.file) for run in program.examples],
        observations=[seen for seen in program.observations if seen.span not in known],
        layers=[_once_each(layer, is_shown=layer.span in constructed_at) if layer.calls else layer for layer in program.layers],
        mismatches=mismatches,
        notes=[],
    )


def _without_reached(program: Trace, shown: Sequence[Trace]) -> Trace:
    """Without the calls of functions that the examples came to: these need not be called for their own sake."""
    reached = {name for trace in shown for run in trace.examples for name in run.reached or ()}
    inferred = {number for number, run in enumerate(program.examples) if run.evidence == "inferred" and run.target in reached}
    return without_examples(program, inferred)


def _once_each(layer: LayerSeen, *, is_shown: bool) -> LayerSeen:
    """A layer with its calls, one for each shape that it gave, in training if it came to be called so.

    How often they came is of no worth where loops take their first turns only.
    is_shown: examples show what is constructed in its place, so that its calls are left out.
    """
    if is_shown:
        return with_fields(layer, calls=[])
    if len(layer.calls) == 1 and layer.calls[0].count == 1:
        return layer
    calls: dict[str, LayerCall] = {}
    for call in layer.calls:
        key = str(call.output.shape)
        if key not in calls or is_trained(call) or not is_trained(calls[key]):
            calls[key] = replace(call, count=1)
    return with_fields(layer, calls=list(calls.values()))


def is_trained(call: LayerCall) -> bool:
    """True if gradients lead back from what a call gave."""
    return any(value.requires_grad for value in _tensors(call.output))


def _tensors(value: Value) -> Iterator[Value]:
    if value.shape is not None:
        yield value
    for item in value.items or ():
        yield from _tensors(item)


def _is_of_code(program: Trace, seen: Mismatch) -> bool:
    return not rests_on_guess(program, seen) and (seen.sure or seen.code not in _OF_THE_WORLD)
