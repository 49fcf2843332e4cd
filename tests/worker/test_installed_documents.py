"""Documents that are files of installed packages: what their neighbours import as well is imported once, ahead of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shapelens.protocol import Preload
from shapelens.runner.preload import ahead_of
from shapelens.source.module import parse
from worker.process import WorkerProcess, shapes

DOCUMENT = """import torch
from torch import nn
from .config import WIDTH
from ...shared import PID
from ..common import PID as OTHER
from ..{other}.config import WIDTH as THEIRS

class Net(nn.Module):
    def forward(self, x):
        a = torch.zeros(PID)
        b = torch.zeros(OTHER)
        c = torch.zeros(WIDTH, THEIRS)
        return x
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with `models/one/net.py` and `models/two/net.py`, and what both import."""
    package = tmp_path / "site-packages" / "zoo"
    for number, name in enumerate(("one", "two"), 3):
        folder = package / "models" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "config.py").write_text(f"WIDTH = {number}\n")
        (folder / "net.py").write_text(DOCUMENT.format(other="two" if name == "one" else "one"))
    for file in (package / "__init__.py", package / "models" / "__init__.py"):
        file.write_text("")
    for file in (package / "shared.py", package / "models" / "common.py"):
        file.write_text("import os\nPID = os.getpid()\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return package


@pytest.fixture
def worker(package: Path) -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    worker.close()


def ahead(file: Path) -> list[str]:
    return ahead_of(parse(file.read_text()), str(file.parent), str(file))


def seen(worker: WorkerProcess, file: Path) -> dict[str, list[object]]:
    """What a document's names held, in a run that has a root of its own."""
    worker.send(Preload(ahead(file)))
    trace, finished = worker.run(file, file.read_text(), "Net()(f32[2])")
    assert trace is not None and finished.outcome == "ok"
    return {name: shapes(trace, name) for name in "abc"}


def test_what_is_ahead_of_a_file_of_an_installed_package(package: Path, tmp_path: Path) -> None:
    file = package / "models" / "one" / "net.py"
    assert ahead(file) == ["zoo.shared", "zoo.models.common"], "neither its own folder nor those of its neighbours"
    mine = tmp_path / "zoo" / "models" / "one" / "net.py"
    assert ahead_of(parse(file.read_text()), str(tmp_path), str(mine)) == [], "what is no installed package changes"


def test_what_neighbours_share_is_imported_once(package: Path, worker: WorkerProcess) -> None:
    one, two = (seen(worker, package / "models" / name / "net.py") for name in ("one", "two"))
    assert one["a"] == two["a"] != []
    assert one["b"] == two["b"] != []
    assert (one["c"], two["c"]) == ([[[3, 4]]], [[[4, 3]]])


LAZY = """import importlib

def __getattr__(name):
    if name not in ("Part", "Other"):
        raise AttributeError(name)
    return importlib.import_module("lazy." + name.lower()).PID

def __dir__():
    return ["Part", "Other"]
"""
OF_LAZY = """import torch
from torch import nn
from lazy import {}Part

class Net(nn.Module):
    def forward(self, x):
        a = torch.zeros(Part)
        b = torch.zeros({})
        return x
"""


def test_what_a_library_loads_when_it_is_asked_for_it_is_loaded_once(package: Path, worker: WorkerProcess, tmp_path: Path) -> None:
    """As that of `AutoModel`, which takes transformers seconds, is for all documents that import it."""
    lazy = package.with_name("lazy")
    lazy.mkdir()
    (lazy / "__init__.py").write_text(LAZY)
    for name in ("part", "other"):
        (lazy / f"{name}.py").write_text("import os\nPID = os.getpid()\n")
    found = []
    for number, names in enumerate([("", "1"), ("", "2"), ("Other, ", "Other"), ("Other, ", "Other")]):
        file = tmp_path / f"project{number}" / "net.py"
        file.parent.mkdir()
        file.write_text(OF_LAZY.format(*names))
        assert ahead(file)[:2] == ["lazy", f"lazy:{names[0][:-2] or 'Part'}"]
        found.append(seen(worker, file))
    first, second, third, fourth = found
    assert first["a"] == second["a"] == third["a"] == fourth["a"] != []
    assert third["b"] == fourth["b"] != []


def test_a_document_that_was_imported_as_a_part_of_its_package_is_seen(package: Path, worker: WorkerProcess) -> None:
    (package / "models" / "__init__.py").write_text("from .one.net import Net\n")
    assert seen(worker, package / "models" / "two" / "net.py")["c"] == [[[4, 3]]]
    assert seen(worker, package / "models" / "one" / "net.py")["c"] == [[[3, 4]]]


def test_a_package_of_that_name_elsewhere_is_another_one(package: Path, worker: WorkerProcess, tmp_path: Path) -> None:
    assert seen(worker, package / "models" / "one" / "net.py")["c"] == [[[3, 4]]]
    mine = tmp_path / "mine" / "zoo"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("")
    (mine / "sizes.py").write_text("WIDTH = 5\n")
    file = mine / "net.py"
    file.write_text(
        "import torch\nfrom torch import nn\nfrom .sizes import WIDTH\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        a = b = torch.zeros(1)\n        c = torch.zeros(WIDTH)\n        return x\n"
    )
    assert seen(worker, file)["c"] == [[[5]]]
