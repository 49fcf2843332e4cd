"""Serves over TCP. Any program of this machine can connect to a port, and so can a web page in its browser. Only who knows the token is
served; what does not speak LSP is not answered at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable

from lsprotocol import types

from shapelens.lsp.startup.messages import Messages, MessageSplitter

logger = logging.getLogger(__name__)

VARIABLE = "SHAPELENS_TOKEN"
HEADERS = b"content-"  # how the names of all headers of LSP begin
LONGEST_GREETING = 10.0  # seconds until a client has said `initialize`
LARGEST_GREETING = 4 << 20  # bytes
READ_SIZE = 1 << 16

Serve = Callable[[Messages, asyncio.StreamWriter], Awaitable[None]]


class RefusedConnection(Exception):
    """A connection that is not served; the message says why."""


async def listen(port: int, serve: Serve) -> None:
    """Have the first client that knows the token served, at a port that only this machine can reach (0: any that is free)."""
    ended = asyncio.Event()
    given = os.environ.pop(VARIABLE, "")  # It is none of the user code's business.
    token = given or secrets.token_urlsafe(24)
    is_taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal is_taken
        splitter, messages = MessageSplitter(), Messages()
        try:
            greeting = await asyncio.wait_for(_greeting(reader, splitter, messages), LONGEST_GREETING)
            _check(greeting, token, writer)
            if is_taken:
                raise RefusedConnection("another client is being served")
        except (RefusedConnection, OSError, asyncio.TimeoutError) as error:
            logger.warning("a connection was refused: %s", str(error) or "it did not say anything")
            writer.close()
            return
        is_taken = True
        reading = asyncio.create_task(_read(reader, splitter, messages))
        try:
            await serve(messages, writer)
        except SystemExit:
            pass  # How pygls answers `exit`; the status is the caller's.
        finally:
            reading.cancel()
            ended.set()

    listener = await asyncio.start_server(connected, "127.0.0.1", port)
    known = f"the token of ${VARIABLE}" if given else json.dumps({"token": token})
    sys.stderr.write(f"listening on 127.0.0.1:{listener.sockets[0].getsockname()[1]}, for a client with initializationOptions {known}\n")
    sys.stderr.flush()
    await ended.wait()
    listener.close()


async def _greeting(reader: asyncio.StreamReader, splitter: MessageSplitter, messages: Messages) -> bytes:
    """The body of the first message; it stands in `messages`, with those that came with it. Raises RefusedConnection and OSError."""
    first, size = b"", 0
    while chunk := await reader.read(READ_SIZE):
        size += len(chunk)
        first = (first + chunk[: len(HEADERS)])[: len(HEADERS)].lower()
        if not HEADERS.startswith(first):
            raise RefusedConnection("it does not speak LSP")
        if size > LARGEST_GREETING:
            raise RefusedConnection("its first message is too large")
        bodies = list(splitter.feed(chunk))
        for body in bodies:
            messages.put(body)
        if bodies:
            return bodies[0]
    raise RefusedConnection("it ended before it had said `initialize`")


def _check(greeting: bytes, token: str, writer: asyncio.StreamWriter) -> None:
    """Raise RefusedConnection unless this is an `initialize` with the token; one without is told so."""
    try:
        message = json.loads(greeting)
        method, number, params = message["method"], message["id"], message["params"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise RefusedConnection("its first message is not `initialize`") from None
    options = params.get("initializationOptions") if isinstance(params, dict) else None
    said = options.get("token") if isinstance(options, dict) else None
    if method != types.INITIALIZE:
        raise RefusedConnection("its first message is not `initialize`")
    if not isinstance(said, str) or not hmac.compare_digest(said.encode("utf-8", "replace"), token.encode("utf-8", "replace")):
        problem = "the token is wrong or missing: initializationOptions need the `token` that the server has printed"
        error = {"code": types.LSPErrorCodes.RequestFailed.value, "message": f"ShapeLens: {problem}"}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        raise RefusedConnection(problem)


async def _read(reader: asyncio.StreamReader, splitter: MessageSplitter, messages: Messages) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(READ_SIZE):
            for body in splitter.feed(chunk):
                messages.put(body)
    messages.put(b"")
