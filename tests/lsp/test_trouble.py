"""User code that hangs, ends or breaks its process, and a worker that dies: one finding at the top of the file, and the next edit works."""

from __future__ import annotations

import os
import signal

import pytest
from lsprotocol import types

from lsp.editor import Editor

HEAD = "def forward(self, x):\n"
TROUBLES = {
    "deadline": "while True: pass",
    "exit": "import os; os._exit(3)",
    "crash": "import ctypes; ctypes.string_at(0)",
}


def with_trouble(recipe: str, statement: str) -> str:
    return recipe.replace(HEAD, f"{HEAD}        {statement}\n")


@pytest.mark.core
@pytest.mark.parametrize("code", TROUBLES)
async def test_one_finding_and_the_next_edit_works(editor: Editor, recipe: str, code: str) -> None:
    uri = editor.open(f"trouble/{code}.py", recipe)
    hints = await editor.hints_when(uri)
    editor.configure({"deadline": 1})
    try:
        editor.set_text(uri, with_trouble(recipe, TROUBLES[code]))
        found = await editor.diagnostics(uri)
        assert [(each.code, each.severity) for each in found] == [(code, types.DiagnosticSeverity.Error)]
        assert "\n" not in found[0].message
        # What was seen before stays: one line further down.
        assert "→ [B, 10]" in (await editor.hints(uri)).values()
        editor.set_text(uri, recipe)
        assert await editor.diagnostics(uri) == []
        assert await editor.hints_when(uri) == hints
    finally:
        editor.configure({})


@pytest.mark.slow("what hangs lasts until its deadline")
@pytest.mark.parametrize(("statement", "name"), [("while True: pass", "hang"), ("import os; os._exit(3)", "exit")])
async def test_trouble_while_a_file_loads_ends_with_the_edit_that_removes_it(
    editor: Editor, recipe: str, statement: str, name: str
) -> None:
    trouble = f"{recipe}\n\nclass Trouble:\n    {statement}\n"
    uri = editor.open(f"trouble/loading_{name}.py", trouble)
    (found,) = await editor.diagnostics(uri)
    assert found.code == "definition"
    assert trouble.splitlines()[found.range.start.line].strip() == statement
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    other = editor.open(f"trouble/beside_{name}.py", recipe)
    assert await editor.diagnostics(other) == []
    editor.set_text(uri, recipe)
    assert await editor.diagnostics(uri) == []
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()


async def test_floods_of_output_harm_nobody(editor: Editor, recipe: str) -> None:
    uri = editor.open("trouble/prints.py", with_trouble(recipe, "for _ in range(20_000): print('x' * 200)"))
    assert await editor.diagnostics(uri) == []
    logged = [message.message for message in editor.client.log_messages if "xxxxx" in message.message]
    assert logged and sum(map(len, logged)) < 50_000


@pytest.mark.core
async def test_a_worker_that_is_killed_is_replaced(editor: Editor, recipe: str, broken: str) -> None:
    uri = editor.open("trouble/killed.py", recipe)
    assert await editor.diagnostics(uri) == []
    (worker,) = editor.workers()
    os.kill(worker, signal.SIGKILL)
    editor.set_text(uri, broken)
    (finding,) = await editor.diagnostics(uri)
    assert finding.code == "linear-in-features"
    (other,) = editor.workers()
    assert other != worker


@pytest.mark.slow("a worker starts from nothing twice")
async def test_a_worker_that_is_killed_while_it_runs_is_replaced_and_its_run_done(editor: Editor, recipe: str) -> None:
    uri = editor.open("trouble/killed_at_work.py", with_trouble(recipe, TROUBLES["deadline"]))
    await editor.until_running("killed_at_work.py")
    (worker,) = editor.workers()
    os.kill(worker, signal.SIGKILL)
    (finding,) = await editor.diagnostics(uri)
    assert finding.code == "deadline"
    editor.set_text(uri, recipe)
    assert await editor.diagnostics(uri) == []


async def test_a_program_that_ends_its_process_says_so_and_its_classes_stay(editor: Editor, recipe: str) -> None:
    text = f"{recipe}\n\nimport ctypes\n\ny = Net()(torch.rand(2, 3, 32, 32))\nctypes.string_at(0)\n"
    uri = editor.open("trouble/program.py", text)
    await editor.diagnostics(uri)
    await editor.until(lambda: [each.code for each in editor.published[uri].diagnostics] == ["crash"])
    (found,) = editor.published[uri].diagnostics
    assert found.severity == types.DiagnosticSeverity.Information and "SIGSEGV" in found.message
    assert "→ [B, 10]" in (await editor.hints(uri)).values()
    editor.replace(uri, "ctypes.string_at(0)\n", "")
    await editor.hints_when(uri, lambda hints: "→ [2, 10]" in hints.values())
    assert not editor.published[uri].diagnostics
