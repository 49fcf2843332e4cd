"""Rewritten code does what the code did, and says where its values stand."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shapelens import worker
from shapelens.worker.evaluation.probing import apart
from shapelens.worker.loading.incremental_parse import reparsed, rewrite_new
from shapelens.worker.loading.statements import compiled
from shapelens.worker.rewrite.instrument import rewrite
from shapelens.worker.rewrite.sites import (
    ASSUMED,
    BOUND,
    COMPREHENDED,
    FIRST_TURNS,
    FURTHER_TURNS,
    GENERATED,
    MODEL_TURNS,
    NAMES,
    NUMBERS,
    READ,
    SCALAR,
    TURN,
    TURNS,
    VALUE,
    Site,
)
from shapelens.worker.trace.dim_names import formula, proportional, steps

PROGRAM = '''
from contextlib import nullcontext
class Outer:
    """Doc."""
    __secret = 5
    limit = abs(-9)
    table = [lambda v, k=k: v * k for k in range(3)]

    def __init__(self, n, *rest, flag=False, **more):
        """Of init."""
        self.n = n; self.table = [0, 1, 2]; self.total = self.count = 0
        self.rest, (self.first, *self.others) = rest, [flag, *more.values()]

    def method(self, x, y: int = 2) -> "int":
        def inner(z):
            nonlocal x
            x += z
            return lambda q: q + x + self.__secret
        for i, (a, b) in enumerate(zip(range(x), range(y))):
            self.total += a * b - i
            if (w := a + b) > 2: continue
        else:
            self.total -= 1
        with nullcontext(3) as c, nullcontext((4, 5)) as (d, e):
            x = c + d - e
        try:
            1 / 0
        except ZeroDivisionError as error:
            kind = type(error).__name__
        match [x, y]:
            case [Outer.limit, _]: chosen = "limit"
            case [0, other] if other: chosen = "zero"
            case [_, other]: chosen = f"other {other!r:>{3}} {x + 1=}"
            case {"k": v, **kept} | [*kept, v] as both: chosen = v, both, kept
        self.pair, self.table[0] = 3, 4
        self.left, self.table[-1] = iter([5, 6])
        self.total += 1; self.table[0] += self.left
        self.kept: int = 7
        awaited = [item for item in (1, 2) if item > 1], lambda p, /, q=self.n, *a, r=2, **k: (p, q, a, r, k)
        turned = awaited[1](1, 2, 3, s=4), self.table[0:2], self.n if y else None, self.n and y or x, 1 < y < 3
        class Local:
            inside = [y for y in range(3)]
            size: int = len(inside) + 1
            def get(self): return self.size, y, [Local.__name__ for _ in "a"]
        for self.slot in range(2): pass
        squares = {k: v ** 2 for k, v in {"a": 1, "b": 2}.items() if v} | {"c": [p for p in (1, 2) for _ in range(p)]}
        grid = [[i ** 2 / (y + j) for j in range(1, 3) if i != abs(j)] for i in range(y)], min(k % 3 for k in range(4))
        x: int = inner(2)(3)
        del other
        assert x, "message"
        named = super().__repr__ is not None, __class__.__name__
        around = sorted(locals()), vars(self), Local().get(), Local.inside
        return x, y, kind, chosen, turned, around, squares, [*self.rest], named, grid, not x, -x, x if y else y, x < y <= 3

    @staticmethod
    def plain(v): return v[0], v[-1:], v[::2]
    @classmethod
    def make(cls, *a): return cls(*a)
    @property
    def doubled(self): return self.n * 2
    def generate(self):
        got = yield self.n
        yield from [got, self.total]
    async def later(self): return self.n

def run():
    import asyncio
    o = Outer.make(3, 4, 5)
    g = o.generate()
    later, docs = asyncio.run(o.later()), [o.method.__doc__, Outer.__init__.__doc__]
    return o.method(4), o.plain([1, 2, 3]), o.doubled, next(g), g.send(9), list(g), later, Outer.table[2](4), docs
'''


def executed(tree: ast.Module, reports: list[tuple[int, Any]], observed: int = 1000) -> Any:
    """What the program gives. observed: the turns of a loop or comprehension that have reports."""
    further: list[Any] = []

    def first_turns(iterable: Any, line: int) -> Any:
        items = iter(iterable)
        yield from itertools.islice(items, observed)
        further[:] = [items]

    def comprehended(items: Any, first: Any, plain: Any) -> Any:
        items = iter(items)
        made = first(itertools.islice(items, observed))
        more = plain(items)
        return made + more if isinstance(made, list) else made | more

    def generated(items: Any, first: Any, plain: Any) -> Any:
        items = iter(items)
        yield from first(itertools.islice(items, observed))
        yield from plain(items)

    def names(first: int, *values: Any) -> bool:
        reports.extend((first + offset, value) for offset, value in enumerate(values))
        return True

    def value(number: int, result: Any) -> Any:
        reports.append((number, result))
        return result

    def read(number: int, function: Callable[[], Any]) -> None:
        value(number, function())

    namespace = {
        "__name__": "program",
        VALUE: value,
        SCALAR: value,
        NAMES: names,
        BOUND: names,
        READ: read,
        ASSUMED: lambda result, holds: result,
        TURNS: lambda steps: steps,
        FIRST_TURNS: first_turns,
        FURTHER_TURNS: lambda line: further.pop() if further else [],
        MODEL_TURNS: lambda iterable: iterable,
        COMPREHENDED: comprehended,
        GENERATED: generated,
        **{reporter: getattr(builtins, name) for name, reporter in NUMBERS.items()},
        TURN: lambda line: True,
    }
    exec(compile(ast.fix_missing_locations(tree), "program.py", "exec"), namespace)
    return namespace["run"]()


@pytest.mark.parametrize("observed", [0, 1, 2, 1000])
def test_rewritten_code_does_the_same(observed: int) -> None:
    sites: list[Site] = []
    plain = executed(ast.parse(PROGRAM), [])
    reports: list[tuple[int, Any]] = []
    assert executed(rewrite(ast.parse(PROGRAM), sites), reports, observed) == plain
    assert {number for number, _ in reports} <= set(range(len(sites)))
    said = {(sites[number].kind, sites[number].name): value for number, value in reports if sites[number].function == "Outer.method"}
    assert said["parameter", "y"] == 2
    assert said["assign", "c"] == 3
    assert said["assign", "kind"] == "ZeroDivisionError"
    assert said["return", "return"] == plain[0]


def test_what_goes_on_without_reports_is_the_same() -> None:
    numbers: list[tuple[int, Any]] = []
    every: list[tuple[int, Any]] = []
    first, second = executed(rewrite(ast.parse(PROGRAM), []), numbers, 1), executed(rewrite(ast.parse(PROGRAM), []), every)
    assert first == second
    assert len(numbers) < len(every)


def test_a_site_stands_where_its_text_is() -> None:
    sites: list[Site] = []
    text = "def f(é, b):\n\tq, k = é.chunk(\n\t\t2), b\n\treturn (q @ k)[0]\n"
    rewrite(ast.parse(text), sites)
    lines = text.encode().split(b"\n")

    def source(site: Site) -> str:
        line, column, end_line, end_column = site.place
        if line == end_line:
            return lines[line - 1][column:end_column].decode()
        return (lines[line - 1][column:] + b"\n" + lines[end_line - 1][:end_column]).decode()

    assert {(site.kind, source(site)) for site in sites if site.kind != "expression"} == {
        ("parameter", "é"), ("parameter", "b"), ("assign", "q"), ("assign", "k"), ("return", "(q @ k)[0]"),
    }  # fmt: skip
    assert {source(site) for site in sites if site.operation} == {"é.chunk(\n\t\t2)", "q @ k", "(q @ k)[0]"}


def test_deep_expressions_are_no_trouble() -> None:
    text = "def run():\n    return " + " + ".join(["1"] * 500) + "\n"
    assert executed(rewrite(ast.parse(text), []), []) == 500


def test_formulas() -> None:
    # dims in the run, then with B alone changed, then with both; sizes likewise
    one = [{"B": 4}, {"B": 8}, {"B": 12}]
    two = [{"B": 4, "T": 6}, {"B": 8, "T": 6}, {"B": 4, "T": 8}, {"B": 12, "T": 10}]
    cases = [
        ([4, 8, 12], one, "B"),
        ([3, 3, 3], one, "3"),
        ([12, 24, 36], one, "3·B"),
        ([1, 2, 3], one, "B/4"),
        ([6, 12, 18], one, "3·B/2"),
        ([5, 9, 13], one, "B+1"),
        ([7, 15, 23], one, "2·B-1"),
        ([16, 64, 144], one, None),  # B²
        ([3, 5, 6], one, None),  # rounded
        ([24, 48, 32, 120], two, "B·T"),
        ([12, 24, 16, 60], two, "B·T/2"),
        ([10, 14, 12, 22], two, None),  # B + T: not one of the forms that are shown
        ([6, 6, 8, 10], two, "T"),
    ]
    for dims, sizes, expected in cases:
        assert formula(dims, sizes) == expected, dims
    assert steps(224)[:2] == [256, 288]
    assert all(step > 0 for size in range(1, 70) for step in steps(size))


def test_one_run_with_other_sizes_names_what_is_in_no_doubt() -> None:
    """Two names of one size get different ones, so that they are told apart; what may follow from several sizes stays a number."""
    before = {"B": 2, "H": 224, "W": 224}
    after = apart(before)
    assert after is not None and after["H"] != after["W"] and all(after[name] != before[name] for name in before)

    def named(size: Callable[[dict[str, int]], int]) -> str | None:
        return proportional([size(before), size(after)], [before, after])

    assert named(lambda sizes: 64) == "64"
    assert named(lambda sizes: sizes["B"]) == "B"
    assert (named(lambda sizes: sizes["H"] // 4), named(lambda sizes: sizes["W"] // 4)) == ("H/4", "W/4")
    assert named(lambda sizes: 3 * sizes["H"] * sizes["W"] // 256) == "3·H·W/256"
    assert named(lambda sizes: sizes["H"] - 4) is None
    assert proportional([4, 8], [{"B": 2, "T": 2}, {"B": 4, "T": 4}]) is None
    assert apart(dict.fromkeys("ABC", 1)) is None


def test_the_worker_is_written_in_the_oldest_python_that_it_runs_on() -> None:
    for file in [*Path(inspect.getfile(worker)).parent.glob("*.py"), Path(inspect.getfile(worker)).parents[1] / "protocol.py"]:
        ast.parse(file.read_text(), feature_version=(3, 9))


def test_a_statement_that_comes_back_is_the_one_that_was_there() -> None:
    before = "import torch\n\n\ndef first(x):\n    return x + 1\n\n\ndef second(x):\n    return x * 2\n"
    sites: list[Site] = []
    parsed = rewrite_new(ast.parse(before), before, sites, {})
    nodes = list(parsed.body)
    for text in (before.replace("x + 1", "x + 3"), before.replace("x + 1", "x + 4"), before):
        tree = reparsed(parsed, text, "net.py", sites)
        assert tree is not None
        parsed = rewrite_new(tree, text, sites, parsed.former)
        assert (parsed.body[1] is nodes[1]) == (text == before) and parsed.body[2] is nodes[2]
    lower = "\n" + before  # It stands somewhere else: what stood there before is not the same.
    tree = reparsed(parsed, lower, "net.py", sites)
    assert tree is not None and not rewrite_new(tree, lower, sites, parsed.former).former


def test_what_python_refuses_is_refused_where_an_edit_has_moved_it() -> None:
    before = "import math\nclass Net:\n    def f(self, a,\n            a):\n        return a\n"
    sites: list[Site] = []
    parsed = rewrite_new(ast.parse(before), before, sites, {})
    with pytest.raises(SyntaxError) as first:
        compiled(parsed.body[1], "net.py", 0)
    text = before.replace("import math\n", "import math\nimport os\n\n")
    tree = reparsed(parsed, text, "net.py", sites)
    assert tree is not None
    with pytest.raises(SyntaxError) as moved:
        compiled(rewrite_new(tree, text, sites, parsed.former).body[2], "net.py", 0)
    assert first.value.lineno is not None and moved.value.lineno == first.value.lineno + 2


def test_lines_that_only_python_ends_at_a_carriage_return_are_parsed_anew() -> None:
    before = "import math\rimport os\rclass Net:\r    pass\r"
    sites: list[Site] = []
    parsed = rewrite_new(ast.parse(before), before, sites, {})
    assert reparsed(parsed, before.replace("\r", "\n"), "net.py", sites) is None
