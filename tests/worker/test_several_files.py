"""Modules of the user that a run imports: what they hold, how they are loaded, and what is kept of them between runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shapelens.protocol import Trace
from shapelens.worker.loading.compile_cache import Prepared
from worker.process import WorkerProcess

BLOCKS = """
from torch import nn
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 6)
    def forward(self, x):
        h = self.fc(x)
        return h
"""
MODEL = """
from blocks import Block
# a comment of this version
"""


def seen_in(trace: Trace | None, file: Path) -> list[tuple[str, Any]]:
    """The names that were assigned in a file, with the shapes that they held."""
    assert trace is not None
    return [
        (seen.name, [value.shape for value in seen.values])
        for seen in trace.observations
        if seen.kind == "assign" and seen.span.file == str(file) and seen.values[0].kind == "tensor"
    ]


def test_values_of_other_files_are_sent_for_those_that_are_observed(forking: WorkerProcess, tmp_path: Path) -> None:
    blocks = tmp_path / "blocks.py"
    blocks.write_text(BLOCKS)
    trace, _ = forking.run(tmp_path / "model.py", MODEL, "Block(4)(f32[5, 4])", observe=[str(blocks)])
    assert seen_in(trace, blocks) == [("h", [[5, 6]])]
    trace, _ = forking.run(tmp_path / "model.py", MODEL, "Block(4)(f32[5, 4])")
    assert seen_in(trace, blocks) == [] and trace is not None and trace.files == [str(blocks)]


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_each_run_takes_a_file_as_it_is_on_disk(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    blocks = tmp_path / "blocks.py"
    for round_, size in enumerate([6, 6, 7, 7, 8]):
        text = BLOCKS.replace("6", str(size))
        if not blocks.exists() or blocks.read_text() != text:
            blocks.write_text(text)
            os.utime(blocks, ns=(round_ * 10**9, round_ * 10**9))
        trace, _ = worker.run(tmp_path / "model.py", MODEL, "Block(4)(f32[5, 4])", observe=[str(blocks)])
        assert seen_in(trace, blocks) == [("h", [[5, size]])]
        trace, _ = worker.run(
            tmp_path / "model.py", MODEL, "Block(4)(f32[5, 4])", observe=[str(blocks)], overlays={str(blocks): BLOCKS.replace("6", "9")}
        )
        assert seen_in(trace, blocks) == [("h", [[5, 9]])]


def test_a_prepared_file_is_good_until_it_changes(tmp_path: Path) -> None:
    blocks = tmp_path / "blocks.py"
    blocks.write_text(BLOCKS)
    prepared = Prepared()
    assert prepared.program(str(blocks)) is None and prepared.unprepared == [str(blocks)]
    assert prepared.prepare(str(blocks)) and not prepared.prepare(str(blocks))
    program = prepared.program(str(blocks))
    assert program is not None and program.first == 0 and prepared.table.files == [(0, str(blocks))]
    count = len(prepared.table.sites)
    prepared.table.sites.append(prepared.table.sites[0])
    prepared.forget_run()
    assert len(prepared.table.sites) == count > 0
    blocks.write_text(BLOCKS + "\n")
    assert prepared.program(str(blocks)) is None
    assert prepared.prepare(str(blocks)) and prepared.table.files[-1] == (count, str(blocks))
    blocks.write_text("def broken(:\n")
    assert not prepared.prepare(str(blocks))


@pytest.mark.parametrize(
    ("definitions", "reads"),
    [
        ("import torch\nsize = int(torch.zeros(4).shape[0])", "from settings import *"),
        ("def __getattr__(name):\n    if name == 'size':\n        return 4\n    raise AttributeError(name)", "from settings import size"),
        ("for name in ['size']:\n    globals()[name] = 4", "from settings import size"),
        ("import sys, types\nsys.modules[__name__] = types.SimpleNamespace(size=4)", "from settings import size"),
        ("size = 3\nimport later\n", "import settings, later\nsize = settings.size"),
        ("size = 3\ndef now():\n    return size", "import settings\nsettings.size = 4\nsize = settings.now()"),
        ("len = [1, 2, 3, 4].__len__()\ndef count():\n    return len", "from settings import count\nsize = count()"),
        ("if __name__ == '__main__':\n    raise SystemExit\nsize = 4\nfor epoch in iter(int, 1):\n    pass", "from settings import size"),
    ],
)
def test_names_are_found_as_python_finds_them(forking: WorkerProcess, tmp_path: Path, definitions: str, reads: str) -> None:
    (tmp_path / "settings.py").write_text(definitions)
    (tmp_path / "later.py").write_text("import settings\nsettings.size = 4\n")
    text = f"from torch import nn\n{reads}\ndef model(x):\n    y = nn.Linear(size, 2)(x)\n    return y\n"
    trace, finished = forking.run(tmp_path / "model.py", text, "model(f32[5, 4])")
    assert finished.outcome == "ok"
    assert seen_in(trace, tmp_path / "model.py") == [("y", [[5, 2]])]


def test_modules_are_what_python_would_have_made_of_them(forking: WorkerProcess, tmp_path: Path) -> None:
    package = tmp_path / "kit"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("from .sub import parts\n")
    (package / "sizes.txt").write_text("4")
    # `sub` is a namespace package: it has no __init__.py.
    (package / "sub" / "parts.py").write_text(
        """
from __future__ import annotations
import copy, importlib.resources, inspect, pickle, typing
from dataclasses import dataclass
from torch import nn
@dataclass
class Config:
    size: Size = 4
class Size(int):
    pass
class Block(nn.Linear):
    pass
def check():
    assert typing.get_type_hints(Config)["size"] is Size
    assert pickle.loads(pickle.dumps(Config(5))) == Config(5) == copy.deepcopy(Config(5))
    assert inspect.getsource(Block) == "class Block(nn.Linear):\\n    pass\\n"
    return int(importlib.resources.files("kit").joinpath("sizes.txt").read_text())
"""
    )
    text = "from kit.sub.parts import Block, check\ndef model(x):\n    y = Block(check(), 2)(x)\n    return y\n"
    trace, _ = forking.run(tmp_path / "model.py", text, "model(f32[5, 4])")
    assert trace is not None and trace.examples[0].error is None
    assert seen_in(trace, tmp_path / "model.py") == [("y", [[5, 2]])]


def test_what_cannot_be_defined_in_another_file_is_told_there(forking: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS + "class Other(Missing):\n    pass\n")
    (tmp_path / "guarded.py").write_text("import a_package_that_is_not_there\nfast = True\n")
    text = MODEL + "try:\n    from guarded import fast\nexcept ImportError:\n    fast = False\n"
    trace, _ = forking.run(tmp_path / "model.py", text, "Block(4 if not fast else 3)(f32[5, 4])")
    assert trace is not None and trace.examples[0].error is None and trace.notes == []
    told = [(each.code, Path(each.span.file).name, each.span.line) for each in trace.mismatches if each.span is not None]
    assert told == [("definition", "blocks.py", 10)]


def test_a_finder_may_ask_all_others(forking: WorkerProcess, tmp_path: Path) -> None:
    finder = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        others = [finder for finder in sys.meta_path if finder is not self]
        return next((spec for finder in others if (spec := finder.find_spec(name, path)) is not None), None)
sys.meta_path.append(Finder())
try:
    import a_package_that_is_not_there
except ImportError:
    size = 4
"""
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text(finder)
    text = "from kit import size\nfrom torch import nn\ndef model(x):\n    y = nn.Linear(size, 2)(x)\n    return y\n"
    trace, _ = forking.run(tmp_path / "model.py", text, "model(f32[5, 4])")
    assert trace is not None and trace.mismatches == []
    assert seen_in(trace, tmp_path / "model.py") == [("y", [[5, 2]])]


def test_a_package_that_loads_all_its_modules_itself_keeps_them_observed(forking: WorkerProcess, tmp_path: Path) -> None:
    package = tmp_path / "nets"
    package.mkdir()
    (package / "__init__.py").write_text(
        """
import importlib, pkgutil
for importer, name, _ in pkgutil.walk_packages(__path__, prefix=__name__ + "."):
    importer.find_spec(name).loader.exec_module(importlib.import_module(name))
"""
    )
    (package / "blocks.py").write_text(BLOCKS)
    trace, _ = forking.run(package / "blocks.py", BLOCKS, "Block(4)(f32[5, 4])")
    assert seen_in(trace, package / "blocks.py") == [("h", [[5, 6]])]


def test_a_document_is_found_in_its_package_by_the_next_one(forking: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text("")
    (tmp_path / "nets" / "blocks.py").write_text(BLOCKS)
    (tmp_path / "nets" / "model.py").write_text(text := "import nets.blocks\nfrom . import blocks\nmodel = nets.blocks.Block(4)\n")
    options = {"root": str(tmp_path), "observe": [str(tmp_path / "nets" / "blocks.py")]}
    forking.run(tmp_path / "nets" / "blocks.py", BLOCKS, "Block(4)(f32[5, 4])", **options)
    trace, _ = forking.run(tmp_path / "nets" / "model.py", text, "nets.blocks.Block(4)(f32[5, 4])", **options)
    assert trace is not None and trace.notes == []
    assert seen_in(trace, tmp_path / "nets" / "blocks.py") == [("h", [[5, 6]])]


@pytest.mark.parametrize("place", ["net", "net/models"])
def test_relative_imports_need_no_init_file(forking: WorkerProcess, tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    dots = "." * len(Path(place).parts)
    (tmp_path / "net" / "blocks.py").write_text(BLOCKS)
    text = (
        f"from {dots}blocks import Block\nclass Net(Block):\n    def forward(self, x):\n        y = super().forward(x)\n        return y\n"
    )
    trace, finished = forking.run(folder / "model.py", text, "Net(4)(f32[5, 4])")
    assert finished.outcome == "ok"
    assert seen_in(trace, folder / "model.py") == [("y", [[5, 6]])]
