"""Files of weights that are really there: what a program loads of them, and that none of them runs anything or is read as a whole."""

from __future__ import annotations

import argparse
import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from shapelens.protocol import Finished, Mismatch, Trace
from shapelens.worker.calls.state_names import changes_of
from worker.process import WorkerProcess

NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))

net = Net()
"""


def _state(prefix: str = "", classes: int = 10) -> dict[str, torch.Tensor]:
    state = {"conv.weight": torch.zeros(8, 3, 3, 3), "conv.bias": torch.zeros(8)}
    state.update({"fc.weight": torch.zeros(classes, 8), "fc.bias": torch.zeros(classes)})
    return {prefix + name: value for name, value in state.items()}


def write_safetensors(path: Path, shapes: dict[str, list[int]], *, sparse: bool = False) -> None:
    """As https://huggingface.co/docs/safetensors describes the format: the length of a header, the header, the numbers."""
    end, header = 0, {"__metadata__": {"format": "pt"}}
    for name, shape in shapes.items():
        size = 4 * int(torch.Size(shape).numel())
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}  # type: ignore[dict-item]
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        if sparse:
            file.truncate(8 + len(text) + end)
        else:
            file.write(bytes(end))


def _follow(worker: WorkerProcess, folder: Path, text: str) -> tuple[list[Mismatch], Finished, Trace]:
    file = folder / "train.py"
    file.write_text(NET + text)
    trace, finished = worker.run(file, NET + text, program=20.0, deadline=60.0)
    assert trace is not None and finished.outcome == "ok", finished
    return [found for found in trace.mismatches if found.code == "checkpoint"], finished, trace


FORMATS = {
    "net.pt": lambda state, path: torch.save(state, path),
    "net.pth": lambda state, path: torch.save(state, path, _use_new_zipfile_serialization=False),
    "pytorch_model.bin": lambda state, path: torch.save(state, path),
    "model.safetensors": lambda state, path: write_safetensors(path, {name: list(value.shape) for name, value in state.items()}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_compared_with_the_model(forking: WorkerProcess, tmp_path: Path, name: str) -> None:
    load = "from safetensors.torch import load_file\nstate = load_file(%r)\n" if name.endswith("tensors") else "state = torch.load(%r)\n"
    text = load % name + "net.load_state_dict(state)\n"
    FORMATS[name](_state(), tmp_path / name)
    assert _follow(forking, tmp_path, text)[0] == []
    FORMATS[name](_state("module."), tmp_path / name)
    (found,), finished, _ = _follow(forking, tmp_path, text)
    assert found.state is not None and found.state.name == name and found.state.keys == 4
    assert [(each.kind, each.there, each.here, each.count, each.all_there) for each in found.state.changes] == [
        ("prefix", "module.", "", 4, True)
    ]
    assert str(tmp_path / name) in finished.read  # What is kept of the run is worth nothing once the file changes.
    FORMATS[name](_state(classes=80), tmp_path / name)
    (found,), _, _ = _follow(forking, tmp_path, text)
    sizes = [(each.operation, each.shape, each.result) for each in found.origins if each.operation]
    assert sizes == [("fc.weight", [80, 8], [10, 8]), ("fc.bias", [80], [10])]


def test_a_file_that_is_not_there_is_asked_for(forking: WorkerProcess, tmp_path: Path) -> None:
    found, finished, _ = _follow(forking, tmp_path, 'net.load_state_dict(torch.load("later.pt"))\n')
    assert found == [] and str(tmp_path / "later.pt") in finished.read


def test_safe_open_gives_one_tensor_after_the_other(forking: WorkerProcess, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "net.safetensors", {name: list(value.shape) for name, value in _state(classes=3).items()})
    text = (
        "from safetensors import safe_open\n"
        'with safe_open("net.safetensors", framework="pt", device="cpu") as file:\n'
        "    state = {key: file.get_tensor(key) for key in file.keys()}\n"
        "net.load_state_dict(state, strict=False)\n"
    )
    (found,), _, _ = _follow(forking, tmp_path, text)
    assert [each.operation for each in found.origins if each.operation] == ["fc.weight", "fc.bias"]


class _Hostile:
    """What unpickling makes a folder of."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_hostile_pickle_does_not_run(forking: WorkerProcess, tmp_path: Path, legacy: bool) -> None:
    torch.save(
        {"state_dict": _state("module."), "hook": _Hostile(tmp_path / "made")},
        tmp_path / "net.pt",
        _use_new_zipfile_serialization=not legacy,
    )
    text = (
        'checkpoint = torch.load("net.pt", weights_only=False)\n'
        'net.load_state_dict(checkpoint["state_dict"])\n'
        "x = net(torch.randn(2, 3, 8, 8))\n"
    )
    found, _, trace = _follow(forking, tmp_path, text)
    assert found == [] and not (tmp_path / "made").exists()
    assert [note.code for note in trace.notes if note.code == "unavailable"] == []  # Nothing has tried to make it.


@pytest.mark.parametrize("what", [argparse.Namespace(lr=0.1), nn.Linear(2, 2)])
def test_what_is_more_than_weights_says_nothing(forking: WorkerProcess, tmp_path: Path, what: Any) -> None:
    torch.save({"args": what, "model": _state("module.")}, tmp_path / "net.pt")
    assert _follow(forking, tmp_path, 'net.load_state_dict(torch.load("net.pt")["model"])\n')[0] == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff" * 8 + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[-1]}}',
        b"PK\x03\x04" + bytes(40),
    ],
)
@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
def test_broken_files_say_nothing(forking: WorkerProcess, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    load = "from safetensors.torch import load_file\nstate = load_file(%r)\n" if name.endswith("tensors") else "state = torch.load(%r)\n"
    found, _, trace = _follow(forking, tmp_path, load % name + "net.load_state_dict(state)\n")
    assert found == [] and [each.code for each in trace.mismatches] == []


def test_a_file_of_five_gigabytes_is_not_read(forking: WorkerProcess, tmp_path: Path) -> None:
    shapes = {f"layers.{number}.weight": [1024, 1024 * 16] for number in range(80)}
    write_safetensors(tmp_path / "large.safetensors", shapes, sparse=True)
    assert (tmp_path / "large.safetensors").stat().st_size > 5 * 10**9
    text = 'from safetensors.torch import load_file\nnet.load_state_dict(load_file("%s"))\n'
    write_safetensors(tmp_path / "small.safetensors", {name: [4] for name in shapes}, sparse=True)
    seconds = {}
    for name in ("small.safetensors", "large.safetensors"):
        begin = time.monotonic()
        (found,), _, _ = _follow(forking, tmp_path, text % name)
        seconds[name] = time.monotonic() - begin
        assert found.state is not None and found.state.keys == 80 and found.state.unexpected_count == 80
    assert seconds["large.safetensors"] < seconds["small.safetensors"] + 0.5


def test_a_compiled_model_has_the_mark_of_the_compiler(forking: WorkerProcess, tmp_path: Path) -> None:
    torch.save(_state("_orig_mod."), tmp_path / "compiled.pt")
    (found,), _, _ = _follow(forking, tmp_path, 'net.load_state_dict(torch.load("compiled.pt"))\n')
    assert found.state is not None and found.state.changes[0].there == "_orig_mod."
    for both in ("net = torch.compile(net)\n", "both = torch.compile(net)\n"):
        assert _follow(forking, tmp_path, both + 'net.load_state_dict(torch.load("compiled.pt"))\n')[0] == []


def test_a_statement_that_failed_may_have_changed_the_state(forking: WorkerProcess, tmp_path: Path) -> None:
    torch.save(_state("module."), tmp_path / "net.pt")
    text = 'state = torch.load("net.pt")\n%snet.load_state_dict(state)\n'
    assert len(_follow(forking, tmp_path, text % "other = undefined(net)\n".replace("net", "3"))[0]) == 1
    assert _follow(forking, tmp_path, text % "state = undefined(state)\n")[0] == []
    assert _follow(forking, tmp_path, text % "undefined.change(state)\n")[0] == []


def test_changes_of_names() -> None:
    def changes(there: str, here: str) -> list[tuple[str, str]]:
        found, _ = changes_of(dict.fromkeys(there.split(), (2,)), dict.fromkeys(here.split(), (2,)))
        return [(each.there, each.here) for each in found]

    assert changes("module.a.w module.b.w", "a.w b.w") == [("module.", "")]
    assert changes("a.w b.w", "net.a.w net.b.w head.w") == [("", "net.")]
    assert changes("encoder.a.w encoder.b.w c.w", "backbone.a.w backbone.b.w c.w") == [("encoder.", "backbone.")]
    assert changes("a.gamma a.beta b.gamma b.beta", "a.weight a.bias b.weight b.bias") == [("beta", "bias"), ("gamma", "weight")]
    assert changes("module.body.w module.fc.w module.fc.b", "body.w head.w head.b") == [("module.fc.", "head."), ("module.", "")]
    assert changes("a.w b.w", "a.w b.w c.w") == []
    assert changes("x.y.z", "a.w") == []
    assert changes("0.w 2.w 5.w", "layers.0.w layers.1.w layers.2.w") == [("", "layers.")]
    assert changes("0.a.w 0.b.w", "a.w b.w") == [("0.", "")]
    assert changes("layers.5.w layers.5.b", "layers.2.w layers.2.b") == []
