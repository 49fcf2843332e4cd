"""What ends or holds up a process while it loads the user's files or their libraries is gone as soon as the text is rid of it."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from shapelens.protocol import Cancel, Loading, Preload
from shapelens.worker.loading.definitions import Definitions
from shapelens.worker.sandbox.limits import TooLong, within
from worker.process import WorkerProcess, shapes

NET = """import os, resource, threading
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = self.fc(x)
        return y
"""
EXAMPLE = "Net()(f32[2, 8])"
LIBRARIES = {
    "exits": "import ctypes\nctypes.CDLL(None)._exit(3)\n",
    "crashes": "import ctypes\nctypes.string_at(0)\n",
    "loops": "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass\n",
}
ENDLESS = """

class Endless:
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """A worker whose interpreter has libraries that nobody can import."""
    folder = tmp_path_factory.mktemp("environment") / "site-packages"
    folder.mkdir()
    for name, text in LIBRARIES.items():
        (folder / f"{name}.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        worker = WorkerProcess()
    yield worker
    assert worker.close() == 0


def is_shown(worker: WorkerProcess, file: Path, text: str = NET) -> None:
    """A run of a text in which nothing is wrong shows what it should."""
    trace, finished = worker.run(file, text, EXAMPLE)
    assert (finished.outcome, finished.detail) == ("ok", "")
    assert trace is not None and trace.mismatches == [] and shapes(trace, "y") == [[[2, 4]]]


@pytest.mark.parametrize(("library", "outcome"), [("exits", "exit"), ("crashes", "crash")])
def test_a_library_that_ends_its_process(worker: WorkerProcess, tmp_path: Path, library: str, outcome: str) -> None:
    worker.send(Preload([library]))
    for text in (f"import {library}\n{NET}", f"import {library}\n{NET}\n"):
        _, finished = worker.run(tmp_path / "net.py", text, EXAMPLE)
        assert finished.outcome == outcome
        is_shown(worker, tmp_path / "other.py")
    is_shown(worker, tmp_path / "net.py")


def test_nothing_waits_for_a_library_that_it_does_not_import(worker: WorkerProcess, tmp_path: Path) -> None:
    worker.send(Preload(["loops"]))
    first = worker.start(tmp_path / "net.py", f"import loops\n{NET}", EXAMPLE)
    while not isinstance(worker.read(), Loading):
        pass
    began = time.monotonic()
    worker.send(Cancel(first))
    is_shown(worker, tmp_path / "net.py", f"# import loops\n{NET}")
    is_shown(worker, tmp_path / "other.py")
    assert time.monotonic() - began < 15


@pytest.mark.slow("what hangs lasts until its deadline")
def test_a_class_that_never_ends_is_a_finding_at_its_line(worker: WorkerProcess, tmp_path: Path) -> None:
    text = "import torch\n\nclass Endless:\n    a = 1\n    while True:\n        pass\n\n" + NET
    trace, finished = worker.run(tmp_path / "net.py", text, EXAMPLE)
    assert finished.outcome == "ok" and trace is not None and shapes(trace, "y") == [[[2, 4]]]
    (found,) = trace.mismatches
    assert (
        found.code == "definition" and found.span is not None and text.splitlines()[found.span.line - 1].strip() in ("while True:", "pass")
    )
    is_shown(worker, tmp_path / "net.py")


def test_an_edit_need_not_wait_for_the_end_of_what_it_removes(tmp_path: Path) -> None:
    worker = WorkerProcess()
    first = worker.start(tmp_path / "net.py", NET + ENDLESS, EXAMPLE)
    while not isinstance(worker.read(), Loading):
        pass
    began = time.monotonic()
    worker.send(Cancel(first))
    is_shown(worker, tmp_path / "net.py")
    assert time.monotonic() - began < 15
    assert worker.close() == 0


@pytest.mark.parametrize(
    "statement",
    [
        "os.write = os.read = os.pipe = os.fork = os.close = os.waitpid = None",
        "os._exit = lambda code: None",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))",
        "held = [os.dup(0) for _ in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 60)]",
        "os.open = os.dup = os.dup2 = None; time = None",
        "import json, signal; json.dumps = json.loads = signal.setitimer = None",
    ],
)
def test_what_user_code_does_to_python_is_no_trouble(tmp_path: Path, statement: str) -> None:
    worker = WorkerProcess()
    text = f"{NET}\n\nclass Patch:\n    {statement}\n"
    for edited in (text, text + "\n", text.replace("y = ", "\n        y = ")):
        is_shown(worker, tmp_path / "net.py", edited)
    is_shown(worker, tmp_path / "net.py")
    assert worker.close() == 0


def test_a_rehearsal_that_ends_its_process_is_not_tried_again(tmp_path: Path) -> None:
    """A run prints to a pipe, its rehearsal to nowhere."""
    worker = WorkerProcess()
    text = NET.replace("        y = ", '        if os.readlink("/proc/self/fd/1") == os.devnull: os._exit(3)\n        y = ')
    is_shown(worker, tmp_path / "net.py", text)
    is_shown(worker, tmp_path / "net.py", text)
    process, seen = psutil.Process(worker.process.pid), set()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        seen |= {each.pid for each in process.children(recursive=True)}
    assert len(seen) <= 8  # It was more than thirty a second.
    is_shown(worker, tmp_path / "net.py", text.replace("os._exit(3)", "pass"))
    assert worker.close() == 0


def threads(process: psutil.Process) -> int:
    """How many threads a process has; 0 where it has ended."""
    try:
        return process.num_threads()
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.parametrize("place", ["class Start:\n    {}\n", "def start():\n    {}\n\n\nSTARTED = start()\n"])
def test_a_thread_that_never_ends_takes_no_processor(tmp_path: Path, place: str) -> None:
    worker = WorkerProcess()
    spinning = "\n\ndef spin():\n    while True:\n        pass\n\n\n"
    text = NET + spinning + place.format("threading.Thread(target=spin, daemon=True).start()")
    text = text.replace("y = ", "STARTED\n        y = ") if "STARTED" in text else text
    is_shown(worker, tmp_path / "net.py", text)
    is_shown(worker, tmp_path / "net.py", text)
    process, end = psutil.Process(worker.process.pid), time.monotonic() + 30
    while spin_processes := [each for each in process.children(recursive=True) if threads(each) > 1]:
        assert time.monotonic() < end, spin_processes
        time.sleep(0.1)
    is_shown(worker, tmp_path / "net.py", text)
    is_shown(worker, tmp_path / "net.py")
    assert worker.close() == 0


def test_a_definition_is_not_to_blame_for_the_time_of_who_wants_it() -> None:
    # A trial whose time is nearly up comes to a class that has not been defined yet.
    failed: list[BaseException] = []
    definitions = Definitions(ModuleType("late"), "late.py", True, lambda node, error: failed.append(error))
    with pytest.raises(TooLong), within(0.02):
        definitions.run(ast.parse("class Late:\n    while True:\n        pass\n"))
    assert failed == []
