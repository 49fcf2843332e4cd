"""An environment that does not work, or not all the time: one line says what is the matter, and once it works there are hints again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from interpreters import TORCH_PYTHON
from lsp.editor import COMMAND, PATIENCE, Editor
from time_limits import timeout

HINT = "→ [B, 10]"
FAILED = ("Traceback", "ShapeLens failed", "internal error")


async def shows(editor: Editor, uri: str) -> None:
    await editor.hints_when(uri, lambda hints: HINT in hints.values())


async def an_edit_works(editor: Editor, uri: str, recipe: str, broken: str) -> None:
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    editor.set_text(uri, recipe)
    await shows(editor, uri)


@pytest_asyncio.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Editor]:
    """An editor whose server is still to be started, of which no process and no failure of ours is left."""
    editor = Editor(tmp_path)
    yield editor
    server = psutil.Process(editor.pid)
    family = [server, *server.children(recursive=True)]
    assert await editor.stop() == 0
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert not [line for line in editor.log if any(word in line for word in FAILED)]


# By what the interpreter's start differs from one that works, and what is said.
ENVIRONMENTS = {
    "a bad PYTHONHOME": ("export PYTHONHOME=/nowhere", "ended at once (exit code 1): PYTHONHOME is '/nowhere', where there is no Python."),
    "torch raises": ("export PYTHONPATH={}/raises", "RuntimeError: operator does not exist. Repair it with"),
    "torch is half installed": ("export PYTHONPATH={}/half", "No module named 'torch._C'. Repair it with"),
    "torch ends the process": ("export PYTHONPATH={}/ends", "ended at once (exit code 3)."),
    "no python": ("exit 127", "is not a working Python interpreter."),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
async def test_an_environment_that_is_mended(alone: Editor, tmp_path: Path, recipe: str, broken: str, name: str) -> None:
    line, message = ENVIRONMENTS[name]
    torches = tmp_path / "torches"
    for kind, text in {"raises": "raise RuntimeError('operator does not exist')", "half": "from ._C import *", "ends": "exit(3)"}.items():
        (torches / kind / "torch").mkdir(parents=True)
        (torches / kind / "torch" / "__init__.py").write_text(text)
    python = tmp_path / "python"
    start = f'exec "{TORCH_PYTHON}" "$@"\n'
    python.write_text(f"#!/bin/sh\n{line.format(torches)}\n{start}")
    python.chmod(0o755)
    await alone.start("--interpreter", str(python), env={"SHAPELENS_CACHE_DIR": ""})
    uri = alone.open("net.py", recipe)
    await alone.until(lambda: bool(alone.shown))
    (said,) = alone.shown
    assert str(python) in said and message in said and "\n" not in said
    python.write_text(f"#!/bin/sh\n{start}")
    await alone.execute("shapelens.restartWorker")
    await shows(alone, uri)
    await an_edit_works(alone, uri, recipe, broken)


@pytest.mark.slow("workers start from nothing, again and again")
async def test_a_worker_that_ends_again_and_again_is_said_to_once(alone: Editor, recipe: str, broken: str) -> None:
    alone.answer = "Try again"
    await alone.start(env={"SHAPELENS_CACHE_DIR": ""}, initialization_options={"interpreter": TORCH_PYTHON, "settings": {}})
    uri = alone.open("net.py", recipe)
    killed: set[int] = set()

    def is_ready() -> bool:
        state = alone.statuses[-1].state if alone.statuses else ""
        return bool(alone.questions) or (state == "idle" and bool(set(alone.workers()) - killed))

    while not alone.questions:
        await alone.until(is_ready)
        for pid in set(alone.workers()) - killed:
            if not alone.questions:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        alone.set_text(uri, recipe)
    (question,) = alone.questions
    assert "has ended 5 times in a row: it was killed by SIGKILL" in question
    await shows(alone, uri)  # It was tried again, as the user wants it.
    await an_edit_works(alone, uri, recipe, broken)
    assert len(alone.questions) == 1


# What a shell does in a mount namespace of its own before the server starts there.
MACHINES = {
    "a disk that is full": 'mount -t tmpfs -o size=1m none "$TMPDIR" && head -c 2m /dev/zero > "$TMPDIR/full" 2> /dev/null; :',
    "a workspace that is read-only": 'mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind "$PWD"; cd "$PWD"',
    "a cache on a disk that is full": (
        'mount -t tmpfs -o size=64k none "$SHAPELENS_CACHE_DIR" && head -c 2m /dev/zero > "$SHAPELENS_CACHE_DIR/full" 2> /dev/null; :'
    ),
    "neither a home folder nor its name": "unset HOME XDG_CACHE_HOME SHAPELENS_CACHE_DIR; :",
}


def may_mount() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or not may_mount(), reason="nothing can be mounted here")
@pytest.mark.parametrize("name", MACHINES)
async def test_a_machine_in_which_nothing_can_be_written(alone: Editor, tmp_path: Path, recipe: str, broken: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as world:
        temporary, cache = Path(world, "tmp"), Path(world, "cache")
        temporary.mkdir()
        cache.mkdir()
        environment = {"TMPDIR": str(temporary), "SHAPELENS_CACHE_DIR": str(cache)}
        script = f'{MACHINES[name]} && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", script, "sh", *COMMAND, "--interpreter", TORCH_PYTHON]
        (tmp_path / "net.py").write_text(recipe)
        await alone.start_with(command, env=environment)
        uri = alone.open("net.py", recipe)
        await shows(alone, uri)
        await an_edit_works(alone, uri, recipe, broken)
        assert len([line for line in alone.log if "No space left" in line or "Read-only" in line]) <= 2
        assert [path.name for path in tmp_path.iterdir()] == ["net.py"]


async def test_files_of_the_future(alone: Editor, tmp_path: Path, recipe: str, broken: str) -> None:
    """What the files of a machine look like whose clock was set back by a day."""
    cache = tmp_path / "cache"
    workspace = tmp_path / "net.py"
    workspace.write_text(recipe)
    first = Editor(tmp_path)
    for editor in (first, alone):
        await editor.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_CACHE_DIR": str(cache)})
        uri = editor.open("net.py", recipe)
        await shows(editor, uri)
        await an_edit_works(editor, uri, recipe, broken)
        if editor is first:
            assert await editor.stop() == 0
            for path in [workspace, *cache.rglob("*")]:
                stat = path.stat()
                os.utime(path, (stat.st_atime + 86400, stat.st_mtime + 86400))
    workspace.write_text(broken)  # With a time before that of the text that was shown.
    alone.set_text(uri, broken)
    assert [each.code for each in await alone.diagnostics(uri)] == ["linear-in-features"]


@pytest.mark.slow("workers start from nothing, again and again")
async def test_processes_are_killed_at_each_step(alone: Editor, recipe: str, broken: str) -> None:
    """The worker as it starts, what it forks first, and what does a run: each as soon as it is there."""
    slow = recipe.replace("    def forward(self, x):\n", "    def forward(self, x):\n        threading.Event().wait(2)\n", 1)
    slow = slow.replace("import torch\n", "import threading\nimport torch\n", 1)
    assert slow.count("threading") == 2
    await alone.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_CACHE_DIR": ""})
    uri = alone.open("net.py", slow)

    async def family(least: int) -> list[psutil.Process]:
        """The worker and its processes, oldest first, once there are so many."""
        async with timeout(PATIENCE):
            while True:
                with contextlib.suppress(psutil.NoSuchProcess):
                    found = [psutil.Process(pid) for pid in alone.workers()]
                    found += [child for worker in found for child in worker.children(recursive=True)]
                    if len(found) >= least:
                        return sorted(found, key=lambda process: process.create_time())
                await asyncio.sleep(0.01)

    (await family(1))[0].kill()
    alone.set_text(uri, slow + "\n")
    await family(2)  # This edit has its run, in another process.
    for least in (2, 3):
        (await family(least))[-1].kill()
        alone.set_text(uri, slow + "\n" * (40 + least))
    alone.set_text(uri, recipe)
    await shows(alone, uri)
    await an_edit_works(alone, uri, recipe, broken)
