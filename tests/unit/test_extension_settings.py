"""The settings that the VS Code extension offers are those that the server reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shapelens.examples.settings import SETTINGS, Setting

MANIFEST = json.loads((Path(__file__).parents[2] / "vscode-extension" / "package.json").read_text("utf-8"))
OFFERED: dict[str, dict[str, Any]] = {
    name.removeprefix("shapelens."): schema
    for section in MANIFEST["contributes"]["configuration"]
    for name, schema in section["properties"].items()
}
JSON_TYPES = {"string[]": "array", "string-map": "object", "switches": "object", "examples": "object", "memory": ["number", "string"]}


def test_the_same_names() -> None:
    assert set(OFFERED) == {setting.name for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_same_type_default_and_choices(setting: Setting) -> None:
    schema = OFFERED[setting.name]
    assert schema["type"] == JSON_TYPES.get(setting.type, setting.type)
    assert schema["default"] == setting.default
    values = schema["additionalProperties"] if setting.type == "string-map" else schema
    assert tuple(schema["properties"] if setting.type == "switches" else values.get("enum", ())) == setting.choices
    if setting.type == "switches":
        assert {name: switch["default"] for name, switch in schema["properties"].items()} == setting.default
        assert all(switch["type"] == "boolean" and switch["description"] for switch in schema["properties"].values())
    assert len(schema.get("enumDescriptions", ())) == len(schema.get("enum", ()))
    assert schema["markdownDescription"].strip()
    assert schema["scope"] in (("machine",) if setting.is_users_own else ("resource", "window", "machine-overridable"))
