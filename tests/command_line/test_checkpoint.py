"""`summary --checkpoint`: a model's state beside what a file of weights holds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from command_line.commands import run
from shapelens.worker.shims.pretrained import weight_files
from worker.test_checkpoints import write_safetensors

NET = """\
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(x)


# shapelens: Net()(f32[B:2, 16])
class Net(nn.Module):
    def __init__(self, num_classes=10, width=16):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(3)])
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(self.blocks(x))
"""


def _shapes(prefix: str = "", classes: int = 10) -> dict[str, list[int]]:
    found = {f"blocks.{number}.fc.{name}": shape for number in range(3) for name, shape in (("weight", [16, 16]), ("bias", [16]))}
    found |= {"head.weight": [classes, 16], "head.bias": [classes]}
    return {prefix + name: shape for name, shape in found.items()}


def _state(prefix: str = "", classes: int = 10, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(shape, dtype=dtype) for name, shape in _shapes(prefix, classes).items()}


class _Hostile:
    """What unpickling makes a folder of."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def _beside(folder: Path, file: str, target: str = "net.py::Net") -> tuple[int, str]:
    done = run("summary", target, "--checkpoint", file, cwd=folder)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.core
def test_another_head_is_beside_the_models_with_the_number_that_would_fit(folder: Path) -> None:
    torch.save(_state(classes=80), folder / "coco.pt")
    code, said = _beside(folder, "coco.pt")
    assert code == 1
    assert "coco.pt  8 tensors" in said
    assert re.search(r"blocks\.\*\.fc\.weight ×3 +\[16, 16\] +\[16, 16\]\n", said)
    assert re.search(r"head\.weight +\[10, 16\] +\[80, 16\] +differs\n", said)
    assert "6 fit, 2 differ\n" in said
    assert said.endswith("head.weight is [80, 16] in coco.pt, [10, 16] here (head.bias differs too): num_classes=80 would fit\n")


def test_a_state_inside_of_a_checkpoint_is_found_and_its_dtype_told(folder: Path) -> None:
    torch.save({"epoch": 3, "state_dict": _state(dtype=torch.float16)}, folder / "whole.ckpt")
    code, said = _beside(folder, "whole.ckpt")
    assert code == 0
    assert 'whole.ckpt["state_dict"]  8 tensors' in said
    assert re.search(r"head\.weight +\[10, 16\] +f16\[10, 16\]\n", said)
    assert said.endswith("8 fit (8 of another dtype, which is converted)\n")


def test_shards_with_other_names_lack_and_have_too_much(folder: Path) -> None:
    """An index is read, and the shards that it names."""
    shapes = _shapes("module.")
    del shapes["module.head.bias"]
    shapes["module.scale"] = [1]
    names = list(shapes)
    parts = {"a.safetensors": names[:4], "b.safetensors": names[4:]}
    for part, held in parts.items():
        write_safetensors(folder / part, {name: shapes[name] for name in held})
    index = {"weight_map": {name: part for part, held in parts.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    code, said = _beside(folder, "model.safetensors.index.json")
    assert code == 1
    assert re.search(r"blocks\.\*\.fc\.bias ×3 +\[16\] +\[16\] +as module\.blocks\.\*\.fc\.bias\n", said)
    assert re.search(r"head\.bias +\[10\] +missing\n", said)
    assert re.search(r"module\.scale +\[1\] +unexpected\n", said)
    assert "7 fit, 1 missing, 1 unexpected\n" in said
    assert 'all 8 keys of model.safetensors.index.json begin with "module.", none of Net\'s does' in said


def test_what_was_guessed_of_the_constructor_is_said(folder: Path) -> None:
    torch.save({"fc.weight": torch.zeros(24, 24), "fc.bias": torch.zeros(24)}, folder / "block.pt")
    code, said = _beside(folder, "block.pt", "net.py::Block")
    guessed, wrong = said.splitlines()[-2:]
    assert code == 1 and guessed.startswith("Guessed  the arguments of Block(") and guessed.endswith("; --example gives others")
    assert wrong.endswith(": width=24 would fit")


def test_a_class_is_compared_as_the_part_of_a_model(folder: Path) -> None:
    torch.save({"fc.weight": torch.zeros(16, 16), "fc.bias": torch.zeros(16)}, folder / "block.pt")
    done = run("summary", "net.py::Block", "--example", "Net()(f32[2, 16])", "--checkpoint", "block.pt", cwd=folder)
    assert done.returncode == 0 and done.stdout.endswith("2 fit\n"), done


def test_a_file_that_says_nothing_is_one_clear_line(folder: Path) -> None:
    """A pickle that would do more than hold weights is not run."""
    torch.save({"state_dict": _state(), "hook": _Hostile(folder / "made")}, folder / "hostile.pt")
    done = run("summary", "net.py::Net", "--checkpoint", "hostile.pt", cwd=folder)
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(
        r"shapelens: --checkpoint hostile\.pt holds more than weights \(\w+\.mkdir\), which is not unpickled\n", done.stderr
    )
    assert not (folder / "made").exists()
    done = run("summary", "net.py::Net", "--checkpoint", "nothing.pt", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "shapelens: --checkpoint nothing.pt: there is no such file\n")
    done = run("summary", "net.py::Net", "--checkpoint", ".", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "shapelens: --checkpoint . is a folder; in it is hostile.pt\n")


def test_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "text.pt": b"hello world",
        "half.safetensors": b"\x08",
        "zip.pt": b"PK\x03\x04" + bytes(40),
        "no.index.json": b"[]",
    }
    files["lost.index.json"] = b'{"weight_map": {"a": "part-1.safetensors"}}'
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    torch.save(nn.Linear(2, 2), tmp_path / "model.pt")
    torch.jit.script(nn.Linear(2, 2)).save(tmp_path / "scripted.pt")

    def why(name: str) -> str:
        with pytest.raises(weight_files.NoWeights) as caught:
            weight_files.contents(str(tmp_path / name))
        return str(caught.value)

    assert why("later.pt") == "is not there"
    assert why("text.pt") == "is no file of weights that torch.save or safetensors has written"
    assert why("half.safetensors") == why("zip.pt") == "is broken, or no file of weights"
    assert why("no.index.json") == "is no index of files of weights"
    assert why("lost.index.json") == "names part-1.safetensors, which is not there"
    assert why("model.pt") == "holds more than weights (torch.nn.modules.linear.Linear), which is not unpickled"
    assert why("scripted.pt") == "is an archive of TorchScript, whose weights are not read"
