"""A statement that never ends while its file is loaded, in a way that Python code cannot end either: the rest is shown without it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

ENDLESS = "def endless(x=sum(iter(int, 1))):\n    return x\n\n\n"
TIMEOUTS = "grace=0.3 hanging=2"


@pytest.mark.slow("what hangs lasts until its deadline")
async def test_it_is_a_finding_at_its_line_and_known_from_then_on(tmp_path: Path, recipe: str) -> None:
    editor = Editor(tmp_path)
    editor.settings = {"deadline": 1}
    options = {"settings": editor.settings}
    await editor.start("--interpreter", TORCH_PYTHON, initialization_options=options, env={"SHAPELENS_TIMEOUTS": TIMEOUTS})
    other = editor.open("other.py", recipe)
    await editor.hints_when(other, lambda hints: "→ [B, 10]" in hints.values())
    head, _, rest = recipe.partition("\n\n\n")
    text = f"{head}\n\n\n{ENDLESS}{rest}"
    begin = time.monotonic()
    uri = editor.open("left_out.py", text)
    await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values(), seconds=110)
    until_known = time.monotonic() - begin
    (found,) = await editor.diagnostics(uri)
    assert (found.code, found.range.start.line) == ("definition", text[: text.index(ENDLESS)].count("\n"))
    assert "did not come to an end while the file was loaded" in found.message
    soon = until_known / 2  # Where nothing is known of the statement, it hangs for two seconds, and once more until the deadline.
    editor.set_text(uri, text.replace("120", "121"))
    await editor.hints_when(uri, lambda hints: "→ [B, 121]" in hints.values(), seconds=soon)
    editor.set_text(uri, recipe)
    await editor.hints_when(uri, lambda hints: "→ [B, 120]" in hints.values(), seconds=soon)
    assert await editor.diagnostics(uri) == []
    assert await editor.stop() == 0
