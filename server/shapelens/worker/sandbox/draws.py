"""Numbers that code draws by chance: a statement of a module draws the same ones each time that it is executed, as a run executes it more
than once (while the file is loaded, as a part of the program), in several processes, and what it makes meets."""

from __future__ import annotations

import ast
import contextlib
import random
import sys
import zlib
from types import CodeType
from typing import Iterable, Iterator

from .originals import os

_NAMES = ("random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform", "integers", "rand", "default_rng")
_DRAWS = frozenset(_NAMES)
_seed_python = random.seed


class _Statement:
    """The statement that is executed; statements that wait for each other are executed inside of each other."""

    key = 0


@contextlib.contextmanager
def of_statement(file: str, bound: Iterable[str]) -> Iterator[None]:
    """Meanwhile what is drawn depends on the names that a statement binds, not on where it stands or what was drawn before."""
    names = sorted({name for name in bound if not name.startswith("__shapelens_")})
    before, _Statement.key = _Statement.key, zlib.crc32(" ".join([os.path.basename(file), *names]).encode("utf-8", "replace"))
    seed(_Statement.key)
    try:
        yield
    finally:
        _Statement.key = before
        begin_again()


def begin_again() -> None:
    """Something else has run inside of the statement, which may have drawn, or brought numpy."""
    if _Statement.key:
        seed(_Statement.key)


def seed(number: int) -> None:
    """Begin Python's and numpy's global generators anew."""
    _seed_python(number)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        with contextlib.suppress(Exception):  # Whatever user code has put there.
            numpy.seed(number)


def may_draw(node: ast.stmt, code: CodeType) -> bool:
    """True if a statement computes a value, or its own text draws one for a default or for a class."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return not isinstance(node, (ast.Import, ast.ImportFrom)) and not isinstance(getattr(node, "value", None), ast.Constant)
    bodies = [part for part in code.co_consts if isinstance(part, CodeType)] if isinstance(node, ast.ClassDef) else []
    return any(not _DRAWS.isdisjoint(part.co_names) for part in (code, *bodies))
