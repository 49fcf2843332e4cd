"""Settings of a project and of an editor; package.json of the extension offers the same ones."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from shapelens.examples.settings import LINTS, SETTINGS, Settings

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return str(folder)


def test_every_setting_of_a_project(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        """
        [tool.shapelens]
        interpreter = "env/bin/python"
        dims = "numbers"
        select = ["missing-import", "broadcast"]
        ignore = ["missing-import"]
        exclude = ["old"]
        baseline = "known.json"
        lints = { unused-layer = false }
        program = false
        deadline = 2.5
        cache = false
            memory-limit = 100
        device-memory = 24
        enable = false
        run-on = "save"
        allow = ["network"]
        server-interpreter = "python3"
        examples = { "models/gpt.py" = ["GPT(n=2)(i64[B:2, T:64])"], "one.py" = "One()" }
        log = { level = "debug" }
        [tool.shapelens.notebooks]
        order = "execution"
        [tool.shapelens.hints]
        layers = false
        values = false
        parameters = false
        unchanged = true
        placement = "afterName"
        [tool.shapelens.findings.severity]
        broadcast = "warning"
        """,
    )
    found = Settings.from_pyproject(folder, str(tmp_path))
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "allow is for you to say, in the editor's settings for all workspaces or on the command line"
    ]
    untouched = Settings(folder=folder)
    same = [item.name for item in dataclasses.fields(Settings) if getattr(found, item.name) == getattr(untouched, item.name)]
    assert same == ["interpreter", "allow", "folder"], "the user has said nothing of an interpreter, and of what is allowed"
    assert found.examples_for(str(tmp_path / "models" / "gpt.py")) == ["GPT(n=2)(i64[B:2, T:64])"]
    assert found.examples_for(str(tmp_path / "models" / ".." / "one.py")) == ["One()"]
    assert found.examples_for(str(tmp_path / "gpt.py")) == []
    assert Path(found.baseline) == Path(folder, "known.json")
    assert found.memory_limit == 100 * 1024 * 1024 and found.deadline == 2.5
    # A folder below has the same, whether it exists or not.
    assert Settings.from_pyproject(str(tmp_path / "models" / "deeper"), str(tmp_path)) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.shapelens]\ndims = 'letters'", "dims must be one of names, numbers, not 'letters'"),
        ("[tool.shapelens]\ndeadline = 0", "deadline must be a number above 0, not 0"),
        ("[tool.shapelens]\ndeadline = true", "deadline must be a number"),
        ("[tool.shapelens]\ndeadline = nan", "deadline must be a number"),
        ("[tool.shapelens]\nhints.layers = 'yes'", "hints.layers must be true or false"),
        ("[tool.shapelens]\nhints = false", "there is no setting hints"),
        ("[tool.shapelens]\nignore = 'cat'", "ignore must be a list of texts"),
        ("[tool.shapelens]\nexamples = ['a']", "examples must be a table"),
        ("[tool.shapelens]\nexamples = {a = [1]}", "examples must be a table"),
        ("[tool.shapelens]\nfindings.severity = {cat = 'loud'}", "findings.severity must be a table"),
        ("[tool.shapelens]\nlints = {unused = false}", "lints must be a table of true or false for any of outer-product"),
        ("[tool.shapelens]\nlints = {unused-layer = 'off'}", "lints must be a table"),
        ("[tool.shapelens]\ndevice-memory = 'much'", "device-memory must be an amount like 24 GB, or one of T4, "),
        (f"[tool.shapelens]\ndevice-memory = -{10**400}", "device-memory must be an amount like 24 GB"),
        ("[tool.shapelens]\nmemoryLimit = 3", "there is no setting memoryLimit"),
        ("[tool.shapelens]\nhints.layer = true", "there is no setting hints.layer"),
        ("[tool]\nshapelens = 3", "must be a table"),
        ("[tool.shapelens\n", "pyproject.toml: "),
    ],
)
def test_what_is_wrong_is_said_and_the_default_holds(tmp_path: Path, text: str, problem: str) -> None:
    found = Settings.from_pyproject(written(tmp_path, text), str(tmp_path))
    assert len(found.problems) == 1 and problem in found.problems[0] and "pyproject.toml" in found.problems[0]
    assert dataclasses.replace(found, problems=[], folder="", examples_from="settings") == Settings()


@pytest.mark.parametrize(("value", "size"), [("24", 24), ("0.5", 0.5), ("'24 GB'", 24), ("'rtx 4090'", 24), ("0", 0)])
def test_the_memory_of_a_device_is_an_amount_or_its_name(tmp_path: Path, value: str, size: float) -> None:
    found = Settings.from_pyproject(written(tmp_path, f"[tool.shapelens]\ndevice-memory = {value}"), str(tmp_path))
    assert (found.device_memory, found.problems) == (size * (1 << 30), [])


def test_values_beyond_all_measure_are_cut_and_said(tmp_path: Path) -> None:
    found = Settings.from_pyproject(written(tmp_path, f"[tool.shapelens]\ndeadline = 1e308\nmemory-limit = {10**400}"), str(tmp_path))
    assert (found.deadline, found.memory_limit) == (3600.0, 1 << 40)
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "deadline must be at most 3600, which holds instead of 1e+308",
        f"memory-limit must be at most 1048576, which holds instead of 1{17 * '0'}...{19 * '0'}",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.shapelens]\nignore = " + 50_000 * "[" + 50_000 * "]", "its values are nested too deeply"),
        # How deep is too deep depends on the version of Python.
        (
            "[tool.shapelens]\ndeadline" + 5_000 * ".a" + " = 1",
            "deadline must be a number above 0, not|its values are nested too deeply",
        ),
        ("# " + (1 << 20) * "x", "larger than 1 MB"),
    ],
    ids=["brackets", "dots", "size"],
)
def test_a_monstrous_file_is_one_short_problem(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = Settings.from_pyproject(written(tmp_path, text), str(tmp_path)).problems
    assert re.search(problem, found) and len(found) < 300 + len(str(tmp_path))


def test_the_nearest_project_with_settings_counts(tmp_path: Path) -> None:
    written(tmp_path, "[tool.shapelens]\ndims = 'numbers'")
    inner = written(tmp_path / "inner", "[project]\nname = 'x'")
    assert Settings.from_pyproject(inner, str(tmp_path)).dims == "numbers"
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "pyproject.toml").write_bytes(b"x = '\xe9'")
    assert "pyproject.toml" in Settings.from_pyproject(str(tmp_path / "latin"), str(tmp_path)).problems[0]


def test_what_stands_above_configures_nothing(tmp_path: Path) -> None:
    above = written(tmp_path, "[tool.shapelens]\ndims = 'numbers'")
    inner = tmp_path / "a" / "b"
    assert Settings.from_pyproject(str(inner), above).dims == "numbers"
    for top in (str(tmp_path / "a"), str(inner), str(tmp_path / "elsewhere"), ""):
        assert Settings.from_pyproject(str(inner), top) == Settings(folder=str(inner))


@pytest.mark.parametrize("flat", [False, True])
def test_the_editors_settings_win(tmp_path: Path, flat: bool) -> None:
    text = """
        [tool.shapelens]
        dims = "numbers"
        hints.layers = false
        findings.severity = {a = "hint", b = "hint"}
        examples = {"a.py" = ["A()"]}
        lints = {softmax-dim = false}
    """
    project = Settings.from_pyproject(written(tmp_path, text), str(tmp_path))
    nested: dict[str, Any] = {
        "hints": {"values": False, "placement": "afterName"},
        "findings": {"severity": {"b": "error"}},
        "examples": {"b.py": ["B()"]},
        "lints": {**LINTS, "unused-layer": False},
        "memoryLimit": 1,
        "log": {"level": None},
        "interpreter": "",
    }
    dotted: dict[str, Any] = {
        "hints.values": False,
        "hints.placement": "afterName",
        "findings.severity": {"b": "error"},
        "examples": {"b.py": ["B()"]},
        "lints": {**LINTS, "unused-layer": False},
        "memoryLimit": 1,
        "log.level": None,
        "interpreter": "",
    }
    found = project.merged(dotted if flat else nested)
    assert found.problems == []
    assert (found.dims, found.hints_layers, found.hints_values, found.hints_placement) == ("numbers", False, False, "afterName")
    assert found.findings_severity == {"a": "hint", "b": "error"}
    assert [name for name, on in found.lints.items() if not on] == ["unused-layer", "softmax-dim"]
    assert (found.memory_limit, found.interpreter) == (1 << 20, None)
    assert [found.examples_for(str(tmp_path / name)) for name in ("a.py", "b.py")] == [["A()"], ["B()"]]


def test_a_default_that_an_editor_sends_is_no_choice(tmp_path: Path) -> None:
    project = Settings.from_pyproject(
        written(tmp_path, "[tool.shapelens]\ndims = 'numbers'\ndeadline = 3\nignore = ['cat']"), str(tmp_path)
    )
    assert project.merged({setting.name: setting.default for setting in SETTINGS}) == project


def test_wrong_values_of_an_editor_do_not_raise() -> None:
    found = Settings().merged({"hints": [1], "dims": 3, "": {}, "findings": {"severity": {"a": 1}, "x": 1}, "examples": {"a": {"b": 1}}})
    assert len(found.problems) == 6
    assert dataclasses.replace(found, problems=[]) == Settings()


def test_the_defaults_of_the_table_are_those_of_the_settings() -> None:
    for setting in SETTINGS:
        default = getattr(Settings(), setting.attribute)
        assert (default or setting.default) == (setting.default * setting.factor if setting.factor > 1 else setting.default)


def test_the_extension_offers_these_settings_with_these_defaults() -> None:
    package = json.loads((ROOT / "vscode-extension" / "package.json").read_text(encoding="utf-8"))
    configuration = package["contributes"]["configuration"]
    sections = configuration if isinstance(configuration, list) else [configuration]
    offered = {name: item for section in sections for name, item in section["properties"].items()}
    types = {"string[]": "array", "string-map": "object", "switches": "object", "examples": "object", "memory": ["number", "string"]}
    assert {name: (item["type"], item["default"]) for name, item in offered.items()} == {
        f"shapelens.{setting.name}": (types.get(setting.type, setting.type), setting.default) for setting in SETTINGS
    }
    for setting in SETTINGS:
        item = offered[f"shapelens.{setting.name}"]
        choices = item.get("additionalProperties", {}).get("enum", []) if setting.type == "string-map" else item.get("enum", [])
        choices = item["properties"] if setting.type == "switches" else choices
        assert sorted(choices) == sorted(setting.choices)
        assert item.get("maximum", 0) == setting.most
