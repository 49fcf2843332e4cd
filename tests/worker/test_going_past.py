"""Functions that an exception ended go on past it for one run, and are their own again in the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.process import WorkerProcess, shapes

MODEL = """# a line that an edit removes, so that what stands below is moved
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 2)

    def forward(self, x):
        h = self.first(x)
        g = self.part(h)
        k = self.second(h)
        return k
"""
EXAMPLE = "Net()(f32[5, 4])"


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_what_stands_after_an_exception_is_seen(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    moved = MODEL.partition("\n")[2]
    for text, line in ((MODEL, 14), (moved, 13), (moved.replace("self.second = ", "self.second=  "), 13)):
        trace, finished = worker.run(tmp_path / "net.py", text, EXAMPLE)
        assert finished.outcome == "ok" and trace is not None
        assert [(found.code, found.span.line if found.span else 0) for found in trace.mismatches] == [("exception", line)]
        assert shapes(trace, "h") == [[[5, 6]]] and shapes(trace, "k") == [[[5, 2]]]


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_a_function_is_its_own_again_once_it_is_mended(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    for text, count in ((MODEL, 1), (MODEL.replace("self.part", "self.second"), 0), (MODEL.replace("self.part", "sel.part"), 1)):
        trace, _ = worker.run(tmp_path / "other.py", text, EXAMPLE)
        assert trace is not None and len(trace.mismatches) == count
        assert shapes(trace, "g") == ([] if count else [[[5, 2]]]) or count
        assert shapes(trace, "k") == [[[5, 2]]]
