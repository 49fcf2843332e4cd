"""Programs that go on: what a statement that fails leaves behind, and which failures are the code's own (rewrite/resilient.py)."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shapelens.worker.rewrite.resilient import (
    BRANCH,
    COUNTS,
    ENTERED,
    ERRORS,
    FAILED,
    FURTHER_FAILED,
    GOES_FURTHER,
    GOES_ON,
    ITEMS,
    KEYWORDS,
    LISTED,
    MARK,
    MISSING,
    SPREAD,
    STEPS,
    resilient,
)
from shapelens.worker.rewrite.sites import (
    BOUND,
    COMPREHENDED,
    FURTHER_TURNS,
    GENERATED,
    MODEL_TURNS,
    NAMES,
    READ,
    SCALAR,
    TURN,
    TURNS,
    UNKNOWN_AT,
    VALUE,
    Site,
)

CONSTRUCTED = "class A%s:\n    def __init__(self):\n        self.x = 1 / 0\n        self.y = 2\na = sorted(vars(A()).keys() - {'x'})\nb = 1"


class Base:
    """What may be a module."""


def followed(text: str, observed: int = 1000) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """The names of a program that has been followed, and the line and class of each exception that ended a statement.

    observed: the turns of a loop that have reports.
    """
    further: list[Any] = []
    turns: list[int] = []
    failures: list[tuple[int, str]] = []
    sites: list[Site] = []

    def failed(error: BaseException, line: int) -> str:
        failures.append((line, type(error).__name__))
        return "unknown"

    def steps(iterable: Any, lines: tuple[int, int], pattern: Any, may_switch: bool) -> Iterator[Any]:
        items = iter(iterable if iterable != "unknown" else [])
        yield from itertools.islice(items, observed if may_switch else None)
        further[:] = [items]

    def goes_on(line: int) -> bool:
        turns.append(line)
        return len(turns) <= observed

    names: dict[str, Any] = {
        ERRORS: (Exception, SystemExit),
        FAILED: failed,
        MISSING: lambda name: f"no {name}",
        STEPS: steps,
        FURTHER_TURNS: lambda line: further.pop() if further else [],
        FURTHER_FAILED: failed,
        GOES_ON: goes_on,
        GOES_FURTHER: lambda line: len(turns) > observed,
        COMPREHENDED: lambda items, first, plain: first(items),
        GENERATED: lambda items, first, plain: first(items),
        MODEL_TURNS: lambda iterable: iterable,
        ENTERED: lambda context, line: context,
        BRANCH: lambda branches, value: value,
        ITEMS: lambda iterable, pattern: iterable,
        MARK: lambda: 0,
        KEYWORDS: lambda mapping: mapping,
        SPREAD: lambda value: 1 / 0 if value == "unknown" else value,
        LISTED: lambda mark, made: made,
        COUNTS: lambda function, value, **kwargs: function(value, **kwargs),
        VALUE: lambda number, value: value,
        SCALAR: lambda number, value: value,
        NAMES: lambda number, *values: True,
        BOUND: lambda number, *values: True,
        READ: lambda number, function: None,
        TURNS: lambda steps: steps,
        TURN: lambda line, holds=True: holds,
        UNKNOWN_AT: lambda number: None,
        "B": Base,
    }
    exec(compile(resilient(ast.parse(text), sites), "program.py", "exec"), names)
    return {name: value for name, value in names.items() if not name.startswith("__")}, failures


# What `with` raises for a value that cannot be used so.
NO_CONTEXT = "TypeError" if sys.version_info >= (3, 11) else "AttributeError"


@pytest.mark.parametrize(
    ("text", "held", "failures"),
    [
        ("a = 1 / 0\nb = 2", {"a": "no a", "b": 2}, [(1, "ZeroDivisionError")]),
        ("x, (y, z) = 1\nw = 3", {"x": "no x", "y": "no y", "z": "no z", "w": 3}, [(1, "TypeError")]),
        ("import nowhere_at_all as n\nm = 1", {"n": "no n", "m": 1}, [(1, "ModuleNotFoundError")]),
        ("s = 0\nfor i in range(3):\n    s += i\n    t = {}[i]", {"s": 3, "i": 2, "t": "no t"}, [(4, "KeyError")] * 3),
        ("for i in nothing:\n    pass\nb = 1", {"b": 1}, [(1, "NameError")]),
        ("with open('/nowhere/at/all') as f:\n    pass\nb = 1", {"b": 1}, [(1, "FileNotFoundError"), (1, NO_CONTEXT)]),
        ("def f():\n    x = 1 / 0\n    return 5\ny = f()", {"y": 5}, [(2, "ZeroDivisionError")]),
        ("def f():\n    return 1 / 0\ny = f()", {"y": "unknown"}, [(2, "ZeroDivisionError")]),
        ("try:\n    x = 1 / 0\nexcept ZeroDivisionError:\n    x = 7", {"x": 7}, []),
        ("u = 'unknown'\na = (1, *u)\nb = [0, *(1, 2)]\nfirst, *rest = b", {"a": "no a", "rest": [1, 2]}, [(2, "ZeroDivisionError")]),
        (CONSTRUCTED % "", {"a": ["y"], "b": 1}, [(3, "ZeroDivisionError")]),
        (CONSTRUCTED % "(B)", {"a": "no a", "b": 1}, [(5, "ZeroDivisionError")]),
        ("n = 0\nwhile n < 3:\n    n += 1\nelse:\n    m = n", {"n": 3, "m": 3}, []),
        ("import sys\nsys.exit(3)\nb = 1", {"b": 1}, [(2, "SystemExit")]),
        ("def g():\n    yield 1\n    x = 1 / 0\n    yield 2\nitems = list(g())", {"items": [1, 2]}, [(3, "ZeroDivisionError")]),
        ("with open('/dev/null') as a, open('/dev/null') as b:\n    c = a.closed, b.closed", {"c": (False, False)}, []),
    ],
)  # fmt: skip
def test_a_statement_that_fails_ends_alone(text: str, held: dict[str, Any], failures: list[tuple[int, str]]) -> None:
    names, failed = followed(text)
    assert {name: names.get(name) for name in held} == held
    assert failed == failures


LOOPS = [
    ("s = 0\nfor i in range(9):\n    if i == 1: continue\n    s += i\nelse:\n    t = s", {"s": 35, "t": 35, "i": 8}, []),
    ("s = 0\nfor i in range(9):\n    if i == 7: break\n    s += i\nelse:\n    t = s", {"s": 21, "t": None, "i": 7}, []),
    ("def f():\n  for a, (b, c) in [(1, (2, 3))] * 5:\n    for d in range(c):\n      if d: return a, b, d\nx = f()", {"x": (1, 2, 1)}, []),
    ("i = s = 0\nwhile i < 9:\n    i += 1\n    if i == 7: break\n    s += i\nelse:\n    s = 0", {"i": 7, "s": 21}, []),
    ("i = 0\nwhile i < 9:\n    i += 1\nelse:\n    s = 1", {"i": 9, "s": 1}, []),
    ("s = []\nfor i in range(9):\n    s.append([j for j in range(i) for k in 'ab' if j > 2])\nn = sum(map(len, s))", {"n": 30}, []),
]  # fmt: skip


@pytest.mark.parametrize("observed", [0, 1, 3, 1000])
@pytest.mark.parametrize(("text", "held", "failures"), LOOPS)
def test_a_loop_does_the_same_wherever_it_goes_on_without_reports(
    text: str, held: dict[str, Any], failures: list[tuple[int, str]], observed: int
) -> None:
    names, failed = followed(text, observed)
    assert {name: names.get(name) for name in held} == held
    assert failed == failures


def test_a_turn_without_reports_that_fails_ends_its_loop() -> None:
    names, failed = followed("s = 0\nfor i in range(9):\n    s += 1 // (5 - i)\nb = 1", observed=3)
    assert (names["i"], names["b"]) == (5, 1)
    assert failed == [(2, "ZeroDivisionError")]


def test_forward_fails_as_a_whole() -> None:
    """What goes wrong in `forward` belongs to the statement that calls it, and its loops are part of what it computes."""
    methods = "    def forward(self):\n        x = 1 / 0\n        return x\n    def step(self):\n        y = 1 / 0\n        return 3\n"
    names, failed = followed("class Net:\n" + methods + "a = Net().forward()\nb = Net().step()")
    assert (names["a"], names["b"]) == ("no a", 3)
    assert failed == [(8, "ZeroDivisionError"), (6, "ZeroDivisionError")]
