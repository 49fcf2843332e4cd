"""Starts the language server: the worker first, then the answers that are known, then all the rest.

PyTorch takes longest to load, so the worker is started before anything else is imported that takes time; it loads in its own process while
pygls and libcst load in this one. Meanwhile `StartupProxy` answers what it can.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import unquote, urlparse

from shapelens.cache import location
from shapelens.lsp.startup.startup_proxy import StartupProxy
from shapelens.lsp.workspace.workers import Workers
from shapelens.runner import interpreter as interpreters

if TYPE_CHECKING:
    from shapelens.lsp.server.language_server import Server

# The client's first message comes at once; where it does not, nothing waits for it.
LONGEST_GREETING = 0.5
# Between looks whether the client lives, and after its end.
ORPHAN_SECONDS = 2.0
# While modules are imported in one thread, messages should not wait for long in another.
SWITCH_SECONDS = 0.0005


class ServerOptions(NamedTuple):
    """Holds what the command line says: the interpreter, and what user code may do."""

    interpreter: str | None
    allow: Sequence[str]


def run(*, tcp: int | None, interpreter: str | None, log_level: str, allow: Sequence[str] = ()) -> None:
    """Serve one client, over stdio or on a port of localhost (0: any that is free), until it says goodbye or goes away. Ends the process.

    The exit status is 0 after `shutdown`, else 1, as LSP asks.
    """
    from shapelens.lsp.server import log

    log.log_to_stderr(log_level)
    # Whatever prints in this process must not get between the messages.
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    workers = Workers()
    served: list[Server] = []
    options = ServerOptions(interpreter, allow)
    try:
        asyncio.run(_serve_tcp(workers, options, tcp, served) if tcp is not None else _serve_stdio(workers, options, stdout, served))
    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
        pass
    finally:
        workers.kill()
    sys.exit(0 if served and served[0].said_goodbye else 1)


async def _serve_stdio(workers: Workers, options: ServerOptions, stdout: BinaryIO, served: list[Server]) -> None:
    proxy = StartupProxy(sys.stdin.fileno(), stdout, location.opened(), options.interpreter)
    proxy.greeted.add_done_callback(lambda greeted: None if greeted.cancelled() else _watch(greeted.result(), workers))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    loading = asyncio.create_task(asyncio.to_thread(_load))
    await asyncio.wait({proxy.greeted, loading}, timeout=LONGEST_GREETING, return_when=asyncio.FIRST_COMPLETED)
    _begin_early(workers, options.interpreter, proxy)
    handlers, language_server = await loading
    # A trace is thousands of objects without cycles: looking through them for some would take longer than reading it.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    sys.setswitchinterval(usual)
    served.append(handlers.make(options.interpreter, workers, proxy, options.allow))
    proxy.step_aside()
    await language_server.serve_stdio(served[0], proxy.messages, stdout)


async def _serve_tcp(workers: Workers, options: ServerOptions, port: int, served: list[Server]) -> None:
    handlers, language_server = _load()
    served.append(handlers.make(options.interpreter, workers, allow=options.allow))
    await language_server.serve_tcp(served[0], port)


def _load() -> Any:
    from shapelens.lsp.server import handlers, language_server

    return handlers, language_server


def _begin_early(workers: Workers, option: str | None, proxy: StartupProxy) -> None:
    """Start the worker that documents will most likely run under: at once where the user has said which, or where it is none of the
    workspace's own; what lies in a workspace runs only once a file of it is open.

    Nothing is started where nothing speaks for an interpreter yet. A project's settings may name another that the user allows: then this
    worker is stopped as soon as that is known.
    """
    params = proxy.greeted.result() if proxy.greeted.done() else {}
    said, folders = _said(option, params), _folders(params)
    first = folders[0] if folders else ""
    python = interpreters.find(first, said)
    if said or python == interpreters.find("", None):
        if params or option:
            workers.of(python, first).begin()
        return

    def begin_for(uri: str) -> None:
        path = _path(uri)
        root = max((folder for folder in folders if path and Path(path).is_relative_to(folder)), key=len, default="")
        workers.of(interpreters.find(root, None), root).begin()

    proxy.opened.add_done_callback(lambda opened: begin_for(opened.result()) if not opened.cancelled() else None)


def _watch(params: dict[str, Any], workers: Workers) -> None:
    """Look whether the client lives, where it is the process that has started this one."""
    if params.get("processId") == os.getppid() and sys.platform != "win32":
        threading.Thread(target=_end_with, args=[os.getppid(), workers], daemon=True).start()


def _end_with(client: int, workers: Workers) -> None:
    """End this process some seconds after the client that has started it, even where others hold the other end of its pipes."""
    while os.getppid() == client:
        time.sleep(ORPHAN_SECONDS)
    time.sleep(ORPHAN_SECONDS)  # The end of the input is seen at once, as a rule.
    workers.kill()
    os._exit(1)


def _said(option: str | None, params: dict[str, Any]) -> str | None:
    """The interpreter that the command line or the client names."""
    options = params.get("initializationOptions")
    found = options.get("interpreter") if isinstance(options, dict) else None
    settings = options.get("settings") if isinstance(options, dict) else None
    named = settings.get("interpreter") if isinstance(settings, dict) else None
    return next((each for each in (option, named, found) if isinstance(each, str) and each), None)


def _folders(params: dict[str, Any]) -> list[str]:
    """The paths of the workspace folders."""
    folders = params.get("workspaceFolders")
    uris = [each.get("uri") for each in folders if isinstance(each, dict)] if isinstance(folders, list) else []
    uris = uris or [params.get("rootUri")]
    return [path for uri in uris if (path := _path(uri))]


def _path(uri: Any) -> str:
    """The path of a file's URI; "" where it has none that is told without loading what knows them all."""
    try:
        parts = urlparse(str(uri or ""))
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" and sys.platform != "win32" else ""
