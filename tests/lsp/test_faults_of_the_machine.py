"""Faults of the machine around the server: processes that are killed or stopped, folders that are not there, texts and files that nobody
expects. Each time one line says it at most, and the next edit has its hints.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor
from processes import family, send

FAILED = re.compile(r"Traceback|ShapeLens failed|internal error", re.IGNORECASE)
HINT = "→ [B, 10]"
TEXTS = {
    "many lines": "x = 1\n" * 50_000,
    "a long line": "x = '" + "a" * (1 << 20) + "'\n",
    "NUL": "x = 1\0\n",
    "mixed line ends": "x = 1\r\ny = 2\rz = 3\n\r\n",
    "nested": "x = " + "[" * 50_000 + "]" * 50_000 + "\n",
    "nothing": "",
    "only a byte order mark": "\ufeff",
}


async def shows(editor: Editor, uri: str) -> None:
    await editor.hints_when(uri, lambda hints: HINT in hints.values())


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_that_nobody_expects(editor: Editor, recipe: str, name: str) -> None:
    said = len(editor.log)
    uri = editor.open(f"faults/{name.replace(' ', '_')}.py", TEXTS[name])
    await editor.diagnostics(uri)
    editor.set_text(uri, TEXTS[name] + recipe)
    await editor.diagnostics(uri)
    editor.set_text(uri, recipe)
    await shows(editor, uri)
    assert await editor.diagnostics(uri) == []
    assert not [line for line in editor.log[said:] if FAILED.search(line)]


WORLDS = ["no home", "no folder for temporary files", "no cache", "garbage in the cache", "nested settings", "settings without measure"]


@pytest.mark.parametrize("world", WORLDS)
async def test_a_world_without(tmp_path: Path, recipe: str, broken: str, world: str) -> None:
    workspace, cache = tmp_path / "workspace", tmp_path / "cache"
    workspace.mkdir()
    environment = {"SHAPELENS_CACHE_DIR": str(cache)}
    if world == "no home":
        environment = {"HOME": str(tmp_path / "none"), "XDG_CACHE_HOME": ""}
    elif world == "no folder for temporary files":
        environment["TMPDIR"] = str(tmp_path / "none")
    elif world == "no cache":
        cache.write_text("not a folder")
    elif world == "nested settings":
        (workspace / "pyproject.toml").write_text("[tool.shapelens]\nignore = " + "[" * 50_000 + "]" * 50_000)
    elif world == "settings without measure":
        (workspace / "pyproject.toml").write_text("[tool.shapelens]\ndeadline = 1e308\nmemory-limit = 1e300\n")
    elif world == "garbage in the cache":
        first = Editor(workspace)
        await first.start("--interpreter", TORCH_PYTHON, env=environment)
        await shows(first, first.open("net.py", recipe))
        assert await first.stop() == 0
        for file in [path for path in cache.rglob("*") if path.is_file()]:
            file.write_bytes(os.urandom(1000))
    editor = Editor(workspace)
    await editor.start("--interpreter", TORCH_PYTHON, env=environment)
    uri = editor.open("net.py", recipe)
    await shows(editor, uri)
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    editor.set_text(uri, recipe)
    await shows(editor, uri)
    assert await editor.stop() == 0
    assert not [line for line in editor.log if FAILED.search(line)]
    if "settings" in world:
        assert sum("pyproject.toml" in line for line in editor.log) in (1, 2), [line for line in editor.log if "pyproject" in line]


@pytest.mark.parametrize("which", ["youngest", "oldest", "all"])
async def test_processes_of_the_worker_are_killed(editor: Editor, recipe: str, broken: str, which: str) -> None:
    uri = editor.open(f"faults/killed_{which}.py", recipe)
    await shows(editor, uri)
    (worker,) = editor.workers()
    below = sorted(family(worker)[1:], key=lambda process: process.create_time())
    killed = {"youngest": below[-1:], "oldest": below[:1], "all": below}[which]
    send(signal.SIGKILL, killed)
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    editor.set_text(uri, recipe)
    await shows(editor, uri)
    assert editor.workers() == [worker], "the process that holds the pipes has lived on"
    assert killed and not psutil.wait_procs(killed, timeout=5)[1]


async def test_an_interpreter_that_is_replaced_while_it_runs(tmp_path: Path, recipe: str, broken: str) -> None:
    python = tmp_path / "python"
    working = f'#!/bin/sh\nexec "{TORCH_PYTHON}" "$@"\n'
    python.write_text(working)
    python.chmod(0o755)
    editor = Editor(tmp_path)
    await editor.start("--interpreter", str(python), env={"SHAPELENS_CACHE_DIR": ""})
    uri = editor.open("net.py", recipe)
    await shows(editor, uri)
    python.unlink()
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    (worker,) = editor.workers()
    os.kill(worker, signal.SIGKILL)
    await editor.until(lambda: any(str(python) in line for line in editor.log))
    python.write_text(working)
    python.chmod(0o755)
    await editor.execute("shapelens.restartWorker")
    editor.set_text(uri, recipe)
    await shows(editor, uri)
    assert await editor.stop() == 0
    assert not [line for line in editor.log if FAILED.search(line)]


async def test_a_suspended_machine_wakes(editor: Editor, recipe: str, broken: str) -> None:
    uri = editor.open("faults/suspended.py", recipe)
    await shows(editor, uri)
    (worker,) = editor.workers()
    processes = family(worker)
    send(signal.SIGSTOP, processes)
    editor.set_text(uri, broken)
    send(signal.SIGCONT, reversed(processes))
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    editor.set_text(uri, recipe)
    await shows(editor, uri)


@pytest.mark.parametrize("who", ["all", "server", "worker"])
@pytest.mark.slow("sleeps as a machine does")
async def test_a_run_outlives_that_its_machine_sleeps(tmp_path: Path, recipe: str, who: str) -> None:
    """For longer than its deadline, and than anybody's patience: no code is blamed for that, and each line has its hint."""
    editor = Editor(tmp_path)
    editor.settings = {"deadline": 1.5}
    options, environment = {"settings": editor.settings}, {"SHAPELENS_TIMEOUTS": "worker_grace=1"}
    await editor.start("--interpreter", TORCH_PYTHON, initialization_options=options, env=environment)
    uri = editor.open("net.py", recipe)
    await shows(editor, uri)
    slow = recipe.replace("    def forward(self, x):\n", "    def forward(self, x):\n        threading.Event().wait(0.4)\n", 1)
    editor.set_text(uri, slow.replace("import torch\n", "import threading\nimport torch\n", 1).replace("10)", "11)"))
    await asyncio.sleep(0.5)
    server, *below = family(editor.pid)
    stopped = {"all": [server, *below], "server": [server], "worker": below}[who]
    send(signal.SIGSTOP, stopped)
    await asyncio.sleep(4)  # than the deadline and `worker_grace`, and than anybody waits for a run to end that was cancelled
    send(signal.SIGCONT, reversed(stopped))  # Some have ended: a worker that does not answer is replaced.
    await editor.hints_when(uri, lambda hints: any(each.endswith(", 11]") for each in hints.values()))
    assert await editor.diagnostics(uri) == []
    assert "deadline" not in {each.code for said in editor.publications for each in said.diagnostics}
    assert await editor.stop() == 0


@pytest.mark.parametrize("what", ["deleted", "a folder", "another text", "unreadable bytes"])
async def test_a_file_changes_on_disk_under_an_open_document(editor: Editor, recipe: str, broken: str, what: str) -> None:
    helper, path = editor.root / "faults" / f"helper_{what.split()[-1]}.py", editor.root / "faults" / f"user_{what.split()[-1]}.py"
    helper.parent.mkdir(exist_ok=True)
    helper.write_text("SIZE = 10\n")
    text = recipe.replace("import torch\n", f"import torch\nfrom {helper.stem} import SIZE\n", 1)
    path.write_text(text)
    uri = editor.open(f"faults/{path.name}", text)
    await shows(editor, uri)
    for file in (helper, path):
        file.unlink()
        if what == "a folder":
            file.mkdir()
        elif what == "another text":
            file.write_text("SIZE = 11\n")
        elif what == "unreadable bytes":
            file.write_bytes(b"\xff\xfe\0\0")
    editor.set_text(uri, recipe)
    await shows(editor, uri)
    assert await editor.diagnostics(uri) == []
    for file in (helper, path):
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)
    helper.write_text("SIZE = 10\n")
    editor.set_text(uri, text)
    await shows(editor, uri)
