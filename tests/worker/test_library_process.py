"""The process that has imported libraries, seen from the one that it serves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from shapelens.worker.process.event_loop import EventLoop
from shapelens.worker.process.library_process import LibraryProcess


class Forks:
    """Gives a process that does nothing, and keeps the other end of its socket."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.theirs: socket.socket | None = None

    def fork(self, order: object, numbers: list[int]) -> int:
        self.theirs = socket.socket(fileno=os.dup(numbers[0]))
        os.close(numbers[0])
        return self.process.pid


@pytest.mark.timeout(30)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
def test_what_was_read_while_an_answer_was_awaited_is_not_waited_for_again() -> None:
    """The loop is told that there is something to read; whoever asks for a process before its turn comes reads that, too."""
    forks = Forks()
    try:
        process = LibraryProcess(EventLoop(), forks, [], ["math"], [], lambda process: None)
        process._read()
        assert not process.has_ended
        assert forks.theirs is not None
        forks.theirs.close()
        process._read()
        assert process.has_ended
    finally:
        forks.process.kill()
        forks.process.communicate()
