"""The walkthrough of the extension leads to pictures and commands that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"
PACKAGE = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
OF_VS_CODE = {"workbench.action.files.openFile", "editor.action.quickFix"}


def test_each_step_has_its_picture_and_its_commands() -> None:
    commands = {each["command"] for each in PACKAGE["contributes"]["commands"]} | OF_VS_CODE
    (walkthrough,) = PACKAGE["contributes"]["walkthroughs"]
    assert len(walkthrough["steps"]) == len({step["id"] for step in walkthrough["steps"]}) >= 6
    for step in walkthrough["steps"]:
        assert (EXTENSION / step["media"]["image"]).is_file() and step["media"]["altText"]
        named = re.findall(r"\(command:([\w.]+)\)", step["description"])
        named += [event.partition(":")[2] for event in step.get("completionEvents", []) if event.startswith("onCommand:")]
        assert set(named) <= commands, step["id"]
