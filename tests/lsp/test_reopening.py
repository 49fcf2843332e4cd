"""A file that is as it was when it last ran is shown at once by the next server, before its worker has said a word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor
from lsp.test_found_examples import TWO_SIZES, lenses_when, titles, without_directive

PYTHON = """#!/bin/sh
[ -e "$(dirname "$0")/hold" ] && exec sleep 600
exec {python} "$@"
"""
LAYERS = """\
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(x)
"""
MODEL = """\
from torch import nn

from layers import Block


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)
"""


class Place:
    """A workspace, a cache, and an interpreter that can be made to hang at its start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "env").mkdir()
        (folder / "workspace").mkdir()
        self.python = folder / "env" / "python"
        self.python.write_text(PYTHON.format(python=TORCH_PYTHON))
        self.python.chmod(0o755)
        self.cache = folder / "cache"

    def kept(self) -> list[Path]:
        """The entries of the cache."""
        return list(self.cache.glob("*/*"))

    async def editor(self, *, torch: bool, timeouts: str = "") -> Editor:
        """An editor with a server of its own; without `torch` its worker never answers. timeouts: as in SHAPELENS_TIMEOUTS."""
        hold = self.folder / "env" / "hold"
        hold.unlink(missing_ok=True) if torch else hold.touch()
        editor = Editor(self.folder / "workspace")
        editor.settings = {}  # Settings that come later have nothing kept.
        await editor.start("--interpreter", str(self.python), env={"SHAPELENS_CACHE_DIR": str(self.cache), "SHAPELENS_TIMEOUTS": timeouts})
        return editor


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.core
async def test_an_unchanged_file_has_its_hints_and_findings_without_a_worker(place: Place, broken: str) -> None:
    first = await place.editor(torch=True)
    uri = first.open("net.py", broken)
    hints = await first.hints_when(uri)
    [finding] = await first.diagnostics(uri)
    assert await first.actions(uri, finding), "these come when the run is over"
    findings = first.published[uri].diagnostics
    assert await first.stop() == 0
    second = await place.editor(torch=False)
    assert second.open("net.py", broken) == uri
    assert await second.hints_when(uri) == hints
    assert second.publications[0].diagnostics == findings, "with their fixes"
    assert [each.message for each in await second.diagnostics(uri)] == [finding.message]
    assert await second.stop() == 0


async def test_an_example_that_was_found_or_chosen_is_still_there(place: Place) -> None:
    first = await place.editor(torch=True)
    uri = first.open("stem.py", TWO_SIZES)
    await lenses_when(first, uri, "from test_small()")
    await first.idle(reopened=False)  # The other examples come last.
    await first.execute("shapelens.useExample", uri, "Stem", "Stem()(f32[B:2, 3, 48, 48])")
    shown = titles(await lenses_when(first, uri, "from test_large()"))
    assert await first.execute("shapelens.tryExample", uri, "Stem", "Stem()(f32[1, 3, 8, 8])"), "this waits for the end of the run"
    assert await first.stop() == 0
    second = await place.editor(torch=False)
    second.open("stem.py", TWO_SIZES)
    assert titles(await lenses_when(second, uri, "from test_large()")) == shown
    assert await second.stop() == 0


PATCHES = """\
import torch.nn.functional as F
from torch import nn


class Narrow(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight[:3], self.bias[:3])


nn.Linear = Narrow


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(x)
"""
SIBLING = PATCHES.replace("nn.Linear = Narrow\n", "").replace("class Narrow", "class Unused")


async def test_a_patch_of_torch_shows_in_its_own_file_only_now_and_later(place: Place) -> None:
    first = await place.editor(torch=True)
    for name, text in (("patching.py", PATCHES), ("sibling.py", SIBLING)):
        (first.root / name).write_text(text)  # Both are there before one is run: a file that comes has all loaded anew.
    patching = first.open("patching.py", PATCHES)
    assert "→ [B, 3]" in (await first.hints_when(patching)).values()
    sibling = first.open("sibling.py", SIBLING)
    shown = await first.hints_when(sibling, lambda hints: "→ [B, 4]" in hints.values())
    first.replace(patching, "nn.Linear = Narrow\n", "")
    await first.hints_when(patching, lambda hints: "→ [B, 4]" in hints.values())
    await first.idle(reopened=False)
    assert await first.execute("shapelens.tryExample", sibling, "Net", "Net()(f32[1, 8])"), "this waits for the end of the run"
    assert await first.stop() == 0
    second = await place.editor(torch=True)
    second.open("sibling.py", SIBLING)
    await second.hints_when(sibling, lambda hints: hints == shown)
    second.open("patching.py", PATCHES)
    await second.hints_when(patching, lambda hints: "→ [B, 3]" in hints.values())
    assert await second.stop() == 0


SHORT = "search=0.8 program=0.8 patient=5"  # instead of 3, 3 and 10 seconds

BUSY = """\
import os

import torch

x = torch.ones(2, 3)
y = torch.ones(3, max(len(str(i)) for i in range(10**9 if os.path.exists({busy!r}) else 20)))
"""


@pytest.mark.slow("a program lasts until its deadline, then longer")
async def test_a_program_that_was_short_of_time_is_shown_and_run_again(place: Place) -> None:
    """The first time the machine is busy; what is seen when it is not stays."""
    busy = place.folder / "busy"
    busy.touch()
    text = BUSY.format(busy=str(busy))
    first = await place.editor(torch=True, timeouts=SHORT)
    (first.root / "busy.py").write_text(text)
    uri = first.open("busy.py", text)
    shown = await first.hints_when(uri, lambda hints: 4 in hints)
    assert "→ [2, 3]" in shown[4] and "→ [3, 2]" not in shown.values()
    while len(place.kept()) < 3:  # the interpreter, the greeting, the program, which is being followed for longer now
        await asyncio.sleep(0.1)
    assert await first.stop() == 0
    busy.unlink()
    second = await place.editor(torch=True, timeouts=SHORT)
    second.open("busy.py", text)
    await second.hints_when(uri, lambda hints: "→ [3, 2]" in hints.values())
    assert await second.stop() == 0
    third = await place.editor(torch=False, timeouts=SHORT)
    third.open("busy.py", text)
    await third.hints_when(uri, lambda hints: "→ [3, 2]" in hints.values())
    assert await third.stop() == 0


SLOW = """\
import time

import torch

x = torch.ones(2, 3)
start = time.process_time()
y = torch.ones(3, max(2 for _ in iter(lambda: time.process_time() - start > 1.2, True)))
"""


@pytest.mark.slow("a program lasts until its deadline, then longer")
async def test_a_program_that_is_short_of_time_has_more_of_it_then(place: Place) -> None:
    """What is seen at once is shown at once; after an edit nothing of the rest is lost."""
    editor = await place.editor(torch=True, timeouts=SHORT)
    (editor.root / "slow.py").write_text(SLOW)
    uri = editor.open("slow.py", SLOW)
    shown = await editor.hints_when(uri, lambda hints: 4 in hints)
    assert "→ [2, 3]" in shown[4] and "→ [3, 2]" not in shown.values()
    await editor.hints_when(uri, lambda hints: "→ [3, 2]" in hints.values())
    editor.replace(uri, "ones(2, 3)", "ones(2, 5)")
    shown = await editor.hints_when(uri, lambda hints: "→ [2, 5]" in hints.values())
    assert "→ [3, 2]" in shown.values()
    assert await editor.stop() == 0


LONG = """\
import time

from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        start = time.process_time()
        while time.process_time() - start < 0.7:
            pass
        return self.fc(x)
"""


@pytest.mark.slow("a search lasts until its deadline, then longer")
async def test_a_search_that_was_cut_short_has_more_time_then(place: Place) -> None:
    """What it finds is kept as well."""
    first = await place.editor(torch=True, timeouts=SHORT)
    (first.root / "long.py").write_text(LONG)
    uri = first.open("long.py", LONG)
    await first.hints_when(uri, lambda hints: "→ [B, 4]" in hints.values())
    while len(place.kept()) < 3:  # the interpreter, the greeting, and what the longer search came to, once its run has ended
        await asyncio.sleep(0.1)
    assert await first.stop() == 0
    second = await place.editor(torch=False, timeouts=SHORT)
    second.open("long.py", LONG)
    await second.hints_when(uri, lambda hints: "→ [B, 4]" in hints.values())
    assert await second.stop() == 0


async def test_a_changed_import_runs_again(place: Place) -> None:
    first = await place.editor(torch=True)
    (first.root / "layers.py").write_text(LAYERS)
    uri = first.open("net.py", MODEL)
    assert "→ [B, 4]" in (await first.hints_when(uri)).values()
    assert await first.execute("shapelens.tryExample", uri, "Net", "Net()(f32[1, 8])"), "this waits for the end of the run"
    assert await first.stop() == 0
    (first.root / "layers.py").write_text(LAYERS.replace("4", "5"))
    second = await place.editor(torch=True)
    second.open("net.py", MODEL)
    assert "→ [B, 5]" in (await second.hints_when(uri)).values()
    assert await second.stop() == 0


async def test_what_is_typed_is_kept_once_it_is_saved(place: Place, broken: str) -> None:
    editor = await place.editor(torch=True)
    uri = editor.open("net.py", broken, saved=False)
    for typed in ("6 * 6", "7 * 7", "8 * 8"):
        if typed != "6 * 6":
            editor.replace(uri, "16 * 6 * 6" if typed == "7 * 7" else "16 * 7 * 7", f"16 * {typed}")
        [finding] = await editor.diagnostics(uri)
        assert await editor.actions(uri, finding)
    before = len(place.kept())
    assert before <= 2, "only what Python the interpreter is, and how the client was greeted"
    shown = len(editor.publications)
    editor.save(uri)
    await editor.until(lambda: len(editor.publications) > shown)
    assert await editor.actions(uri, finding)
    assert await editor.stop() == 0
    assert len(place.kept()) > before
    second = await place.editor(torch=False)
    second.open("net.py", editor.texts[uri])
    assert [each.message for each in await second.diagnostics(uri)] == [finding.message]
    assert "in_features" in finding.message and await second.hints(uri)
    assert await second.stop() == 0


async def test_no_cache_no_files(place: Place, recipe: str) -> None:
    editor = Editor(place.folder / "workspace")
    (editor.root / "pyproject.toml").write_text("[tool.shapelens]\ncache = false\n")
    await editor.start("--interpreter", str(place.python), env={"SHAPELENS_CACHE_DIR": str(place.cache)})
    await editor.hints_when(editor.open("net.py", without_directive(recipe)))
    assert await editor.stop() == 0
    assert len(place.kept()) <= 2, "only what Python the interpreter is, and how the client was greeted"
