"""Libraries that are imported ahead of the runs are held to what a run may do, whether Python or C code of theirs tries otherwise."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapelens.protocol import Preload
from shapelens.worker.sandbox import kernel_boundary, system_calls
from worker.process import WorkerProcess, shapes

IS_HELD = kernel_boundary.version() >= 6 and system_calls.is_known()
NET = """import {}
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        y = x.sum(-1)
        print({}, flush=True)
        return y
"""
# Each notes what it could do, and is imported well.
TRIES = """import os, socket
home = os.path.expanduser("~")
done = []

def attempt(act):
    try:
        act()
    except OSError as error:
        return
    done.append(act.__name__)

def write():
    os.close(os.open(os.path.join(home, "written"), os.O_CREAT | os.O_WRONLY))

def folder():
    os.mkdir(os.path.join(home, "folder"))
    os.stat(os.path.join(home, "folder"))

def connect():
    socket.create_connection(("127.0.0.1", PORT)).close()

def start():
    os.system("touch ~/started")

for each in (write, folder, connect, start):
    attempt(each)
"""
BY_C = """import os, ctypes, sys
C = ctypes.CDLL(None)
home = os.path.expanduser("~").encode()
address = (2).to_bytes(2, sys.byteorder) + (PORT).to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
names = ["write", "folder", "connect", "start", "signal"]
answers = [C.open(home + b"/c", os.O_CREAT | os.O_WRONLY, 0o600), C.mkdir(home + b"/cfolder", 0o700),
           C.connect(C.socket(2, 1, 0), address, 16), C.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"/bin/true", None)),
           C.kill(os.getppid(), 0)]
done = [name for name, answer in zip(names, answers) if answer >= 0]
"""
CACHES = """import os, tempfile
folder = os.path.join(os.environ["MPLCONFIGDIR"], "fonts")
os.makedirs(folder)
with open(os.path.join(folder, "list"), "w") as file:
    file.write("kept")
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
done = [open(os.path.join(folder, "list")).read()]
"""
WRITES = """import os, shutil
from pathlib import Path
folder = os.path.join(os.path.expanduser("~"), ".needed")
os.makedirs(folder)
with open(os.path.join(folder, "settings"), "w") as file:
    file.write("x")
Path(folder, "more").mkdir(parents=True)
shutil.rmtree(folder)
done = ["imported"]
"""
# As Lightning does, to know what a model is compiled with.
CAPTURES = """import os, torch
def captured(model, original=torch.compile, **settings):
    return original(model, **settings)
torch.compile = captured
done = [os.getpid()]
"""
DEMANDS = """import socket
socket.create_connection(("127.0.0.1", PORT))
done = ["imported"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


@pytest.fixture
def worker(tmp_path: Path, home: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcess]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name, text in {"tries": TRIES, "by_c": BY_C, "caches": CACHES, "writes": WRITES, "captures": CAPTURES, "demands": DEMANDS}.items():
        (folder / f"{name}.py").write_text(text.replace("PORT", str(listener.getsockname()[1])))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("HOME", str(home))
    worker = WorkerProcess()
    yield worker
    assert worker.close() == 0


def done(worker: WorkerProcess, folder: Path, library: str, *allowed: str, **options: str) -> str:
    """What a library could do while it was imported ahead of a run."""
    worker.send(Preload([library], list(allowed)))
    text = NET.format(library, f"'ahead', {library}.done")
    trace, finished = worker.run(folder / "net.py", text, "Net()(f32[2, 8])", allow=list(allowed), **options)
    assert (finished.outcome, finished.detail) == ("ok", "") and trace is not None
    assert shapes(trace, "y") == [[[2]]]
    return worker.output.strip().splitlines()[-1]


@pytest.mark.parametrize("library", ["tries", pytest.param("by_c", marks=pytest.mark.skipif(not IS_HELD, reason="no Landlock here"))])
def test_nothing_is_written_nor_reached(worker: WorkerProcess, tmp_path: Path, home: Path, listener: socket.socket, library: str) -> None:
    assert done(worker, tmp_path, library) == "ahead []"
    assert list(home.iterdir()) == []
    with pytest.raises(TimeoutError):
        listener.accept()


def test_what_is_allowed_is_done_and_nothing_else(worker: WorkerProcess, tmp_path: Path, home: Path) -> None:
    assert done(worker, tmp_path, "tries", "network") == "ahead ['connect']"
    assert done(worker, tmp_path, "tries", str(home)) == "ahead ['write', 'folder']", "another import within other bounds"
    for each in (home / "folder").parent.iterdir():
        each.rmdir() if each.is_dir() else each.unlink()
    assert done(worker, tmp_path, "tries") == "ahead []"


def test_a_cache_of_its_own_is_kept_elsewhere(worker: WorkerProcess, tmp_path: Path, home: Path) -> None:
    assert done(worker, tmp_path, "caches") == "ahead ['kept']"
    assert list(home.iterdir()) == []


def test_a_library_that_takes_it_for_granted_that_it_may_write(worker: WorkerProcess, tmp_path: Path, home: Path) -> None:
    assert done(worker, tmp_path, "writes") == "ahead ['imported']"
    assert list(home.iterdir()) == []


def test_a_library_that_insists_is_named_at_its_line(worker: WorkerProcess, tmp_path: Path, home: Path) -> None:
    worker.send(Preload(["demands"]))
    trace, _ = worker.run(tmp_path / "net.py", NET.format("demands", "'ran'"), "Net()(f32[2, 8])")
    assert trace is not None and shapes(trace, "y") == [[[2]]]
    (note,) = trace.notes
    assert (note.code, note.span and note.span.line) == ("missing-import", 1)
    assert note.message == "PermissionError: ShapeLens: the network is not available while a model is looked at"
    assert done(worker, tmp_path, "demands", "network") == "ahead ['imported']"


def test_libraries_are_compiled_for_the_next_start(worker: WorkerProcess, tmp_path: Path) -> None:
    assert done(worker, tmp_path, "caches") == "ahead ['kept']"
    compiled = Path(importlib.util.cache_from_source(str(tmp_path / "site-packages" / "caches.py")))
    end = time.monotonic() + 30
    while not compiled.exists() and time.monotonic() < end:
        threading.Event().wait(0.05)
    assert compiled.exists()


def test_a_library_that_patches_what_runs_replace_is_imported_once(worker: WorkerProcess, tmp_path: Path) -> None:
    imported_by = {done(worker, tmp_path, "captures", root=str(tmp_path / name)) for name in ("one", "other")}
    assert len(imported_by) == 1, "each workspace folder's process has imported it anew"
