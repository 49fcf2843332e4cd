"""The README and the pages of docs/ say what is so: their tables are those of the program, their console blocks what the commands print.

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
from shapelens.report.rules import section

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
VERSIONS = ROOT / "docs" / "versions.json"
RULES = re.compile(r"(<!-- rules: .*? -->\n).*", re.DOTALL)
BLOCK = re.compile(r"```console\n\$ (shapelens [^\n]+)\n(.*?)```", re.DOTALL)


def codes_table() -> Iterator[str]:
    """A row for each code of a finding."""
    yield "| code | what is wrong | for example | severity |"
    yield "|---|---|---|---|"
    for code in CODES.values():
        yield f"| [`{code.name}`](#{code.name}) | {code.meaning} | {code.example} | {code.severity}{' (lint)' if code.lint else ''} |"


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


TABLES = {"The codes": codes_table, "Settings": settings_table, "Versions": versions_table}  # the first table below such a heading


def printed(command: str) -> str:
    """What a command of a page prints, run at the root of the project."""
    done = run(*command.split()[1:])
    assert not done.stderr
    return done.stdout


def with_tables(text: str) -> str:
    """A page with its tables of findings, settings and versions as they have to be, and with its sections of the codes."""
    for heading, rows in TABLES.items():
        if found := re.search(rf"^#+ {heading}\n", text, re.MULTILINE):
            before, after = text[: found.end()], text[found.end() :]
            written = "".join(f"{row}\n" for row in rows())
            text = before + re.sub(r"^\|.*\n(\|.*\n)*", lambda _, written=written: written, after, count=1, flags=re.MULTILINE)
    return RULES.sub(lambda head: f"{head[1]}\n" + "\n".join(map(section, CODES)), text)


def blocks() -> dict[str, str]:
    """What the pages say that commands print, by command."""
    return {command: output for page in PAGES for command, output in BLOCK.findall(page.read_text(encoding="utf-8"))}


def test_the_tables_are_those_of_the_program() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert [with_tables(text) for text in texts] == texts
    for once in (*(rf"^#+ {heading}$" for heading in TABLES), "^<!-- rules"):
        assert len(re.findall(once, "\n".join(texts), re.MULTILINE)) == 1, once


@pytest.mark.parametrize("command", blocks())
def test_a_console_block_is_what_the_command_prints(command: str) -> None:
    assert printed(command) == blocks()[command]


def test_all_pages_install_shapelens_the_same_way() -> None:
    """It is on no index: from a clone, or from the repository."""
    targets = (r"\.", r"'\.\[(torch|mcp)\]'", r"-r requirements\.txt( git\+https://github\.com/OWNER/shapelens)?", "…")
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "vscode-extension" / "README.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(rf"pip install (?!({'|'.join(targets)}|libcst)[`\s])", text), page
        assert not re.search(r"uvx (?!--from \. )", text), page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [target.partition("#") for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert links or page.name not in ("README.md", "findings.md")
    for target, _, anchor in links:
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)) <= targets


def test_both_readmes_show_the_picture_that_moves() -> None:
    picture = ROOT / "vscode-extension" / "images" / "fix.gif"
    content = picture.read_bytes()
    frames = content.count(b"\x21\xf9\x04")  # a control block stands before each
    assert content.startswith(b"GIF89a") and frames >= 5 and len(content) < 1_000_000
    for page in (ROOT / "README.md", picture.parent.parent / "README.md"):
        assert re.search(r"!\[[^\]]+\]\([^)]*images/fix\.gif\)", page.read_text(encoding="utf-8")), page


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    for page in PAGES:
        written = with_tables(page.read_text(encoding="utf-8"))
        page.write_text(BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{printed(block[1])}```", written), encoding="utf-8")
