"""A client that does not ask for hints again when there are others, as Helix: the answer waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import PATIENCE, Editor


@pytest.mark.core
async def test_hints_are_there_at_the_first_answer_and_after_each_edit(tmp_path: Path, recipe: str) -> None:
    editor = Editor(tmp_path)
    editor.asks_for_hints_again = False
    await editor.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_TIMEOUTS": f"hints={PATIENCE}"})
    uri = editor.open("net.py", recipe)
    last = recipe[: recipe.index("return x")].count("\n")
    assert (await editor.hints(uri))[last] == "→ [B, 10]"
    editor.replace(uri, "nn.Linear(84, 10)", "nn.Linear(84, 12)")
    assert (await editor.hints(uri))[last] == "→ [B, 12]"
    assert await editor.stop() == 0
