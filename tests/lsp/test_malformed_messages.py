"""What no client should send: every request is answered, and the messages after it are understood."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from interpreters import TORCH_PYTHON
from lsp.editor import COMMAND, PATIENCE, processes
from time_limits import timeout

URI = "file:///w/net.py"
DOCUMENT = {"textDocument": {"uri": URI}}
TOKEN = "secret of this test"


class Wire:
    """Speaks to a server in bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.answers: dict[Any, dict[str, Any]] = {}

    def send(self, message: Any, header: str = "Content-Length: %d\r\n\r\n") -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.writer.write((header % len(body) if "%d" in header else header).encode() + body)

    async def answer(self, number: Any) -> dict[str, Any]:
        """The answer to a request; what the server asks and tells meanwhile is passed over."""
        async with timeout(PATIENCE):
            while number not in self.answers:
                header = await self.reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"Content-Length: (\d+)", header)
                assert found is not None
                message: dict[str, Any] = json.loads(await self.reader.readexactly(int(found[1])))
                if "method" not in message:
                    self.answers[message["id"]] = message
        return self.answers.pop(number)

    async def greet(self, options: Any = None) -> dict[str, Any]:
        self.send(request("initialize", {"capabilities": {}, "initializationOptions": options}, "greeting"))
        answer = await self.answer("greeting")
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        return answer

    async def understands(self, number: int) -> bool:
        """Whether a right request has a result."""
        self.send(request("textDocument/codeLens", DOCUMENT, number))
        return (await self.answer(number)).get("result") == []


def request(method: str, params: Any, number: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


@pytest_asyncio.fixture(loop_scope="session")
async def wire() -> AsyncIterator[Wire]:
    """A server that has greeted its client."""
    server = await asyncio.create_subprocess_exec(*COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    wire = Wire(server.stdout, server.stdin)
    assert "result" in await wire.greet()
    yield wire
    server.stdin.close()
    assert await asyncio.wait_for(server.wait(), PATIENCE) in (0, 1)


def at(line: Any, character: Any) -> dict[str, Any]:
    return {**DOCUMENT, "position": {"line": line, "character": character}}


def between(first: Any, last: Any) -> dict[str, Any]:
    return {**DOCUMENT, "range": {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}}


WRONG = {
    "negative": ("textDocument/hover", at(-1, 0)),
    "too large": ("textDocument/hover", at(0, 2**31)),
    "huge": ("textDocument/inlayHint", between(0, 2**70)),
    "no number": ("textDocument/hover", at("first", None)),
    "nothing": ("textDocument/hover", None),
    "a list": ("textDocument/inlayHint", [1, 2]),
    "a text": ("textDocument/codeLens", "x"),
    "another document": ("textDocument/codeLens", {"textDocument": 3}),
    "no context": ("textDocument/codeAction", between(0, 1)),
    "no label": ("inlayHint/resolve", {}),
    "no command": ("workspace/executeCommand", {}),
    "unknown command": ("workspace/executeCommand", {"command": "shapelens.unheardOf", "arguments": []}),
    "wrong arguments": ("workspace/executeCommand", {"command": "shapelens.applyExample", "arguments": [{"a": 1}]}),
    "unknown method": ("textDocument/unheardOf", {}),
}


@pytest.mark.core
async def test_every_request_is_answered(wire: Wire) -> None:
    for number, (method, params) in enumerate(WRONG.values()):
        wire.send(request(method, params, number))
    answers = [await wire.answer(number) for number in range(len(WRONG))]
    assert not [name for name, answer in zip(WRONG, answers, strict=True) if "error" not in answer]
    assert all(isinstance(answer["error"]["code"], int) and answer["error"]["message"] for answer in answers)
    assert answers[0]["error"] == {"code": -32602, "message": "Invalid Params: invalid value @ message.params.position"}

    wire.send(request("textDocument/hover", at(2**31 - 1, 2**31 - 1), 50))
    assert (await wire.answer(50))["result"] is None
    for number, wrong in enumerate(({"jsonrpc": "1.0"}, {"jsonrpc": None}), 60):
        wire.send({**request("textDocument/codeLens", DOCUMENT, number), **wrong})
        assert (await wire.answer(number))["error"]["code"] == -32600
    wire.send({"id": 70, "method": "textDocument/codeLens", "params": DOCUMENT})
    assert "error" in await wire.answer(70)
    wire.send(request("shutdown", None, 80))
    assert (await wire.answer(80))["result"] is None
    wire.send(request("textDocument/codeLens", DOCUMENT, 81))
    assert (await wire.answer(81))["error"]["code"] == -32600


async def test_a_greeting_that_is_wrong_ends_nothing() -> None:
    wrong: list[Any] = [[], 3, {"capabilities": {}, "workspaceFolders": [3]}, {"capabilities": {}, "rootUri": "file://["}]
    for params in wrong:
        server = await asyncio.create_subprocess_exec(*COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        assert server.stdin is not None and server.stdout is not None
        wire = Wire(server.stdout, server.stdin)
        wire.send(request("initialize", params, 1))
        await wire.answer(1)
        assert "result" in await wire.greet() and await wire.understands(2)
        server.stdin.close()
        await asyncio.wait_for(server.wait(), PATIENCE)


async def test_what_is_no_message_is_left_out(wire: Wire) -> None:
    lost = request("textDocument/codeLens", DOCUMENT, 1000)
    for number, (body, header) in enumerate(
        [
            (lost, "Content-Length: abc\r\n\r\n"),
            (lost, "Content-Length: -5\r\n\r\n"),
            (lost, "Content-Length: 99999999999999\r\n\r\n"),
            (lost, "Length: %d\r\n\r\n"),
            (lost, "\r\n\r\n"),
            (lost, "Content-Length: 10\r\n\r\n"),
            (b"x" * 300_000, ""),
            (b"not JSON", "Content-Length: %d\r\n\r\n"),
            (b"\xff\xfe", "Content-Length: %d\r\n\r\n"),
            (b"[" * 100_000 + b"]" * 100_000, "Content-Length: %d\r\n\r\n"),
            ([lost], "Content-Length: %d\r\n\r\n"),
            (3, "Content-Length: %d\r\n\r\n"),
            (b"", "Content-Length: 0\r\n\r\n"),
        ]
    ):
        wire.send(body, header)
        assert await wire.understands(number), header


async def test_over_tcp_only_who_knows_the_token_is_served(tmp_path: Path) -> None:
    script, ran = tmp_path / "python", tmp_path / "ran"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    attack = {"token": "guessed", "interpreter": str(script)}
    server = await asyncio.create_subprocess_exec(
        *COMMAND, "--tcp", "0", "--log-level", "error", stderr=asyncio.subprocess.PIPE, env={**os.environ, "SHAPELENS_TOKEN": TOKEN}
    )
    assert server.stderr is not None
    announcement = (await asyncio.wait_for(server.stderr.readline(), PATIENCE)).decode()
    found = re.search(r"listening on 127\.0\.0\.1:(\d+)", announcement)
    assert found is not None and TOKEN not in announcement
    greeting = json.dumps(request("initialize", {"capabilities": {}, "initializationOptions": attack}, 1))
    page = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(greeting)}\r\n\r\n{greeting}".encode()
    hello = request("initialize", {"capabilities": {}, "rootUri": None}, 1)

    async def told(*said: Any) -> bytes:
        """All that the server answers before it hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(found[1]))
        for each in said:
            Wire(reader, writer).send(each, "") if isinstance(each, bytes) else Wire(reader, writer).send(each)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return answer

    assert await told(page) == await told(b"\r\n") == await told(b"Content-Length: 2\r\n\r\n{}") == await told(b"\0" * 100) == b""
    opened = {"textDocument": {"uri": (tmp_path / "a.py").as_uri(), "languageId": "python", "version": 1, "text": "import torch"}}
    for wrong in (hello, json.loads(greeting)):
        answer = await told(wrong, {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened})
        assert answer.count(b"Content-Length") == 1 and b'"error"' in answer and b"token" in answer
    assert not ran.exists()

    silent = await asyncio.open_connection("127.0.0.1", int(found[1]))  # It holds up nobody.
    wire = Wire(*await asyncio.open_connection("127.0.0.1", int(found[1])))
    assert "result" in await wire.greet({"token": TOKEN, "interpreter": TORCH_PYTHON})
    assert await wire.understands(2)
    wire.send(request("shutdown", None, 3))
    await wire.answer(3)
    wire.send({"jsonrpc": "2.0", "method": "exit"})
    assert await asyncio.wait_for(server.wait(), PATIENCE) == 0
    assert server.pid not in processes()
    for writer in (silent[1], wire.writer):
        writer.close()
