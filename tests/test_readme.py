"""The README says what is so: its tables are those of the program, its console blocks what the commands print.

`python tests/test_readme.py` writes them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line.commands import run
from forked_workers import forked_workers as forked_workers
from shapelens.analysis.findings.codes import CODES
from shapelens.examples.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
VERSIONS = ROOT / "docs" / "versions.json"
BLOCK = re.compile(r"```console\n\$ (shapelens [^\n]+)\n(.*?)```", re.DOTALL)


def codes_table() -> Iterator[str]:
    """A row for each code of a finding."""
    yield "| code | what is wrong | for example | severity |"
    yield "|---|---|---|---|"
    for code in CODES.values():
        yield f"| `{code.name}` | {code.meaning} | {code.example} | {code.severity}{' (lint)' if code.lint else ''} |"


def settings_table() -> Iterator[str]:
    """A row for each setting, under its name in the editor."""
    yield "| setting | default | what it does |"
    yield "|---|---|---|"
    for setting in SETTINGS:
        if setting.type == "switches":
            off = [f"`{name}`" for name, on in setting.default.items() if not on]
            yield f"| `{setting.name}` | all{' but ' + ', '.join(off) if off else ''} on | {setting.description} |"
            continue
        default = "" if setting.default in ("", {}, [], None) else f"`{json.dumps(setting.default).strip(chr(34))}`"
        choices = f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}." if setting.choices else ""
        yield f"| `{setting.name}` | {default} | {setting.description}{choices} |"


def versions_table() -> Iterator[str]:
    """A row for each part of `docs/versions.json`, as matrix.py has written it."""
    yield "| server's Python | your Python | your torch | tests passed | seen |"
    yield "|---|---|---|---|---|"
    for part in sorted(json.loads(VERSIONS.read_text(encoding="utf-8")).values(), key=lambda part: part["worker"]["torch"].split(".")):
        passed, all_of_them = part["passed"], part["passed"] + part["failed"]
        yield f"| {part['server']} | {part['worker']['python']} | {part['worker']['torch']} | {passed} of {all_of_them} | {part['date']} |"


def printed(command: str) -> str:
    """What a command of the README prints, run at the root of the project."""
    done = run(*command.split()[1:])
    assert not done.stderr
    return done.stdout


def with_tables(text: str) -> str:
    """The README with the tables of findings, settings and versions as they have to be."""
    for heading, rows in (("## Findings", codes_table()), ("## Settings", settings_table()), ("## Versions", versions_table())):
        before, after = text.split(f"{heading}\n", 1)
        after = re.sub(r"^\|.*\n(\|.*\n)*", lambda _, rows=rows: "".join(f"{row}\n" for row in rows), after, count=1, flags=re.MULTILINE)
        text = f"{before}{heading}\n{after}"
    return text


def test_the_tables_are_those_of_the_program() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_tables(text) == text


@pytest.mark.parametrize("command", [command for command, _ in BLOCK.findall(README.read_text(encoding="utf-8"))])
def test_a_console_block_is_what_the_command_prints(command: str) -> None:
    shown = dict(BLOCK.findall(README.read_text(encoding="utf-8")))
    assert printed(command) == shown[command]


def test_what_the_readme_points_to_is_there() -> None:
    text = README.read_text(encoding="utf-8")
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert links and not [target for target in links if not (ROOT / target).exists()]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)) <= targets


if __name__ == "__main__":
    written = with_tables(README.read_text(encoding="utf-8"))
    written = BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{printed(block[1])}```", written)
    README.write_text(written, encoding="utf-8")
