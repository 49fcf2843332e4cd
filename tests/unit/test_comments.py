"""`# shapelens:` comments: where examples are read from, and which lines are silenced."""

from __future__ import annotations

import pytest

from shapelens.source.module import parse

CLASS = "class Net(nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# shapelens: Net()(f32[B:2, 3])\n" + CLASS, [("Net()(f32[B:2, 3])", "Net")]),
        ("#shapelens: a\n# about it\n@b\n@c(\n  1)\n" + CLASS, [("a", "Net")]),
        ("@b\n# shapelens: a\n" + CLASS, [("a", "Net")]),
        ("# shapelens: a\n# shapelens: b\n" + CLASS, [("a", "Net"), ("b", "Net")]),
        ("# shapelens: a\nimport b\n" + CLASS, [("a", None)]),
        ("# shapelens: a\n\n" + CLASS, [("a", None)]),
        (CLASS + "# shapelens: a\n", [("a", None)]),
        (CLASS + "# shapelens: a", [("a", None)]),
        ("# shapelens: a", [("a", None)]),
        ("\ufeff# shapelens: a\r\n" + CLASS, [("a", "Net")]),
        ("x = 1  # shapelens: a\n" + CLASS, [("a", None)]),
        ("if x:\n    # shapelens: a\n    class Net(nn.Module): pass\n", [("a", "Net")]),
        ("class A(nn.Module):\n    # shapelens: a\n    b = 1\n    # shapelens: c\n    class B(A): pass\n", [("a", "A"), ("c", "A.B")]),
        ("# shapelens: Net(\n#     3,\n#   )(f32[B:2,\n# 4])\n# not this\n" + CLASS, [("Net(3,)(f32[B:2, 4])", "Net")]),
        ("# shapelens: Net(\n# shapelens: b\n" + CLASS, [("Net(", "Net"), ("b", "Net")]),
        ("# shapelens: Net(\nx = 1\n", [("Net(", None)]),
        ("# shapelens: f('(')\n# no more\n", [("f('(')", None)]),
        ("# shapelens:\n" + CLASS, [("", "Net")]),
        ('x = """\n# shapelens: a\n"""\ny = "# shapelens: a"\n# see # shapelens: a\n', [("a", None)]),
        ("f(1,\n  # shapelens: a\n  2)\n", [("a", None)]),
        ("# shapelens: a\nclass Net(nn.Module:\n    pass\n", [("a", None)]),
    ],
)
def test_directives(text: str, found: list[tuple[str, str | None]]) -> None:
    module = parse(text)
    assert [(item.expression, item.target) for item in module.directives] == found
    for item in module.directives:
        # Every character of the expression, blanks at line ends apart, is where it is said to be.
        for index, character in enumerate(item.expression):
            at = item.position(index)
            if character != " ":
                assert module.lines.line(at.line)[at.column] == character


@pytest.mark.parametrize(
    ("text", "ignores"),
    [
        ("a = f()  # shapelens: ignore\nb = 1", {1: None}),
        ("a = f()  # shapelens: ignore[matmul]", {1: {"matmul"}}),
        ("a = f()  #shapelens:ignore[ matmul , conv-in-channels ] as it is tested", {1: {"matmul", "conv-in-channels"}}),
        ("# shapelens: ignore[cat]\n# why\n\na = f(\n  1)\nb = 1", {4: {"cat"}, 5: {"cat"}}),
        ("a = f(\n  1,\n)  # shapelens: ignore[cat]\nb = 1", {1: {"cat"}, 2: {"cat"}, 3: {"cat"}}),
        ("a = f(\n  1,  # shapelens: ignore[cat]\n  2)", {2: {"cat"}}),
        ("a = f(\n  # shapelens: ignore[cat]\n  2)", {3: {"cat"}}),
        ("# shapelens: ignore[cat]\n# shapelens: ignore[view]\na = 1  # shapelens: ignore[dtype]", {3: {"cat", "view", "dtype"}}),
        ("# shapelens: ignore[cat]\na = 1  # shapelens: ignore", {2: None}),
        ("class A:\n    def f(self):  # shapelens: ignore\n        pass\n", {2: None}),
        ("a = '# shapelens: ignore'", {}),
        ("a = 1\n# shapelens: ignore[cat]\n", {}),  # nothing comes after it
        ("# shapelens: ignore_errors(Net())(x)", {}),
    ],
)
def test_silenced_lines(text: str, ignores: dict[int, set[str] | None]) -> None:
    assert parse(text).ignores == ignores


def test_an_ignore_is_no_directive_and_a_call_of_that_name_is() -> None:
    module = parse("# shapelens: ignore\nx = 1\n# shapelens: ignore(x)\n# shapelens: ignored\n")
    assert [item.expression for item in module.directives] == ["ignore(x)", "ignored"]


def test_comments_are_read_from_a_file_that_does_not_parse_and_follow_its_edits() -> None:
    text = "# shapelens: Net()(f32[2])\n" + CLASS
    before = parse(text)
    broken = parse("x = (\n" + text.replace("pass", "pass ("), before)
    assert [(item.expression, item.target, item.span.line) for item in broken.directives] == [("Net()(f32[2])", "Net", 2)]
