"""However a server ends, no process stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import COMMAND, PATIENCE, Editor, processes
from time_limits import timeout

ENDLESS = """\
from torch import nn
# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def forward(self, x):
        while True: pass
"""


async def gone(pids: Iterable[int]) -> None:
    """Wait until none of these processes is left. A process that is no child of ours tells nobody of its end, so this has to look."""
    async with timeout(PATIENCE):
        while set(pids) & set(processes()):
            await asyncio.sleep(0.02)


@pytest.mark.core
@pytest.mark.parametrize("how", ["shutdown", "end of input", "killed"])
async def test_no_process_stays(tmp_path: Path, how: str) -> None:
    editor = Editor(tmp_path)
    await editor.start("--interpreter", TORCH_PYTHON)
    editor.open("endless.py", ENDLESS)
    await editor.until_running("endless.py")
    (worker,) = editor.workers()
    family = [worker, *(pid for pid in processes() if _session(pid) == worker)]
    if how == "shutdown":
        assert await editor.stop() == 0
    else:
        server = editor.client._server
        assert server is not None and server.stdin is not None
        if how == "killed":
            os.kill(server.pid, signal.SIGKILL)
        else:
            server.stdin.close()
        status = await editor.ended()
        assert status == (-signal.SIGKILL if how == "killed" else 1)
    await gone(family)


CLIENT = """\
import json, os, subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
other = subprocess.Popen(["sleep", "120"], pass_fds=[server.stdin.fileno(), server.stdout.fileno()])
root, text = sys.argv[1], sys.stdin.read()
uri = root + "/endless.py"
for method, number, params in [
    ("initialize", 1, {"processId": os.getpid(), "rootUri": root, "capabilities": {}}),
    ("initialized", None, {}),
    ("textDocument/didOpen", None, {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}}),
]:
    message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    server.stdin.flush()
print(server.pid, other.pid, flush=True)
time.sleep(120)
"""


@pytest.mark.skipif(os.name != "posix", reason="another system keeps the parent of a process that has lost it")
async def test_a_server_ends_with_its_client_though_others_hold_its_pipes(tmp_path: Path) -> None:
    command = [*COMMAND, "--interpreter", TORCH_PYTHON]
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, tmp_path.as_uri(), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write(ENDLESS)
    client.stdin.close()
    server, other = map(int, client.stdout.readline().split())
    try:
        async with timeout(PATIENCE):
            while len(family := [server, *(each.pid for each in psutil.Process(server).children(recursive=True))]) < 4:
                await asyncio.sleep(0.05)
        client.terminate()
        client.wait()
        await gone(family)
    finally:
        os.kill(other, signal.SIGKILL)
        client.stdout.close()


async def test_over_tcp(tmp_path: Path, broken: str) -> None:
    server = await asyncio.create_subprocess_exec(
        *COMMAND, "--tcp", "0", "--interpreter", TORCH_PYTHON, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    assert server.stderr is not None
    announcement = (await asyncio.wait_for(server.stderr.readline(), PATIENCE)).decode()
    editor = Editor(tmp_path)
    found = re.search(r":(\d+), .*(\{.*\})", announcement)
    assert found is not None
    await editor.connect(int(found[1]), json.loads(found[2]))
    uri = editor.open("net.py", broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    await editor.client.shutdown_session()
    assert await asyncio.wait_for(server.wait(), PATIENCE) == 0
    await editor.client.stop()


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
