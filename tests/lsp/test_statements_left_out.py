"""A statement that never ends while its file is loaded, in a way that Python code cannot end either: the rest is shown without it."""

from __future__ import annotations

import pytest

from lsp.editor import Editor

ENDLESS = "def endless(x=sum(iter(int, 1))):\n    return x\n\n\n"
SOON = 15.0  # seconds; where nothing is known of the statement, it takes two deadlines and more


@pytest.mark.timeout(240)
async def test_it_is_a_finding_at_its_line_and_known_from_then_on(editor: Editor, recipe: str) -> None:
    head, _, rest = recipe.partition("\n\n\n")
    text = f"{head}\n\n\n{ENDLESS}{rest}"
    uri = editor.open("left_out.py", text)
    await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values(), seconds=180)
    (found,) = await editor.diagnostics(uri)
    assert (found.code, found.range.start.line) == ("definition", text[: text.index(ENDLESS)].count("\n"))
    assert "did not come to an end while the file was loaded" in found.message
    editor.set_text(uri, text.replace("120", "121"))
    await editor.hints_when(uri, lambda hints: "→ [B, 121]" in hints.values(), seconds=SOON)
    editor.set_text(uri, recipe)
    await editor.hints_when(uri, lambda hints: "→ [B, 120]" in hints.values(), seconds=SOON)
    assert await editor.diagnostics(uri) == []
