"""Neovim as a second client: its own LSP client, its own rendering."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECIPE = HERE.parents[1] / "fixtures" / "recipe" / "wrong_in_features.py"
NEOVIM = Path(sysconfig.get_path("scripts"), "nvim")


@pytest.mark.skipif(sys.platform != "linux", reason="the package with Neovim is for Linux")
def test_neovim_shows_hints_findings_hovers_and_lenses_and_applies_the_fix(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(RECIPE.read_text())
    command = [NEOVIM, "--clean", "--headless", "-l", HERE / "neovim.lua", file, sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    (finding,) = seen["diagnostics"]
    assert (finding["code"], finding["text"]) == ("linear-in-features", "16 * 6 * 6")
    assert "→ [B, 6, 14, 14] | [B, 16, 5, 5]" in seen["hints"] and "x: [B, 3, 32, 32]" in seen["hints"]
    assert "[B, 6, 28, 28]" in seen["hover"] and "weight" in seen["hover"]
    assert seen["lens"].startswith("Net · x f32[B, 3, 32, 32] · given")
    assert seen["fixed"].strip() == "self.fc1 = nn.Linear(16 * 5 * 5, 120)"
    assert "rror" not in seen["messages"]
