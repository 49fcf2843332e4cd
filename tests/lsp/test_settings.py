"""Settings of the editor and of the project, and another interpreter: all take effect without a restart."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import pytest
from lsprotocol import types

from interpreters import TORCH_PYTHON
from lsp.editor import Editor


@pytest.mark.core
async def test_settings_of_the_editor_take_effect_at_once(editor: Editor, broken: str) -> None:
    uri = editor.open("settings/editor.py", broken)
    assert len(await editor.diagnostics(uri)) == 1
    await editor.hints_when(uri)
    try:
        editor.configure({"dims": "numbers", "hints": {"values": False}, "ignore": ["linear-in-features"]})
        hints = await editor.hints_when(uri, lambda hints: "[1024, " in str(hints))
        assert "→ [1024, 400]" not in hints.values() and "→ [1024, 6, 28, 28]" in hints.values()
        await editor.until(lambda: not editor.published[uri].diagnostics)
    finally:
        editor.configure({})
    assert "→ [B, 400]" in (await editor.hints_when(uri)).values()
    await editor.until(lambda: bool(editor.published[uri].diagnostics))


async def test_a_file_is_followed_as_a_program_only_where_the_setting_says_so(editor: Editor, recipe: str) -> None:
    uri = editor.open("settings/program.py", recipe + "\n\nscores = Net()(torch.rand(7, 3, 32, 32))\n")
    last = recipe.count("\n") + 2
    assert (await editor.hints_when(uri, lambda hints: last in hints))[last] == "→ [7, 10]"
    try:
        editor.configure({"program": False})
        hints = await editor.hints_when(uri, lambda hints: last not in hints)
        assert "→ [B, 400]" in hints.values()
    finally:
        editor.configure({})
    await editor.hints_when(uri, lambda hints: last in hints)


async def test_examples_may_stand_in_the_projects_settings(editor: Editor, recipe: str) -> None:
    project = editor.root / "project" / "pyproject.toml"
    project.parent.mkdir()
    project.write_text('[tool.shapelens.examples]\n"net.py" = ["Net()(f32[P:4, 3, 32, 32])"]\n')
    uri = editor.open("project/net.py", recipe.replace("# shapelens: Net()(f32[B:1024, 3, 32, 32])\n", ""))
    await editor.hints_when(uri, lambda hints: "→ [P, 10]" in hints.values())
    project.write_text('[tool.shapelens.examples]\n"net.py" = ["Net()(f32[Q:4, 3, 32, 32])"]\n')
    editor.save(uri)
    await editor.hints_when(uri, lambda hints: "→ [Q, 10]" in hints.values())


@pytest.mark.core
async def test_an_interpreter_without_torch_is_named_with_what_to_do(tmp_path: Path, recipe: str) -> None:
    venv.create(tmp_path / "no_torch", with_pip=False, symlinks=True)
    python = str(tmp_path / "no_torch" / "bin" / "python")
    editor = Editor(tmp_path)
    await editor.start(initialization_options={"interpreter": python, "settings": {}})
    uri = editor.open("net.py", recipe)
    (finding,) = await editor.diagnostics(uri)
    assert python in finding.message and "not installed" in finding.message
    assert finding.severity == types.DiagnosticSeverity.Warning
    await editor.until(lambda: any(status.state == "no-torch" for status in editor.statuses))
    (status,) = [status for status in editor.statuses if status.state == "no-torch"]
    assert f"`{python} -m pip install torch`" in status.detail
    assert editor.shown == [], "the extension shows its own message"

    editor.client.protocol.notify("shapelens/interpreter", {"path": TORCH_PYTHON})
    await editor.until(lambda: not editor.published[uri].diagnostics)
    assert "→ [B, 400]" in (await editor.hints_when(uri)).values()
    assert await editor.stop() == 0


async def test_other_editors_are_told_by_a_message(tmp_path: Path, recipe: str) -> None:
    editor = Editor(tmp_path)
    await editor.start("--interpreter", str(tmp_path / "nothing" / "python"))
    uri = editor.open("net.py", recipe)
    (finding,) = await editor.diagnostics(uri)
    assert "does not exist" in finding.message
    assert len(editor.shown) == 1 and "does not exist" in editor.shown[0]
    assert await editor.stop() == 0


async def test_findings_of_the_baseline_are_faint(editor: Editor, broken: str) -> None:
    project = editor.root / "known" / "pyproject.toml"
    project.parent.mkdir()
    project.write_text('[tool.shapelens]\nbaseline = "known.json"\n')
    key = {"code": "linear-in-features", "scope": "Net.__init__", "count": 1}
    message = "fc1 gets # features (#, flattened on line #) but in_features is #"
    (project.parent / "known.json").write_text(json.dumps({"version": 1, "findings": {"net.py": [{**key, "message": message}]}}))
    uri = editor.open("known/net.py", broken)
    (finding,) = await editor.diagnostics(uri)
    assert finding.severity == types.DiagnosticSeverity.Hint and finding.code == "linear-in-features"


@pytest.mark.core
async def test_what_is_switched_off_is_not_run_and_shows_nothing_until_it_is_on_again(editor: Editor, broken: str) -> None:
    uri = editor.open("settings/off.py", broken)
    assert len(await editor.diagnostics(uri)) == 1
    await editor.hints_when(uri)
    try:
        editor.configure({"enable": False})
        await editor.until(lambda: not editor.published[uri].diagnostics)
        assert await editor.hints(uri) == {} and await editor.lenses(uri) == []
        assert await editor.hover(uri, "nn.Conv2d(3, 6, 5)") is None and await editor.execute("shapelens.summary", uri) is None
        other = editor.open("settings/off_from_the_start.py", broken)
        editor.replace(uri, "x = self.fc3(x)", "x = self.fc3(x) + 0")
        assert await editor.execute("shapelens.checkExample", uri, "Net", "Net()(f32[4])") is None  # What was sent before has been read.
        assert await editor.hints(other) == {} and other not in editor.published
    finally:
        editor.configure({})
    assert "→ [B, 400]" in (await editor.hints_when(uri)).values()
    assert len(await editor.diagnostics(other)) == 1


@pytest.mark.core
async def test_a_file_may_run_when_it_is_saved_only(editor: Editor, recipe: str) -> None:
    uri = editor.open("settings/saved.py", recipe)
    await editor.hints_when(uri)
    try:
        editor.configure({"runOn": "save", "dims": "numbers"})
        await editor.hints_when(uri, lambda hints: "[1024, 6, 28, 28]" in str(hints))
        editor.replace(uri, "nn.Conv2d(3, 6, 5)", "nn.Conv2d(3, 6, 3)")
        line = next(number for number, text in enumerate(editor.texts[uri].splitlines()) if "nn.Conv2d(3, 6, 3)" in text)
        await editor.idle(reopened=False)
        assert "30, 30]" not in str(await editor.hints(uri))
        editor.save(uri)
        assert (await editor.hints_when(uri, lambda hints: "30, 30]" in str(hints)))[line] == "→ [1024, 6, 30, 30]"
    finally:
        editor.configure({})


@pytest.mark.core
async def test_hints_that_say_nothing_new_are_left_out_by_default(editor: Editor, recipe: str) -> None:
    uri = editor.open("settings/unchanged.py", recipe)
    every = await editor.hints_when(uri)
    last = max(every)
    assert "return x" in editor.texts[uri].splitlines()[last]
    try:
        editor.configure({"hints.unchanged": False})
        left = await editor.hints_when(uri, lambda hints: last not in hints)
        assert left == {line: label for line, label in every.items() if line != last}
    finally:
        editor.configure({})


@pytest.mark.core
async def test_a_status_bar_is_told_tensors_mistakes_and_guesses(editor: Editor, broken: str) -> None:
    uri = editor.open("settings/summary.py", broken)
    assert len(await editor.diagnostics(uri)) == 1
    await editor.hints_when(uri)
    given = await editor.execute("shapelens.summary", uri)
    assert (given["mistakes"], given["guessed"]) == (1, 0) and given["tensors"] == 8
    plain = editor.open("settings/guessed.py", "".join(line for line in broken.splitlines(True) if "# shapelens:" not in line))
    await editor.hints_when(plain)
    told = await editor.when(lambda: editor.execute("shapelens.summary", plain), lambda found: found is not None and found["guessed"] == 1)
    assert told["tensors"] == 8
