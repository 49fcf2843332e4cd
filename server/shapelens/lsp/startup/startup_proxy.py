"""Gives the first answers while the server behind is being loaded: shows again what was shown of an unchanged file.

All messages of the client pass through here. Those that come before the server is there are kept for it, and it handles each of them; but
an answer that was given already is not given twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from shapelens.cache.inputs import version
from shapelens.cache.store import Store
from shapelens.lsp.startup.display_cache import Display, DisplayCache
from shapelens.lsp.startup.messages import Messages, MessageSplitter

logger = logging.getLogger(__name__)
READ_SIZE = 1 << 16


class StartupProxy:
    """Reads messages from a file descriptor, and answers on `stdout` until `step_aside`."""

    def __init__(self, stdin: int, stdout: BinaryIO, store: Store | None, interpreter: str | None) -> None:
        self.answered: set[Any] = set()  # ids of requests
        self.messages = Messages()  # for the server
        self.display_cache: DisplayCache | None = None
        self.greeted: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()  # the params of `initialize`
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # the URI of the first document
        self._stdout = stdout
        self._store = store
        self._interpreter = interpreter
        self._loop = asyncio.get_running_loop()
        self._answers = True
        self._shown: dict[str, Display] = {}  # by URI
        self._methods: dict[str, Callable[[dict[str, Any], Any], None]] = {
            "initialize": self._initialize,
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
            "textDocument/didClose": self._did_change,
            "textDocument/inlayHint": self._inlay_hint,
            "textDocument/codeLens": self._code_lens,
        }
        self._splitter = MessageSplitter()
        if store is not None:
            version()  # Now: beside a thread that imports, each of hundreds of files would wait for its turn.
        try:
            self._loop.add_reader(stdin, self._readable, stdin)
        except (NotImplementedError, OSError):  # On Windows, and for a regular file. A read that waits cannot be ended: a daemon.
            threading.Thread(target=self._read, args=[stdin], name="stdin", daemon=True).start()

    def step_aside(self) -> None:
        """The server is there: it answers from now on."""
        self._answers = False
        self._shown.clear()

    def _readable(self, stdin: int) -> None:
        try:
            chunk = os.read(stdin, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:  # A terminal or a socket says by an error that the client has gone.
            chunk = b""
        for body in self._splitter.feed(chunk):
            self._take(body)
        if not chunk:
            self._loop.remove_reader(stdin)
            self._take(b"")

    def _read(self, stdin: int) -> None:
        try:
            while chunk := os.read(stdin, READ_SIZE):
                for body in self._splitter.feed(chunk):
                    self._loop.call_soon_threadsafe(self._take, body)
            self._loop.call_soon_threadsafe(self._take, b"")
        except RuntimeError:
            pass  # The loop has ended, and with it the server.

    def _take(self, body: bytes) -> None:
        if self._answers and body:
            self._look_at(body)
        self.messages.put(body)

    # --- answers ---

    def _look_at(self, body: bytes) -> None:
        try:
            message = json.loads(body)
            handle = self._methods.get(message.get("method"))
            if handle is not None:
                handle(message["params"], message.get("id"))
        except Exception:
            # The server gets the message as well, and says what is wrong with it.
            logger.debug("a message is left to the server", exc_info=True)

    def _initialize(self, params: dict[str, Any], number: Any) -> None:
        if not self.greeted.done() and isinstance(params, dict):
            self.greeted.set_result(params)
        if self._store is None:
            return
        self.display_cache = DisplayCache(self._store, self._interpreter, params)
        greeting = self.display_cache.greeting()
        if greeting is not None:
            self._answer(number, greeting)

    def _did_open(self, params: dict[str, Any], number: Any) -> None:
        document = params["textDocument"]
        if not self.opened.done():
            self.opened.set_result(document["uri"])
        display = self.display_cache.find(document["uri"], document["text"]) if self.display_cache is not None else None
        if display is not None:
            display = self._shown[document["uri"]] = display.of_version(document["version"])
            shown = {"uri": document["uri"], "version": document["version"], "diagnostics": display.diagnostics}
            self._send({"method": "textDocument/publishDiagnostics", "params": shown})

    def _did_change(self, params: dict[str, Any], number: Any) -> None:
        self._shown.pop(params["textDocument"]["uri"], None)

    def _inlay_hint(self, params: dict[str, Any], number: Any) -> None:
        display = self._shown.get(params["textDocument"]["uri"])
        if display is not None:
            first, last = params["range"]["start"]["line"], params["range"]["end"]["line"]
            self._answer(number, [hint for hint in display.hints if first <= hint["position"]["line"] <= last])

    def _code_lens(self, params: dict[str, Any], number: Any) -> None:
        display = self._shown.get(params["textDocument"]["uri"])
        if display is not None:
            self._answer(number, display.lenses)

    def _answer(self, number: Any, result: Any) -> None:
        self.answered.add(number)
        self._send({"id": number, "result": result})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdout.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._stdout.flush()
