"""Real workers that tests need not wait for: each is forked from a process that has imported torch, which costs 1.8 s of processor time.

What is forked is the worker itself, at the point where it begins (`worker/__main__.py`); nothing of the product knows of it. It is a
child of the tests' process, with the pipes, the session and the environment that the runner wants. A worker is started from nothing where
it would find another world than the process that it is forked from: under another interpreter, in another environment, outside of Linux.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import fixtures
from interpreters import TORCH_PYTHON
from shapelens.runner.process import WORKER
from shapelens.runner.secrets import is_secret, without_secrets

SERVER = Path(__file__).with_name("fork_server.py")
INTERPRETERS = {sys.executable, TORCH_PYTHON, str(fixtures.USER_PYTHON)}
# Nothing that a worker loads before its first run looks at these.
UNHEEDED = ("PYTEST_CURRENT_TEST", "SHAPELENS_CACHE_DIR", "XDG_DATA_HOME", "HF_HOME", "COLUMNS", "FORCE_COLOR", "TERM", "CI", "VIRTUAL_ENV")
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


class ForkServer:
    """The process that workers of one interpreter are forked from."""

    def __init__(self, interpreter: str, environment: Mapping[str, str]) -> None:
        self._environment = _heeded(environment)
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [interpreter, "-X", "utf8", "-c", SERVER.read_text(), str(WORKER), str(number)]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[number], stdin=-3, start_new_session=True)
        self._answers = self._socket.makefile("rb")
        assert self._answers.readline() == b"loaded\n", f"{interpreter} does not load a worker"
        atexit.register(self.end)

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether what it has loaded is what a worker in this environment would load."""
        return _heeded(environment) == self._environment

    def fork(self, arguments: list[str], folder: str | None, environment: Mapping[str, str], files: list[int]) -> int:
        """The id of a new worker, a child of this process, with `files` as its standard input, output and error."""
        order = json.dumps({"arguments": arguments, "folder": folder, "environment": dict(environment)})
        with self._lock, _OrphansComeHere():
            socket.send_fds(self._socket, [order.encode()], files)
            return int(self._answers.readline())

    def end(self) -> None:
        """End it; what was forked goes on."""
        self._answers.close()
        self._socket.close()
        self._process.wait()


def _heeded(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in UNHEEDED and not is_secret(name)}


class _OrphansComeHere:
    """While it holds, a process whose parent ends becomes a child of this one."""

    def __enter__(self) -> None:
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)

    def __exit__(self, *_: object) -> None:
        ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 0, 0, 0, 0)


_servers: dict[str, ForkServer] = {}


class ForkedOrStarted(subprocess.Popen):  # type: ignore[type-arg]
    """Any process; a worker is forked where that gives the same."""

    def _execute_child(  # Named by position: the newest Pythons have more behind these.
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any, startupinfo: Any,
        creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int, errread: int, errwrite: int, *rest: Any,
    ) -> None:  # fmt: skip
        environment = dict(os.environ) if env is None else env
        server = _server_for(args, environment)
        if server is None:
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo,
                creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest,
            )  # fmt: skip
            return
        self.pid = server.fork([*args][4:], cwd, environment, [p2cread, c2pwrite, errwrite if errwrite != -1 else 2])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _server_for(command: Any, environment: Mapping[str, str]) -> ForkServer | None:
    """The process that a worker can be forked from; None for one that is to be started from nothing, and for any other process."""
    if sys.platform != "linux" or isinstance(command, (str, bytes, os.PathLike)) or [*command][1:4] != ["-X", "utf8", str(WORKER)]:
        return None
    interpreter = str(command[0])
    if interpreter not in INTERPRETERS or "--no-fork" in command:  # Where there is no fork, nothing is forked.
        return None
    if interpreter not in _servers:
        _servers[interpreter] = ForkServer(interpreter, without_secrets(os.environ))
    return _servers[interpreter] if _servers[interpreter].suits(environment) else None


@pytest.fixture(scope="module", autouse=True)
def forked_workers() -> Iterator[None]:
    """Workers that this process starts are forked, in each module of tests that imports this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", ForkedOrStarted)
        yield
