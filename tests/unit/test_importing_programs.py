"""What is shown of a file where a program that imports it was followed (analysis/traces/programs.py): of one class, one story."""

from __future__ import annotations

from dataclasses import replace

from shapelens.analysis.display.hints import hints
from shapelens.analysis.traces.programs import with_found, with_importing_program
from shapelens.examples.settings import Settings
from shapelens.protocol import ExampleRun, FileSpan, LayerCall, LayerSeen, Mismatch, Observation, Trace, Value
from shapelens.source.module import parse
from shapelens.trace_numbering import merged
from shapelens.traces import PROGRAM

FILE = "/blocks.py"
TEXT = """\
class Block(nn.Module):
    def __init__(self, sample):
        self.norm = nn.LayerNorm(sample.shape)

    def forward(self, x):
        y = self.norm(x)
        return y

def small(sample):
    z = Block(sample)(sample)
    return z
"""


def trace_of(run: ExampleRun, shape: list[int], *lines: tuple[int, str]) -> Trace:
    """What an example saw: the norm gave this shape, and so held each name on these lines."""
    value = Value("tensor", shape=shape, dtype="float32")
    layer = LayerSeen(0, "LayerNorm", "torch.nn.modules.normalization.LayerNorm", "norm", "", FileSpan(FILE, 3, 20, 3, 46), 0)
    layer.calls = [LayerCall([value], value)]
    seen = [Observation(FileSpan(FILE, line, 8, line, 9), "assign", "y", function, 0, [value], 1) for line, function in lines]
    return Trace(FILE, examples=[run], observations=seen, layers=[layer])


def shown(guess: Trace, program: Trace) -> dict[int, str]:
    """The hints by their lines."""
    module = parse(TEXT)
    return {
        hint.position.line: hint.label
        for hint in hints(module, merged(FILE, with_importing_program([guess], program)), Settings(hints_unchanged=True))
    }


PROGRAM_RUN = ExampleRun("", "", evidence=PROGRAM)


def test_a_function_that_the_program_does_not_call_tells_no_other_story_of_a_class_that_it_does() -> None:
    guess = trace_of(
        ExampleRun("small", "small(f32[2, 64])", evidence="inferred", doubtful=True), [2, 64], (6, "Block.forward"), (10, "small")
    )
    program = trace_of(PROGRAM_RUN, [9, 8], (6, "Block.forward"))
    assert shown(guess, program) == {3: "→ [9, 8]", 6: "→ [9, 8]", 10: "→ [2, 64]"}


def test_a_guess_at_a_class_stays_as_a_whole_where_it_shows_more_lines() -> None:
    lines = [(6, "Block.forward"), (7, "Block.forward")]
    guess = trace_of(ExampleRun("Block", "Block(f32[2, 64])(f32[2, 64])", evidence="inferred", doubtful=True), [2, 64], *lines)
    program = trace_of(PROGRAM_RUN, [9, 8], lines[0])
    assert shown(guess, program) == {3: "→ [2, 64]", 6: "→ [2, 64]", 7: "→ [2, 64]"}


def test_steps_stay_where_the_program_only_builds_their_class() -> None:
    example = ExampleRun("Block", "Block(sample)(f32[2, 64])", evidence="usage", where="train.py:8")
    step = ExampleRun("Block.step", "Block(sample).step(f32[2, 64])", evidence="inferred", doubtful=True)
    steps = trace_of(step, [2, 64], (6, "Block.forward"))
    for lines in ([(3, "Block.__init__")], [(3, "Block.__init__"), (7, "Block.forward")]):
        program = trace_of(PROGRAM_RUN, [9, 8], *lines)
        traces = with_importing_program([trace_of(example, [2, 64]), steps], program)
        labels = {hint.position.line: hint.label for hint in hints(parse(TEXT), merged(FILE, traces), Settings(hints_unchanged=True))}
        assert labels.get(6) == ("→ [2, 64]" if len(lines) == 1 else None)


def test_methods_of_a_class_without_an_example_stay_where_the_program_shows_nothing_of_them() -> None:
    method = trace_of(ExampleRun("Block.read", "Block('data').read(0)", evidence="inferred", doubtful=True), [2, 64], (6, "Block.read"))
    only_built = trace_of(PROGRAM_RUN, [9, 8], (3, "Block.__init__"))
    called = trace_of(PROGRAM_RUN, [9, 8], (7, "Block.read"))
    assert shown(method, only_built)[6] == "→ [2, 64]"
    assert 6 not in shown(method, called)


def test_what_examples_of_several_classes_saw_stands_in_the_order_of_the_classes() -> None:
    """Whichever example was found first, as when a file is opened anew. What a failed example saw comes last."""
    text = TEXT.replace("def small", "class Other(nn.Module):\n    def forward(self, x):\n        return Block(x)(x)\n\ndef small")
    runs = [ExampleRun("Other", "", evidence="inferred"), ExampleRun("Block", "", evidence="inferred")]
    traces = [trace_of(run, [size], (6, "Block.forward")) for run, size in zip(runs, (2, 1), strict=True)]

    def labels(*traces: Trace) -> set[str]:
        return {hint.label for hint in hints(parse(text), merged(FILE, traces), Settings(hints_unchanged=True))}

    assert labels(*traces) == labels(*reversed(traces)) == {"→ [1] | [2]"}
    runs[1].error = "IndexError: list index out of range"
    assert labels(*traces) == labels(*reversed(traces)) == {"→ [2] | [1]"}


def test_an_example_that_runs_past_an_error_where_the_class_is_used_shows_nothing() -> None:
    file, at = "/models.py", FileSpan(FILE, 6, 12, 6, 24)
    used = trace_of(ExampleRun("Model", "Model()(f32[9, 8])", file=file), [9, 8], (5, "Block.forward"))
    found = trace_of(ExampleRun("Block", "Block(f32[2])(f32[2])", evidence="inferred"), [2], (6, "Block.forward"), (7, "Block.forward"))
    error = Mismatch("exception", "no", "ValueError", at, [FileSpan(file, 3, 0, 3, 9), at], 0)

    def lines(used: Trace, found: Trace) -> list[int]:
        return sorted(seen.span.line for trace in with_found([used], found) for seen in trace.observations)

    assert lines(used, found) == [5, 6, 7]
    fails = replace(used, mismatches=[error])
    assert lines(fails, found) == [5]
    assert lines(fails, replace(found, mismatches=[error])) == [5, 6, 7]  # It is wrong with both.
    may_fail = replace(fails, examples=[replace(used.examples[0], doubtful=True)])
    assert lines(may_fail, found) == [5, 6, 7]
