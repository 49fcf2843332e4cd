"""Watches a worker: each question that it asks of a network is written down, before anything else in its process can hide it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_WATCH = """
import os, sys, traceback

number = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def watch(event, args):
    if event == "socket.bind" and args[1][0] == "::1":
        return  # urllib3 asks in this way whether the machine has IPv6, when it is imported.
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"):
        lines = [f"{{each.filename}}:{{each.lineno}}" for each in traceback.extract_stack()[:-1]]
        os.write(number, f"{{event}} {{args[1:]}} from {{lines[-6:]}}\\n".encode())


sys.addaudithook(watch)
"""


class NetworkWatch:
    """What the workers ask of a network that are started after this, with the same environment."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._log = folder / "asked.txt"
        watched = folder / "watched"
        watched.mkdir()
        watched.joinpath("sitecustomize.py").write_text(_WATCH.format(log=str(self._log)))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(watched), os.environ.get("PYTHONPATH", "")]))

    def questions(self) -> list[str]:
        """What was asked so far.

        Raises:
            AssertionError: no worker was watched.
        """
        assert self._log.exists(), "the worker was not watched"
        return self._log.read_text().splitlines()
