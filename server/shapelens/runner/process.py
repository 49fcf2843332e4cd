"""One worker process: started by path under the user's interpreter, spoken to in frames, ended with all of its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shapelens import protocol
from shapelens.runner import interpreter as interpreters
from shapelens.runner.secrets import without_secrets
from shapelens.runner.worker_state import StartFailure, no_torch

_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
WORKER = Path(protocol.__file__).parent / "worker" / "__main__.py"
HANDSHAKE_SECONDS = 60.0
OLDEST_PYTHON = (3, 9)
# A frame larger than this is decoded in a thread, so that the server keeps answering meanwhile.
LARGE_FRAME = 256 * 1024
KILLS = {int(each) for each in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGKILL", signal.SIGTERM))}  # that come from elsewhere
_ENDING_SECONDS = 0.5  # given to processes that were killed to be gone
LONGEST_LINE = 1 << 16  # bytes of what a worker says on stderr


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The three pipes, and an event for the end of the process itself.

    asyncio's own `Process.wait` waits, in some versions of Python, until the pipes are closed as well. User code can leave children
    behind that hold them open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=1 << 20, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Process:
    """A running worker. Made by `spawn`; its messages arrive through `on_message`, its end through `ended`."""

    def __init__(
        self,
        interpreter: str,
        transport: asyncio.SubprocessTransport,
        streams: _Streams,
        on_message: Callable[[Any], None],
        on_log: Callable[[str], None],
    ) -> None:
        assert streams.stdin is not None and streams.stdout is not None and streams.stderr is not None
        self.interpreter = interpreter
        self.pid = transport.get_pid()
        self.hello: asyncio.Future[protocol.Hello] = asyncio.get_running_loop().create_future()
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.is_outgrown = False  # it has said that another one is to take its place
        self.problem = ""  # what it sent that is not of the protocol
        self.last_words: deque[str] = deque(maxlen=40)
        self._transport = transport
        self._streams = streams
        self._stdin = streams.stdin
        self._on_message = on_message
        self._on_log = on_log
        self._readers = [asyncio.create_task(self._read_messages(streams.stdout)), asyncio.create_task(self._read_log(streams.stderr))]
        self._reaper = asyncio.create_task(self._reap())

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    def send(self, message: Any) -> None:
        """Queue one frame. A worker that has gone is not an error here: `ended` says so."""
        if not self._stdin.is_closing():
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._stdin.write(protocol.encode(message))

    @property
    def is_killed(self) -> bool:
        """True if it has ended by a signal that comes from elsewhere."""
        return -(self.returncode or 0) in KILLS

    def is_suspended(self) -> bool:
        """True if somebody has stopped the process (SIGSTOP), where the system says so."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] in ("T", "t")

    def kill(self) -> None:
        """End the process and everything in its process group at once. Safe to call at any time."""
        if self.returncode is None:
            _kill_group(self.pid)

    async def stop(self, patience: float = 0.5) -> None:
        """Ask it to end, and after `patience` seconds make it. Returns when it is gone and its pipes are closed."""
        self.send(protocol.Stop())
        self._stdin.close()
        try:
            await asyncio.wait_for(self.ended.wait(), patience)
        except asyncio.TimeoutError:
            self.kill()
            await self.ended.wait()

    async def _read_messages(self, stdout: asyncio.StreamReader) -> None:
        try:
            while True:
                header = await stdout.readexactly(protocol.HEADER.size)
                (size,) = protocol.HEADER.unpack(header)
                if size > protocol.LARGEST_FRAME:
                    # Something else than the worker writes to its stdout; the bytes are most likely text.
                    raise protocol.ProtocolError(_printed(header + await stdout.read(200)))
                body = await stdout.readexactly(size)
                message = await asyncio.to_thread(protocol.decode, body) if size > LARGE_FRAME else protocol.decode(body)
                self._receive(message)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                self.problem = _printed(error.partial)
        except ConnectionError:
            pass  # A killed process on Windows resets its pipes.
        except protocol.ProtocolError as error:
            self.problem = str(error)
        self.kill()

    def _receive(self, message: Any) -> None:
        if not self.hello.done():
            if not isinstance(message, protocol.Hello):
                raise protocol.ProtocolError(f"its first message was {type(message).__name__}, not Hello")
            self.hello.set_result(message)
            return
        if isinstance(message, protocol.Ready):
            self.ready.set()
        self._on_message(message)

    async def _read_log(self, stderr: asyncio.StreamReader) -> None:
        async for lines in lines_of(stderr):
            self.last_words.extend(lines[-40:])
            for line in lines:
                self._on_log(line)

    async def _reap(self) -> None:
        await self._streams.exited.wait()
        # Children that user code has left behind would keep the pipes open.
        _kill_group(self.pid)
        await asyncio.wait(self._readers, timeout=1.0)
        for reader in self._readers:
            reader.cancel()
        self._transport.close()
        self.ended.set()


def _printed(output: bytes) -> str:
    return f"it printed {output[:200].decode(errors='replace')!r}"


def _kill_group(pid: int) -> None:
    if sys.platform != "win32":
        _kill_descendants(pid)  # Those that have a group of their own are not reached by that of the worker.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)


def _kill_descendants(pid: int) -> None:
    """Kill what a process has started, which is held meanwhile: those whose parents end come to it, are found there, and don't get away.

    It ends when two looks in a row find none: a list of children may lack those that are just being handed over (proc_pid_children(5)).
    """
    killed: set[int] = set()
    until = time.monotonic() + _ENDING_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGSTOP)
    none_found = 0
    while none_found < 2 and time.monotonic() < until:
        found = [each for each in _descendants(pid) if _is_alive(each)]
        none_found = 0 if found else none_found + 1
        for each in found:
            if each not in killed:
                killed.add(each)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
        if found:
            time.sleep(0.001)


def _descendants(pid: int) -> list[int]:
    """Returns what a process and those that it has started have started; nothing where the system does not say."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError, ValueError):
            for thread in Path(f"/proc/{each}/task").iterdir():
                found += [child for child in map(int, (thread / "children").read_text().split()) if child not in found]
    return found[1:]


def _is_alive(pid: int) -> bool:
    """True if a process has not ended; one that waits for its parent to take note of its end has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


async def spawn(
    interpreter: str,
    root: str,
    fork: bool | None,
    on_message: Callable[[Any], None],
    on_log: Callable[[str], None],
    handshake_seconds: float = HANDSHAKE_SECONDS,
) -> Process | StartFailure:
    """Start a worker and shake hands. Whatever goes wrong comes back as a StartFailure in words for the user; nothing is raised."""
    problem = interpreters.problem(interpreter)
    if problem is not None:
        return StartFailure("failed", problem, "Choose another interpreter.")
    flags = ["--no-fork"] if fork is False else []
    creation = asyncio.create_task(_create(interpreter, root, flags))
    try:
        # asyncio (3.11, 3.12) hangs if it is cancelled while it connects the pipes of a new process, so that part is always let finish.
        transport, streams = await asyncio.shield(creation)
    except asyncio.CancelledError:
        transport, streams = await creation
        transport.kill()
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return StartFailure("failed", f"The Python interpreter {interpreter} cannot be started: {reason}.", "Choose another interpreter.")
    process = Process(interpreter, transport, streams, on_message, on_log)
    try:
        return await _handshake(process, handshake_seconds)
    except asyncio.CancelledError:
        process.kill()
        await process.ended.wait()
        raise


async def _create(interpreter: str, root: str, flags: list[str]) -> tuple[asyncio.SubprocessTransport, _Streams]:
    loop = asyncio.get_running_loop()
    return await loop.subprocess_exec(
        lambda: _Streams(loop),
        interpreter,
        "-X",
        "utf8",
        str(WORKER),
        *flags,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=root if root and Path(root).is_dir() else None,
        env=without_secrets(os.environ),
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


async def _handshake(process: Process, seconds: float) -> Process | StartFailure:
    ended = asyncio.create_task(process.ended.wait())
    waited_for: set[asyncio.Future[Any]] = {process.hello, ended}
    await asyncio.wait(waited_for, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if not process.hello.done():
        if ended.done():
            why = await _why_it_ended(process)
            return replace(why, is_killed=process.is_killed)
        process.kill()
        await ended
        return _failed(process, f"{process.interpreter} did not answer within {seconds:.0f} s.")
    ended.cancel()
    hello = process.hello.result()
    if hello.version != protocol.VERSION:
        await process.stop()
        return StartFailure(
            "failed",
            f"The worker under {process.interpreter} speaks protocol version {hello.version}, the server {protocol.VERSION}.",
            "Reinstall ShapeLens: its files are of different versions.",
        )
    if hello.torch is None or hello.error is not None:
        await process.stop()
        return no_torch(process.interpreter, hello.python, hello.error)
    return process


async def lines_of(stream: asyncio.StreamReader) -> AsyncIterator[list[str]]:
    """The lines of a stream as they come, several at once where they are there; one that is longer than LONGEST_LINE comes in parts."""
    begun = b""
    while chunk := await stream.read(LONGEST_LINE):
        *ended, begun = (begun + chunk).split(b"\n")
        if len(begun) > LONGEST_LINE:
            ended, begun = [*ended, begun], b""
        yield b"\n".join(ended).decode(errors="replace").splitlines()
    yield begun.decode(errors="replace").splitlines()


async def _why_it_ended(process: Process) -> StartFailure:
    version = await python_version(process.interpreter)
    if version is not None and version < OLDEST_PYTHON:
        found, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST_PYTHON))
        return _failed(process, f"{process.interpreter} is Python {found}; ShapeLens needs {oldest} or newer.")
    if version is None:
        return _failed(process, f"{process.interpreter} is not a working Python interpreter.")
    if process.problem:
        return _failed(process, f"The worker under {process.interpreter} does not keep to the protocol: {process.problem}.")
    return _failed(
        process, f"The worker under {process.interpreter} ended at once (exit code {process.returncode}){_reason(process.last_words)}."
    )


def _reason(last_words: Iterable[str]) -> str:
    """Returns what a process has said last of why it ended, behind a colon."""
    said = [line.strip() for line in last_words if line.strip()]
    if any("No module named 'encodings'" in line for line in said):  # Python says where it looked before it says so.
        home = next((line.partition("=")[2].strip() for line in said if line.startswith("PYTHONHOME = '")), "")
        if home:
            return f": PYTHONHOME is {home}, where there is no Python"
    errors = [line for line in said if _ERROR.match(line)]
    return "".join(f": {line.rstrip('.')}" for line in (errors or said)[-1:])


def _failed(process: Process, message: str) -> StartFailure:
    return StartFailure("failed", message, "Choose another interpreter, or see the log.", "\n".join(process.last_words))


async def python_version(interpreter: str) -> tuple[int, int] | None:
    """Returns what the interpreter says its version is; None where it is no Python at all, or does not answer within 10 s."""
    command = "import sys; sys.stdout.write('version %d %d' % sys.version_info[:2])"
    try:
        child = await asyncio.create_subprocess_exec(
            interpreter, "-S", "-E", "-c", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None
    assert child.stdout is not None
    try:
        answer = await asyncio.wait_for(child.stdout.read(100), 10)
        await asyncio.wait_for(child.wait(), 10)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        return None
    words = answer.decode(errors="replace").split()
    return (int(words[1]), int(words[2])) if len(words) == 3 and words[0] == "version" and words[1].isdigit() else None
