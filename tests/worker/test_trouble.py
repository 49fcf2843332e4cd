"""Whatever user code does, the worker says what happened in one line and is ready for the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from processes import family, send
from shapelens.protocol import Cancel, Finished, Output, Traced
from shapelens.worker.sandbox import kernel_boundary
from worker.process import WorkerProcess, shapes

NET = """
import ctypes, itertools, os, signal, socket, subprocess, sys
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        y = x + 1
        {}
        return y
"""


@pytest.mark.parametrize(
    ("line", "outcome", "detail"),
    [
        ("while True: pass", "deadline", "deadline of 1 s"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); exec('while True: pass')", "deadline", "deadline of 1 s"),
        ("sum(itertools.repeat(1))", "deadline", "deadline of 1 s"),
        ("ctypes.CDLL(None)._exit(4)", "exit", "exit code 4"),
        ("ctypes.string_at(0)", "crash", "SIGSEGV"),
        ("ctypes.CDLL(None).kill(os.getpid(), 9)", "crash", "SIGKILL"),
        ("bytearray(1 << 40)", "memory", "memory limit of 1024 MB"),
        ("torch.Tensor(1 << 38)", "memory", "memory limit of 1024 MB"),
        ("print('x' * 10_000_000)", "ok", ""),
    ],
)
def test_an_end_of_its_own(forking: WorkerProcess, tmp_path: Path, line: str, outcome: str, detail: str) -> None:
    _, finished = forking.run(tmp_path / "net.py", NET.format(line), "Net()(f32[2])", deadline=1.0, memory_limit=1 << 30)
    assert finished.outcome == outcome
    assert detail in finished.detail
    assert "\n" not in finished.detail
    assert len(forking.output) < 1_000_000
    trace, finished = forking.run(tmp_path / "net.py", NET.format("pass"), "Net()(f32[2])")
    assert finished.outcome == "ok"
    assert trace is not None
    assert shapes(trace, "y") == [[[2]]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sys.exit(3)", "sys.exit(3)"),
        ("os._exit(4)", "os._exit(4)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), 9)"),
        ("os.abort()", "os.abort()"),
    ],
)
def test_an_end_ends_its_example_only(forking: WorkerProcess, tmp_path: Path, line: str, said: str) -> None:
    trace, finished = forking.run(tmp_path / "net.py", NET.format(line), "Net()(f32[2])", "nn.Linear(2, 3)(f32[2])")
    assert finished.outcome == "ok" and trace is not None
    ended, other = trace.examples
    assert (ended.error_kind, ended.error) == ("exit", f"the file called {said}")
    assert ended.error_span is not None and ended.error_span.line == 9
    assert other.error is None
    assert shapes(trace, "y") == [[[2]]]


def test_what_was_seen_before_the_deadline_is_kept(forking: WorkerProcess, tmp_path: Path) -> None:
    trace, finished = forking.run(tmp_path / "net.py", NET.format("while True: pass"), "Net()(f32[2])", deadline=0.5)
    assert finished.outcome == "deadline"
    assert trace is not None
    assert shapes(trace, "y") == [[[2]]]
    assert trace.examples[0].error_kind == "deadline"
    assert trace.examples[0].error_span is not None
    assert trace.examples[0].error_span.line == 9


def test_what_was_suspended_has_its_time_afterwards(tmp_path: Path) -> None:
    """All processes stand still for longer than the deadline and all patience, as on a machine that sleeps."""
    worker = WorkerProcess()
    try:
        line = "threading.Event().wait(1); z = x * 2"
        text = "import threading\n" + NET.format(line)
        assert worker.run(tmp_path / "net.py", text, "Net()(f32[2])", deadline=2.0)[1].outcome == "ok"
        run_id = worker.start(tmp_path / "net.py", text + "\n\nA = 1\n", "Net()(f32[2])", deadline=2.0)
        threading.Event().wait(0.6)
        processes = family(worker.process.pid)
        send(signal.SIGSTOP, processes)
        threading.Event().wait(5)
        send(signal.SIGCONT, processes)
        trace, finished = worker.finish(run_id)
        assert finished.outcome == "ok" and trace is not None
        assert shapes(trace, "z") == [[[2]]]
    finally:
        worker.close()


@pytest.mark.parametrize("line", ["os.fork()", "socket.create_connection(('127.0.0.1', 9))", "os.kill(os.getppid(), signal.SIGKILL)"])
def test_what_user_code_may_not_do(forking: WorkerProcess, tmp_path: Path, line: str) -> None:
    trace, finished = forking.run(tmp_path / "net.py", NET.format(line), "Net()(f32[2])")
    assert finished.outcome == "ok"
    assert trace is not None
    error = str(trace.examples[0].error)
    assert error.startswith("PermissionError: ") and "ShapeLens: " in error


@pytest.mark.parametrize(
    "line",
    [
        "open('written.txt', 'w').write('x')",
        "os.remove(__file__)",
        "os.makedirs('folder/folder')",
        "subprocess.run(['touch', 'written.txt'], check=True)",
        "os.system('touch written.txt')",
    ],
)
def test_what_is_passed_over_in_silence(forking: WorkerProcess, tmp_path: Path, line: str) -> None:
    """Code that writes what it did somewhere need not fail for that."""
    file = tmp_path / "net.py"
    file.write_text("")
    trace, finished = forking.run(file, NET.format(line), "Net()(f32[2])")
    assert finished.outcome == "ok"
    assert trace is not None
    assert trace.examples[0].error is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.py"]


def test_a_message_of_torch_has_no_traceback_of_its_own_code(forking: WorkerProcess, tmp_path: Path) -> None:
    trace, _ = forking.run(tmp_path / "net.py", NET.format("torch.empty((2, 10**30))"), "Net()(f32[2])")
    assert trace is not None
    (found,) = trace.mismatches
    assert found.message.endswith('with error "Overflow when unpacking long long"')


@pytest.mark.skipif(not kernel_boundary.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize(
    "line",
    [
        "sqlite3.connect('HERE/made.db').execute('create table t (x)')",
        "ctypes.CDLL(None).creat(b'HERE/made.txt', 0o644)",
        "ctypes.CDLL(None).unlink(__file__.encode())",
        "ctypes.CDLL(None).rename(__file__.encode(), b'HERE/moved.py')",
        "ctypes.CDLL(None).truncate(__file__.encode(), 0)",
        "ctypes.CDLL(None).mkdir(b'HERE/made', 0o755)",
        "os.mkfifo('HERE/made')",
    ],
)
def test_the_kernel_holds_what_no_audit_hook_sees(forking: WorkerProcess, tmp_path: Path, line: str) -> None:
    file = tmp_path / "net.py"
    text = NET.format(line.replace("HERE", str(tmp_path))).replace("import ", "import ctypes, sqlite3, ", 1)
    file.write_text(text)
    trace, finished = forking.run(file, text, "Net()(f32[2])")
    assert finished.outcome == "ok" and trace is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.py"]
    assert file.read_text() == text


def test_a_run_can_be_cancelled(forking: WorkerProcess, tmp_path: Path) -> None:
    first = forking.start(tmp_path / "net.py", NET.format("while True: pass"), "Net()(f32[2])", deadline=60.0)
    forking.send(Cancel(first))
    assert forking.finish(first)[1].outcome == "cancelled"


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    worker = WorkerProcess()
    run = worker.start(
        tmp_path / "net.py", NET.format("print(os.getpid(), flush=True)\n        while True: pass"), "Net()(f32[2])", deadline=60.0
    )
    while not worker.output.strip():
        message = worker.read()
        assert not isinstance(message, (Traced, Finished))
        worker.output += message.text if isinstance(message, Output) else ""
    child = int(worker.output)
    os.kill(child, 0)
    assert worker.close() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert run == 1


def test_without_fork_a_hang_ends_the_process_and_says_so(tmp_path: Path) -> None:
    worker = WorkerProcess("--no-fork")
    assert not worker.hello.fork
    line = "__import__('_signal').pthread_sigmask(0, [signal.SIGALRM]); exec('while True: pass')"
    _, finished = worker.run(tmp_path / "net.py", NET.format(line), "Net()(f32[2])", deadline=0.5)
    assert finished.outcome == "deadline"
    assert worker.process.wait(20) != 0
    worker.process.stdout.close()
    worker.process.stdin.close()


def test_a_bad_frame_ends_the_worker(tmp_path: Path) -> None:
    worker = WorkerProcess()
    assert worker.process.stdin is not None
    worker.process.stdin.write(b"\0\0\0\x02{}")
    worker.process.stdin.flush()
    assert worker.read() is None
    assert worker.close() != 0


def test_the_child_has_signals_of_its_own(forking: WorkerProcess, tmp_path: Path) -> None:
    """SIGINT of the editor's terminal must not reach the worker's children: they lead sessions of their own."""
    text = NET.format("print(os.getsid(0) == os.getpid())")
    forking.run(tmp_path / "net.py", text, "Net()(f32[2])")
    assert forking.output.strip() == "True"
    assert signal.getsignal(signal.SIGINT) is not None


def test_scratch_folders_go_with_their_runs(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = Path(tempfile.gettempdir()) / f"shapelens-scratch-{ended.pid}-left"
    left.mkdir()
    for arguments in ([], ["--no-fork"]):
        worker = WorkerProcess(*arguments)
        text = NET.format("import tempfile; open(tempfile.mkstemp()[1], 'w').write('x'); print(tempfile.gettempdir())")
        assert worker.run(tmp_path / "net.py", text, "Net()(f32[2])")[1].outcome == "ok"
        folder = Path(worker.output.strip())
        assert "scratch" in folder.parent.name
        assert worker.close() == 0
        assert not folder.parent.exists()
    assert not left.exists(), "what a killed worker left"
