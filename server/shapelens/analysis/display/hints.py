"""Inlay hints: what the layers gave, what assignments and returns held, what the parameters of the methods that ran were."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapelens.analysis.display.unchanged import Unchanged, is_scalar
from shapelens.analysis.markdown import code, plain
from shapelens.analysis.shapes import distinct, has_dims, has_tensor, is_shown, shape_text, tensors_in
from shapelens.examples.settings import Settings
from shapelens.protocol import ExampleRun, FileSpan, LayerSeen, Observation, Trace, Value
from shapelens.source.module import Module
from shapelens.source.positions import Position, Span
from shapelens.traces import PROGRAM

_CONTAINERS = "torch.nn.modules.container."
_MAKES = re.compile(r"\s*(\w+)\s*=\s*(?!\1\b)[\w.]+\(")  # a statement that keeps the result of a call
GIVES = "gives "  # in front of what a model gives where a program builds it
_HEAD = re.compile(r"\s*(?:async\s+def|def|class)\b")
LONGEST_LABEL = 43  # VS Code cuts a line's hints there (editor.inlayHints.maximumLength)


@dataclass(frozen=True)
class Hint:
    """Text to show at a position that is not part of the document.

    kind: "layer" | "value" | "parameter"; tooltip: Markdown; keeps: the line has read or got a tensor of the shape and dtype that it gives.
    """

    position: Position
    label: str
    kind: str
    tooltip: str
    keeps: bool = field(default=False, compare=False)

    @property
    def short_label(self) -> str:
        """The label in LONGEST_LABEL characters, as an editor shows it, cut between two shapes if possible. The tooltip has all of it."""
        if len(self.label) <= LONGEST_LABEL:
            return self.label
        ends = [found + len(gap) for gap in ("], ", "] | ") if (found := self.label.rfind(gap, 0, LONGEST_LABEL - 1)) > 0]
        end = max(ends, default=0)
        return self.label[: end if end > LONGEST_LABEL // 3 else LONGEST_LABEL - 1] + "…"


@dataclass
class _Named:
    """The values that one name of a line held."""

    name: str
    span: Span
    values: list[Value]
    count: int
    kind: str
    inner: bool  # the target of a comprehension: bound inside of an expression
    statement: FileSpan  # that keeps it
    ints: bool  # whether int64 is written: other dtypes are around it
    alone: bool = True  # whether nothing is left out beside it

    def shapes(self, dims: str) -> list[str]:
        """The different shapes that it held, as they are written."""
        return distinct(self.values, dims, ints=self.ints)

    @property
    def is_number(self) -> bool:
        """True if all that it held are numbers."""
        return all(value.kind == "scalar" for value in self.values)


def hints(module: Module, trace: Trace, settings: Settings) -> list[Hint]:
    """The hints of a file in the order of its text: at most one of a kind on a line, at the line's end, or after each name with
    placement "afterName". Nothing for values that neither hold tensors nor follow from shapes, nor for layers that were never called.

    Without `hints.unchanged` nothing for tensors without dims, nor for what is as the value above or reads its sizes, nor for a line that
    keeps a shape and would repeat the hint above. Parameters are always shown.
    """
    found = []
    trace, layers = _in_order(module, trace)
    unchanged = None if settings.hints_unchanged else Unchanged(module, trace)
    if settings.hints_parameters:
        found += _of_names(module, _parameters(module, trace), "parameter", settings, None)
    if settings.hints_values:
        values = _values(module, trace)
        found += _of_names(module, values if unchanged is None else _of_news(values, unchanged), "value", settings, unchanged)
    if settings.hints_layers:
        shown = {(hint.position.line, hint.label) for hint in found}
        of_layers = _of_layers(module, trace, layers, settings, unchanged)
        found += [hint for hint in of_layers if (hint.position.line, hint.label.replace(GIVES, "→ ")) not in shown]
    order = ("parameter", "layer", "value")
    found.sort(key=lambda hint: (hint.position, order.index(hint.kind)))
    return found if unchanged is None else _without_repeats(module, found)


def _without_repeats(module: Module, found: Sequence[Hint]) -> list[Hint]:
    """The hints without the lines that keep a shape and read as the hinted line above them, in the same function or class body."""
    by_line: dict[int, list[Hint]] = defaultdict(list)
    for hint in found:
        by_line[hint.position.line].append(hint)
    kept: list[Hint] = []
    above, labels = 0, [""]
    for line, of_line in by_line.items():
        here = [hint.label for hint in of_line]
        is_repeat = here == labels and all(hint.keeps for hint in of_line)
        if not is_repeat or any(_HEAD.match(module.lines.line(number)) for number in range(above + 1, line + 1)):
            kept += of_line
        above, labels = line, here
    return kept


def _in_order(module: Module, trace: Trace) -> tuple[Trace, Sequence[LayerSeen]]:
    """Returns the trace and its layers in another order: those of examples that were inferred in the order in which their classes stand in
    the file, whichever was found first; behind what other examples saw, and before what was seen until one failed."""
    places = {cls.qualname: number for number, cls in enumerate(module.classes)}
    last = len(places)

    def rank_of(run: ExampleRun) -> tuple[bool, int]:
        is_inferred = run.evidence == "inferred"
        return run.error is not None, places.get(run.target, places.get(run.target.rpartition(".")[0], last)) if is_inferred else -1

    ranks = [rank_of(run) for run in trace.examples]
    if ranks == sorted(ranks):
        return trace, trace.layers

    def rank(seen: Observation | LayerSeen) -> tuple[bool, int]:
        return ranks[seen.example] if 0 <= seen.example < len(ranks) else (False, last)

    return replace(trace, observations=sorted(trace.observations, key=rank)), sorted(trace.layers, key=rank)


# --- values and parameters ---


def _own(trace: Trace, kinds: Sequence[str]) -> Iterable[Observation]:
    return (seen for seen in trace.observations if seen.kind in kinds and seen.span.file == trace.file)


def _counts_turns(module: Module, trace: Trace, seen: Observation, span: Span) -> bool:
    """True if `n += len(y)` adds up sizes in a loop of a program: of the loop only the first turns were seen."""
    of_program = 0 <= seen.example < len(trace.examples) and trace.examples[seen.example].evidence == PROGRAM
    adds = module.lines.line(span.end_line)[span.end_column :].lstrip().startswith(("+=", "-="))
    return of_program and adds and len(seen.values) > 1 and all(value.kind == "scalar" for value in seen.values)


def _merged(module: Module, trace: Trace, kinds: Sequence[str], *, first_line_of_statement: bool) -> dict[int, list[_Named]]:
    """The observations line by line; what several examples saw at one anchor is put together."""
    anchors: dict[Span, _Named] = {}
    lines: dict[Span, int] = {}
    mixed = _functions_of_several_dtypes(trace)
    for seen in _own(trace, kinds):
        values = [value for value in seen.values if is_shown(value)]
        if not values:
            continue
        span = module.lines.span_from_bytes(seen.span)
        if _counts_turns(module, trace, seen, span):
            continue
        if span not in anchors:
            is_inner, statement = seen.statement == seen.span, seen.statement or seen.span
            anchors[span] = _Named(seen.name, span, [], 0, seen.kind, is_inner, statement, seen.function in mixed)
            lines[span] = seen.statement.line if first_line_of_statement and seen.statement is not None else span.line
        anchors[span].values = _known(anchors[span].values + values)
        anchors[span].count = max(anchors[span].count, seen.count)
    by_line = defaultdict(list)
    for span in sorted(anchors):
        by_line[lines[span]].append(anchors[span])
    return by_line


def _functions_of_several_dtypes(trace: Trace) -> set[str]:
    """The functions in which other tensors were seen than those of int64, which then are told apart."""
    dtypes: dict[str, set[str]] = defaultdict(set)
    for seen in _own(trace, ("assign", "return", "parameter")):
        dtypes[seen.function].update(each.dtype for value in seen.values for each in tensors_in(value))
    return {function for function, found in dtypes.items() if found - {"int64", ""}}


def _of_news(by_line: Mapping[int, list[_Named]], unchanged: Unchanged) -> dict[int, list[_Named]]:
    """Without the names that hold tensors without dims, and without the lines that hold what they read: a tensor as it is, or its sizes."""
    found = {}
    for line, names in by_line.items():
        left = [seen for seen in names if not is_scalar(seen.values)]
        if all(seen.is_number for seen in names) and unchanged.sizes(names[0].statement):
            continue
        if left and not (len(names) == 1 and not names[0].inner and unchanged.value(names[0].statement, names[0].values)):
            found[line] = [replace(seen, alone=len(left) == len(names)) for seen in left]
    return found


def _known(values: list[Value]) -> list[Value]:
    """Those of which something is known, where there are any."""
    return [value for value in values if value.kind != "unknown"] or values


def _values(module: Module, trace: Trace) -> dict[int, list[_Named]]:
    return _merged(module, trace, ("assign", "return"), first_line_of_statement=True)


def _parameters(module: Module, trace: Trace) -> dict[int, list[_Named]]:
    # Where each parameter has a line of its own, so has its hint.
    return _merged(module, trace, ("parameter",), first_line_of_statement=False)


def _of_names(module: Module, by_line: dict[int, list[_Named]], kind: str, settings: Settings, unchanged: Unchanged | None) -> list[Hint]:
    found = []
    for line, names in by_line.items():
        keeps = unchanged is not None and all(not seen.inner and unchanged.keeps_operand(seen.statement, seen.values) for seen in names)
        tooltip = "\n\n".join(_tooltip(seen, settings.dims) for seen in names)
        after_name = [seen for seen in names if seen.kind != "return"] if settings.hints_placement == "afterName" else []
        for seen in after_name:
            # The span of a parameter holds its annotation too.
            end = Position(seen.span.line, seen.span.column + len(seen.name)) if seen.kind == "parameter" else seen.span.end
            found.append(Hint(end, ": " + joined(seen.shapes(settings.dims)), kind, _tooltip(seen, settings.dims), keeps))
        at_end = [seen for seen in names if seen not in after_name]
        if at_end:
            label = _parameters_label(at_end, settings.dims) if kind == "parameter" else _values_label(at_end, settings.dims)
            found.append(Hint(_end_of_line(module, line), label, kind, tooltip, keeps))
    return found


def _parameters_label(names: list[_Named], dims: str) -> str:
    label = _listed(names, dims)
    tensors = [seen for seen in names if not seen.is_number]
    return label if len(label) <= LONGEST_LABEL or not tensors else _listed(tensors, dims)


def _values_label(names: list[_Named], dims: str) -> str:
    """`→ [B, 4]`; `→ B, 3, 32` for numbers; `q: [B, 4], k: [B, 5]` where the names of a line hold different shapes."""
    outer = [seen for seen in names if not seen.inner]
    if not outer:
        return _listed(names, dims)
    shapes = [seen.shapes(dims) for seen in outer]
    tensors = [seen for seen in outer if not seen.is_number]
    if not tensors:
        return "→ " + ", ".join("|".join(texts[:3] + ["…"] * (len(texts) > 3)) for texts in shapes)
    if all(shape == shapes[0] for shape in shapes) and outer[0].alone:
        return "→ " + joined(shapes[0])
    label = _listed(outer, dims)
    return label if len(label) <= LONGEST_LABEL or len(tensors) < 2 else _listed(tensors, dims)


def _listed(names: list[_Named], dims: str) -> str:
    return ", ".join(f"{seen.name}: {joined(seen.shapes(dims))}" for seen in names)


def joined(shapes: list[str], longest: int = LONGEST_LABEL) -> str:
    """`[B, 6, 14, 14] | [B, 16, 5, 5]`: as many shapes as fit into a hint (but one at least), then an ellipsis."""
    text = shapes[0]
    for number, shape in enumerate(shapes[1:], start=2):
        longer = f"{text} | {shape}"
        if len(longer) + (0 if number == len(shapes) else 4) > longest - 2:
            return text + " | …"
        text = longer
    return text


def _tooltip(seen: _Named, dims: str) -> str:
    title = f"**{plain(seen.name)}**" + (f" (ran {seen.count} times)" if seen.count > 1 else "")
    rows = dict.fromkeys(_row(value, dims) for value in seen.values)
    return title + "\n\n" + "\n".join(f"- {row}" for row in rows)


def _row(value: Value, dims: str) -> str:
    details = [code(shape_text(value, dims))]
    if has_dims(value):
        if dims == "names" and value.named is not None and shape_text(value, "numbers") != shape_text(value, dims):
            details.append(code(shape_text(value, "numbers")))
        details += [value.dtype] + ([value.device] if value.device not in ("", "meta", "cpu") else [])
        details += ["stands in for the result of a failed operation"] if value.stand_in else []
    return " · ".join(detail for detail in details if detail)


# --- layers ---


def _of_layers(module: Module, trace: Trace, called: Sequence[LayerSeen], settings: Settings, unchanged: Unchanged | None) -> list[Hint]:
    """One hint a line: the outermost constructor call on it whose layers were called says what they gave. unchanged: leaves out layers that
    give what they get.
    """
    constructed: dict[int, dict[Span, list[LayerSeen]]] = defaultdict(lambda: defaultdict(list))
    for layer in called:
        if layer.span is not None and layer.span.file == trace.file and _outputs(layer, settings.dims):
            span = module.lines.span_from_bytes(layer.span)
            constructed[span.line][span].append(layer)
    found = []
    for line, calls in constructed.items():
        outermost = [span for span in sorted(calls) if not any(_inside(span, other) for other in calls)]
        layers = [layer for span in outermost for layer in calls[span]]
        every = [layer for span in sorted(calls) for layer in calls[span]]
        if unchanged is not None and (unchanged.layers(layers) or is_scalar([call.output for layer in layers for call in layer.calls])):
            continue
        label = _layers_label(layers, settings.dims, is_model=_builds_model(module, line, layers))
        keeps = unchanged is not None and unchanged.keeps_input(layers)
        found.append(Hint(_end_of_line(module, line), label, "layer", layers_tooltip(every, settings.dims), keeps))
    found += _of_containers(module, trace, settings, constructed)
    return found + _of_assigned_layers(module, trace, settings, {hint.position.line for hint in found} | set(constructed))


def _builds_model(module: Module, line: int, layers: Sequence[LayerSeen]) -> bool:
    """True if a line builds models of a program rather than layers of a class: `model = Net().to(device)`."""
    return not any(layer.path for layer in layers) and not module.lines.line(line).lstrip().startswith("self.")


def _of_containers(module: Module, trace: Trace, settings: Settings, constructed: Mapping[int, Mapping[Span, object]]) -> list[Hint]:
    """Hints for containers that nothing calls as a whole (`self.blocks = nn.ModuleList(blocks)`): what the layers in them gave.

    constructed: the calls that made layers with a hint of their own, by line; a container around such a call says nothing besides.
    """
    by_line: dict[int, list[LayerSeen]] = defaultdict(list)
    for layer in trace.layers:
        if layer.span is not None and layer.span.file == trace.file and _is_iterated(layer) and layer.span.line not in constructed:
            span = module.lines.span_from_bytes(layer.span)
            if not any(_inside(call, span) for line in range(span.line, span.end_line + 1) for call in constructed.get(line, ())):
                by_line[span.line].append(layer)
    if not by_line:
        return []
    parts: dict[tuple[int, str], list[LayerSeen]] = defaultdict(list)  # by the example and the path of what holds them
    for layer in trace.layers:
        if layer.path:
            parts[layer.example, layer.path.rpartition(".")[0]].append(layer)
    found = []
    for line, containers in by_line.items():
        layers = [part for container in containers for part in _called_parts(container, parts)]
        if any(_outputs(layer, settings.dims) for layer in layers):
            label = _layers_label(layers, settings.dims)
            found.append(Hint(_end_of_line(module, line), label, "layer", layers_tooltip(layers, settings.dims)))
    return found


def _is_iterated(layer: LayerSeen) -> bool:
    """True if a layer is a container that was never called."""
    return not layer.calls and layer.qualified_name.startswith(_CONTAINERS)


def _called_parts(container: LayerSeen, parts: Mapping[tuple[int, str], list[LayerSeen]]) -> list[LayerSeen]:
    """The layers in a container that were called; of one in it that was not, those in that one."""
    found = []
    for layer in parts.get((container.example, container.path), []):
        if layer is not container:
            found += _called_parts(layer, parts) if _is_iterated(layer) else [layer] if layer.calls else []
    return found


def _of_assigned_layers(module: Module, trace: Trace, settings: Settings, done: set[int]) -> list[Hint]:
    """Hints for layers that a function made (`self.layer1 = self._make_layer(64, 3)`): the line that keeps them shows what they gave. So
    does the first one that keeps a model of another file (`model = create_model()`)."""
    by_line: dict[int, list[LayerSeen]] = defaultdict(list)
    models: dict[int, int] = {}  # the line that first keeps a model, by the number of that
    for seen in sorted(_own(trace, ("assign",)), key=lambda seen: seen.span.line):
        line = (seen.statement or seen.span).line
        if line in done:
            continue
        layers = [trace.layers[value.layer] for value in seen.values if value.kind == "layer" and value.layer is not None]
        if not _is_attribute_assignment(module, seen):
            for layer in layers if _MAKES.match(module.lines.line(line)) else ():
                is_first = _is_elsewhere(layer, trace) and models.setdefault(layer.index, line) == line
                if is_first and _outputs(layer, settings.dims) and layer not in by_line[line]:
                    by_line[line].append(layer)
        else:
            known = {layer.index for layer in by_line[line]}
            by_line[line] += [layer for layer in layers if _outputs(layer, settings.dims) and layer.index not in known]
    return [
        Hint(
            _end_of_line(module, line),
            _layers_label(layers, settings.dims, is_model=_builds_model(module, line, layers)),
            "layer",
            layers_tooltip(layers, settings.dims),
        )
        for line, layers in by_line.items()
        if layers
    ]


def _is_elsewhere(layer: LayerSeen, trace: Trace) -> bool:
    """True if a layer is a whole model that another file builds."""
    return not layer.path and (layer.span is None or layer.span.file != trace.file)


def _is_attribute_assignment(module: Module, seen: Observation) -> bool:
    """`self.layer1 = ...`, as opposed to `for block in self.blocks`: where a model keeps a layer rather than uses it."""
    starts_it = seen.statement is not None and (seen.statement.line, seen.statement.column) == (seen.span.line, seen.span.column)
    return starts_it and "." in module.lines.text_of(module.lines.span_from_bytes(seen.span))


def _outputs(layer: LayerSeen, dims: str) -> list[str]:
    return distinct((call.output for call in layer.calls), dims, ints=True)


def _layers_label(layers: list[LayerSeen], dims: str, *, is_model: bool = False) -> str:
    """`→ [B, 6, 14, 14] | [B, 16, 5, 5]`; `→ [B, 197, 768] ×12` where many calls gave one shape; `gives [B, 10]` where a program builds a
    model (is_model): a model has no shape.
    """
    shapes = list(dict.fromkeys(shape for layer in layers for shape in _outputs(layer, dims)))
    calls = max(_calls_by_example(layers).values())
    arrow = GIVES if is_model else "→ "
    return arrow + joined(shapes) + (f" ×{calls}" if len(shapes) == 1 and calls > 1 else "")


def _calls_by_example(layers: list[LayerSeen]) -> dict[int, int]:
    """Returns the number of calls of each example. Two examples that call a layer once are no reason to say that it is called twice."""
    counts: dict[int, int] = defaultdict(int)
    for layer in layers:
        counts[layer.example] += sum(call.count for call in layer.calls)
    return counts


def layers_tooltip(layers: list[LayerSeen], dims: str, most: int = 12) -> str:
    """Markdown: a row for each distinct call of the layers, with how often it came."""
    rows: dict[str, int] = defaultdict(int)
    for layer in layers:
        for call in layer.calls:
            inputs = ", ".join(shape_text(value, dims) for value in call.inputs if has_tensor(value))
            rows[f"{code(layer.path or layer.class_name)}: {code(inputs)} → {code(shape_text(call.output, dims))}"] += call.count
    lines = [f"- {row}" + (f" ×{count}" if count > 1 else "") for row, count in rows.items()]
    return "\n".join(lines[:most] + ([f"- … {len(lines) - most} more"] if len(lines) > most else []))


def _inside(inner: Span, outer: Span) -> bool:
    start, end = (inner.line, inner.column), (inner.end_line, inner.end_column)
    return inner != outer and (outer.line, outer.column) <= start and end <= (outer.end_line, outer.end_column)


def _end_of_line(module: Module, line: int) -> Position:
    return Position(line, len(module.lines.line(line)))
