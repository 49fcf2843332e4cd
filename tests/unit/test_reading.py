"""Python's own parser and libcst say the same of a statement: a server on an old Python reads newer text with libcst alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapelens.source import syntax
from shapelens.source.classes_by_ast import read_by_ast
from shapelens.source.classes_by_libcst import read_by_libcst
from shapelens.source.scanner import Chunk, chunks

FIXTURES = Path(__file__).parents[2] / "fixtures"
STANDARD_LIBRARY = Path(ast.__file__).parent
ODD = """\
import a.b, c.d as e, torch
from . import near
from ..far.off import thing as other, more
from torch.nn import *
NONE, alias, first = None, nn.Module, second
first = second = a.b.c
class Net(*bases, Base[int], make(Meta, *more, x=nn.Module), metaclass=Meta):
    if True:
        def __init__(self, a, /, b: (int) = (1), *args: "x", c=(1, 2), d, **kwargs: Dict[str, int]): pass
    else:
        async def __init__(self): import inside
    try:
        def forward(self, x: Tensor["b c"] = torch . zeros(1)): return x
    except Error:
        class Inner: pass
    finally:
        def late(self): pass
    with something:
        class Another(Net.Inner): pass
for x in y:
    class InLoop(nn.Module): pass
else:
    def behind(ä="ü", *, ö=f"{1}"): pass
match x:
    case 1:
        class Matched(nn.Module): pass
"""


def statements(text: str) -> Iterator[tuple[str, Chunk]]:
    for chunk in chunks(text, 1 if text.startswith("\ufeff") else 0):
        yield text[chunk.start : chunk.end], chunk


def assert_same(text: str) -> int:
    """Compare both; how many statements there were that parse."""
    compared = 0
    for piece, chunk in statements(text):
        try:
            expected = read_by_libcst(syntax.parse(piece, chunk.lines, chunk.start), piece, chunk.lines, chunk.start)
        except syntax.Unparsable:
            continue
        found = read_by_ast(piece, chunk.lines, chunk.start)
        if found is None:  # Of a newer Python than this one.
            with pytest.raises(SyntaxError):
                ast.parse(piece)
            continue
        assert found == expected, piece
        compared += 1
    return compared


def test_odd_statements() -> None:
    assert assert_same(ODD) >= 9


def test_fixtures() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.rglob("*.py"))[::5]]
    assert sum(map(assert_same, texts)) > 100


@pytest.mark.parametrize("name", ["ast.py", "enum.py", "typing.py", "contextlib.py"])
def test_the_standard_library(name: str) -> None:
    assert assert_same((STANDARD_LIBRARY / name).read_text(encoding="utf-8")) > 20
