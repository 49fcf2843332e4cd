"""Runs examples on the CPU in forked children, for replay.py: jobs come as lines of JSON, and each is answered by one.

It is started with the interpreter of the models, which needs to have nothing but torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

import torch

from real_tensors import Replay

# What is tried until an example runs: whether gradients are kept, and what its tensors hold.
TRIALS = ((False, "random"), (True, "random"), (False, "ones"), (False, "zeros"), (True, "ones"))


def _answers(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What failed at the module's level; then for the example as it is, with each dim alone at another size, and with all: a record."""
    replayed = Replay(job["file"], job["folders"], job["name"])
    yield {"problems": replayed.problems}
    errors: list[str] = []
    for gradients, content in TRIALS:
        try:
            record = replayed.run(job["expression"], {}, content, gradients=gradients)
        except BaseException as error:
            errors.append(f"{type(error).__name__}: {error}")
            continue
        yield {"sizes": {}, "record": list(record.items())}
        break
    else:
        yield {"error": errors[0][:500]}
        return
    together: dict[str, int] = {}
    for name, others in job["dims"].items():
        for size in others:
            try:
                record = replayed.run(job["expression"], {name: size}, content, gradients=gradients)
            except BaseException:
                continue
            together[name] = size
            yield {"sizes": {name: size}, "record": list(record.items())}
            break
    if len(together) > 1:
        with contextlib.suppress(BaseException):
            yield {"sizes": together, "record": list(replayed.run(job["expression"], together, content, gradients=gradients).items())}


def _in_child(job: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The answers of a forked child, as many as it gave within its limits, and its wait status."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.chdir(job["folders"][0])
        sys.argv[:] = [job["file"]]
        signal.alarm(job["seconds"])
        resource.setrlimit(resource.RLIMIT_AS, (job["bytes"], job["bytes"]))
        with os.fdopen(writing, "w") as out, contextlib.suppress(BaseException):
            for answer in _answers(job):
                out.write(json.dumps(answer) + "\n")
                out.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        found = [json.loads(line) for line in answers if line.endswith("\n")]
    return found, os.waitpid(child, 0)[1]


def serve() -> None:
    """Answer jobs until standard input ends: {file, folders, name, expression, dims: {name: sizes to try}, seconds, bytes}."""
    torch.set_num_threads(1)  # Threads do not survive a fork.
    for line in sys.stdin:
        answers, status = _in_child(json.loads(line))
        print(json.dumps({"answers": answers, "signal": status & 127}), flush=True)


if __name__ == "__main__":
    serve()
