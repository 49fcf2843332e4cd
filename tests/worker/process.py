"""A worker process as a test drives it: blocking, one run at a time. It is forked, see forked_workers.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from forked_workers import ForkedOrStarted
from shapelens import protocol
from shapelens.protocol import ExampleRequest, Finished, Hello, Loading, Output, Ready, Run, Trace, Traced
from shapelens.runner.process import WORKER
from shapelens.worker.process.framing import read_message


class WorkerProcess:
    """A real worker under the interpreter of the tests."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-X", "utf8", str(WORKER), *arguments]
        self.process: subprocess.Popen[bytes] = ForkedOrStarted(command, stdin=-1, stdout=-1, start_new_session=True)
        self.hello = self.read()
        assert isinstance(self.hello, Hello)
        assert isinstance(self.read(), Ready)
        self.output = ""
        self.runs = 0
        self.loading: list[int] = []  # the runs whose imports were loaded ahead of them

    def read(self) -> Any:
        """The next message; None at the end."""
        assert self.process.stdout is not None
        return read_message(self.process.stdout)

    def send(self, message: Any) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(protocol.encode(message))
        self.process.stdin.flush()

    def start(self, file: Path, text: str, *examples: str, **options: Any) -> int:
        """Begin a run; its id."""
        self.runs += 1
        self.output = ""
        options.setdefault("root", str(file.parent))
        self.send(Run(self.runs, str(file), text, examples=[ExampleRequest("", each) for each in examples], **options))
        return self.runs

    def finish(self, run_id: int) -> tuple[Trace | None, Finished]:
        """The last trace of a run, and how it ended."""
        trace = None
        while True:
            message = self.read()
            assert message is not None, "the worker ended"
            if isinstance(message, Output):
                self.output += message.text
            elif isinstance(message, Loading):
                self.loading.append(message.run_id)
            elif isinstance(message, Traced) and message.run_id == run_id:
                trace = message.trace
            elif isinstance(message, Finished) and message.run_id == run_id:
                return trace, message

    def run(self, file: Path, text: str, *examples: str, **options: Any) -> tuple[Trace | None, Finished]:
        """One run from its start to its end."""
        return self.finish(self.start(file, text, *examples, **options))

    def close(self) -> int:
        """End the worker by the end of its input; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def shapes(trace: Trace, name: str) -> list[Any]:
    """The shapes that a variable was assigned, in the order of the file."""
    return [[value.shape for value in item.values] for item in trace.observations if item.name == name and item.kind == "assign"]
