"""Other ways to write a call that rearranges, joins, splits or reduces dims."""

from __future__ import annotations

import pytest

from shapelens.analysis.repairs.rearrangements import place, rewritings
from shapelens.analysis.repairs.size_expressions import operands, replacement
from shapelens.source.module import parse
from shapelens.source.position_map import apply
from shapelens.source.positions import Span


def texts(call: str, shape: list[int | None] | None = None, sizes: list[int] | None = None) -> list[str]:
    """The call in each of the other ways."""
    module = parse(f"import torch\ny = {call}\n")
    span = Span(2, 4, 2, 4 + len(call))
    return [apply(module.text, [each.edit]).splitlines()[1][4:] for each in rewritings(module, span, shape or [], sizes or [])]


@pytest.mark.parametrize(
    ("call", "shape", "expected"),
    [
        ("torch.cat([a, b], dim=1)", [2, 3, 4], ["torch.cat([a, b], dim=2)", "torch.cat([a, b], dim=0)"]),
        ("torch.cat([a, b], -1)", [2, 3], ["torch.cat([a, b], -2)"]),
        ("x.transpose(1, 2)", [2, 3, 4], ["x.transpose(0, 2)", "x.transpose(1, 0)"]),
        ("x.unsqueeze(0)", [2, 3], ["x.unsqueeze(1)", "x.unsqueeze(2)"]),
        ("x.sum((1, 2))", [2, 3, 4], ["x.sum((0, 2))", "x.sum((1, 0))"]),
        ("x.chunk(2, dim=0)", [4, 6], ["x.chunk(2, dim=1)"]),
        ("x.chunk(2, 0)", [4, 6], ["x.chunk(2, 1)"]),
        ("torch.softmax(x, 0)", [4, 6], ["torch.softmax(x, 1)"]),
        ("x.permute(0, 2, 1)", [2, 3, 4], ["x.permute(2, 0, 1)", "x.permute(0, 1, 2)", "x.permute(1, 2, 0)"]),
        ("x.permute((0, 2, 2))", [2, 3, 4], ["x.permute((0, 2, 1))", "x.permute((0, 1, 2))"]),
        ("x.permute(0, -1, 3)", [2, 3, 4], ["x.permute(0, -1, 1)"]),
        ("x.view(-1, 399)", [2, 16, 5, 5], ["x.view(-1, 400)", "x.view(-1, 25)", "x.view(-1, 5)"]),
        ("x.view(2, 399)", [2, 16, 5, 5], ["x.view(2, 400)", "x.view(2, -1)", "x.view(2, 25)", "x.view(2, 5)"]),
        ("a @ b", [], ["a @ b.transpose(-2, -1)", "b @ a", "a.transpose(-2, -1) @ b"]),
        ("a @ b.transpose(-2, -1)", [], ["a @ b", "b.transpose(-2, -1) @ a", "a.transpose(-2, -1) @ b.transpose(-2, -1)"]),
        ("torch.bmm(a + c, b)", [], ["torch.bmm(a + c, b.transpose(-2, -1))", "torch.bmm(b, a + c)"]),
        ("x.view(b, t, heads, -1)", [2, 7, 24], []),
        ("x.relu()", [2, 3], []),
    ],
)
def test_other_ways_to_write_a_call(call: str, shape: list[int | None], expected: list[str]) -> None:
    found = texts(call, shape)
    if call.startswith("x.view(2") or call.startswith("torch.bmm"):
        assert set(expected) <= set(found), found
    else:
        assert found == expected, found


def test_sizes_near_the_one_that_is_written_come_first() -> None:
    assert texts("x.expand(2, 60)", [], [64, 8, 512]) == ["x.expand(-1, 60)"] + [f"x.expand({n}, 60)" for n in (8, 64, 512)] + [
        "x.expand(2, -1)",
        *(f"x.expand(2, {n})" for n in (64, 8, 512)),
    ]


def test_what_one_would_change_of_a_call_is_its_numbers() -> None:
    module = parse("y = x.view(2, 3).transpose(1, 2)\nz = x.relu()\n")
    assert place(module, Span(1, 4, 1, 32)) == Span(1, 27, 1, 31)
    assert place(module, Span(2, 4, 2, 12)) == Span(2, 6, 2, 12)


def test_parts_of_an_expression_may_be_meant_alone() -> None:
    assert operands("2 * (heads)") == ["heads"]
    assert operands("a.b + 1") == ["a.b"]
    assert operands("2 * 3") == operands("f(x)") == operands("a * b") == operands("1 +") == []


def test_another_multiple_is_likelier_than_a_number() -> None:
    assert replacement("2 * hidden", [(32, 48)]) == "3 * hidden"
    assert replacement("hidden * 2", [(32, 48), (64, 96)]) == "hidden * 3"
    assert replacement("2 * hidden", [(32, 16)]) == "hidden"
    assert replacement("2 * hidden", [(32, 40)]) == "40"
