"""Frames over blocking streams and over pipes that are read as they fill."""

from __future__ import annotations

from typing import Any, BinaryIO, Iterator, Optional

from ...protocol import HEADER, LARGEST_FRAME, ProtocolError, decode


def read_message(stream: BinaryIO) -> Optional[Any]:
    """The next message of a stream; None at its end. Raises ProtocolError."""
    header = stream.read(HEADER.size)
    if not header or len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    if length > LARGEST_FRAME:
        raise ProtocolError("a frame of %d bytes" % length)
    body = stream.read(length)
    return decode(body) if len(body) == length else None


class FrameSplitter:
    """Cuts a stream of bytes into whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The frames (header and body) that are complete now. Raises ProtocolError."""
        self._buffer += chunk
        while len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            if length > LARGEST_FRAME:
                raise ProtocolError("a frame of %d bytes" % length)
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            yield bytes(self._buffer[:end])
            del self._buffer[:end]
