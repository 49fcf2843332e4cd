"""What a run sees, in a real worker."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shapelens import protocol
from worker.process import WorkerProcess, shapes

RECIPE = (Path(__file__).parents[2] / "fixtures" / "recipe" / "recipe.py").read_text()
LARGE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        out = self.conv(x)
        return out
"""
SCRIPT = """
import argparse, sys
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
args = parser.parse_args()
WIDTH = torch.arange(4).sum().item()  # a constant that the model needs, computed
DEPTHS = {}
DEPTHS["small"] = max(1, 2)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, DEPTHS["small"])

    def forward(self, x):
        out = self.fc(x)
        return out

net = Net()
for epoch in range(10**9):
    net(torch.randn(3, 6))
open("written.txt", "w").write("no")
if __name__ == "__main__":
    batch = 7
    sys.exit(1)
"""


def test_named_dims_are_formulas_of_the_sizes_that_the_example_names(forking: WorkerProcess, tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        half = nn.functional.max_pool2d(x, 2)
        flat = x.flatten(0, 1)
        longer = torch.cat([x, x[:1]])
        fixed = x.new_zeros(4, 8)
        return half
"""
    trace, finished = forking.run(tmp_path / "net.py", text, "Net()(f32[B:4, C:8, 16, W:16])")
    assert finished.outcome == "ok"
    assert trace is not None
    named = {item.name: item.values[0].named for item in trace.observations if item.kind == "assign"}
    assert named == {
        "half": ["B", "C", "8", "W/2"],
        "flat": ["B·C", "16", "W"],
        "longer": ["B+1", "C", "16", "W"],
        "fixed": ["4", "8"],  # as large as B and C are, but not because of them
    }


def test_a_very_large_input_costs_no_more_than_a_small_one(forking: WorkerProcess, tmp_path: Path) -> None:
    def seconds(example: str) -> float:
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            trace, finished = forking.run(tmp_path / "net.py", LARGE, example)
            assert trace is not None
            assert finished.outcome == "ok"
            best = min(best, time.perf_counter() - start)
        return best

    trace, _ = forking.run(tmp_path / "net.py", LARGE, "Net()(f32[1024, 3, 65536, 65536])")
    assert trace is not None
    assert shapes(trace, "out") == [[[1024, 64, 65534, 65534]]]
    # 1.3e13 elements: anything that touched them would take hours, so that a factor of ten is no close call.
    assert seconds("Net()(f32[1024, 3, 65536, 65536])") < 10 * seconds("Net()(f32[1, 3, 8, 8])") + 1


def test_only_definitions_run(forking: WorkerProcess, tmp_path: Path) -> None:
    trace, finished = forking.run(tmp_path / "script.py", SCRIPT, "Net()(f32[batch, 6])")
    assert (finished.outcome, finished.detail) == ("ok", "")
    assert trace is not None
    assert trace.examples[0].error is None
    assert shapes(trace, "out") == [[[7, 2]]]  # `batch` is a name of the `__main__` block
    assert not (tmp_path / "written.txt").exists()


def test_prints_reach_the_log_and_not_the_protocol(forking: WorkerProcess, tmp_path: Path) -> None:
    text = LARGE.replace("        out =", "        print('hello', x.shape); import os; os.write(1, b'raw\\n')\n        out =")
    trace, finished = forking.run(tmp_path / "net.py", text, "Net()(f32[2, 3, 8, 8])")
    assert finished.outcome == "ok"
    assert trace is not None
    assert shapes(trace, "out") == [[[2, 64, 6, 6]]]
    assert "hello torch.Size([2, 3, 8, 8])" in forking.output
    assert "raw" in forking.output


def test_constants_keep_their_values_and_data_is_no_error(forking: WorkerProcess, tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
        self.register_buffer("index", torch.arange(9).view(3, 3).flip(0))
        self.table = nn.Parameter(torch.Tensor(9, 5))

    def forward(self, x):
        bias = self.table[self.index]
        kept = x[:, torch.tensor([True, False, True])]
        first = int(self.index[0, 0])
        pad = x.new_zeros(len(self.rates), first)
        found = x.nonzero()
        return found
"""
    trace, _ = forking.run(tmp_path / "net.py", text, "Net()(f32[2, 3])")
    assert trace is not None
    assert [shapes(trace, name) for name in ("bias", "kept", "pad")] == [[[[3, 3, 5]]], [[[2, 2]]], [[[3, 6]]]]
    assert shapes(trace, "found") == [[[None, 2]]]
    assert trace.mismatches == []


def test_the_document_is_part_of_its_package(forking: WorkerProcess, tmp_path: Path) -> None:
    package = tmp_path / "models" / "vision"
    package.mkdir(parents=True)
    (tmp_path / "models" / "__init__.py").write_text("import a_package_that_is_not_installed\n")
    (package / "blocks.py").write_text("from torch import nn\nWIDTH = 4\nclass Block(nn.Linear):\n    pass\n")
    text = """
from . import blocks
from .blocks import Block, WIDTH
class Net(blocks.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(WIDTH, 3)
    def forward(self, x):
        y = self.block(x)
        return y
"""
    overlay = {str(package / "blocks.py"): (package / "blocks.py").read_text().replace("WIDTH = 4", "WIDTH = 6")}
    file = package / "net.py"
    for overlays, width in (({}, 4), (overlay, 6)):
        trace, _ = forking.run(file, text, f"Net()(f32[2, {width}])", overlays=overlays)
        assert trace is not None
        assert trace.mismatches == []
        assert shapes(trace, "y") == [[[2, 3]]]


@pytest.mark.parametrize("worker", ["forking", "unforked"])
def test_runs_leave_nothing_behind(worker: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    process: WorkerProcess = request.getfixturevalue(worker)
    (tmp_path / "sizes.py").write_text("SIZE = 3\n")
    text = (
        "import sizes, torch\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        y = x.new_zeros(sizes.SIZE)\n"
    )
    for size in (3, 5):
        (tmp_path / "sizes.py").write_text(f"SIZE = {size}\n" + "#" * size)  # Another length: bytecode of the same second is not taken.
        trace, finished = process.run(tmp_path / "net.py", text, "Net()(f32[1])")
        assert finished.outcome == "ok"
        assert trace is not None
        assert shapes(trace, "y") == [[[size]]]


@pytest.mark.parametrize("worker", ["forking", "unforked"])
def test_the_recipe_network(worker: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    process: WorkerProcess = request.getfixturevalue(worker)
    trace, finished = process.run(tmp_path / "recipe.py", RECIPE, "Net()(f32[B:1024, 3, 32, 32])")
    assert finished.outcome == "ok"
    assert trace is not None
    assert {layer.path: [call.output.shape for call in layer.calls] for layer in trace.layers if layer.path} == {
        "conv1": [[1024, 6, 28, 28]],
        "pool": [[1024, 6, 14, 14], [1024, 16, 5, 5]],
        "conv2": [[1024, 16, 10, 10]],
        "fc1": [[1024, 120]],
        "fc2": [[1024, 84]],
        "fc3": [[1024, 10]],
    }
    assert trace.examples[0].parameter_count == 62006


def test_what_eager_accepts_is_no_mismatch_and_what_it_refuses_is_in_its_words(forking: WorkerProcess, tmp_path: Path) -> None:
    text = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, bidirectional=True)

    def forward(self, x):
        counts = torch.histc(x, 10)
        solution = torch.linalg.lstsq(x, x).solution
        sizes = torch.tensor([7] * 3), torch.tensor([2] * 3)
        loss = nn.functional.ctc_loss(x.transpose(0, 1).log_softmax(2), torch.ones(3, 2).long(), *sizes)
        packed = pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
        hidden, (last, _) = self.lstm(packed)
        padded, lengths = pad_packed_sequence(hidden, batch_first=True)
        return x + counts
"""
    trace, _ = forking.run(tmp_path / "net.py", text, "Net()(f32[3, 7, 6])")
    assert trace is not None
    assert {name: shapes(trace, name) for name in ("counts", "solution", "loss", "padded", "last", "lengths")} == {
        "counts": [[[10]]],
        "solution": [[[3, 6, 6]]],
        "loss": [[[]]],
        "padded": [[[3, 5, 16]]],
        "last": [[[2, 3, 8]]],
        "lengths": [[[3]]],
    }
    assert [(found.code, found.message) for found in trace.mismatches] == [
        ("broadcast", "The size of tensor a (6) must match the size of tensor b (10) at non-singleton dimension 2")
    ]


def test_a_missing_package_is_no_obstacle_unless_the_code_expects_it_to_be(forking: WorkerProcess, tmp_path: Path) -> None:
    package = tmp_path / "blocks"
    package.mkdir()
    (package / "__init__.py").write_text("from a_package_that_is_not_installed.ops import box\nfrom .layers import Block, HAS_IT, FOUND\n")
    (package / "layers.py").write_text(
        """
import importlib.util
from torch import nn
try:
    import another_that_is_not_installed
    HAS_IT = 3
except ImportError:
    HAS_IT = 2
FOUND = importlib.util.find_spec("another_that_is_not_installed")
class Block(nn.Linear):
    pass
"""
    )
    text = """
from torch import nn
from blocks import Block, HAS_IT, FOUND
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(4, HAS_IT)
    def forward(self, x):
        assert FOUND is None
        y = self.block(x)
        return y
"""
    trace, _ = forking.run(tmp_path / "net.py", text, "Net()(f32[5, 4])")
    assert trace is not None
    assert trace.mismatches == []
    assert shapes(trace, "y") == [[[5, 2]]]
    told = [(note.code, Path(note.span.file).name, note.span.line) for note in trace.notes if note.span]
    assert told == [("missing-import", "net.py", 3), ("missing-import", "__init__.py", 1)]
    assert "a_package_that_is_not_installed" in trace.notes[0].message


def test_a_long_run_tells_what_it_has_seen_so_far(forking: WorkerProcess, tmp_path: Path) -> None:
    text = """
import threading
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.last = nn.Linear(4, 2)
        self.never = nn.Linear(4, 2)

    def forward(self, x):
        y = self.fc(x)
        for _ in range(6):
            threading.Event().wait(0.25)
            y = y + self.fc(x)
        z = self.last(y)
        return z
"""
    run_id = forking.start(tmp_path / "slow.py", text, "Net()(f32[B:2, 8])")
    stages: list[str] = []
    while not isinstance(message := forking.read(), protocol.Finished):
        if isinstance(message, protocol.Traced):
            stages.append(message.stage)
            seen = [shapes(message.trace, name) for name in ("y", "z")]
            assert seen == ([[[[2, 4]], [[2, 4]]], []] if message.stage == "partial" else [[[[2, 4]], [[2, 4]]], [[[2, 2]]]])
            assert message.trace.layers[1].calls[0].output.shape == [2, 4]
    assert message.run_id == run_id and message.outcome == "ok"
    assert stages[0] == "partial" and stages[-2:] == ["run", "named"]


def test_a_program_that_was_short_of_time_says_so(forking: WorkerProcess, tmp_path: Path) -> None:
    """In a statement of its own, or in what it only defines: another day, the same may be seen whole."""
    text = "import torch\n\nx = torch.ones(2, 3)\ny = x.T\n"
    busy = "n = sum(1 for _ in range(10**9))\n"  # Longer than its time on any machine, and it can be ended.
    function = f"\ndef double(a):\n    {busy}    b = torch.cat([a, a])\n    return b\n"
    for name, program, hurried in (("whole", text, False), ("slow", text + busy, True), ("slow_function", text + function, True)):
        trace, finished = forking.run(tmp_path / f"{name}.py", program, program=0.8)
        assert finished.outcome == "ok" and trace is not None and shapes(trace, "y") == [[[3, 2]]]
        assert finished.hurried is hurried, name
