"""Module classes, calls and parse errors of a file, and what an edit leaves of them."""

from __future__ import annotations

import random

import pytest

from shapelens.source import statements
from shapelens.source.classes import Parameter
from shapelens.source.module import Module, parse
from shapelens.source.position_map import TextEdit, apply
from shapelens.source.positions import Position, Span

NET = '''\
import torch
from torch import nn


@register
class Net(nn.Module):
    """A net."""

    def __init__(self, channels: int = 3, *sizes, bias=True, **rest):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, kernel_size=5)
        self.fc1 = nn.Linear(
            16 * 6 * 6,  # what is left of the picture
            120,
        )

    def forward(self, x, mask: torch.Tensor | None = None):
        return self.fc1(self.conv1(x).flatten(1))


def build():
    return Net()


class Other(Net):
    pass
'''


def place(text: str, part: str) -> Position:
    return parse(text).lines.position(text.index(part))


def at(module: Module, part: str) -> Span:
    start = module.text.index(part)
    return module.lines.span(start, start + len(part))


def class_lines(module: Module) -> dict[str, str]:
    return {cls.qualname: module.lines.text_of(cls.name_span) for cls in module.classes}


CLASS_AND_SCRIPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, 2 * width)

    def forward(self, x):
        if x.dim() == 3:
            x = x.flatten(1)
        return self.fc(x)

model = Net(8)
x = torch.rand(
    2, 8
)
for step in range(3):
    y = model(x)
print(y)
"""


def test_a_module_class_in_full() -> None:
    module = parse(NET)
    net, other = module.classes
    assert (net.name, net.qualname, net.bases, net.first_line) == ("Net", "Net", ["nn.Module"], 5)
    assert module.lines.text_of(net.span).startswith("class Net") and module.lines.text_of(net.span).endswith("flatten(1))")
    assert {name: module.lines.text_of(span) for name, span in net.methods.items()} == {"__init__": "__init__", "forward": "forward"}
    assert net.init_parameters == [
        Parameter("self", None, None, "positional_or_keyword"),
        Parameter("channels", "int", "3", "positional_or_keyword"),
        Parameter("sizes", None, None, "var_positional"),
        Parameter("bias", None, "True", "keyword_only"),
        Parameter("rest", None, None, "var_keyword"),
    ]
    assert net.forward_parameters[2] == Parameter("mask", "torch.Tensor | None", "None", "positional_or_keyword")
    assert other.bases == ["Net"] and module.errors == [] and module.imports == ["torch"]


@pytest.mark.parametrize(
    ("text", "module_classes", "maybe"),
    [
        ("from torch.nn import Module as M\nclass A(M): pass", ["A"], []),
        ("import torch.nn as tnn\nclass A(tnn.Module): pass\nclass B(tnn.modules.conv.Conv2d): pass", ["A", "B"], []),
        (
            "import torch\nclass A(torch.nn.Module): pass\nclass P(torch.nn.Parameter): pass\nclass F(torch.autograd.Function): pass",
            ["A"],
            [],
        ),
        ("from torch import nn\nBase = nn.Module\nAgain = Base\nclass A(Again): pass", ["A"], []),
        ("from torch.nn import *\nclass A(Module): pass\nclass B(Linear): pass\nclass C(Exception): pass", ["A", "B"], []),
        ("class A(nn.Module): pass", ["A"], []),  # a snippet without its imports
        ("import torch.nn as nn\nclass B(A): pass\nclass A(nn.Sequential): pass\nclass C(B): pass", ["B", "A", "C"], []),
        ("import torch.nn as nn\nclass A(nn.Module): pass\nclass A(A): pass", ["A", "A"], []),
        ("class A(B): pass\nclass B(A): pass", [], []),
        ("from .base import Base\nclass A(Base): pass\nclass B(A): pass", [], ["A", "B"]),
        ("from flax.linen import nn\nclass A(nn.Module): pass", [], ["A"]),
        ("class A(Unknown): pass\nclass B(make_base()): pass", [], ["A", "B"]),
        ("from enum import Enum\nimport abc\nclass A(Enum): pass\nclass B(abc.ABC): pass\nclass C(dict): pass\nclass D: pass", [], []),
        ("import pytorch_lightning as pl\nclass A(pl.LightningModule): pass", ["A"], []),
        ("from transformers import BertPreTrainedModel\nclass A(BertPreTrainedModel): pass", ["A"], []),
        ("from six import with_metaclass\nimport torch.nn as nn\nclass A(with_metaclass(M, nn.Module)): pass", ["A"], []),
        ("from torch import nn\nfrom typing import Generic\nclass A(nn.Module, Generic[T]): pass\nclass B(A[int]): pass", ["A", "B"], []),
        ("try:\n    import torch.nn as n\nexcept ImportError:\n    n = None\nclass A(n.Module): pass", ["A"], []),
        (
            "def f():\n    import torch.nn as n\n    class A(n.Module):\n        class B(n.Module): pass\n",
            ["f.<locals>.A", "f.<locals>.A.B"],
            [],
        ),
        ("if a:\n    class A(nn.Module): pass\nelse:\n    class B(nn.Module): pass\n", ["A", "B"], []),
        ("for a in b:\n    with c:\n        match d:\n            case 1:\n                class A(nn.Module): pass\n", ["A"], []),
        ("class A[T: int](nn.Module):\n    def forward[U](self, x: U = (y := 1)): pass\n", ["A"], []),
    ],
)
def test_which_classes_are_module_classes(text: str, module_classes: list[str], maybe: list[str]) -> None:
    module = parse(text)
    assert module.errors == []
    assert [cls.qualname for cls in module.classes] == module_classes
    assert [cls.qualname for cls in module.maybe_modules] == maybe


def test_a_call_and_its_arguments() -> None:
    module = parse(NET)
    call = module.call_at(at(module, "nn.Conv2d(channels, 6, kernel_size=5)"))
    assert call is not None and (call.function, call.qualified) == ("nn.Conv2d", "torch.nn.Conv2d")
    assert [(item.text, item.keyword, item.index) for item in call.arguments] == [
        ("channels", None, 0),
        ("6", None, 1),
        ("5", "kernel_size", None),
    ]
    found = module.argument(call, ["kernel_size"], 2)
    assert found is not None and module.lines.text_of(found.span) == "5"
    assert module.argument(call, ["stride"], 3) is None
    linear = module.call_at(Span(12, 19, 12, 19))
    assert linear is not None and (wanted := module.argument(linear, ["in_features"], 0)) is not None
    assert (wanted.text, wanted.span) == ("16 * 6 * 6", at(module, "16 * 6 * 6"))


@pytest.mark.parametrize(
    ("line", "call", "arguments"),
    [
        ("a = f(x)(y)", "f(x)(y)", ["y"]),
        ("a = f(x)(y)", "f(x)", ["x"]),
        ("a = f((1, 2), (3), k=(4))", "f((1, 2), (3), k=(4))", ["(1, 2)", "3", "4"]),
        ("@f(1)\ndef g(): pass", "f(1)", ["1"]),
        ("if a: pass\nelif f(1): pass", "f(1)", ["1"]),
        ("if f(1):  # why\n    pass", "f(1)", ["1"]),
        ("try: pass\nexcept f(1) as e: pass", "f(1)", ["1"]),
        ("match a:\n    case 1 if f(2):\n        pass", "f(2)", ["2"]),
        ("class A(f(1), metaclass=g): x = 1", "f(1)", ["1"]),
        ("async def a():\n    async with f(1) as b, g(): await c", "f(1)", ["1"]),
        ("a = f'{g(1)} {h(2)!r:>{i(3)}}'", "h(2)", ["2"]),
        ("\ta = '😀' + f(é, '→')", "f(é, '→')", ["é", "'→'"]),
        ("a = [f(i) for i in b if c]; d = f(2)", "f(2)", ["2"]),
    ],
)
def test_calls_are_found_on_every_kind_of_line(line: str, call: str, arguments: list[str]) -> None:
    module = parse(f"if 1:\n{line}\n" if line.startswith("\t") else line)
    found = module.call_at(at(module, call))
    assert found is not None and module.lines.text_of(found.span) == call
    assert [item.text for item in found.arguments] == arguments


def test_arguments_behind_a_star_have_no_index() -> None:
    module = parse("f(1, *rest, 2, key=3, **more)")
    call = module.call_at(Span(1, 0, 1, 1))
    assert call is not None
    assert [(item.text, item.index, item.star) for item in call.arguments] == [
        ("1", 0, ""),
        ("rest", None, "*"),
        ("2", None, ""),
        ("3", None, ""),
        ("more", None, "**"),
    ]
    assert module.argument(call, ["second"], 1) is None


@pytest.mark.parametrize(
    ("part", "shift", "text", "kind"),
    [
        ("self.conv1(x)", 7, "self.conv1", "attribute"),
        ("self.conv1(x)", 10, "self.conv1", "attribute"),
        ("self.conv1(x)", 2, "self", "name"),
        ("x).flatten", 0, "x", "name"),
        ("kernel_size=5", 3, "nn.Conv2d(channels, 6, kernel_size=5)", "call"),
        ("forward", 2, "forward", "name"),
        ("Net(nn", 1, "Net", "name"),
        ("120", 1, NET[NET.index("nn.Linear") : NET.index(")\n\n    def forward") + 1], "call"),
    ],
)
def test_the_expression_under_the_mouse(part: str, shift: int, text: str, kind: str) -> None:
    module = parse(NET)
    found = module.expression_at(module.lines.position(NET.index(part) + shift))
    assert found is not None and (found.text, found.kind) == (text, kind)
    assert module.lines.text_of(found.span) == text


def test_nothing_is_under_the_mouse_on_a_blank_line_or_in_a_comment() -> None:
    module = parse(NET)
    assert module.expression_at(Position(3, 0)) is None
    assert parse("# only\n").expression_at(Position(1, 3)) is None


def test_an_edit_parses_one_statement_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parse(NET)
    parsed: list[str] = []
    real = statements.read_by_ast

    def counted(text: str, *rest: object) -> object:
        parsed.append(text.split("\n", 1)[0])
        return real(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(statements, "read_by_ast", counted)
    after = parse(NET.replace("return Net()", "net = Net()\n    return net"), before)
    assert parsed == ["def build():"]
    assert [cls.span.line for cls in after.classes] == [6, 26]
    assert parse(after.text, after) is after
    parsed.clear()
    parse("# one more comment\n" + after.text, after)
    assert parsed == []


@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("16 * 6 * 6,", "16 * 6 * ,"),
        ("nn.Conv2d(channels, 6, kernel_size=5)", "nn.Conv2d(channels, 6, kernel_size=5"),
        ("class Net(nn.Module):", "class Net(nn.Module"),
        ('    """A net."""', '    """A net.'),
        ("        super().__init__()", '        """\n        super().__init__()'),
        ("return self.fc1", "return 'self.fc1"),
        ("import torch\n", "import torch (\n"),
        ("return Net()", "return Net(["),
        ("@register", "@register("),
        ("channels: int = 3", "channels: int = "),
    ],
)
def test_a_broken_statement_keeps_its_last_good_version_and_no_other_is_touched(part: str, broken: str) -> None:
    good = parse(NET)
    text = NET.replace(part, broken, 1)
    module = parse(text, good)
    assert module.errors and class_lines(module) == {"Net": "Net", "Other": "Other"}
    assert [cls.init_parameters for cls in module.classes] == [cls.init_parameters for cls in good.classes]
    assert module.lines.line(module.classes[1].span.line) == "class Other(Net):"
    # While it is broken, the rest can be edited, lines above it included.
    commented = parse("# above\n" + text, module)
    edited = parse(commented.text.replace("    pass\n", "    size = 3\n"), commented)
    assert class_lines(edited) == {"Net": "Net", "Other": "Other"}
    healed = parse(edited.text.replace(broken, part, 1), edited)
    assert healed.errors == [] and healed.classes == parse(healed.text).classes


def test_an_open_docstring_that_a_second_one_closes_is_read_as_python_reads_it() -> None:
    text = "class A(nn.Module):\n    pass\n\nclass B(nn.Module):\n    pass\n\nclass C(nn.Module):\n    pass\n"
    opened = parse(text.replace("class B", '"""\nclass B'), parse(text))
    assert class_lines(opened) == {"A": "A", "B": "B", "C": "C"} and opened.errors
    closed = parse(opened.text.replace("class C", '"""\nclass C'), opened)
    assert class_lines(closed) == {"A": "A", "C": "C"} and closed.errors == []


def test_a_class_that_is_deleted_or_renamed_while_the_file_is_broken_is_gone() -> None:
    good = parse(NET)
    broken = parse(NET.replace("super()", "super(", 1), good)
    start, end = NET.index("@register"), NET.index("def build")
    gone = parse(NET[:start] + "x = (\n" + NET[end:], broken)
    assert [cls.name for cls in gone.classes] == []
    assert [cls.name for cls in gone.maybe_modules] == ["Other"]


def test_the_message_is_cpythons_and_its_place_is_in_the_file() -> None:
    module = parse("a = 1\n\nif a:\n    b = (2\n\nclass A(nn.Module): pass\n")
    assert [(problem.message, problem.span.line, problem.span.column) for problem in module.errors] == [("'(' was never closed", 4, 8)]
    assert [cls.name for cls in module.classes] == ["A"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\ufeff",
        "\ufeffclass A(nn.Module): pass",
        "\0\0\1\2",
        "\x7fELF\x02\x01\x01\0\xff\xfe(((\"\"\"'''\\",
        "# -*- coding: latin-1 -*-\nx = 'é'\n",
        "\ud800 = '\udfff'\n",
        "(" * 5000 + ")" * 5000,
        "x = " + "-" * 30_000 + "1",
        "x = " + "lambda: " * 5000 + "1",
        "x = 1" + " + 1" * 20_000,
        "x" + ".a" * 30_000,
        "if x: pass\n" + "elif x: pass\n" * 20_000,
        "\n".join(" " * depth + "if x:" for depth in range(300)) + "\n" + " " * 300 + "pass",
        "class A(\n" * 500,
        "f'{" * 1000,
    ],
    ids=range(17),
)
def test_no_text_makes_it_fail(text: str) -> None:
    module = parse(text)
    assert len(module.errors) <= max(1, text.count("\n") + 1)
    module.expression_at(Position(1, 3))
    edited = parse(apply(text, [TextEdit(Span(1, 0, 1, 0), "x = 1\n")]) if not text.startswith("\ufeff") else text, module)
    edited.call_at(Span(1, 4, 1, 5))
    assert isinstance(edited.classes, list)


def test_positions_after_a_byte_order_mark_and_tabs_and_crlf() -> None:
    text = "\ufeffclass A(nn.Module):\r\n\tdef forward(self, 𝐱):\r\n\t\treturn f('😀', 𝐱)\r\n\x0cclass B(A): pass\r\n"
    module = parse(text)
    assert module.errors == []
    assert [module.lines.text_of(cls.name_span) for cls in module.classes] == ["A", "B"]
    assert module.lines.text_of(module.classes[0].methods["forward"]) == "forward"
    call = module.call_at(at(module, "f('😀', 𝐱)"))
    assert call is not None and [module.lines.text_of(item.span) for item in call.arguments] == ["'😀'", "𝐱"]


def test_a_line_that_is_indented_into_the_statement_above_it_is_no_statement_of_its_own() -> None:
    text = "class Net:\n    def forward(self):\n        return 1\nmodel = Net()\nother = 2\n"
    edited = parse(text.replace("model", " model"), parse(text))
    assert [problem.message for problem in edited.errors] == ["unindent does not match any outer indentation level"]
    assert [cls.name for cls in edited.statements.placed[0].statement.classes] == ["Net"]
    assert parse(text, edited).errors == []


@pytest.mark.parametrize("seed", range(4))
def test_whether_a_text_parses_does_not_depend_on_how_it_was_typed(seed: int) -> None:
    chance = random.Random(seed)
    module, texts = parse(CLASS_AND_SCRIPT), [CLASS_AND_SCRIPT]
    for _ in range(150):
        text = texts[-1]
        line = chance.choice([at + 1 for at, each in enumerate(text) if each == "\n"] or [0])
        start = chance.choice([line, chance.randrange(len(text) + 1)])
        cut = text[start : start + chance.choice([0, 0, 1, 1, 8, 80])]
        put = chance.choice(["", " ", "    ", "\n", "(", ")", '"', "x", ":", "# ", "if x:\n", cut[::-1]])
        texts.append(text[:start] + put + text[start + len(cut) :] if len(texts) % 5 else texts[-5])
        module = parse(texts[-1], module)
        assert bool(module.errors) == bool(parse(texts[-1]).errors), texts[-2:]
