"""`shapelens init`: a table of settings in `pyproject.toml`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from shapelens.commands import RefusedRequest
from shapelens.examples.settings import SETTINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What a project decides; the others are a matter of each person's taste and machine.
_OF_A_PROJECT = ("ignore", "exclude", "findings.severity", "lints", "baseline", "deadline", "memoryLimit")
_EXAMPLES = """
# Where ShapeLens finds no example, or another than you want: the expressions that build a model and call it, by file.
[tool.shapelens.examples]
# "models/net.py" = ["Net()(f32[B:2, 3, 32, 32])"]
"""


def init(folder: Path) -> None:
    """Add `[tool.shapelens]` to the `pyproject.toml` of a folder, made if there is none. Raises RefusedRequest where it has one."""
    if not folder.is_dir():
        raise RefusedRequest(f"{folder}: no such folder")
    file = folder / "pyproject.toml"
    try:
        before = file.read_text("utf-8") if file.exists() else ""
        content = tomllib.loads(before)
    except (OSError, ValueError) as error:
        raise RefusedRequest(f"{file}: {error}") from None
    if "shapelens" in content.get("tool", {}):
        raise RefusedRequest(f"{file} has a table tool.shapelens already")
    blank = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    try:
        file.write_text(before + blank + table(), encoding="utf-8")
    except OSError as error:
        raise RefusedRequest(f"{file}: {error.strerror or error}") from None
    typer.echo(f"{file}: added [tool.shapelens], with the settings that a project may want to change")


def table() -> str:
    """The table, with each setting at its default in a comment that says what it does."""
    lines = ["[tool.shapelens]"]
    for setting in SETTINGS:
        if setting.name in _OF_A_PROJECT:
            value = "{ }" if setting.type in ("switches", "string-map") else json.dumps(setting.default)
            lines += [f"# {setting.description}", f"# {setting.pyproject_name} = {value}"]
    return "\n".join(lines) + "\n" + _EXAMPLES
