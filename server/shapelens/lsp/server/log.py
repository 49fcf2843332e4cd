"""Where the server's log goes: to stderr until a client has said hello, then to the client, which is told the warnings before that too."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from logging.handlers import MemoryHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types

ROOT = logging.getLogger("shapelens")
EARLY = 100  # warnings before a client has said hello, which it is told then
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def log_to_stderr(level: str) -> None:
    """Start logging. What pygls says of each message is left out, as it holds whole files."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    early = MemoryHandler(EARLY, flushLevel=logging.CRITICAL + 1, flushOnClose=False)
    early.setLevel(logging.WARNING)
    ROOT.addHandler(handler)
    ROOT.addHandler(early)
    ROOT.propagate = False
    set_level(level)
    other = logging.getLogger()
    other.addHandler(handler)
    other.setLevel(logging.ERROR)
    # What goes wrong there reaches us as well: it would be said twice, and a client's mistake with a traceback.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)


def set_level(level: str) -> None:
    """Log from this level on, one of LEVELS; any other text changes nothing."""
    if level in LEVELS:
        ROOT.setLevel(LEVELS[level])


def log_to_client(send: Callable[[types.LogMessageParams], None]) -> None:
    """From now on ShapeLens's own log goes to the client. Must be called on the event loop."""
    client = _ClientHandler(send, asyncio.get_running_loop())
    for handler in list(ROOT.handlers):
        ROOT.removeHandler(handler)
        if isinstance(handler, MemoryHandler):
            handler.setTarget(client)
            handler.flush()
    ROOT.addHandler(client)


class _ClientHandler(logging.Handler):
    def __init__(self, send: Callable[[types.LogMessageParams], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._send = send
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        from lsprotocol import types  # Imported here: a server that begins has a log before it has loaded lsprotocol.

        kinds = (
            (logging.ERROR, types.MessageType.Error),
            (logging.WARNING, types.MessageType.Warning),
            (logging.INFO, types.MessageType.Info),
        )
        kind = next((kind for level, kind in kinds if record.levelno >= level), types.MessageType.Debug)
        message = types.LogMessageParams(type=kind, message=f"{record.name.removeprefix('shapelens.')}: {self.format(record)}")
        try:
            # Log records come from other threads, too; messages are sent by the event loop only.
            self._loop.call_soon_threadsafe(self._send, message)
        except RuntimeError:
            pass  # The loop has ended, and with it the client.
