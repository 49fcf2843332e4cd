"""Which modules a module takes values from (worker/loading/import_graph.py)."""

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapelens.worker.loading.import_graph import Imports

FILES = {
    "__init__.py": "from .pool import *\nfrom .glob import *\n",
    "pool.py": "from .sums import add\nSIZE = 3\n",
    "glob.py": "from round_about import add\nold = add\n",
    "sums.py": "def add(): ...\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Imports]]:
    """A package of which one module imports from the package again what another one has put there."""
    folder = tmp_path / "round_about"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("round_about")
    known = {}
    for name, text in FILES.items():
        module = "round_about" + ("" if name == "__init__.py" else "." + name.removesuffix(".py"))
        known[module] = Imports(ast.parse(text), module, is_package=name == "__init__.py")
    yield known
    for name in known:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("from round_about import add", {"round_about.sums"}),
        ("from round_about import old", {"round_about.glob"}),
        ("from round_about import SIZE, sums", {"round_about.pool", "round_about.sums"}),
        ("from round_about import *", {"round_about"}),
        ("import round_about.pool", set()),
        ("import round_about.pool\nx = round_about.pool.SIZE", {"round_about.pool"}),
        ("import round_about\nclass A:\n    x = round_about.add()", {"round_about.sums"}),
        ("import round_about\ndef f():\n    return round_about.SIZE", set()),
        ("import round_about\ndef f(size=round_about.SIZE): ...", {"round_about.pool"}),
        ("import round_about\nx = vars(round_about)", {"round_about"}),
        ("import round_about.pool as p", {"round_about.pool"}),
    ],
)
def test_what_a_module_takes_its_values_from(package: dict[str, Imports], text: str, modules: set[str]) -> None:
    assert Imports(ast.parse(text), "other", is_package=False).modules(package) == modules
