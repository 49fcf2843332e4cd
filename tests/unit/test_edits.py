"""Changes of the code: the wanted text is there, and not a byte of the rest is another."""

from __future__ import annotations

import ast

import pytest

from shapelens.source.calls import Call
from shapelens.source.edits import replace_argument, set_directive
from shapelens.source.module import Module, parse
from shapelens.source.position_map import apply


def first_call(module: Module, function: str) -> Call:
    return next(call for call in module.calls() if call.function == function)


@pytest.mark.parametrize(
    ("before", "keyword", "index", "new_text", "after"),
    [
        ("a = nn.Linear(16 * 6 * 6, 120)", "in_features", 0, "400", "a = nn.Linear(400, 120)"),
        ("a = nn.Linear( in_features = 3 , out_features=4 )", "in_features", 0, "8", "a = nn.Linear( in_features = 8 , out_features=4 )"),
        ("a = nn.Linear((16 * 6 *\r\n\t6), 120)\r\n", "in_features", 0, "400", "a = nn.Linear((400), 120)\r\n"),
        ("a = nn.Linear(\n    3,  # in\n    4,  # out\n)", "out_features", 1, "5", "a = nn.Linear(\n    3,  # in\n    5,  # out\n)"),
        ("a = nn.Linear(3, 4); b = '😀'", "out_features", 1, "5", "a = nn.Linear(3, 5); b = '😀'"),
        ("é = '😀', nn.Linear(3, 4)", "in_features", 0, "5", "é = '😀', nn.Linear(5, 4)"),
        ("a = nn.Linear((1, 2), 4)", "in_features", 0, "(3, 4)", "a = nn.Linear((3, 4), 4)"),
        # the argument is missing
        ("a = nn.Linear()", "in_features", 0, "3", "a = nn.Linear(in_features=3)"),
        ("a = nn.Linear(3)", "out_features", 1, "4", "a = nn.Linear(3, out_features=4)"),
        ("a = nn.Linear((3))", "out_features", 1, "4", "a = nn.Linear((3), out_features=4)"),
        ("a = nn.Linear(3, )", "out_features", 1, "4", "a = nn.Linear(3, out_features=4, )"),
        ("a = nn.Linear(*b, **c)", "bias", 2, "False", "a = nn.Linear(*b, **c, bias=False)"),
        ("a = nn.Linear(\n)", "in_features", 0, "3", "a = nn.Linear(in_features=3\n)"),
        ("a = nn.Linear(\n    3,  # in\n)\n", "out_features", 1, "4", "a = nn.Linear(\n    3,  # in\n    out_features=4,\n)\n"),
        ("if b:\r\n\ta = nn.Linear(\r\n\t\t3,\r\n\t)\r\n", "x", 1, "4", "if b:\r\n\ta = nn.Linear(\r\n\t\t3,\r\n\t\tx=4,\r\n\t)\r\n"),
        ("a = nn.Linear(\n    3\n)\n", "out_features", 1, "4", "a = nn.Linear(\n    3, out_features=4\n)\n"),
        ("a = nn.Linear(3,\n              4)", "bias", 2, "False", "a = nn.Linear(3,\n              4, bias=False)"),
    ],
)
def test_an_argument_gets_another_value(before: str, keyword: str, index: int, new_text: str, after: str) -> None:
    module = parse(before)
    call = first_call(module, "nn.Linear")
    edit = replace_argument(module, call, module.argument(call, [keyword], index), keyword, new_text)
    assert apply(before, [edit]) == after
    ast.parse(after)


@pytest.mark.parametrize(("text", "keyword", "index"), [("f(*a)", "x", None), ("f(a for a in b)", "x", 1)])
def test_an_edit_that_cannot_be_right_is_refused(text: str, keyword: str, index: int | None) -> None:
    module = parse(text)
    call = first_call(module, "f")
    argument = call.arguments[0] if index is None else module.argument(call, [keyword], index)
    with pytest.raises(ValueError, match=r"stands for several|would not parse"):
        replace_argument(module, call, argument, keyword, "3")


CLASS = "class Net(nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        (CLASS, "Net", "# shapelens: Net()(f32[2])\n" + CLASS),
        ("x = 1\n\n" + CLASS, "Net", "x = 1\n\n# shapelens: Net()(f32[2])\n" + CLASS),
        ("@a\n@b(\n1)\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\n@a\n@b(\n1)\n" + CLASS),
        ("# about\n" + CLASS, "Net", "# about\n# shapelens: Net()(f32[2])\n" + CLASS),
        ("if a:\n\tclass Net(nn.Module): pass", "Net", "if a:\n\t# shapelens: Net()(f32[2])\n\tclass Net(nn.Module): pass"),
        ("\ufeff" + CLASS.replace("\n", "\r\n"), "Net", "\ufeff# shapelens: Net()(f32[2])\r\n" + CLASS.replace("\n", "\r\n")),
        (
            "class A(nn.Module):\n    class Net(A): pass\n",
            "A.Net",
            "class A(nn.Module):\n    # shapelens: Net()(f32[2])\n    class Net(A): pass\n",
        ),
        # one is there already
        ("# shapelens: Net()\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\n" + CLASS),
        ("#shapelens:Net()  \n@a\n" + CLASS, "Net", "#shapelens: Net()(f32[2])  \n@a\n" + CLASS),
        ("# shapelens: Net(\n#     1,\n# )(x)\n# more\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\n# more\n" + CLASS),
        ("# shapelens: Net(1)\n# shapelens: Net(2)\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\n# shapelens: Net(2)\n" + CLASS),
        ("# shapelens: Net(1)\nx = 1\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\nx = 1\n" + CLASS),
        ("# shapelens: other(1)\nx = 1\n" + CLASS, "Net", "# shapelens: other(1)\nx = 1\n# shapelens: Net()(f32[2])\n" + CLASS),
        ("# shapelens:\n" + CLASS, "Net", "# shapelens: Net()(f32[2])\n" + CLASS),
        ("x = '# shapelens: Net(1)'\n" + CLASS, "Net", "x = '# shapelens: Net(1)'\n# shapelens: Net()(f32[2])\n" + CLASS),
    ],
)
def test_a_directive_is_added_or_replaced(before: str, name: str, after: str) -> None:
    module = parse(before)
    assert apply(before, [set_directive(module, name, "Net()(f32[2])")]) == after
    # What was written is what is read, and writing it again changes nothing.
    again = parse(after, module)
    assert [item.expression for item in again.directives].count("Net()(f32[2])") == 1
    assert apply(after, [set_directive(again, name, "Net()(f32[2])")]) == after


def test_a_function_gets_a_directive_too() -> None:
    before = "import torch\n\n\n@torch.no_grad()\ndef f(x):\n    return x\n"
    after = "import torch\n\n\n# shapelens: f(f32[2])\n@torch.no_grad()\ndef f(x):\n    return x\n"
    assert apply(before, [set_directive(parse(before), "f", "f(f32[2])")]) == after
    assert apply(after, [set_directive(parse(after), "f", "f(f32[3])")]) == after.replace("f32[2]", "f32[3]")


def test_an_expression_over_lines_becomes_one_line() -> None:
    module = parse(CLASS)
    assert apply(CLASS, [set_directive(module, "Net", "Net(\r\n    1)(\n    f32[2],\n3)\n")]) == "# shapelens: Net(1)(f32[2], 3)\n" + CLASS


def test_there_is_no_directive_for_a_class_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no class Nut"):
        set_directive(parse(CLASS), "Nut", "Nut()")
