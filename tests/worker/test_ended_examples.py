"""Given examples that end their run, each in a way of its own: the others are evaluated, all stay in their order, and each says where."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forked_workers import forked_workers as forked_workers
from shapelens.protocol import ExampleRequest, Run, Traced
from shapelens.runner import Worker
from worker.process import shapes

CLASS = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, {size})

    def forward(self, x):
        {name} = self.fc(x)
        {line}
        return {name}
"""
LINES = {
    "Crashes": "ctypes.string_at(8)",
    "Runs": "pass",
    "Hangs": "while True: pass",
    "Leaves": "ctypes.CDLL(None)._exit(3)",
    "Stays": "pass",
    "Hoards": "bytearray(1 << 45)",
}


@pytest.mark.timeout(120)
async def test_each_is_where_it_was_and_the_others_are_shown(tmp_path: Path) -> None:
    classes = [CLASS.format(name=name, size=size, line=line) for size, (name, line) in enumerate(LINES.items(), 3)]
    text = "import ctypes\nfrom torch import nn\n" + "".join(classes)
    requests = [ExampleRequest(name, f"{name}()(f32[2, 8])") for name in LINES]
    traces: list[Traced] = []
    worker = Worker(sys.executable)
    try:
        run = Run(1, str(tmp_path / "net.py"), text, str(tmp_path), requests, deadline=1.0)
        finished = await worker.submit(run, traces.append)
    finally:
        await worker.stop()
    trace = traces[-1].trace
    assert (finished.outcome, finished.target) == ("crash", "Crashes")
    assert [example.target for example in trace.examples] == [*LINES]
    assert [example.error_kind for example in trace.examples] == ["crash", "", "deadline", "exit", "", "memory"]
    lines = text.splitlines()
    said = {each.target: each.error_span for each in trace.examples if each.error_span is not None}
    assert {name: lines[span.line - 1].strip() for name, span in said.items()} == {
        name: line for name, line in LINES.items() if line != "pass"
    }
    for number, name in enumerate(LINES):
        assert shapes(trace, name) == [[[2, number + 3]]]
        (seen,) = [each for each in trace.observations if each.name == name and each.kind == "assign"]
        assert seen.example == number
    assert sorted(layer.index for layer in trace.layers) == list(range(len(trace.layers)))
    for layer in trace.layers:
        assert layer.class_name in ("Linear", trace.examples[layer.example].target)
