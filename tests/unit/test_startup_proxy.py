"""The first answers: messages cut out of a stream, and what is said of a document before there is a server."""

from __future__ import annotations

import asyncio
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from shapelens.cache.environments import Environments
from shapelens.cache.inputs import ResultInputs
from shapelens.cache.store import Store
from shapelens.lsp.startup.display_cache import Display, DisplayCache
from shapelens.lsp.startup.messages import MessageSplitter
from shapelens.lsp.startup.startup_proxy import StartupProxy
from shapelens.protocol import Hello

CLIENT: dict[str, Any] = {"processId": 1, "rootUri": "file:///w", "capabilities": {"workspace": {"inlayHint": {"refreshSupport": True}}}}
TEXT = "from torch import nn\n"
URI = "file:///w/net.py"
GREETING = {"capabilities": {"inlayHintProvider": True}}
HINTS = [
    {"position": {"line": line, "character": 3}, "label": f"→ [{line}]", "data": {"uri": URI, "version": 1, "number": line}}
    for line in range(9)
]
DIAGNOSTICS = [{"message": "wrong", "data": {"version": 1, "fixes": []}}]


def message(method: str, params: Any, number: int | None = None) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def opened(version: int, text: str = TEXT) -> bytes:
    return message("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "python", "version": version, "text": text}})


def hints_of(first: int, last: int, number: int) -> bytes:
    where = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    return message("textDocument/inlayHint", {"textDocument": {"uri": URI}, "range": where}, number)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_are_cut_out_however_they_arrive(size: int) -> None:
    sent = [b"{}", b'{"text": "\r\n\r\n"}', b"x" * 5000]
    headers = [b"Content-Length: %d\r\n", b"content-length:%d\r\nContent-Type: application/vscode-jsonrpc\r\n", b"Content-Length: %d \r\n"]
    stream = (
        b"".join(header % len(body) + b"\r\n" + body for header, body in zip(headers, sent, strict=True)) + b"Content-Length: 9\r\n\r\nhalf"
    )
    splitter = MessageSplitter()
    assert [body for start in range(0, len(stream), size) for body in splitter.feed(stream[start : start + size])] == sent


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_message_behind_one_without_a_length_is_found(size: int, caplog: pytest.LogCaptureFixture) -> None:
    lost = b"Content-Length: abc\r\n\r\n{lost}"
    stream = lost + b"Content-Length: 3\r\n\r\none" + b"Content-Type: x\r\nContent-Length: 3\r\nOther: y\r\n\r\ntwo" + lost
    splitter = MessageSplitter()
    assert [body for start in range(0, len(stream), size) for body in splitter.feed(stream[start : start + size])] == [b"one", b"two"]
    assert [record.message.partition(" ")[0] for record in caplog.records] == [str(len(lost))]


async def test_a_client_that_is_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    messages = [message("initialize", CLIENT, 1), opened(1)]
    (tmp_path / "session").write_bytes(b"".join(messages))
    with (tmp_path / "session").open("rb") as stdin:
        proxy = StartupProxy(stdin.fileno(), io.BytesIO(), None, None)
        passed_on = []
        while body := await proxy.messages.next_body():
            passed_on.append(body)
    assert passed_on == [each.partition(b"\r\n\r\n")[2] for each in messages]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
async def test_a_terminal_that_hangs_up_has_ended() -> None:
    stdin, other = os.openpty()
    os.close(other)
    try:
        with pytest.raises(OSError):
            os.read(stdin, 1)
        assert await asyncio.wait_for(StartupProxy(stdin, io.BytesIO(), None, None).messages.next_body(), 5) == b""
    finally:
        os.close(stdin)


def displays(folder: Path, **other: Any) -> DisplayCache:
    return DisplayCache(Store(folder / "cache"), None, {**CLIENT, **other})


def keep(folder: Path) -> None:
    """What an earlier server leaves behind."""
    store, python = Store(folder / "cache"), str(folder / "python")
    (folder / "python").write_text("an interpreter")
    (folder / "layers.py").write_text("")
    environments = Environments(store)
    environments.learn(python, Hello(1, "3.12.1", python, 1, True, "2.13.0"))
    environment = environments.identity(python)
    assert environment is not None
    kept = displays(folder)
    kept.keep_greeting(GREETING)
    kept.keep(
        URI, TEXT, Display(DIAGNOSTICS, HINTS, [{"title": "lens"}]), python, environment, [ResultInputs().now([str(folder / "layers.py")])]
    )


async def answers(folder: Path, *messages: bytes) -> tuple[list[dict[str, Any]], list[bytes]]:
    """What is said to a client, and what the server gets to read."""
    read, write = os.pipe()
    out = io.BytesIO()
    proxy = StartupProxy(read, out, Store(folder / "cache"), None)
    os.write(write, b"".join(messages))
    os.close(write)
    passed_on = []
    while body := await proxy.messages.next_body():
        passed_on.append(body)
    os.close(read)
    proxy.step_aside()
    said = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in out.getvalue().split(b"Content-Length")[1:]]
    assert {each["id"] for each in said if "id" in each} == proxy.answered
    return said, passed_on


async def test_what_was_shown_is_shown_again_and_everything_is_passed_on(tmp_path: Path) -> None:
    keep(tmp_path)
    messages = [message("initialize", {**CLIENT, "processId": 2}, 1), opened(5), hints_of(2, 3, 2), message("textDocument/hover", {}, 3)]
    said, passed_on = await answers(tmp_path, *messages)
    greeting, shown, hints = said
    assert greeting["result"] == GREETING
    assert shown["params"]["version"] == 5 and shown["params"]["diagnostics"] == [{"message": "wrong", "data": {"version": 5, "fixes": []}}]
    assert [(hint["label"], hint["data"]["version"]) for hint in hints["result"]] == [("→ [2]", 5), ("→ [3]", 5)]
    assert passed_on == [each.partition(b"\r\n\r\n")[2] for each in messages]


async def test_nothing_is_said_of_what_has_changed(tmp_path: Path) -> None:
    keep(tmp_path)
    greet = message("initialize", CLIENT, 1)
    edit = message("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "x"}]})
    assert len((await answers(tmp_path, greet, opened(1), hints_of(0, 9, 2)))[0]) == 3
    assert len((await answers(tmp_path, greet, opened(1, TEXT + "\n"), hints_of(0, 9, 2)))[0]) == 1, "another text"
    assert len((await answers(tmp_path, greet, opened(1), edit, hints_of(0, 9, 2)))[0]) == 2, "an edit meanwhile"
    other = message("initialize", {**CLIENT, "initializationOptions": {"settings": {"dims": "numbers"}}}, 1)
    assert len((await answers(tmp_path, other, opened(1), hints_of(0, 9, 2)))[0]) == 1, "other settings"
    (tmp_path / "layers.py").write_text("x = 1\n")
    assert len((await answers(tmp_path, greet, opened(1), hints_of(0, 9, 2)))[0]) == 1, "another imported file"


async def test_a_message_that_is_none_is_left_to_the_server(tmp_path: Path) -> None:
    keep(tmp_path)
    said, passed_on = await answers(
        tmp_path, b"Content-Length: 5\r\n\r\n[1,2]", b"Content-Length: 3\r\n\r\nabc", message("initialize", CLIENT, 1)
    )
    assert len(said) == 1 and passed_on[:2] == [b"[1,2]", b"abc"]
