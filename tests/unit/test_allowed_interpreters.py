"""The interpreter that a project's file names runs only on the user's word."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from shapelens.project_scope import ProjectScope
from shapelens.runner import interpreter
from shapelens.runner.allowed_interpreters import AllowedInterpreters, ChosenInterpreter


def python_in(folder: Path, environment: str) -> str:
    python = folder / environment / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return str(python)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_it_is_used_once_the_user_has_allowed_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    named, folder = python_in(project, "env"), str(project)
    allowed = AllowedInterpreters(tmp_path / "data" / "answers.json")
    without = ChosenInterpreter(sys.executable, not_allowed=named)
    assert allowed.choose(folder, None, "env", folder) == without
    assert allowed.choose(folder, sys.executable, "env", folder) == ChosenInterpreter(sys.executable), "the user has said another"
    assert allowed.choose(folder, None, None, folder) == ChosenInterpreter(sys.executable)
    allowed.remember(folder, named, False)
    assert allowed.choose(folder, None, "env", folder) == without and allowed.answer(folder, named) is False

    AllowedInterpreters(allowed.file).remember(str(tmp_path), named, True)  # Another server, another project.
    allowed.remember(folder, named, True)
    later = AllowedInterpreters(allowed.file)
    assert later.choose(folder, None, "env", folder) == later.choose(folder, None, "env/bin/python", folder) == ChosenInterpreter(named)
    assert later.answer(str(tmp_path), named) is True
    assert later.answer(folder, python_in(project, "other")) is None
    for content in ("", "[]", '{"a": 3, "b": {"c": "yes"}}', "[" * 100_000):
        allowed.file.write_text(content)
        assert AllowedInterpreters(allowed.file).answer(folder, named) is None


def test_the_environment_that_is_found_anyway_needs_no_word(tmp_path: Path) -> None:
    named = python_in(tmp_path, ".venv")
    assert AllowedInterpreters().choose(str(tmp_path), None, ".venv", str(tmp_path)) == ChosenInterpreter(named)


def test_an_answer_holds_where_it_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    allowed = AllowedInterpreters(tmp_path / "data" / "answers.json")
    allowed.remember("/w", "/w/python", True)
    assert allowed.answer("/w", "/w/python") is True


def test_the_command_line_looks_no_further_up_than_the_users_own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "above" / "project" / "models"
    inner.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "above"):
        (folder / "pyproject.toml").write_text("[tool.shapelens]\ndims = 'numbers'\ninterpreter = 'env'")
    named, planted = python_in(tmp_path / "above", "env"), python_in(tmp_path / "above", ".venv")
    file = inner / "net.py"

    def seen(scope: ProjectScope) -> tuple[str, str, str | None]:
        root = scope.project_root(file)
        chosen = scope.interpreter(root, None)
        return scope.settings(inner).dims, chosen.python, chosen.not_allowed

    nothing = ("names", sys.executable, None)
    monkeypatch.chdir(inner.parent)
    assert seen(ProjectScope()) == seen(ProjectScope([inner])) == nothing
    monkeypatch.chdir("/")
    assert interpreter.find(str(tmp_path / "above"), None) == planted
    monkeypatch.chdir(tmp_path / "above")
    assert seen(ProjectScope()) == ("numbers", planted, named)
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert seen(ProjectScope()) == nothing
    assert seen(ProjectScope([tmp_path / "above"])) == ("numbers", planted, named), "the folder is named"
    assert ProjectScope().settings(Path("..") / "above" / "project" / "models").dims == "names"
    (inner.parent / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "above")
    assert seen(ProjectScope()) == nothing, "the repository ends below"
    (tmp_path / "above" / ".git").mkdir()
    (inner.parent / ".git").rmdir()
    monkeypatch.chdir(inner)
    assert seen(ProjectScope()) == ("numbers", planted, named), "the repository begins above"
    if hasattr(os, "chown") and os.geteuid() == 0:
        os.chown(tmp_path / "above", 12345, -1)
        assert seen(ProjectScope()) == nothing, "it is somebody else's"
