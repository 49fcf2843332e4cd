"""Files beside the model that bear the names of modules: no process of ours takes them for the real ones, and nothing of them is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

SHAPELENS = str(Path(sys.executable).with_name("shapelens"))
# What is imported by our server, our worker, torch, Python at its start, and pytest.
PLANTED = ["torch", "json", "random", "sitecustomize", "usercustomize", "conftest", "asyncio", "argparse", "logging", "pygls", "libcst",
           "typing", "dataclasses", "traceback", "inspect", "numpy", "shutil", "tempfile", "hashlib", "threading"]  # fmt: skip
MODEL = """\
import torch
from torch import nn


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, {size})
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.fc(x))
"""
MARK = "a planted module was run"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    for name in PLANTED:
        mark = tmp_path / f"{name}.mark"
        (tmp_path / f"{name}.py").write_text(f"print({MARK!r}, __name__)\nopen({str(mark)!r}, 'w')\nraise ImportError({MARK!r})\n")
    (tmp_path / "net.py").write_text(MODEL.format(size=5))
    return tmp_path


def marks(folder: Path) -> list[str]:
    """The planted modules that were run where nothing is held."""
    return [path.stem for path in folder.glob("*.mark")]


@pytest.mark.parametrize("command", [[SHAPELENS], [sys.executable, "-m", "shapelens"]], ids=["command", "module"])
@pytest.mark.parametrize("does", [["check", "net.py"], ["show", "net.py"]], ids=["check", "show"])
def test_commands_in_such_a_folder(planted: Path, command: list[str], does: list[str]) -> None:
    done = subprocess.run(
        [*command, *does, "--interpreter", TORCH_PYTHON], cwd=planted, capture_output=True, text=True, timeout=120, check=False
    )
    assert "linear-in-features" in done.stdout
    assert MARK not in done.stdout + done.stderr
    assert marks(planted) == []


@pytest.mark.parametrize("command", [[SHAPELENS, "lsp"], [sys.executable, "-m", "shapelens.lsp"]], ids=["command", "module"])
async def test_a_server_in_such_a_folder(planted: Path, command: list[str]) -> None:
    editor = Editor(planted)
    await editor.start_with([*command, "--interpreter", TORCH_PYTHON])
    uri = editor.open("net.py", MODEL.format(size=5))
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    editor.set_text(uri, MODEL.format(size=4))
    await editor.hints_when(uri, lambda hints: "→ [B, 4] | [B, 2]" in hints.values() or "→ [B, 2]" in hints.values())
    assert await editor.diagnostics(uri) == []
    assert await editor.stop() == 0
    assert not [line for line in editor.log if MARK in line]
    assert marks(planted) == []
