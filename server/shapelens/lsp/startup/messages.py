"""Cuts what a client sends into messages: the headers of LSP's base protocol, and bodies of JSON."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from typing import Protocol

logger = logging.getLogger(__name__)

END_OF_HEADER = b"\r\n\r\n"
# The last lines before the end of a header; whatever stands before them belongs to a message whose header was wrong.
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,9})[ \t]*(?:\r\n[\w-]+[ \t]*:[^\r\n]*)*\Z", re.IGNORECASE)
LARGEST_MESSAGE = 256 << 20  # bytes
LARGEST_HEADER = 1 << 12  # bytes


class Incoming(Protocol):
    """Where messages come from."""

    async def next_body(self) -> bytes:
        """The body of the next message, in bytes of JSON; b"" once the client has gone."""


class Messages:
    """A queue of bodies."""

    def __init__(self) -> None:
        self._bodies: asyncio.Queue[bytes] = asyncio.Queue()

    def put(self, body: bytes) -> None:
        """Append a body; b"": the client has gone."""
        self._bodies.put_nowait(body)

    async def next_body(self) -> bytes:
        """The body of the next message; b"" once the client has gone."""
        return await self._bodies.get()


class MessageSplitter:
    """Splits what a client sends into the bodies of its messages.

    A header without a length leaves open where its message ends: that message is lost, and the next header is found behind it.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._lost = 0  # bytes since the last message

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The bodies that are complete with this chunk."""
        buffer = self._buffer
        buffer += chunk
        while (end := buffer.find(END_OF_HEADER)) >= 0:
            start = end + len(END_OF_HEADER)
            found = _LENGTH.search(buffer, 0, end)
            size = int(found[1]) if found is not None else 0
            if found is None or size > LARGEST_MESSAGE:
                self._lose(start)
                continue
            before = found.start()
            # Other headers may stand before the length.
            if before and not _is_header(bytes(buffer[:before])):
                self._lose(before)
                continue
            if len(buffer) < start + size:
                return
            body = bytes(buffer[start : start + size])
            del buffer[: start + size]
            self._tell_what_is_lost()
            if body:
                yield body
        if len(buffer) > 16 * LARGEST_HEADER:
            self._lose(len(buffer) - LARGEST_HEADER)

    def _lose(self, size: int) -> None:
        self._lost += size
        del self._buffer[:size]

    def _tell_what_is_lost(self) -> None:
        if self._lost:
            logger.warning("%d bytes of the client were left out: they have no header that says how long their message is", self._lost)
            self._lost = 0


def _is_header(lines: bytes) -> bool:
    return lines.endswith(b"\r\n") and all(re.match(rb"[\w-]+[ \t]*:", line) for line in lines[:-2].split(b"\r\n"))
