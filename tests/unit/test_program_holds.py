"""When what a document showed as a program still holds after an edit (lsp/documents/importer_traces.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shapelens.lsp.documents.importer_traces import ImporterTraces
from shapelens.protocol import ExampleRun, FileSpan, LayerSeen, Mismatch, Observation, Trace, Value
from shapelens.source.module import Module, parse

TEXT = """\
def main(x):
    return x


def encode(x):
    return x{}
"""


def trace_of(*reached: str) -> Trace:
    """What an example saw that came to these functions."""
    return Trace("/net.py", examples=[ExampleRun("", "", reached=list(reached))])


def test_a_function_that_nothing_came_to_may_be_come_to_after_it_has_changed() -> None:
    traces = ImporterTraces("/net.py")
    run: Any = None
    traces.follow_program(trace_of("main"), parse(TEXT.format(".missing()")), run)
    assert traces.program_holds(parse(TEXT.format(".missing()") + "\n# a comment\n"), None)
    changed = parse(TEXT.format(""))
    assert not traces.program_holds(changed, None)
    assert not traces.program_holds(changed, trace_of("main"))
    assert traces.program_holds(changed, trace_of("encode")), "the examples see it, and ran for the edit"


def test_functions_show_what_they_did_until_a_program_has_come_to_them() -> None:
    """While it is being followed it shows its statements: hints of functions that only follow are neither taken away nor kept for good."""
    traces = ImporterTraces("/net.py")
    run: Any = None

    def seen(line: int, function: str, size: int) -> Observation:
        return Observation(FileSpan("/net.py", line, 4, line, 5), "assign", "x", function, 0, [Value("tensor", shape=[size])], 1)

    def shown(module: Module) -> dict[int, list[int] | None]:
        trace = traces.merged_with(None, module)
        return {each.span.line: each.values[0].shape for each in trace.observations} if trace is not None else {}

    def program(*observations: Observation) -> Trace:
        return replace(trace_of(), observations=list(observations))

    def called(trace: Trace, *names: str) -> Trace:
        return replace(trace, examples=[*trace.examples, *(ExampleRun(name, name + "(1)") for name in names)])

    text = parse(TEXT.format(""))
    traces.follow_program(called(program(seen(1, "main", 1), seen(2, "main", 2), seen(6, "encode", 6)), "main", "encode"), text, run)
    assert shown(text) == {1: [1], 2: [2], 6: [6]}
    lower = parse("\n" + TEXT.format(""))
    for _ in range(2):  # Each of which an edit ends.
        traces.follow_program(called(program(seen(2, "main", 3)), "main"), lower, run, is_whole=False)
        assert shown(lower) == {2: [3], 7: [6]}
        assert [run.target for run in traces.functions_called(lower)] == ["main", "encode"]
    traces.follow_program(program(seen(2, "main", 3)), lower, run)
    assert shown(lower) == {2: [3]}


def test_functions_show_what_they_did_after_runs_none_of_which_came_to_its_end() -> None:
    """A first run that is short of time has come to a function, and the next one is ended by an edit before it does."""
    traces = ImporterTraces("/net.py")
    run: Any = None
    text = parse(TEXT.format(""))
    in_statements = Observation(FileSpan("/net.py", 1, 4, 1, 5), "assign", "x", "", 0, [Value("tensor", shape=[1])], 1)
    in_encode = replace(in_statements, span=FileSpan("/net.py", 6, 4, 6, 5), function="encode")
    begun, further = replace(trace_of(), observations=[in_statements]), replace(trace_of(), observations=[in_statements, in_encode])
    for each in (begun, further, begun, begun):
        traces.follow_program(each, text, run, is_whole=False)
    trace = traces.merged_with(None, text)
    assert trace is not None
    assert [seen.span.line for seen in trace.observations] == [1, 6]


def test_places_of_which_nothing_is_known_stay_until_a_run_has_come_to_its_end() -> None:
    """A run tells of them in the end: an edit before that took them away."""
    traces = ImporterTraces("/net.py")
    run: Any = None
    text = parse(TEXT.format(""))
    first = Observation(FileSpan("/net.py", 1, 4, 1, 5), "assign", "x", "", 0, [Value("tensor", shape=[1])], 1)
    second = replace(first, span=FileSpan("/net.py", 2, 4, 2, 5), function="main", values=[Value("unknown")])
    in_main, known = replace(second, span=FileSpan("/net.py", 3, 4, 3, 5), values=first.values), replace(second, values=first.values)

    def kinds() -> list[str]:
        trace = traces.merged_with(None, text)
        assert trace is not None
        return [" ".join(value.kind for value in seen.values) for seen in sorted(trace.observations, key=lambda seen: seen.span.line)]

    traces.follow_program(replace(trace_of(), observations=[first, second, in_main]), text, run)
    for _ in range(3):
        traces.follow_program(replace(trace_of(), observations=[first, in_main]), text, run, is_whole=False)
        assert kinds() == ["tensor", "unknown", "tensor"]
    traces.follow_program(replace(trace_of(), observations=[first, known, in_main]), text, run, is_whole=False)
    assert kinds() == ["tensor"] * 3
    traces.follow_program(replace(trace_of(), observations=[first, in_main]), text, run)
    assert kinds() == ["tensor", "tensor"]


def test_the_layers_of_functions_that_a_program_has_not_come_to_yet_are_theirs() -> None:
    """A function builds a layer; the next run has come to the statements alone, which build another one."""
    traces = ImporterTraces("/net.py")
    run: Any = None
    text = parse(TEXT.format(""))
    in_statements = Observation(FileSpan("/net.py", 1, 4, 1, 5), "assign", "x", "", 0, [Value("layer", layer=0)], 1)
    in_encode = replace(in_statements, span=FileSpan("/net.py", 6, 4, 6, 5), function="encode", values=[Value("layer", layer=1)])
    first, second = (LayerSeen(number, name, name, name, name, None, 0) for number, name in enumerate(("Linear", "Conv2d")))
    traces.follow_program(replace(trace_of(""), observations=[in_statements, in_encode], layers=[first, second]), text, run)
    traces.follow_program(replace(trace_of(""), observations=[in_statements], layers=[first]), text, run, is_whole=False)
    trace = traces.merged_with(None, text)
    assert trace is not None
    seen = {each.span.line: trace.layers[each.values[0].layer or 0].class_name for each in trace.observations}
    assert seen == {1: "Linear", 6: "Conv2d"}


def test_a_call_that_edits_have_broken_is_known_when_all_is_found_out_anew() -> None:
    traces, text = ImporterTraces("/net.py"), parse(TEXT.format(".first()"))
    called = replace(trace_of("main"), examples=[ExampleRun("", "", reached=["main"]), ExampleRun("encode", "encode(1)", reached=[])])
    wrong = replace(called, mismatches=[Mismatch("matmul", "shapes differ", "RuntimeError", None, [], 1)])
    traces.follow_program(wrong, text, None)  # type: ignore[arg-type]
    assert not traces.reopened(text).functions_called(text)  # It was found for a text between.
    traces.follow_program(called, text, None)  # type: ignore[arg-type]
    traces.establish()
    assert not traces.reopened(text).functions_called(text)
    traces.follow_program(wrong, text, None)  # type: ignore[arg-type]
    assert [run.target for run in traces.reopened(text).functions_called(text)] == ["encode"]
