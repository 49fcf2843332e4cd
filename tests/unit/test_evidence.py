"""Examples that were found: what the editor says of them, and what of their failures is no error."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shapelens.analysis.display.lenses import lenses
from shapelens.analysis.evidence import evidence_of
from shapelens.analysis.findings.findings import findings
from shapelens.analysis.traces.views import see_all, seen_from, without_found
from shapelens.examples.choose import Example
from shapelens.examples.settings import Settings
from shapelens.protocol import Alternative, ExampleRun, FileSpan, LayerCall, LayerSeen, Mismatch, Note, Observation, Remark, Trace, Value
from shapelens.source.module import parse
from shapelens.trace_numbering import merged

FILE = "/net.py"
TEXT = """\
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x @ x
class Block(nn.Module):
    def forward(self, x):
        return x
"""
MODULE = parse(TEXT)
PRODUCT = FileSpan(FILE, 4, 15, 4, 20)
FOUND = ExampleRun("Net", "Net()(f32[B:2, 8])", parameter_count=62006, bytes=248024, seconds=0.1, evidence="inferred")


def tensor(*shape: int) -> Value:
    return Value("tensor", shape=list(shape), dtype="float32")


def mismatch(example: int = 0) -> Mismatch:
    return Mismatch("matmul", "shapes differ", "RuntimeError", PRODUCT, [PRODUCT], example, inputs=[tensor(2, 8)] * 2, operation="matmul")


SHOW = ("show", "Show model")


def titles(*runs: ExampleRun, given: list[Example] | None = None) -> list[tuple[str, str]]:
    return [
        (lens.action, lens.title.replace("\u202f", " "))
        for lens in lenses(MODULE, given or [], Trace(FILE, list(runs)))
        if lens.target == "Net"
    ]


def test_the_lens_says_where_an_example_was_found_and_offers_to_write_it_down() -> None:
    assert titles(FOUND) == [("set", "Net · guessed input · 62 006 parameters"), SHOW]
    used = replace(FOUND, evidence="usage", where="line 88", others=[Alternative("Net()(f32[3])", "inferred")] * 2)
    assert titles(used) == [("set", "Net · from line 88 · 62 006 parameters"), SHOW]
    assert next(lens.menu for lens in lenses(MODULE, [], Trace(FILE, [FOUND])) if lens.action == "set") == ("set", "write", "show")
    lens, *_ = lenses(MODULE, [], Trace(FILE, [used]))
    assert (lens.menu, lens.expression, len(lens.others)) == (("choose", "set", "write", "show"), FOUND.expression, 2)


def parameter(name: str, value: Value, example: int = 0, function: str = "Net.forward") -> Observation:
    return Observation(FileSpan(FILE, 3, 22, 3, 23), "parameter", name, function, example, [value], 1)


def test_the_lens_says_the_shapes_of_the_input_and_leaves_the_expression_to_its_details() -> None:
    picture = Value("tensor", shape=[2, 3, 32, 32], named=["B", "3", "32", "32"], dtype="float32")
    seen = [
        parameter("x", picture),
        parameter("mask", Value("tensor", shape=[2, 8], dtype="bool")),
        parameter("scale", Value("scalar", text="2")),
    ]
    shown, *_ = lenses(MODULE, [], Trace(FILE, [FOUND], seen))
    assert shown.title.startswith("Net · x f32[B, 3, 32, 32], mask bool[2, 8] · guessed input · ")
    assert shown.details == FOUND.expression and shown.tells_all
    numbers, *_ = lenses(MODULE, [], Trace(FILE, [FOUND], seen), dims="numbers")
    assert "x f32[2, 3, 32, 32]" in numbers.title
    assert not replace(shown, expression="Net(8)(f32[B:2, 3, 32, 32])").tells_all


def test_several_given_examples_are_told_apart_by_how_they_build_the_class() -> None:
    given = [Example("Net", "Net(depth=4)(f32[4])", "directive", "line 1"), Example("Net", "Net(depth=8)(f32[4])", "settings", "")]
    runs = [ExampleRun("Net", each.expression, parameter_count=9) for each in given]
    trace = Trace(FILE, runs, [parameter("x", tensor(4)), parameter("x", tensor(4), 1)])
    said = [lens.title for lens in lenses(MODULE, given, trace) if lens.action == "set" and lens.target == "Net"]
    assert said == ["Net(depth=4) · x f32[4] · given · 9 parameters", "Net(depth=8) · x f32[4] · given · 9 parameters"]


FUNCTIONS = """\
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x
def make():
    return Net()
def test():
    net = make()
    net(1)
"""


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (replace(FOUND, evidence="directive"), "given"),
        (replace(FOUND, evidence="settings"), "given"),
        (FOUND, "guessed input"),
        (replace(FOUND, evidence="usage", where="line 9", doubtful=True), "guessed input"),
        (replace(FOUND, evidence="usage", where="line 9"), "from line 9"),
        (replace(FOUND, evidence="usage", where="test()", call=FileSpan(FILE, 9, 4, 9, 10)), "from test(), line 9"),
        (replace(FOUND, evidence="factory", where="make()"), "from make(), line 5"),
        (replace(FOUND, evidence="usage", where="train.py:40"), "from train.py:40"),
        (replace(FOUND, evidence="annotation", where="the annotation"), "from line 3"),
        (replace(FOUND, evidence="annotation", where="line 3"), "from line 3"),
    ],
)
def test_where_an_example_is_from_is_said_in_few_words(run: ExampleRun, words: str) -> None:
    assert evidence_of(run, parse(FUNCTIONS)) == words


def test_a_lens_fits_into_eighty_characters_and_its_longest_part_gives_way() -> None:
    def short(expression: str, **run: object) -> str:
        (lens, *_) = lenses(MODULE, [], Trace(FILE, [replace(FOUND, expression=expression, **run)]))  # type: ignore[arg-type]
        assert lens.expression == expression and lens.details.startswith(expression), "what a click works with is whole"
        assert lens.details.endswith(lens.title) is (lens.short_title != lens.title)
        return lens.short_title.replace("\u202f", " ")

    arguments = ", ".join(f"width_{number}={number}" for number in range(40))
    long = f"Net({arguments})(f32[B:2, 8])"
    assert short(long) == "Net · guessed input · 62 006 parameters"
    error = "ValueError: " + "no such width; " * 20
    failed = short(long, error=error, error_kind="exception", doubtful=False)
    assert (
        len(failed) <= 80
        and failed.startswith("Net · guessed input · 62 006 parameters · failed: ValueError: no such")
        and failed.endswith("…")
    )
    many = [parameter(f"input_{number}", tensor(2, 8)) for number in range(12)]
    (lens, *_) = lenses(MODULE, [], Trace(FILE, [FOUND], many))
    assert len(lens.short_title) == 80 and re.fullmatch(
        r"Net · input_0 f32\[2, 8\], .*… · guessed input · 62.006 parameters", lens.short_title
    )


def test_a_given_example_is_all_that_its_class_needs() -> None:
    given = [Example("Net", "Net()(f32[4])", "directive", "line 1")]
    assert titles(FOUND, given=given) == [("set", "Net · given"), SHOW]


def test_a_part_is_said_to_be_of_the_class_that_the_example_is_for() -> None:
    alone = LayerSeen(0, "Loss", "losses.Loss", "", "Loss()", None, 0)  # Made by itself, before the model.
    block, net = LayerSeen(1, "Block", "net.Block", "block", "Block()", None, 0), LayerSeen(2, "Net", "net.Net", "", "Net()", None, 0)
    shown = lenses(MODULE, [], Trace(FILE, [FOUND], layers=[alone, block, net]))
    assert [lens.title for lens in shown if lens.target == "Block"] == ["Block · part of Net", "Show model"]


def test_the_lens_of_what_fits_nothing_does_not_offer_to_write_it_down() -> None:
    failed = replace(FOUND, error="RuntimeError: no", error_kind="exception", doubtful=True)
    assert titles(failed) == [("set", "no example found · Set example input…"), SHOW]


def test_a_mismatch_is_an_error_unless_its_example_may_be_wrong() -> None:
    (sure,) = findings(MODULE, Trace(FILE, [FOUND], mismatches=[mismatch()]), Settings(), {}.get)
    assert sure.severity == "error" and "example" not in sure.message
    doubtful = replace(FOUND, doubtful=True)
    (said,) = findings(MODULE, Trace(FILE, [doubtful], mismatches=[mismatch()]), Settings(), {}.get)
    assert (said.severity, said.code, said.span) == ("hint", "matmul", sure.span)
    assert said.message == f"{sure.message} (input guessed)"
    assert said.candidates() == []
    given = ExampleRun("Net", "Net()(f32[4])", seconds=0.1)
    (both,) = findings(MODULE, Trace(FILE, [doubtful, given], mismatches=[mismatch(), mismatch(1)]), Settings(), {}.get)
    assert (both.severity, both.examples) == ("error", (1,))


def test_of_one_example_what_rests_on_a_guess_is_a_note_and_what_does_not_is_an_error() -> None:
    other = FileSpan(FILE, 7, 15, 7, 16)
    guessed = replace(mismatch(), guessed=True, span=other, trail=[other])
    found = findings(MODULE, Trace(FILE, [FOUND], mismatches=[guessed, mismatch()]), Settings(), {}.get)
    assert [(each.span.line, each.severity, each.message.endswith("(input guessed)")) for each in found] == [
        (4, "error", False),
        (7, "hint", True),
    ]


def test_where_nothing_fits_one_line_says_what_was_tried() -> None:
    failed = replace(FOUND, error="RuntimeError: shapes differ", error_kind="mismatch", error_span=PRODUCT, doubtful=True, tried=14)
    (said,) = findings(MODULE, Trace(FILE, [failed], mismatches=[mismatch()]), Settings(), {}.get)
    assert (said.code, said.severity, MODULE.lines.text_of(said.span)) == ("no-example", "hint", "Net")
    for words in ("Net()(f32[B:2, 8]) fails with RuntimeError: shapes differ", "# shapelens: Net(…)(f32[…])"):
        assert words in said.message
    assert "\n" not in said.message and [MODULE.lines.text_of(each.span) for each in said.related] == ["x @ x"]
    silenced = parse(TEXT.replace("class Net(nn.Module):", "class Net(nn.Module):  # shapelens: ignore[no-example]"))
    assert findings(silenced, Trace(FILE, [failed]), Settings(), {}.get) == []


def test_what_the_code_raises_under_a_found_example_is_information() -> None:
    raised = replace(FOUND, error="KeyError: 'a'", error_kind="exception", error_span=PRODUCT)
    (said,) = findings(MODULE, Trace(FILE, [raised]), Settings(), {}.get)
    assert (said.code, said.severity, MODULE.lines.text_of(said.span)) == ("exception", "information", "x @ x")


def test_there_are_no_lints_of_a_doubtful_example() -> None:
    remark = Remark("outer-product", "matmul", PRODUCT, 0, [tensor(2, 1), tensor(2)], dim=0)
    assert [each.code for each in findings(MODULE, Trace(FILE, [FOUND], remarks=[remark]), Settings(), {}.get)] == ["outer-product"]
    assert findings(MODULE, Trace(FILE, [replace(FOUND, doubtful=True)], remarks=[remark]), Settings(), {}.get) == []


def test_a_doubtful_example_of_another_file_shows_nothing_here() -> None:
    seen = Observation(PRODUCT, "assign", "x", "Net.forward", 0, [tensor(8)], 1)
    run = Trace("/model.py", [FOUND], [seen], [layer(0, "Net", 0)], [mismatch()])
    assert (view := seen_from(run, FILE)).observations == [seen] and [each.file for each in view.examples] == ["/model.py"]
    view = seen_from(replace(run, examples=[replace(FOUND, doubtful=True)]), FILE)
    assert view.observations == view.mismatches == view.layers == view.examples == []


def layer(index: int, name: str, example: int) -> LayerSeen:
    return LayerSeen(index, name, name, "", name, None, example, calls=[LayerCall([tensor(2)], tensor(2))])


def test_where_a_class_is_used_in_earnest_the_example_that_was_found_for_it_shows_nothing() -> None:
    held = Value("layer", layer=1)
    own = Trace(
        FILE,
        [FOUND, ExampleRun("Block", "Block()(f32[3])", evidence="inferred")],
        [Observation(PRODUCT, "assign", "x", "Net.forward", 0, [tensor(8)], 1), Observation(PRODUCT, "assign", "b", "f", 1, [held], 1)],
        [layer(0, "Net", 0), layer(1, "Block", 1)],
        [mismatch(0), mismatch(1)],
    )
    left = without_found(own, {"Net"})
    assert [run.target for run in left.examples] == ["Block"]
    assert [(seen.name, seen.example, seen.values[0].layer) for seen in left.observations] == [("b", 0, 0)]
    assert [(each.index, each.class_name, each.example) for each in left.layers] == [(0, "Block", 0)]
    assert [each.example for each in left.mismatches] == [0]
    assert without_found(own, {"Other"}) is own
    whole = merged(FILE, [left, own])
    assert [each.index for each in whole.layers] == [0, 1, 2] and [seen.example for seen in whole.observations] == [0, 1, 2]


def test_notes_are_hints_and_each_cause_is_told_once_a_file() -> None:
    places = [FileSpan(FILE, line, 8, line, 20) for line in (4, 7, 3)]
    notes = [*(Note("data-dependent", "it depends on data", span) for span in places), Note("missing-file", "no a.txt", places[0])]
    condition, file = findings(MODULE, Trace(FILE, notes=notes), Settings(), {}.get)
    assert (condition.severity, condition.span.line, condition.message) == ("hint", 3, "it depends on data (also in lines 4, 7)")
    assert (file.severity, file.span.line, file.message) == ("hint", 4, "no a.txt")
    raised = Settings(findings_severity={"data-dependent": "warning"})
    assert [each.severity for each in findings(MODULE, Trace(FILE, notes=notes), raised, {}.get)] == ["warning", "hint"]
    silenced = parse(TEXT.replace("def forward(self, x):", "def forward(self, x):  # shapelens: ignore[data-dependent]", 1))
    first, *_ = findings(silenced, Trace(FILE, notes=notes), Settings(), {}.get)
    assert (first.span.line, first.message) == (4, "it depends on data (also in line 7)")


METHODS = """\
class Agent:
    def act(self, state):
        return state + 1

def usage():
    print("usage")
"""


def test_methods_of_classes_that_are_no_modules_say_what_they_are_given_and_functions_that_show_nothing_are_silent() -> None:
    runs = [
        ExampleRun("Agent.act", "Agent().act(f32[4])", evidence="inferred", file=FILE),
        ExampleRun("usage", "usage()", evidence="inferred", file=FILE),
    ]
    seen = [Observation(FileSpan(FILE, 3, 8, 3, 24), "return", "", "Agent.act", 0, [tensor(4)], 1)]
    found = lenses(parse(METHODS), [], merged(FILE, [Trace(FILE, examples=runs, observations=seen)]))
    assert [(lens.span.start.line, lens.title, lens.action) for lens in found] == [(2, "act · guessed input", "")]


def test_a_class_that_was_only_constructed_counts_as_shown_where_its_own_example_has_a_mistake() -> None:
    called = LayerSeen(0, "Net", "net.Net", "", "Net()", None, 0, calls=[LayerCall([tensor(2)], tensor(2))])
    constructed = LayerSeen(1, "Block", "net.Block", "block", "Block()", None, 1)
    runs = [FOUND, replace(FOUND, target="Block", expression="Block()(f32[2])")]
    trace = Trace(FILE, runs, layers=[called, constructed])
    assert not see_all(MODULE, [trace])
    assert see_all(MODULE, [replace(trace, mismatches=[mismatch(example=1)])])
    assert not see_all(MODULE, [replace(trace, mismatches=[mismatch(example=0)])])
