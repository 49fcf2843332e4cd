"""Code lenses: on each module class its example, where that comes from, and the size of the model; on functions what they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from shapelens.analysis.evidence import evidence_of, evidence_text, fits_nothing
from shapelens.analysis.shapes import dtype_text, has_tensor, plural
from shapelens.analysis.traces.shown import shown_for
from shapelens.examples.choose import Example
from shapelens.protocol import Alternative, ExampleRun, Trace
from shapelens.source.module import Module, ModuleClass
from shapelens.source.positions import Span
from shapelens.traces import PROGRAM

LONGEST_ERROR = 80
LONGEST_TITLE = 80  # in an editor
SHORTEST_PART = 16  # of a title that is cut
SEPARATOR = " · "
NOTHING: Mapping[str, str] = {}
_LOOP = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:for|while)\b", re.MULTILINE)
_TENSOR = r"(?:f16|bf16|f32|f64|i8|i16|i32|i64|u8|bool|c64)\[[\w:, ]*\]"


@dataclass(frozen=True)
class Lens:
    """A line of text above a class. expression: "" where there is no example.

    title: the shapes that a class is shown for, rather than the expression that gives them: `Net · x f32[B, 3, 32, 32] · from line 57`.
    action: what a click does: "set" an example by hand; "show": the class is shown as a whole; "" where there is nothing to do.
    menu: all that can be done with the example of the class, the likeliest first: "choose" one of the `others` that run, "set", "write" it
    down, "show".
    """

    span: Span
    title: str
    target: str
    expression: str
    evidence: str
    action: str = "set"
    others: tuple[Alternative, ...] = ()
    menu: tuple[str, ...] = ()
    shown_by: str = ""  # the example of another file that shows the class, where it has none of its own

    @property
    def short_title(self) -> str:
        """The title in LONGEST_TITLE characters: its longest parts end with an ellipsis."""
        parts = self.title.split(SEPARATOR)
        while (over := len(SEPARATOR.join(parts)) - LONGEST_TITLE) > 0:
            longest = max(parts, key=len)
            if len(longest) <= SHORTEST_PART:
                return SEPARATOR.join(parts)[: LONGEST_TITLE - 1] + "…"
            kept = max(len(longest) - over, SHORTEST_PART) - 1
            parts[parts.index(longest)] = longest[:kept].rstrip() + "…"
        return SEPARATOR.join(parts)

    @property
    def details(self) -> str:
        """Returns the text that the title leaves out: the whole expression, and the whole title where it is cut."""
        rows = [self.expression or self.shown_by] if (self.expression or self.shown_by) and self.action != "show" else []
        return "\n".join(rows + ([self.title] if self.short_title != self.title else []))

    @property
    def tells_all(self) -> bool:
        """True if the title says all of the expression but the sizes of named dims: `Net()(f32[B:2, 8])` as `Net · x f32[B, 8]`."""
        name = re.escape(self.target.rpartition(".")[2])
        return re.fullmatch(rf"(?:{name}\(\))?(?:{name})?\({_TENSOR}(?:, {_TENSOR})*\)", self.expression) is not None


def lenses(
    module: Module, examples: Sequence[Example], trace: Trace | None, memory: Mapping[str, str] = NOTHING, dims: str = "names"
) -> list[Lens]:
    """The lenses of each class: one for each example that was given; else that of the example that was found; else one that says of what
    the class is a part, or offers to set an example; and one that shows it as a whole, where something was seen of it. trace: None before
    the first run. memory: what is said of the memory of a training step, by example. dims: how named dims are shown.
    """
    lines = []
    trace = trace if trace is not None else Trace("")
    for cls in [*module.classes, *module.maybe_modules]:
        given = [example for example in examples if example.target in (cls.name, cls.qualname)]
        found = found_for(cls, trace)
        shown = shown_for(trace, cls.qualname)
        show = ("show",) if shown is not None else ()
        for example in given:
            number = _number(trace, example)
            head = (_construction(example.expression) if len(given) > 1 else "") or cls.name
            parts = [head, *_inputs(trace, cls, number, dims), evidence_text(example.evidence), *_of_run(trace, number, memory)]
            lines.append(_lens(cls, parts, example, menu=("set", *show)))
        if found is not None and not given:
            lines.append(_of_found(module, cls, found, trace, memory, show, dims))
        elif not given and cls in module.classes:
            used, by = _used_by(trace, cls.name)
            parts = [cls.name, *_inputs(trace, cls, None, dims), used, *_size(trace, cls)] if used else ["Set example input…"]
            lines.append(Lens(cls.name_span, SEPARATOR.join(parts), cls.qualname, "", "", menu=("set", *show), shown_by=by))
        if shown is not None:
            lines.append(Lens(cls.name_span, "Show model", cls.qualname, shown.example.expression, shown.example.evidence, "show"))
    lines += _of_functions(module, examples, trace, dims)
    lines += _of_program(module, trace)
    return sorted(lines, key=lambda lens: lens.span.start)


def _lens(cls: ModuleClass, parts: Sequence[str], example: Example, menu: tuple[str, ...]) -> Lens:
    return Lens(cls.name_span, SEPARATOR.join(parts), cls.qualname, example.expression, example.evidence, menu=menu)


def _construction(expression: str) -> str:
    """`Net(4)` of `Net(4)(f32[2])`: what tells one of several given examples from the others."""
    depth = 0
    for place in range(len(expression) - 1, -1, -1):
        depth += {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}.get(expression[place], 0)
        if depth == 0 and place < len(expression) - 1:
            return expression[:place] if expression[place] == "(" and "(" in expression[:place] else ""
    return ""


def _inputs(trace: Trace, cls: ModuleClass, number: int | None, dims: str) -> list[str]:
    """Returns the arguments of the class in an example, or in the first one that shows it: [`x f32[B, 3, 32, 32], mask bool[B, T]`]."""
    return _given(trace, f"{cls.qualname}.forward", number, dims) or _called_with(trace, cls.name, number, dims)


def _given(trace: Trace, function: str, number: int | None, dims: str) -> list[str]:
    """The tensors that the parameters of a function held first, as one text; [] where none was seen."""
    held = [
        each
        for each in trace.observations
        if each.kind == "parameter" and each.function == function and (number is None or each.example == number)
    ]
    first = next((each.example for each in held), None)
    shapes = [(each.name, each.values[0]) for each in held if each.example == first and each.values and has_tensor(each.values[0])]
    return [", ".join(f"{name} {dtype_text(value, dims)}" for name, value in dict(shapes).items())] if shapes else []


def _called_with(trace: Trace, name: str, number: int | None, dims: str) -> list[str]:
    """The same of a class whose `forward` is another one's, by its first call."""
    for layer in trace.layers:
        if layer.class_name == name and layer.calls and (number is None or (layer.example == number and not layer.path)):
            shapes = [dtype_text(value, dims) for value in layer.calls[0].inputs if has_tensor(value)]
            return [", ".join(shapes)] if shapes else []
    return []


def _size(trace: Trace, cls: ModuleClass) -> list[str]:
    """Returns the number of parameters of a part, where all seen instances agree."""
    counts = {layer.parameter_count for layer in trace.layers if layer.class_name == cls.name}
    return [plural(count, "parameter") for count in counts if count] if len(counts) == 1 else []


def _of_program(module: Module, trace: Trace) -> list[Lens]:
    """Where a file that was followed as a program begins to show something at module level."""
    runs = trace.examples
    number = next((number for number, run in enumerate(runs) if run.evidence == PROGRAM), None)
    if number is None or runs[number].file not in ("", trace.file):
        return []
    own = (seen for seen in trace.observations if seen.example == number and not seen.function and seen.span.file == trace.file)
    spans = [module.lines.span_from_bytes(seen.statement or seen.span) for seen in own if any(map(has_tensor, seen.values))]
    if not spans:
        return []
    loops = ["the first turns of its loops"] if _LOOP.search(module.text) else []
    parts = ["as a program", *loops, *([runs[number].error or ""] if runs[number].error else [])]
    return [Lens(min(spans), SEPARATOR.join(parts), "", "", PROGRAM, action="")]


def _of_functions(module: Module, examples: Sequence[Example], trace: Trace, dims: str) -> list[Lens]:
    """Returns lenses with the arguments of functions, and of methods beside `forward`; nothing of those that were found and show
    nothing."""
    places = {function.name: function.name_span for function in module.functions}
    methods = {f"{cls.qualname}.{name}": span for cls in module.classes for name, span in cls.methods.items()}
    found = {run.target: run for run in trace.examples if run.evidence and run.file == trace.file}
    showing = {seen.function for seen in trace.observations if any(value.kind not in ("scalar", "other") for value in seen.values)}
    # Of `forward` and `__init__` the class's lens speaks.
    users = {name: user for name, user in _users(trace).items() if name in showing and not name.endswith((".forward", ".__init__"))}
    lines = []

    def title(name: str, number: int | None, *said: str) -> str:
        return SEPARATOR.join([name.rpartition(".")[2], *_given(trace, name, number, dims), *said])

    for name, span in {**places, **methods, **module.methods_of_others}.items():
        given = [example for example in examples if example.target == name]
        for example in given:
            number = _number(trace, example)
            text = title(name, number, evidence_text(example.evidence), *_of_run(trace, number))
            lines.append(Lens(span, text, name, example.expression, example.evidence, menu=("set",)))
        run = found.get(name)
        action, menu = ("set", ("set", "write")) if name in places else ("", ())
        if run is not None and not given and (run.evidence != "inferred" or name in showing):
            text = title(name, _index(trace, run), evidence_of(run, module))
            lines.append(Lens(span, text, name, run.expression, run.evidence, action, menu=menu))
        elif not given and name in users:
            lines.append(Lens(span, title(name, None, f"as {users[name]} calls it"), name, "", "", action, menu=menu[:1]))
    return lines


def _index(trace: Trace, run: ExampleRun) -> int | None:
    return next((number for number, other in enumerate(trace.examples) if other is run), None)


def _users(trace: Trace) -> dict[str, str]:
    """The names of the files that call functions of this one as programs, by the functions that they alone show."""
    users: dict[str, str] = {}
    for seen in trace.observations:
        is_own = seen.function and seen.span.file == trace.file and 0 <= seen.example < len(trace.examples)
        if is_own and any(value.kind != "unknown" for value in seen.values):
            run = trace.examples[seen.example]
            by_program = run.evidence == PROGRAM and run.file not in ("", trace.file)
            users.setdefault(seen.function, PurePath(run.file).name if by_program else "")
    return {name: user for name, user in users.items() if user}


def found_for(cls: ModuleClass, trace: Trace) -> ExampleRun | None:
    """The example that was found for a class, if it was one."""
    return next((run for run in trace.examples if run.evidence and not run.file and run.target in (cls.name, cls.qualname)), None)


def _of_found(
    module: Module, cls: ModuleClass, run: ExampleRun, trace: Trace, memory: Mapping[str, str], show: tuple[str, ...], dims: str
) -> Lens:
    if fits_nothing(run):
        title, menu = "no example found · Set example input…", ("set", *show)
    else:
        number = _index(trace, run)
        title = SEPARATOR.join([cls.name, *_inputs(trace, cls, number, dims), evidence_of(run, module), *_of_run(trace, number, memory)])
        menu = (*(["choose"] if run.others else []), "set", "write", *show)
    return Lens(cls.name_span, title, cls.qualname, run.expression, run.evidence, others=tuple(run.others), menu=menu)


def _number(trace: Trace, example: Example) -> int | None:
    """The run of a given example; None where it has not run."""
    for number, run in enumerate(trace.examples):
        if not run.file and run.expression == example.expression and run.target == example.target:
            return number
    return None


def _of_run(trace: Trace, number: int | None, memory: Mapping[str, str] = NOTHING) -> list[str]:
    parts = []
    run = trace.examples[number] if number is not None else None
    if run is not None and run.parameter_count is not None:
        parts.append(plural(run.parameter_count, "parameter"))
        parts += [memory[run.expression]] if run.expression in memory else []
    if run is not None and run.error is not None:
        error = run.error.splitlines()[0] if run.error else run.error_kind
        parts.append("failed: " + (error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"))
    return parts


def _used_by(trace: Trace, name: str) -> tuple[str, str]:
    """`part of Net`: a class that another class constructs is observed where it is used, and needs no example of its own.

    `as train.py calls it`: what was inferred for the class is not what a program, this file or another one, does with it. Behind that, the
    example of another file: `net.py: Net()(f32[B:2, 8])`.
    """
    models = [layer for layer in trace.layers if layer.path == ""]
    wrong = {number for number, run in enumerate(trace.examples) if run.doubtful}
    own = [layer for layer in trace.layers if layer.class_name == name]
    for layer in sorted(own, key=lambda layer: (not layer.calls, layer.example in wrong)):
        run = trace.examples[layer.example] if 0 <= layer.example < len(trace.examples) else None
        if layer.path:
            owners = [model.class_name for model in models if model.example == layer.example]  # What stands alone has no path either.
            return _part_of(run, owners)
        if run is not None and run.doubtful and run.target.rpartition(".")[2] == name:
            return evidence_of(run, None), ""  # A program builds it, and does not come to call it.
        if run is not None and (run.file or run.evidence == PROGRAM):
            return f"as {PurePath(run.file or trace.file).name} calls it", ""
    return "", ""


def _part_of(run: ExampleRun | None, owners: Sequence[str]) -> tuple[str, str]:
    """`part of Net`, and the example of another file that shows it. owners: the models of the example, by their classes' names."""
    target = run.target.rpartition(".")[2] if run is not None else ""
    owner = target if target in owners else next(iter(owners), "")
    elsewhere = f"{PurePath(run.file).name}: {run.expression}" if run is not None and run.file and run.expression else ""
    return f"part of {owner or 'another class'}", elsewhere
