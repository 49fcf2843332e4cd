"""The boundary attacked on purpose, mostly from C code that no audit hook sees: what the kernel holds where it can."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from shapelens.protocol import Output
from shapelens.runner.process import _kill_group
from shapelens.worker.sandbox import kernel_boundary, system_calls
from shapelens.worker.sandbox.allowed_acts import AllowedActs
from worker.process import WorkerProcess

NET = """
import ctypes, os, sys
import torch
from torch import nn

C = ctypes.CDLL(None, use_errno=True)

class Net(nn.Module):
    def forward(self, x):
        {}
        return x
"""
IS_HELD = kernel_boundary.version() >= 6 and system_calls.is_known()
needs_kernel = pytest.mark.skipif(not IS_HELD, reason="this kernel has no Landlock of version 6, or the machine is another one")


def printed(worker: WorkerProcess, file: Path, line: str, *allowed: str) -> str:
    """What a line prints in a run that ends well, with what is allowed."""
    text = NET.format(line)
    file.write_text(text)
    trace, finished = worker.run(file, text, "Net()(f32[2])", allow=list(allowed))
    assert finished.outcome == "ok" and trace is not None
    assert trace.examples[0].error is None
    return worker.output.strip().splitlines()[-1] if worker.output.strip() else ""


@needs_kernel
@pytest.mark.parametrize(
    "call",
    [
        "C.fork()",
        "C.vfork()",
        "C.ptrace(16, os.getppid(), None, None)",
        "C.kill(os.getppid(), 0)",
        "C.kill(os.getppid(), 9)",
        "C.setsid()",
        "C.execv(b'/bin/true', (ctypes.c_char_p * 2)(b'/bin/true', None))",
        "C.process_vm_readv(os.getppid(), None, 0, None, 0, 0)",
        "C.unshare(0x10000000)",
        "C.syscall(425, 8, None)",
        "C.listen(C.socket(2, 1, 0), 5)",
        "C.mount(b'none', b'/mnt', b'tmpfs', 0, None)",
        "C.open(b'/proc/%d/mem' % os.getppid(), 0)",
    ],
)
def test_refused_by_the_kernel(forking: WorkerProcess, tmp_path: Path, call: str) -> None:
    assert printed(forking, tmp_path / "net.py", f"print({call}, flush=True)") == "-1"


@needs_kernel
def test_no_program_is_started_by_c_code(forking: WorkerProcess, tmp_path: Path) -> None:
    printed(forking, tmp_path / "net.py", f"C.system(b'touch {tmp_path}/made'); C.popen(b'touch {tmp_path}/made', b'r')")
    assert [path.name for path in tmp_path.iterdir()] == ["net.py"]


@needs_kernel
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_nothing_reaches_a_listener(forking: WorkerProcess, tmp_path: Path, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as listener:
        listener.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            listener.listen()
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        address = f"(2).to_bytes(2, sys.byteorder) + ({port}).to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8)"
        line = f"s = C.socket(2, {int(kind)}, 0); print(C.connect(s, {address}, 16), C.sendto(s, b'x', 1, 0, {address}, 16), flush=True)"
        assert printed(forking, tmp_path / "net.py", line) == "-1 -1"
        with pytest.raises(TimeoutError):
            listener.accept() if kind is socket.SOCK_STREAM else listener.recv(1)


@needs_kernel
def test_attributes_of_files_stay(forking: WorkerProcess, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("")
    before = file.stat().st_mode
    assert printed(forking, file, "print(C.chmod(__file__.encode(), 0o777), flush=True)") == "0"
    assert file.stat().st_mode == before


def test_threads_and_libraries_go_on(forking: WorkerProcess, tmp_path: Path) -> None:
    line = (
        "import threading, socket, tempfile, shutil; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join(); "
        "a, b = socket.socketpair(); a.sendall(b'x'); b.recv(1); f = tempfile.mkdtemp(); open(f + '/a', 'w').write('x'); "
        "shutil.copy(f + '/a', f + '/b'); os.kill(os.getpid(), 0); print(torch.ones(3).sum().item(), flush=True)"
    )
    assert printed(forking, tmp_path / "net.py", line) != ""


@pytest.mark.parametrize(
    "path", ["os.path.expanduser('~/.ssh/id_rsa')", "'/proc/%d/environ' % os.getppid()", "'/proc/%d/mem' % os.getppid()"]
)
def test_keys_and_other_processes_are_not_read(forking: WorkerProcess, tmp_path: Path, path: str) -> None:
    # As if there were no such file: a library that looks for its token goes on without one.
    attempt = f"os.close(os.open({path}, os.O_RDONLY))"
    line = f"try:\n            {attempt}\n        except FileNotFoundError as error:\n            print(error, flush=True)"
    assert printed(forking, tmp_path / "net.py", line).startswith("ShapeLens: keys")


def test_secrets_are_not_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(NET.format("print('found', os.environ.get('MY_API_TOKEN'), flush=True)") + "\n# shapelens: Net()(f32[2])\n")
    command = [sys.executable, "-m", "shapelens", "show", str(file), "--interpreter", sys.executable]
    environment = {**os.environ, "MY_API_TOKEN": "of-the-user", "SHAPELENS_CACHE_DIR": ""}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert "of-the-user" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("kind", ["forking", "unforked"])
def test_what_is_allowed_is_done_and_nothing_else(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    worker: WorkerProcess = request.getfixturevalue(kind)
    allowed, other, file = tmp_path / "allowed", tmp_path / "other", tmp_path / "net.py"
    allowed.mkdir()
    other.mkdir()
    write = f"[open(folder + '/made', 'w').write('x') for folder in ({str(allowed)!r}, {str(other)!r})]"
    connect = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); client = socket.create_connection(server.getsockname()); "
        "print('connected', flush=True)"
    )
    start = "import subprocess; print(subprocess.check_output([sys.executable, '-c', 'print(6 * 7)'], text=True).strip(), flush=True)"

    def attempt(line: str, *acts: str) -> str:
        return printed(
            worker, file, f"try:\n            {line}\n        except OSError as error:\n            print(error, flush=True)", *acts
        )

    attempt(write, str(allowed))
    assert [(folder / "made").exists() for folder in (allowed, other)] == [True, False]
    assert attempt(connect, "network") == "connected"
    assert attempt(start, "processes") == "42"
    for acts in ([], ["processes", str(allowed)]):
        assert "attempting to bind" in attempt(connect, *acts)
    for acts in ([], ["network", str(allowed)]):
        assert attempt(start, *acts) == ""


@needs_kernel
def test_what_is_allowed_is_open_to_c_code_and_nothing_else(forking: WorkerProcess, tmp_path: Path) -> None:
    fork = "pid = C.fork(); pid or C._exit(0); print(pid > 0, flush=True)"
    assert printed(forking, tmp_path / "net.py", fork, "processes") == "True"
    assert printed(forking, tmp_path / "net.py", fork, "network") == "False"
    listen = "print(C.listen(C.socket(2, 1, 0), 5), flush=True)"
    assert printed(forking, tmp_path / "net.py", listen, "network") == "0"
    assert printed(forking, tmp_path / "net.py", listen, "processes") == "-1"
    write = f"print(C.open({str(tmp_path / 'made').encode()!r}, os.O_CREAT | os.O_WRONLY, 0o600) >= 0, flush=True)"
    assert printed(forking, tmp_path / "net.py", write, str(tmp_path)) == "True"
    (tmp_path / "made").unlink()
    assert printed(forking, tmp_path / "net.py", write, "network", "processes") == "False"


@pytest.mark.parametrize(
    ("index", "header"), [(0, "x86_64-linux-gnu/asm/unistd_64.h"), (1, "asm-generic/unistd.h")], ids=["x86-64", "arm64"]
)
def test_the_numbers_are_those_of_the_kernel(index: int, header: str) -> None:
    """arm64 has no numbers of its own but those of `asm-generic`."""
    path = Path("/usr/include") / header
    if not path.is_file():
        pytest.skip("the kernel's headers are not installed")
    known = {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+)\s+(\d+)$", path.read_text(), re.MULTILINE)}
    ours = {name: numbers[index] for table in (system_calls._REFUSED, system_calls._PASSED_OVER) for name, numbers in table.items()}
    for name in ("clone", "clone3", "kill", "tgkill", "sendto", "prlimit64"):
        ours[name] = getattr(system_calls, f"_{name.upper().removesuffix('64')}")[index]
    newer = {"fchmodat2"}  # than some of these headers
    wrong = {name: (number, known.get(name)) for name, number in ours.items() if name not in newer and number != known.get(name)}
    assert wrong == {}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("acts", [(), ("network",), ("processes",), ("network", "processes")])
@pytest.mark.parametrize("forks", [False, True])
def test_each_jump_of_the_filter_ends_inside_of_it(machine: str, acts: tuple[str, ...], forks: bool) -> None:
    words = system_calls.program(machine, 1234, AllowedActs(acts), forks=forks)
    for number, (code, holds, fails, _) in enumerate(words):
        assert code == 0x06 or number + 1 + max(holds, fails) < len(words)
    assert words[-1] == (0x06, 0, 0, 0x7FFF0000) and len(words) < 4096


def test_where_the_kernel_holds_nothing_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not system_calls.is_known() and not system_calls.refuse()
    assert kernel_boundary.version() == 0


DEFINES = """
import ctypes, os
from torch import nn

C = ctypes.CDLL(None, use_errno=True)

class Net(nn.Module):
    made = C.open({!r}, os.O_CREAT | os.O_WRONLY, 0o600)
    listens = C.listen(C.socket(2, 1, 0), 5)
    runs = C.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"/bin/true", None))
    killed = C.kill(os.getppid(), 0)

    def forward(self, x):
        print(self.made, self.listens, self.runs, self.killed, flush=True)
        return x
"""


@needs_kernel
def test_definitions_are_held_as_well(tmp_path: Path) -> None:
    worker, file, made = WorkerProcess(), tmp_path / "net.py", tmp_path / "made"
    text = DEFINES.format(str(made).encode())
    for number in range(3):  # By the process that stays loaded, and by one that is forked from there.
        _, finished = worker.run(file, text + "\n" * number, "Net()(f32[2])")
        assert finished.outcome == "ok" and worker.output.strip() == "-1 -1 -1 -1"
    assert not made.exists()
    worker.close()


ESCAPES = """
import ctypes, os, sys
import torch
from torch import nn

C = ctypes.CDLL(None, use_errno=True)

def escape():
    pid = C.fork()
    if pid == 0:
        if C.fork() == 0:
            C.setsid()
            C.signal(1, 1)
            print(C.getpid(), flush=True)
            while True:
                C.pause()
        C._exit(0)
    C.waitpid(pid, None, 0)

{}
class Net(nn.Module):
    def forward(self, x):
        {}
        return x
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux hands over orphans")
@pytest.mark.parametrize("how", ["run", "end", "kill"])
def test_what_escapes_ends_with_the_run_or_the_worker(how: str, tmp_path: Path) -> None:
    # Where the kernel refuses no system calls it is as if other processes were allowed.
    worker = WorkerProcess()
    text = ESCAPES.format("", "escape()" if how == "run" else "escape(); C.pause()")
    run_id = worker.start(tmp_path / "net.py", text, "Net()(f32[2])", allow=["processes"])
    if how == "run":
        worker.finish(run_id)
        printed = worker.output
    else:
        message = worker.read()
        while not isinstance(message, Output):
            message = worker.read()
        printed = message.text
    escaped = None
    with suppress(psutil.NoSuchProcess):  # It may have ended with the run already.
        escaped = psutil.Process(int(printed.split()[0]))
    if how == "kill":
        _kill_group(worker.process.pid)
        worker.process.wait()
    elif how == "end":
        worker.close()
    if escaped is not None:
        psutil.wait_procs([escaped], timeout=20)
        with suppress(psutil.NoSuchProcess):
            assert not escaped.is_running() or escaped.status() == psutil.STATUS_ZOMBIE
    if how == "run":
        worker.close()
