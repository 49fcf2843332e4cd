"""A language client that does as little as possible, so that what is measured is the server: JSON over the pipes of a process."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from shapelens.source.position_map import common_prefix, common_suffix

PATIENCE = 60.0  # seconds


class Client:
    """One server process. Used as `async with Client(command, root) as client`."""

    def __init__(self, command: list[str], root: Path) -> None:
        self.command = command
        self.root = root
        self.published: dict[str, tuple[float, int, list[Any]]] = {}  # when, for which version, and what
        self.publications = 0
        self.busy: set[Any] = set()  # what is under way, as the user is told
        self.errors: list[str] = []  # that the server has logged
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._requests = 0
        self._notebook_version = 1
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._heard = asyncio.Event()
        self._heard_at = 0.0

    async def __aenter__(self) -> Client:
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=1 << 26
        )
        self._reading = asyncio.create_task(self._read())
        capabilities = {
            "workspace": {"workspaceFolders": True, "inlayHint": {"refreshSupport": True}},
            "textDocument": {"publishDiagnostics": {"relatedInformation": True, "versionSupport": True}},
            "notebookDocument": {"synchronization": {"executionSummarySupport": True}},
            "window": {"workDoneProgress": True},
        }
        folder = {"uri": self.root.as_uri(), "name": self.root.name}
        await self.request(
            "initialize",
            {"processId": os.getpid(), "rootUri": folder["uri"], "workspaceFolders": [folder], "capabilities": capabilities},
        )
        self.notify("initialized", {})
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.returncode is None:
            await self.request("shutdown", None)
            self.notify("exit", None)
            await asyncio.wait_for(self.process.wait(), PATIENCE)
        self._reading.cancel()

    # --- messages ---

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def request(self, method: str, params: Any, patience: float = PATIENCE) -> Any:
        """Send a request and wait for its result. Raises RuntimeError for an error, TimeoutError after `patience` seconds."""
        self._requests += 1
        answer = self._answers[self._requests] = asyncio.get_running_loop().create_future()
        self._send({"id": self._requests, "method": method, "params": params})
        return await asyncio.wait_for(answer, patience)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while header := await stdout.readuntil(b"\r\n\r\n"):
            length = int(header.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            self._receive(json.loads(await stdout.readexactly(length)))

    def _receive(self, message: dict[str, Any]) -> None:
        self._heard_at = time.perf_counter()
        self._heard.set()
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            self.published[params["uri"]] = time.perf_counter(), params.get("version"), params["diagnostics"]
            self.publications += 1
        elif message.get("method") == "$/progress":
            kind, token = message["params"]["value"].get("kind"), message["params"]["token"]
            (self.busy.discard if kind == "end" else self.busy.add)(token)
        elif message.get("method") == "window/logMessage" and message["params"]["type"] == 1:
            self.errors.append(message["params"]["message"])
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        elif "id" in message:
            answer = self._answers.pop(message["id"], None)
            if answer is None or answer.done():  # Nobody waits for it any more.
                return
            if "error" in message:
                answer.set_exception(RuntimeError(message["error"]["message"]))
            else:
                answer.set_result(message.get("result"))

    # --- documents ---

    def open(self, path: Path, text: str) -> str:
        """Open a document with this text, whatever is on disk. Returns its URI."""
        uri = path.as_uri()
        self.texts[uri], self.versions[uri] = text, 1
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def open_notebook(self, path: Path, cells: Iterable[str]) -> list[str]:
        """Open a notebook with these cells of Python, whatever is on disk. Returns their URIs."""
        cells = list(cells)
        uris = [f"vscode-notebook-cell:{path.as_uri().partition(':')[2]}#W{number:x}sZmlsZQ%3D%3D" for number in range(len(cells))]
        items = [{"uri": uri, "languageId": "python", "version": 1, "text": text} for uri, text in zip(uris, cells, strict=True)]
        self.texts.update(zip(uris, cells, strict=True))
        self.versions.update(dict.fromkeys(uris, 1))
        document: dict[str, Any] = {"uri": path.as_uri(), "notebookType": "jupyter-notebook", "version": 1}
        document["cells"] = [{"kind": 2, "document": uri} for uri in uris]
        self.notify("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": items})
        return uris

    def close_notebook(self, path: Path, uris: Iterable[str]) -> None:
        """Close a notebook with these cells."""
        cells = [{"uri": uri} for uri in uris]
        self.notify("notebookDocument/didClose", {"notebookDocument": {"uri": path.as_uri()}, "cellTextDocuments": cells})
        for cell in cells:
            self.published.pop(cell["uri"], None)

    async def hints(self, uri: str) -> list[Any]:
        """All hints of a document or cell, as the server has them now."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}}
        return await self.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole}) or []

    async def settled(self, uris: Iterable[str], quiet: float, limit: float) -> bool:
        """Wait until the newest of these texts have their diagnostics, nothing is under way, and the server has said nothing for `quiet`
        seconds. Returns whether that came within `limit` seconds."""
        uris = list(uris)
        end = time.perf_counter() + limit
        while (now := time.perf_counter()) < end:
            answered = all(self.published.get(uri, (0, 0, []))[1] == self.versions[uri] for uri in uris)
            wait = self._heard_at + quiet - now
            if answered and not self.busy and wait <= 0:
                return True
            self._heard.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), min(end - now, wait) if wait > 0 and answered and not self.busy else end - now)
        return False

    def edit_cell(self, notebook: Path, uri: str, text: str) -> float:
        """Make the cell of a notebook this text by one incremental change, as an editor sends it. Returns when that was."""
        change = self._changed(uri, text)
        self._notebook_version += 1
        sent = time.perf_counter()
        changed = {"document": {"uri": uri, "version": self.versions[uri]}, "changes": [change]}
        identifier = {"uri": notebook.as_uri(), "version": self._notebook_version}
        self.notify("notebookDocument/didChange", {"notebookDocument": identifier, "change": {"cells": {"textContent": [changed]}}})
        return sent

    def edit(self, uri: str, text: str) -> float:
        """Make the document this text by one incremental change, as an editor sends it. Returns when that was."""
        change = self._changed(uri, text)
        sent = time.perf_counter()
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": self.versions[uri]}, "contentChanges": [change]})
        return sent

    def _changed(self, uri: str, text: str) -> dict[str, Any]:
        """The change of a text that makes it this one, noted here."""
        old = self.texts[uri]
        start = common_prefix(old, text)
        same = common_suffix(old[start:], text[start:])
        where = {"start": _position(old, start), "end": _position(old, len(old) - same)}
        self.texts[uri] = text
        self.versions[uri] += 1
        return {"range": where, "text": text[start : len(text) - same]}

    async def answered(self, uri: str, wrong: bool) -> float:
        """When the diagnostics of the newest version came: with an error, or without one. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while True:
                when, version, found = self.published.get(uri, (0.0, 0, []))
                if version == self.versions[uri] and any(each.get("severity", 1) == 1 for each in found) == wrong:
                    return when
                self._heard.clear()
                await self._heard.wait()


def _position(text: str, offset: int) -> dict[str, int]:
    before = text[:offset]
    return {"line": before.count("\n"), "character": offset - before.rfind("\n") - 1}
