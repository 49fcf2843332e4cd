"""How the language server begins: the worker first, then the answers that are known, then all the rest.

PyTorch takes longest to load, so the worker is started before anything else is imported that takes time; it loads in its own process while
pygls and libcst load in this one. Meanwhile `StartupProxy` answers what it can.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlparse

from shapelens.cache import location
from shapelens.lsp.startup.startup_proxy import StartupProxy
from shapelens.lsp.workspace.workers import Workers
from shapelens.runner import interpreter as interpreters

if TYPE_CHECKING:
    from shapelens.lsp.server.language_server import Server

# The client's first message comes at once; where it does not, nothing waits for it.
LONGEST_GREETING = 0.5
# While modules are imported in one thread, messages should not wait for long in another.
SWITCH_SECONDS = 0.0005


def run(*, tcp: int | None, interpreter: str | None, log_level: str) -> None:
    """Serve one client, over stdio or on a port of localhost (0: any that is free), until it says goodbye or goes away. Ends the process.

    The exit status is 0 after `shutdown`, else 1, as LSP asks.
    """
    from shapelens.lsp.server import log

    log.log_to_stderr(log_level)
    # Whatever prints in this process must not get between the messages.
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    workers = Workers()
    served: list[Server] = []
    try:
        asyncio.run(
            _serve_tcp(workers, interpreter, tcp, served) if tcp is not None else _serve_stdio(workers, interpreter, stdout, served)
        )
    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
        pass
    finally:
        workers.kill()
    sys.exit(0 if served and served[0].said_goodbye else 1)


async def _serve_stdio(workers: Workers, interpreter: str | None, stdout: BinaryIO, served: list[Server]) -> None:
    proxy = StartupProxy(sys.stdin.fileno(), stdout, location.opened(), interpreter)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    loading = asyncio.create_task(asyncio.to_thread(_load))
    await asyncio.wait({proxy.greeted, loading}, timeout=LONGEST_GREETING, return_when=asyncio.FIRST_COMPLETED)
    guess = _interpreter(interpreter, proxy.greeted.result() if proxy.greeted.done() else {})
    if guess is not None:
        workers.of(*guess).begin()
    handlers, language_server = await loading
    # A trace is thousands of objects without cycles: looking through them for some would take longer than reading it.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    sys.setswitchinterval(usual)
    served.append(handlers.make(interpreter, workers, proxy))
    proxy.step_aside()
    await language_server.serve_stdio(served[0], proxy.messages, stdout)


async def _serve_tcp(workers: Workers, interpreter: str | None, port: int, served: list[Server]) -> None:
    handlers, language_server = _load()
    served.append(handlers.make(interpreter, workers))
    await language_server.serve_tcp(served[0], port)


def _load() -> Any:
    from shapelens.lsp.server import handlers, language_server

    return handlers, language_server


def _interpreter(option: str | None, params: dict[str, Any]) -> tuple[str, str] | None:
    """The interpreter that documents will most likely run under, and the folder that it was found for.

    None where nothing speaks for one yet. A project's settings may name another: then this worker is stopped as soon as that is known.
    """
    folders = [folder.get("uri") for folder in params.get("workspaceFolders") or []] or [params.get("rootUri")]
    parts = urlparse(str(folders[0] or ""))
    root = unquote(parts.path) if parts.scheme == "file" and sys.platform != "win32" else ""
    options = params.get("initializationOptions")
    found = options.get("interpreter") if isinstance(options, dict) else None
    settings = options.get("settings") if isinstance(options, dict) else None
    named = settings.get("interpreter") if isinstance(settings, dict) else None
    setting = next((each for each in (option, named, found) if isinstance(each, str) and each), None)
    return (interpreters.find(root, setting), root) if params or option else None
