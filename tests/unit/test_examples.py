"""Example expressions, and which of them a file is run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapelens.examples import expression as expressions
from shapelens.examples.choose import choose, without_example
from shapelens.examples.settings import Settings
from shapelens.source.module import parse


@pytest.mark.parametrize(
    ("expression", "dims"),
    [
        ("Net()(f32[B:2, 3, 32, 32])", {"B": 2}),
        ("Net(num_classes=10)(f32[B:2, 3, H:224, W:224], mask=None)", {"B": 2, "H": 224, "W": 224}),
        ("f(i64[B:2, T:3*4], f32[B, T])", {"B": 2, "T": 12}),
        ("f(f32[B:2, N:SIZE], bool[B:2])", {"B": 2}),
        ("f(f32[()], bf16[4], u8[B:2], c64[N:B*2 - 1])", {"B": 2, "N": 3}),
        ("loss(make()(batch()), torch.zeros(3)[1:2, ::2])", {}),
        ("[m for m in (Net(),)][0](lambda: (y := 3), **{'x': f32[2]})", {}),
        ("  Net('😀', é=f32[Ω:3])  ", {"Ω": 3}),
        ("f32[B:0, 0]", {"B": 0}),
        ("f(x if f32[3] is None else not f32[2] @ f32[2, 3])", {}),
        ("Net()(\n  f32[B:2],\n)", {"B": 2}),
    ],
)
def test_examples_that_are_fine(expression: str, dims: dict[str, int]) -> None:
    assert expressions.check(expression) is None
    assert expressions.dims(expression) == dims


@pytest.mark.parametrize(
    ("expression", "message", "marked"),
    [
        ("", "is empty", ""),
        ("   ", "is empty", "   "),
        ("x = Net()", "this is an assignment", "x = Net()"),
        ("import torch", "this is an import", "import torch"),
        ("for x in y: x", "this is a statement", "for x in y: x"),
        ("a; b", "is one expression", "a; b"),
        ("Net()(f32[2, 3)", "does not match", ")"),
        ("Net()(f32[2, 3]", "never closed", "("),
        ("Net())", "unmatched", ")"),
        ("Net() Net()", "not a valid Python expression", None),
        ("Net()(f32[])", "a scalar is f32[()]", "f32"),
        ("Net()(f32[B:])", "dim B has no size", "B:"),
        ("Net()(f32[:3])", "the name of a dim", ":3"),
        ("Net()(f32[2:3])", "the name of a dim", "2"),
        ("Net()(f32[B:2:3])", "name:size", "B:2:3"),
        ("Net()('😀', f32[B:2], f32[B:3])", "dim B is 2 before and 3 here", "B:3"),
        ("f32[2.5]", "whole number, not 2.5", "2.5"),
        ("f32['B']", "whole number, not 'B'", "'B'"),
        ("f32[...]", "whole number, not ...", "..."),
        ("f32[True]", "whole number, not True", "True"),
        ("f32[B:-1]", "negative", "-1"),
        ("await Net()", "await and yield", "await Net()"),
        ("(yield 1)", "await and yield", "yield 1"),
        ("a\0b", "null", None),
        ("(" * 1000, "", None),
        ("-" * 100_000 + "1", "", None),
    ],
)
def test_examples_that_are_not(expression: str, message: str, marked: str | None) -> None:
    found = expressions.problem(expression)
    assert found is not None and message in found.message
    if marked is not None:
        assert expression[found.column : found.end_column] == marked
    assert expressions.check(expression) == f"{found.message} (column {found.column + 1})"
    assert expressions.dims("" if marked is None else expression) in ({}, {"B": 2}, {"B": -1})


TWO = "class Block(nn.Module): pass\n\nclass Net(nn.Module): pass\n"


def test_directives_come_first_and_then_the_settings(tmp_path: Path) -> None:
    path = str(tmp_path / "models" / "net.py")
    settings = Settings().merged({"examples": {"models/net.py": ["Net(3)(f32[1])", "make()(f32[2])"], "other.py": "f()"}}, str(tmp_path))
    module = parse("# shapelens: loss(Net(), f32[2])\nimport a\n" + TWO.replace("class Net", "# shapelens: make(1)\nclass Net"))
    choice = choose(module, path, settings)
    assert choice.problems == []
    assert [(item.target, item.expression, item.evidence, item.where) for item in choice.examples] == [
        ("Net", "make(1)", "directive", "line 5"),
        ("Net", "loss(Net(), f32[2])", "directive", "line 1"),
        ("Net", "Net(3)(f32[1])", "settings", "settings"),
        ("Block", "make()(f32[2])", "settings", "settings"),
    ]


def test_the_command_line_replaces_all_others() -> None:
    module = parse("# shapelens: Net()\n" + TWO)
    choice = choose(module, "net.py", Settings(), [" Block()(f32[2]) ", "Block()("])
    assert [(item.target, item.expression, item.evidence) for item in choice.examples] == [("Block", "Block()(f32[2])", "command line")]
    assert [item.evidence for item in choice.problems] == ["command line"] and "never closed" in choice.problems[0].message


@pytest.mark.parametrize(
    ("text", "line", "marked"),
    [
        ("# shapelens: Net()(f32[B:])\n" + TWO, 1, "B:"),
        ("# shapelens: Net(\n#    a)(\n#  f32[2:3])\n" + TWO, 3, "2"),
        ("x = '😀'  # shapelens: Net())\n" + TWO, 1, ")"),
        ("# shapelens:\n" + TWO, 1, "# shapelens:"),
    ],
)
def test_an_invalid_directive_is_marked_where_it_is_wrong(text: str, line: int, marked: str) -> None:
    module = parse(text)
    choice = choose(module, "net.py", Settings())
    assert choice.examples == []
    (problem,) = choice.problems
    assert problem.span.line == line
    assert module.lines.text_of(problem.span).strip() == marked


def test_an_example_that_is_there_twice_runs_once() -> None:
    choice = choose(parse("# shapelens: Net()(1)\n# shapelens: Net()(1)\nclass Net(nn.Module): pass\n"), "a.py", Settings())
    assert len(choice.examples) == 1


def test_a_directive_above_a_function_that_it_calls_is_the_functions() -> None:
    text = "# shapelens: f(f32[2])\n# shapelens: f(f32[3])\n@torch.no_grad()\ndef f(x): return x\n\nclass Net(nn.Module): pass\n"
    module = parse(text)
    choice = choose(module, "a.py", Settings())
    assert [item.target for item in choice.examples] == ["f", "f"]
    assert without_example(module, choice) == ["Net"]


@pytest.mark.parametrize("example", ["make()(f32[2])", "other(f32[2])"])
def test_another_directive_above_a_function_is_the_first_classs(example: str) -> None:
    choice = choose(parse(f"# shapelens: {example}\ndef make(): return Net()\n\nclass Net(nn.Module): pass\n"), "a.py", Settings())
    assert [item.target for item in choice.examples] == ["Net"]


def test_a_file_without_classes_has_examples_too() -> None:
    choice = choose(parse("# shapelens: f(f32[2])\nimport torch\n\ndef f(x): return x\n"), "a.py", Settings())
    assert [item.target for item in choice.examples] == [""]


@pytest.mark.parametrize(
    ("example", "tensors", "other"),
    [
        ("Net(a='x')(f32[B:2, 1, 64, 64])", [("f32", [256, 1, 32, 32])], "Net(a='x')(f32[B:256, 1, 32, 32])"),
        ("Net()(f32[B:2, T:16], i64[B, T], None)", [("f32", [4, 100]), ("i64", [4, 100])], "Net()(f32[B:4, T:100], i64[B, T], None)"),
        ("Net()(f32[B:2, T:16], i64[T])", [("f32", [4, 100]), ("i64", [7])], "Net()(f32[B:4, T:100], i64[7])"),
        ("Net()(f32[B:2, 3])", [("i64", [4, 5, 6])], "Net()(i64[B:4, 5, 6])"),
        ("Net()(next(iter(loader)))", [("f32", [4, 5])], "Net()(f32[B:4, 5])"),
        ("Net()(f32[()])", [("f32", [])], "Net()(f32[()])"),
        ("Net()(*batch)", [("f32", [2]), ("f32", [2])], None),
        ("Net()(f32[2])", [("f32", [2]), ("f32", [2])], None),
        ("Net(dim=4)", [("f32", [2])], None),
        ("Net()(", [("f32", [2])], None),
    ],
)
def test_an_example_with_other_tensors(example: str, tensors: list[tuple[str, list[int]]], other: str | None) -> None:
    assert expressions.with_tensors(example, tensors) == other
