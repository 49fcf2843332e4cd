"""Code lenses: on each module class its example, where that comes from, and the size of the model; on functions what they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from shapelens.analysis.evidence import evidence_text, fits_nothing
from shapelens.analysis.shapes import has_tensor, memory_text, plural
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


@dataclass(frozen=True)
class Lens:
    """A line of text above a class. expression: "" where there is no example.

    action: what a click does with the example of the class: "set" it by hand, "choose" one of the `others` that run, or "write" it down;
    "show": the class is shown as a whole; "" where there is nothing to do.
    """

    span: Span
    title: str
    target: str
    expression: str
    evidence: str
    action: str = "set"
    others: tuple[Alternative, ...] = ()

    @property
    def short_title(self) -> str:
        """The title in LONGEST_TITLE characters: its expression ends with an ellipsis, then its longest parts."""
        parts = self.title.split(SEPARATOR)
        while (over := len(SEPARATOR.join(parts)) - LONGEST_TITLE) > 0:
            longest = parts[0] if len(parts[0]) > SHORTEST_PART else max(parts, key=len)
            if len(longest) <= SHORTEST_PART:
                return SEPARATOR.join(parts)[: LONGEST_TITLE - 1] + "…"
            kept = max(len(longest) - over, SHORTEST_PART) - 1
            parts[parts.index(longest)] = longest[:kept].rstrip() + "…"
        return SEPARATOR.join(parts)


def lenses(module: Module, examples: Sequence[Example], trace: Trace | None, memory: Mapping[str, str] = NOTHING) -> list[Lens]:
    """The lenses of each class: one for each example that was given; else those of the example that was found; else one that offers to set
    an example; and one that shows it as a whole, where something was seen of it. trace: None before the first run. memory: what is said of
    the memory of a training step, by example."""
    lines = []
    for cls in [*module.classes, *module.maybe_modules]:
        given = [example for example in examples if example.target in (cls.name, cls.qualname)]
        found = found_for(cls, trace)
        for example in given:
            parts = [example.expression, evidence_text(example.evidence), *_of_run(_run(trace, example), memory)]
            lines.append(Lens(cls.name_span, SEPARATOR.join(parts), cls.qualname, example.expression, example.evidence))
        if found is not None and not given:
            lines += _of_found(module, cls, found, memory)
        elif not given and cls in module.classes:
            title = SEPARATOR.join([*_used_by(trace, cls.name), "Set example input…"])
            lines.append(Lens(cls.name_span, title, cls.qualname, "", ""))
        if trace is not None and (shown := shown_for(trace, cls.qualname)) is not None:
            lines.append(Lens(cls.name_span, "Show model", cls.qualname, shown.example.expression, shown.example.evidence, "show"))
    lines += _of_functions(module, examples, trace)
    lines += _of_program(module, trace)
    return sorted(lines, key=lambda lens: lens.span.start)


def _of_program(module: Module, trace: Trace | None) -> list[Lens]:
    """Where a file that was followed as a program begins to show something at module level."""
    runs = trace.examples if trace is not None else []
    number = next((number for number, run in enumerate(runs) if run.evidence == PROGRAM), None)
    if trace is None or number is None or runs[number].file not in ("", trace.file):
        return []
    own = (seen for seen in trace.observations if seen.example == number and not seen.function and seen.span.file == trace.file)
    spans = [module.lines.span_from_bytes(seen.statement or seen.span) for seen in own if any(map(has_tensor, seen.values))]
    if not spans:
        return []
    parts = ["as a program", "the first turns of its loops", *([runs[number].error or ""] if runs[number].error else [])]
    return [Lens(min(spans), SEPARATOR.join(parts), "", "", PROGRAM, action="")]


def _of_functions(module: Module, examples: Sequence[Example], trace: Trace | None) -> list[Lens]:
    """What functions, and methods beside `forward`, were called with; nothing of those that were found and show nothing."""
    places = {function.name: function.name_span for function in module.functions}
    methods = {f"{cls.qualname}.{name}": span for cls in module.classes for name, span in cls.methods.items()}
    found = {run.target: run for run in trace.examples if run.evidence and run.file == trace.file} if trace is not None else {}
    seen_in = trace.observations if trace is not None else []
    showing = {seen.function for seen in seen_in if any(value.kind not in ("scalar", "other") for value in seen.values)}
    # Of `forward` and `__init__` the class's lens speaks.
    users = {name: user for name, user in _users(trace).items() if name in showing and not name.endswith((".forward", ".__init__"))}
    lines = []
    for name, span in {**places, **methods, **module.methods_of_others}.items():
        given = [example for example in examples if example.target == name]
        for example in given:
            parts = [example.expression, evidence_text(example.evidence), *_of_run(_run(trace, example))]
            lines.append(Lens(span, SEPARATOR.join(parts), name, example.expression, example.evidence))
        run = found.get(name)
        if run is not None and not given and (run.evidence != "inferred" or name in showing):
            title = f"{run.expression} · {evidence_text(run.evidence, run.where)}"
            lines.append(Lens(span, title, name, run.expression, run.evidence, "set" if name in places else ""))
            if name in places:
                lines.append(Lens(span, "Write as directive", name, run.expression, run.evidence, "write"))
        elif not given and name in users:
            lines.append(Lens(span, f"as {users[name]} calls it", name, "", "", "set" if name in places else ""))
    return lines


def _users(trace: Trace | None) -> dict[str, str]:
    """The names of the files that call functions of this one as programs, by the functions that they alone show."""
    if trace is None:
        return {}
    users: dict[str, str] = {}
    for seen in trace.observations:
        is_own = seen.function and seen.span.file == trace.file and 0 <= seen.example < len(trace.examples)
        if is_own and any(value.kind != "unknown" for value in seen.values):
            run = trace.examples[seen.example]
            by_program = run.evidence == PROGRAM and run.file not in ("", trace.file)
            users.setdefault(seen.function, PurePath(run.file).name if by_program else "")
    return {name: user for name, user in users.items() if user}


def found_for(cls: ModuleClass, trace: Trace | None) -> ExampleRun | None:
    """The example that was found for a class, if it was one."""
    runs = trace.examples if trace is not None else []
    return next((run for run in runs if run.evidence and not run.file and run.target in (cls.name, cls.qualname)), None)


def _of_found(module: Module, cls: ModuleClass, run: ExampleRun, memory: Mapping[str, str]) -> list[Lens]:
    def lens(title: str, action: str) -> Lens:
        return Lens(cls.name_span, title, cls.qualname, run.expression, run.evidence, action, tuple(run.others))

    if fits_nothing(run):
        return [lens("no example found · Set example input…", "set")]
    more = [f"{len(run.others)} more"] if run.others else []
    doubt = ["may be wrong"] if run.doubtful else []
    title = SEPARATOR.join([run.expression, evidence_text(run.evidence, run.where, module), *doubt, *_of_run(run, memory), *more])
    choose = [lens("Choose another…", "choose")] if run.others else []
    return [lens(title, "set"), *choose, lens("Write as directive", "write")]


def _run(trace: Trace | None, example: Example) -> ExampleRun | None:
    runs = [run for run in trace.examples if not run.file] if trace is not None else []
    return next((run for run in runs if run.expression == example.expression and run.target == example.target), None)


def _of_run(run: ExampleRun | None, memory: Mapping[str, str] = NOTHING) -> list[str]:
    parts = []
    if run is not None and run.parameter_count is not None:
        parts.append(plural(run.parameter_count, "parameter"))
        parts += [memory_text(run.bytes)] if run.bytes else []
        parts += [memory[run.expression]] if run.expression in memory else []
    if run is not None and run.error is not None:
        error = run.error.splitlines()[0] if run.error else run.error_kind
        parts.append("failed: " + (error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"))
    return parts


def _used_by(trace: Trace | None, name: str) -> list[str]:
    """`part of Net`: a class that another class constructs is observed where it is used, and needs no example of its own.

    Where that is in another file, its example is named: `part of Net in net.py: Net()(f32[B:2, 8])`. `as the program calls it`: what was
    inferred for the class is not what the file itself does with it.
    """
    if trace is None:
        return []
    models = [layer for layer in trace.layers if layer.path == ""]
    for layer in trace.layers:
        run = trace.examples[layer.example] if 0 <= layer.example < len(trace.examples) else None
        if layer.class_name == name and (layer.path or (run is not None and run.file)):
            owners = [model.class_name for model in models if model.example == layer.example]  # What stands alone has no path either.
            target = run.target.rpartition(".")[2] if run is not None else ""
            owner = target if target in owners else next(iter(owners), "")
            if run is not None and run.evidence == PROGRAM:
                whose = PurePath(run.file).name if run.file not in ("", trace.file) else "the program"
                return [f"as {whose} calls it" if not layer.path else f"part of {owner or 'another module'}, as {whose} calls it"]
            part = ("part of " + (owner or "another module")) if layer.path else "seen"
            return [f"{part} in {PurePath(run.file).name}: {run.expression}" if run is not None and run.file else part]
    return []
