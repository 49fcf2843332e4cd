"""Files that stand in front of modules of the standard library: for user code where Python has it so, never for ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapelens.protocol import Trace
from worker.process import WorkerProcess, shapes

MODEL = """
import torch
from torch import nn
from random import pick
import {imported}

class Net(nn.Module):
    def forward(self, x):
        h = x.new_zeros(pick(), {size})
        return h
"""
RANDOM = "def pick():\n    return {}\n"
EMPTY = "# nothing that the standard library has\n"


def assigned(found: tuple[Trace | None, object]) -> object:
    """The shapes of `h` in a run."""
    assert found[0] is not None and found[0].notes == [], found[0]
    return shapes(found[0], "h")


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_a_file_beside_the_model_is_imported(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    (tmp_path / "random.py").write_text(RANDOM.format(7))
    for name in ("traceback", "json", "ast", "resource", "ctypes"):  # What our own code imports, now or later.
        (tmp_path / f"{name}.py").write_text(EMPTY)
    for size in (2, 3):  # The second run is another text, done with what the first one has loaded.
        text = MODEL.format(imported="json", size=size)
        assert assigned(worker.run(tmp_path / "net.py", text, "Net()(f32[2, 3])")) == [[[7, size]]]
    text = MODEL.format(imported="json", size="1 // 0")
    trace, finished = worker.run(tmp_path / "net.py", text, "Net()(f32[2, 3])")
    assert finished.outcome == "ok" and trace is not None and "ZeroDivisionError" in [found.exception for found in trace.mismatches]


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_another_folder_has_the_standard_library(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    for name, size in (("one", 5), ("two", 6)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "random.py").write_text(RANDOM.format(size))
        text = MODEL.format(imported="math", size=1)
        assert assigned(worker.run(tmp_path / name / "net.py", text, "Net()(f32[2, 3])")) == [[[size, 1]]]
    (tmp_path / "three").mkdir()
    text = MODEL.format(imported="math", size=1).replace("pick", "Random as pick").replace("Random as pick()", "len([pick])")
    assert assigned(worker.run(tmp_path / "three" / "net.py", text, "Net()(f32[2, 3])")) == [[[1, 1]]]


def test_a_folder_of_a_project_is_no_place_to_start_from(forking: WorkerProcess, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    utils = tmp_path / "utils"
    utils.mkdir()
    (utils / "random.py").write_text(RANDOM.format(7))
    text = MODEL.format(imported="math", size=1).replace("pick()", "len([pick])").replace("import pick", "import Random as pick")
    assert assigned(forking.run(utils / "net.py", text, "Net()(f32[2, 3])", root=str(tmp_path))) == [[[1, 1]]]
