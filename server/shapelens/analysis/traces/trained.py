"""The models that a file trains, each with an example that has its batch by name, so that it can be run with another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shapelens.analysis.places import Places
from shapelens.analysis.traces.programs import is_trained, tensors_of
from shapelens.examples.expression import is_shorthand, syntax_tree, with_tensors
from shapelens.protocol import ExampleRun
from shapelens.source.batch_sizes import BatchSize, batch_sizes, is_plain_training, loss_of
from shapelens.source.positions import Span
from shapelens.stated.syntax_trees import expression_of
from shapelens.traces import PROGRAM, FileSpan, LayerCall, LayerSeen

BATCH = "B"


@dataclass(frozen=True)
class TrainedModel:
    """A model, an example of it, the named dim that is its batch, and where the size of that is written, or else the model is called.

    bytes: of its parameters and buffers; None where they are what the example builds. written: the name of the size, "" at a call.
    """

    name: str
    run: ExampleRun
    dim: str
    size: int
    span: Span
    written: str = ""
    bytes: int | None = None
    loss: str = ""  # what follows it, as a profile takes it


def trained_models(places: Places) -> list[TrainedModel]:
    """Those of examples that somebody gave, and those that the file trains as a program."""
    found = [each for number, run in enumerate(places.trace.examples) if (each := _given(places, number, run)) is not None]
    trained = list(_of_program(places)) if is_plain_training(places.module.text) else []
    if len(trained) == 1:  # Else the loss may be one of another model.
        trained = [replace(trained[0], loss=loss_of(places.module.text))]
    return found + trained


def _given(places: Places, number: int, run: ExampleRun) -> TrainedModel | None:
    if run.evidence or run.file or run.error is not None or not run.dims or not run.parameter_count:
        return None
    if any(seen.example == number for seen in places.trace.mismatches):
        return None
    dim = BATCH if BATCH in run.dims else next(iter(run.dims))
    return TrainedModel(run.target or run.expression.partition("(")[0], run, dim, run.dims[dim], places.of_example(number).span)


def _of_program(places: Places) -> Iterator[TrainedModel]:
    trace = places.trace
    written = batch_sizes(places.module.text)
    failed = {seen.example for seen in trace.mismatches}
    own = {number for number, run in enumerate(trace.examples) if run.evidence == PROGRAM and run.file in ("", trace.file)} - failed
    for layer in trace.layers:
        calls = [call for call in layer.calls if is_trained(call)]
        if layer.example not in own or layer.path or not layer.parameter_count or not calls:
            continue
        model = _model(places, layer, max(calls, key=_size), written)
        if model is not None:
            yield model


def _size(call: LayerCall) -> int:
    return sum((value.shape or [0])[0] or 0 for value in call.inputs if value.kind == "tensor")


def _model(places: Places, layer: LayerSeen, call: LayerCall, written: Sequence[BatchSize]) -> TrainedModel | None:
    called = places.locate(layer.call_span)
    tensors = tensors_of(call)
    if called is None or called.file != places.trace.file or tensors is None:
        return None
    for expression in _expressions(places, layer):
        plain = with_tensors(expression, tensors)
        found = _with_batch(plain, [shape for _, shape in tensors], written) if plain is not None else None
        if found is not None:
            text, size, place = found
            span = places.module.lines.span_from_bytes(_span(places.trace.file, place)) if place is not None else called.span
            name = place.name if place is not None else ""
            return TrainedModel(layer.class_name, ExampleRun("", text), BATCH, size, span, name, layer.bytes)
    return None


def _span(file: str, place: BatchSize) -> FileSpan:
    return FileSpan(file, place.line, place.column, place.end_line, place.end_column)


def _expressions(places: Places, layer: LayerSeen) -> Iterator[str]:
    """The call of a model as an example: as an example of its class that was taken from this call has it, else as the file says it."""
    for run in places.trace.examples:
        if run.call is not None and run.call == layer.call_span and run.error is None:
            yield run.expression
    built, called = places.locate(layer.span), places.locate(layer.call_span)
    if built is None or called is None or built.file != places.trace.file:
        return
    call = expression_of(f"({places.module.lines.text_of(called.span)})")
    if isinstance(call, ast.Call):
        given = [ast.unparse(each) for each in call.args] + [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords if each.arg]
        yield f"{places.module.lines.text_of(built.span)}({', '.join(given)})"


def _with_batch(expression: str, shapes: Sequence[Sequence[int]], written: Sequence[BatchSize]) -> tuple[str, int, BatchSize | None] | None:
    """An example whose batch has a name, its size, and where the file writes that; None where the batch is not known.

    Where a file writes a batch size, the batch is the first or second dim that has it; else it is the first.
    """
    call = syntax_tree(expression).body
    if not isinstance(call, ast.Call) or not shapes or not shapes[0]:
        return None
    tensors = [node for node in [*call.args, *(each.value for each in call.keywords)] if is_shorthand(node)]
    places = [(dim, each) for dim, size in enumerate(shapes[0][:2]) for each in written if each.value == size]
    if written and not places:
        return None
    dim, place = places[0] if places else (0, None)
    size = shapes[0][dim]
    name = f"{BATCH}:{size}"
    for node, shape in zip(tensors, shapes, strict=True):
        assert isinstance(node, ast.Subscript)
        sizes = list(map(str, shape))
        of_batch = next((each for each in (dim, 0) if sizes[each : each + 1] == [str(size)]), None)
        if of_batch is not None:
            sizes[of_batch], name = name, BATCH
        node.slice = ast.Name(", ".join(sizes) or "()", ast.Load())
    return ast.unparse(call), size, place
