"""Which programs a workspace can have started: none before a file of it is open, and no interpreter that only its settings name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the interpreters here are shell scripts")


@pytest.fixture(autouse=True)
def _a_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an active environment, and with a home and a cache of his own."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SHAPELENS_CACHE_DIR", "")


class Project:
    """A workspace with a program that leaves a trace when it is run, and then is the Python that has torch."""

    def __init__(self, folder: Path, program: str) -> None:
        self.root = folder / "project"
        self.ran = folder / "ran"
        self.python = self.root / program
        self.python.parent.mkdir(parents=True)
        self.python.write_text(f'#!/bin/sh\ntouch {self.ran}\nexec {TORCH_PYTHON} "$@"\n')
        self.python.chmod(0o755)
        self.project_file = self.root / "pyproject.toml"

    async def started(self, answer: str | None = None) -> Editor:
        """A server for it, and a client that is told nothing of interpreters."""
        editor = Editor(self.root)
        editor.answer = answer
        await editor.start()
        return editor


@pytest.mark.core
async def test_the_environment_of_a_workspace_is_started_for_a_file_in_it(tmp_path: Path, recipe: str) -> None:
    project = Project(tmp_path, ".venv/bin/python")
    editor = await project.started()
    outside = tmp_path / "net.py"
    outside.write_text(recipe)
    uri = editor.open_uri(outside.as_uri(), recipe)
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    assert not project.ran.exists()
    uri = editor.open("net.py", recipe)
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    assert project.ran.exists()
    assert await editor.stop() == 0


@pytest.mark.slow("servers and workers start from nothing")
async def test_what_the_settings_of_a_project_name_runs_once_the_user_has_said_so(tmp_path: Path, recipe: str) -> None:
    project = Project(tmp_path, "env/bin/python")
    project.project_file.write_text("[tool.shapelens]\ninterpreter = 'env/bin/python'\n")

    async def shown(answer: str | None, *, questions: int) -> bool:
        """Whether the project's interpreter has run for a file that has its hints."""
        project.ran.unlink(missing_ok=True)
        editor = await project.started(answer)
        uri = editor.open("net.py", recipe)
        assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
        await editor.until(lambda: len(editor.questions) == questions)
        for question in editor.questions:
            assert str(project.python) in question and str(project.project_file) in question
        told = [line for line in editor.log if f"names the interpreter {project.python}, which is not run without your word" in line]
        assert len(told) == questions
        if answer is not None:
            await editor.until(
                lambda: any(f"{project.python} is {'used' if answer == 'Use it' else 'not used'}" in line for line in editor.log)
            )
        if answer == "Use it":
            await editor.until(project.ran.exists)
        assert await editor.stop() == 0
        return project.ran.exists()

    assert not await shown(None, questions=1)
    assert await shown("Use it", questions=1), "it is asked again where nobody has answered"
    assert await shown(None, questions=0), "a yes is remembered"
    (answers,) = (tmp_path / "home").rglob("*.json")
    answers.unlink()
    assert not await shown("Don't use it", questions=1)
    editor = await project.started("Use it")
    await editor.hints_when(editor.open("net.py", recipe))
    await editor.until(lambda: any("names the interpreter" in line for line in editor.log))
    assert editor.questions == [], "a no is remembered"
    assert await editor.stop() == 0 and not project.ran.exists()


@pytest.mark.parametrize("how", ["option", "client", "setting"])
async def test_what_the_user_has_said_beats_the_settings_of_the_project(tmp_path: Path, recipe: str, how: str) -> None:
    project = Project(tmp_path, "env/bin/python")
    project.project_file.write_text("[tool.shapelens]\ninterpreter = 'env/bin/python'\n")
    editor = Editor(project.root)
    editor.settings = {"interpreter": TORCH_PYTHON} if how == "setting" else {}
    said = {"interpreter": TORCH_PYTHON, "settings": {}} if how == "client" else None
    await editor.start(*(["--interpreter", TORCH_PYTHON] if how == "option" else []), initialization_options=said)
    uri = editor.open("net.py", recipe)
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    assert not project.ran.exists() and editor.questions == []
    assert await editor.stop() == 0


async def test_a_file_above_the_workspace_configures_nothing(tmp_path: Path, recipe: str) -> None:
    project = Project(tmp_path, "env/bin/python")
    (tmp_path / "pyproject.toml").write_text("[tool.shapelens]\ninterpreter = 'project/env/bin/python'\ndims = 'numbers'\n")
    editor = await project.started()
    uri = editor.open("inner/net.py", recipe)
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    assert await editor.stop() == 0
    assert editor.questions == [] and not project.ran.exists()
