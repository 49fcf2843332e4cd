"""Hovers: what is known of the layer, tensor or class under the pointer, as Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shapelens import protocol
from shapelens.analysis.display.flops import flops, flops_text
from shapelens.analysis.evidence import evidence_of, evidence_text
from shapelens.analysis.layer_arguments import parameter_meaning
from shapelens.analysis.markdown import cell, code, plain
from shapelens.analysis.places import layer_name
from shapelens.analysis.shapes import has_dims, has_tensor, is_size, memory_text, plural, shape_text, sizes_text
from shapelens.examples.settings import Settings
from shapelens.protocol import ExampleRun, LayerSeen, Observation, ParameterSeen, Trace, Value
from shapelens.source.calls import Expression
from shapelens.source.module import Module, ModuleClass
from shapelens.source.positions import Position, Span

MOST_ROWS = 16
LONGEST_DESCRIPTION = 120
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Hover:
    """Markdown about the span."""

    span: Span
    markdown: str


def hover(module: Module, trace: Trace, position: Position, settings: Settings, memory: Mapping[str, str] = NOTHING) -> Hover | None:
    """Returns the trace's knowledge of the innermost expression, class or method name at a position; None where it knows nothing.

    memory: what is said of the memory of a training step, by example.
    """
    found = _of_code(module, trace, position, settings, memory)
    condition = next((note for note in trace.notes if note.code == "data-dependent" and _is_at(module, trace, note.span, position)), None)
    if condition is None or condition.span is None:
        return found
    span = found.span if found is not None else module.lines.span_from_bytes(condition.span)
    return Hover(span, "\n\n".join([*([found.markdown] if found is not None else []), condition.message]))


def _is_at(module: Module, trace: Trace, span: protocol.FileSpan | None, position: Position) -> bool:
    here = span is not None and span.file == trace.file and span.line <= position.line <= span.end_line
    return here and span is not None and _holds(module.lines.span_from_bytes(span), position)


def _of_code(module: Module, trace: Trace, position: Position, settings: Settings, memory: Mapping[str, str]) -> Hover | None:
    for cls in module.classes:
        for span in (cls.name_span, cls.methods.get("forward")):
            if span is not None and _holds(span, position):
                markdown = _class_markdown(module, trace, cls, settings.dims, memory)
                return Hover(span, markdown) if markdown else None
    expression = module.expression_at(position)
    if expression is None:
        return _parameter_hover(module, trace, position, settings)
    observed = _observed(module, trace, expression.span)
    layers = _layers(module, trace, expression, observed)
    if layers:
        return Hover(expression.span, _layers_markdown(trace, layers, settings.dims))
    if not _says_something(observed) and expression.call is not None:
        observed = _observed(module, trace, expression.call)  # `transpose` of `x.transpose(1, 2)` says what the call gave.
        expression = Expression(expression.call, module.lines.text_of(expression.call), "call")
    if not _says_something(observed):
        return None
    return Hover(expression.span, _tensors_markdown(expression.text, observed, settings.dims))


def _says_something(observed: Sequence[Observation]) -> bool:
    return any(has_tensor(value) or is_size(value) or value.kind == "scalar" for seen in observed for value in seen.values)


def _holds(span: Span, position: Position) -> bool:
    return (span.line, span.column) <= (position.line, position.column) <= (span.end_line, span.end_column)


def _observed(module: Module, trace: Trace, span: Span) -> list[Observation]:
    """Returns the observations at exactly this span. An assignment's target and an argument of the same name are different anchors."""
    near = (seen for seen in trace.observations if seen.span.line == span.line and seen.span.file == trace.file)
    return [seen for seen in near if _same_place(module.lines.span_from_bytes(seen.span), span, seen)]


def _same_place(found: Span, span: Span, seen: Observation) -> bool:
    if seen.kind == "parameter":  # The span of a parameter holds its annotation too.
        return (found.line, found.column) == (span.line, span.column)
    return found == span


def _parameter_hover(module: Module, trace: Trace, position: Position, settings: Settings) -> Hover | None:
    near = (seen for seen in trace.observations if seen.kind == "parameter" and seen.span.line == position.line)
    observed = [seen for seen in near if seen.span.file == trace.file and _holds(module.lines.span_from_bytes(seen.span), position)]
    if not observed:
        return None
    return Hover(module.lines.span_from_bytes(observed[0].span), _tensors_markdown(observed[0].name, observed, settings.dims))


# --- layers ---


def _layers(module: Module, trace: Trace, expression: Expression, observed: Sequence[Observation]) -> list[LayerSeen]:
    """The layers that an expression holds (`self.conv1`) or constructs (`nn.Conv2d` of `nn.Conv2d(3, 6, 5)`)."""
    indices = [value.layer for seen in observed for value in seen.values if value.kind == "layer" and value.layer is not None]
    if indices:
        return [trace.layers[index] for index in dict.fromkeys(indices)]
    span, constructed = expression.span, []
    for layer in trace.layers:
        if layer.span is not None and layer.span.file == trace.file and layer.span.line == span.line:
            call = module.lines.span_from_bytes(layer.span)
            starts_it = (call.line, call.column) == (span.line, span.column) and not expression.text.endswith(")")
            if call == span or starts_it:
                constructed.append(layer)
    return constructed or _by_path(module, trace, expression)


def _by_path(module: Module, trace: Trace, expression: Expression) -> list[LayerSeen]:
    """The layers that `self.a.b` names in a class, where the expression itself did not report them."""
    root, _, path = expression.text.partition(".")
    cls = next((cls for cls in reversed(module.classes) if _holds(cls.span, Position(expression.span.line, expression.span.column))), None)
    if root != "self" or not path or cls is None:
        return []
    paths = {(layer.example, layer.path): layer for layer in trace.layers}
    found = []
    for layer in trace.layers:
        if layer.path == path or layer.path.endswith("." + path):
            owner = paths.get((layer.example, layer.path[: -len(path)].rstrip(".")))
            if owner is not None and owner.class_name == cls.name:
                found.append(layer)
    return found


def _layers_markdown(trace: Trace, layers: Sequence[LayerSeen], dims: str) -> str:
    first = layers[0]
    described = first.description if first.description and len(first.description) <= LONGEST_DESCRIPTION else first.class_name
    paths = list(dict.fromkeys(layer.path for layer in layers))
    parts = [f"**{plain(layer_name(first))}**: {code(described)}" if first.path else code(described)]
    if len(paths) > 1:
        parts.append(f"{len(paths)} layers: " + ", ".join(map(code, paths[:4])) + (", …" if len(paths) > 4 else ""))
    parts += _calls_markdown(layers, dims)
    if first.parameters:
        parts.append(_parameters_markdown(first))
    if first.parameter_count:
        parts.append(f"{plural(first.parameter_count, 'parameter')} · {memory_text(first.bytes)}" + (" each" if len(paths) > 1 else ""))
    parts += _flops_markdown(trace, layers)
    return "\n\n".join(parts)


def _flops_markdown(trace: Trace, layers: Sequence[LayerSeen]) -> list[str]:
    """Returns the FLOPs of all calls of the layers in the first example that calls them, and for which sizes of its dims."""
    first = [layer for layer in layers if layer.example == layers[0].example]
    counted = [flops(trace.layers, layer) for layer in first]
    count, exact = sum(number for number, _ in counted), all(whole for _, whole in counted)
    if not count:
        return []
    calls = sum(call.count for layer in first for call in layer.calls)
    run = trace.examples[layers[0].example] if layers[0].example < len(trace.examples) else None
    sizes = ", ".join(f"{name} = {size}" for name, size in run.dims.items()) if run is not None else ""
    return [flops_text(count, exact=exact) + (f" in {calls} calls" if calls > 1 else "") + (f" with {sizes}" if sizes else "")]


def _calls_markdown(layers: Sequence[LayerSeen], dims: str) -> list[str]:
    """A row for each distinct call, with how often it came; then what the outputs have in common beside the shape."""
    counts: dict[str, int] = defaultdict(int)
    outputs: list[Value] = []
    for layer in layers:
        for call in layer.calls:
            inputs = ", ".join(shape_text(value, dims) for value in call.inputs if has_tensor(value)) or "()"
            failed = " (stands in for the result of a failed call)" if call.output.stand_in else ""
            counts[f"{code(inputs)} → {code(shape_text(call.output, dims))}{failed}"] += call.count
            outputs.append(call.output)
    if not counts:
        return ["not called in the example"]
    rows = [row + (f" ×{count}" if count > 1 else "") for row, count in counts.items()]
    more = [f"… {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else []
    return ["  \n".join(rows[:MOST_ROWS] + more), *_details(outputs)]


def _parameters_markdown(layer: LayerSeen) -> str:
    rows = ["| parameter | shape | |", "|---|---|---|"]
    for parameter in layer.parameters[:MOST_ROWS]:
        meaning = parameter_meaning(layer, parameter.name)
        remarks = [code(meaning)] if meaning else []
        remarks += _parameter_remarks(parameter)
        cells = (plain(parameter.name), code(sizes_text(parameter.shape)), " · ".join(remarks))
        rows.append(f"| {' | '.join(map(cell, cells))} |")
    if len(layer.parameters) > MOST_ROWS:
        rows.append(f"| … {len(layer.parameters) - MOST_ROWS} more | | |")
    return "\n".join(rows)


def _parameter_remarks(parameter: ParameterSeen) -> list[str]:
    remarks = [parameter.dtype] if parameter.dtype != "float32" else []
    if parameter.buffer:
        return [*remarks, "buffer"]
    return remarks if parameter.trainable else [*remarks, "frozen"]


# --- tensors ---


def _tensors_markdown(text: str, observed: Sequence[Observation], dims: str) -> str:
    """The distinct values of an anchor: shape by name and number, dtype, device, layout."""
    values: list[Value] = [value for seen in observed for value in seen.values]
    count = max(seen.count for seen in observed)
    name = text if len(text) <= LONGEST_DESCRIPTION and "\n" not in text else "expression"
    differs = len({value.dtype for value in values if has_dims(value)}) > 1
    rows = list(dict.fromkeys(_value_row(value, dims) + (f" · {value.dtype}" if differs and value.dtype else "") for value in values))
    parts = [code(name) + (f" · ran {count} times" if count > 1 else "")]
    parts.append("  \n".join(rows[:MOST_ROWS] + ([f"… {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else [])))
    return "\n\n".join([*parts, *_details(values)])


def _value_row(value: Value, dims: str) -> str:
    shown = shape_text(value, dims)
    numbers = shape_text(value, "numbers" if dims == "names" else "names")
    row = code(shown) if numbers == shown else f"{code(shown)} = {code(numbers)}"
    return row + (" (stands in for the result of a failed operation)" if value.stand_in else "")


def _details(values: Iterable[Value]) -> list[str]:
    """dtype, device, requires_grad and layout of the tensors among the values, where all agree."""
    tensors = [value for value in values if has_dims(value)]
    if not tensors:
        return []
    columns = ([value.dtype for value in tensors], [value.device for value in tensors], [_layout(value) for value in tensors])
    found = [texts[0] for texts in columns if texts[0] and len(set(texts)) == 1]
    if all(value.requires_grad for value in tensors):
        found.append("requires_grad")
    return [" · ".join(found)] if found else []


def _layout(value: Value) -> str:
    """`contiguous`, or the strides of a tensor that is not."""
    if value.stride is None or value.shape is None or None in value.shape:
        return ""
    expected = 1
    for size, step in zip(reversed(value.shape), reversed(value.stride), strict=True):
        if size != 1 and step != expected:
            return f"stride {tuple(value.stride)}"
        expected *= max(size or 0, 1)
    return "contiguous"


# --- classes ---


def _class_markdown(module: Module, trace: Trace, cls: ModuleClass, dims: str, memory: Mapping[str, str]) -> str:
    """Each example of the class with what became of it; else the places in models where the class was constructed."""
    runs = [(number, run) for number, run in enumerate(trace.examples) if run.target in (cls.name, cls.qualname) and not run.file]
    parts = [
        "\n\n".join(
            [_run_markdown(module, trace, number, run, cls.name, dims), *([memory[run.expression]] if run.expression in memory else [])]
        )
        for number, run in runs
    ]
    elsewhere = {number for number, run in enumerate(trace.examples) if run.file}
    instances = [layer for layer in trace.layers if layer.class_name == cls.name and (layer.path or layer.example in elsewhere)]
    if instances:
        parts.append(_layers_markdown(trace, instances, dims))
    return "\n\n---\n\n".join(parts)


def _run_markdown(module: Module, trace: Trace, number: int, run: ExampleRun, name: str, dims: str) -> str:
    parts = [code(run.expression)] if run.expression else []
    if run.evidence:
        parts.append(" · ".join([plain(evidence_of(run, module)), *(["may be wrong"] if run.doubtful else [])]))
    models = [each for each in trace.layers if each.example == number and each.path == "" and each.class_name == name and each.calls]
    for call in [call for model in models for call in model.calls[:4]]:
        inputs = ", ".join(shape_text(value, dims) for value in call.inputs if has_tensor(value))
        parts.append(f"{code(inputs)} → {code(shape_text(call.output, dims))}")
    if run.parameter_count is not None:
        parts.append(plural(run.parameter_count, "parameter") + (f" · {memory_text(run.bytes)}" if run.bytes else ""))
    count, exact = flops(trace.layers, models[0]) if models else (0, True)
    if count:
        parts.append(f"{flops_text(count, exact=exact)} in its layers")
    if run.dims:
        parts.append(", ".join(f"{code(dim)} = {size}" for dim, size in run.dims.items()))
    if run.error is not None:
        parts.append(f"failed: {plain(run.error)}")
    if run.others:
        said = [(other.expression, evidence_text(other.evidence, other.where, module, run.target)) for other in run.others]
        others = [f"- {code(expression)} ({plain(source)})" for expression, source in said]
        parts.append("These run as well:\n" + "\n".join(others))
    return "\n\n".join(parts)
