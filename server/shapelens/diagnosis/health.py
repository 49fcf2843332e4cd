"""Checks that ShapeLens has what it needs for a folder, and says what to do about what is missing."""

from __future__ import annotations

import platform
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from shapelens import __version__, protocol
from shapelens.analysis.shapes import shape_text
from shapelens.batch import Analysed, Batch, Unavailable
from shapelens.examples.settings import Settings
from shapelens.project_scope import ProjectScope

OLDEST_TORCH = (2, 1)
PROBE = """import torch.nn as nn


# shapelens: Probe()(f32[B:2, 3])
class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x)
"""
PROBE_SHAPE = "[B, 4]"


@dataclass(frozen=True)
class Examined:
    """One thing that was looked at: it is well, it keeps ShapeLens from working, or it is worth knowing. action: what to do about it."""

    mark: Literal["ok", "bad", "note"]
    text: str
    action: str = ""


async def examine(folder: Path, python: str | None) -> AsyncIterator[Examined]:
    """Look at what there is for a folder, one thing after the other."""
    yield Examined("ok", f"ShapeLens {__version__} on Python {platform.python_version()} ({libraries()})")
    scope = ProjectScope([folder])
    root = scope.project_root(folder.absolute())
    for remark in _settings(root, scope.settings(root)):
        yield remark
    async with Batch(python, root=root, scope=scope) as batch:
        if batch.notice is not None:
            yield Examined("note", batch.notice)
        async for remark in _worker(batch):
            yield remark


def libraries() -> str:
    """The libraries that the server runs with, in words."""
    try:
        return ", ".join(f"{name} {metadata.version(name)}" for name in ("pygls", "lsprotocol", "libcst"))
    except metadata.PackageNotFoundError:
        return "with the libraries of the extension"


def _settings(root: Path, settings: Settings) -> Iterator[Examined]:
    if settings.problems:
        yield Examined("note", f"settings of {settings.folder}:")
    elif settings.examples_from == "settings":
        yield Examined(
            "note", f"no [tool.shapelens] in a pyproject.toml of {root} or above it in its repository: all settings have their defaults"
        )
    else:
        yield Examined("ok", f"settings: [tool.shapelens] of {Path(settings.folder, 'pyproject.toml')}")
    for problem in settings.problems:
        yield Examined("note", f"settings: {problem}", "it is ignored until it is mended")


async def _worker(batch: Batch) -> AsyncIterator[Examined]:
    yield Examined("note", f"interpreter for your code: {batch.interpreter}")
    started = time.monotonic()
    try:
        hello = await batch.start()
        yield Examined("ok", f"Python {hello.python}, its worker answered in {time.monotonic() - started:.1f} s")
        torch_version = tuple(int(part) for part in (hello.torch or "0.0").split("+")[0].split(".")[:2])
        if torch_version < OLDEST_TORCH:
            oldest = ".".join(map(str, OLDEST_TORCH))
            yield Examined("bad", f"torch {hello.torch} is too old", f"{batch.interpreter} -m pip install 'torch>={oldest}'")
        else:
            yield Examined("ok", f"torch {hello.torch}")
        first = await batch.analyse(batch.root / "shapelens_probe.py", PROBE)
        loaded = time.monotonic() - started
        again = time.monotonic()
        await batch.analyse(batch.root / "shapelens_probe.py", PROBE)
    except Unavailable as error:
        yield Examined("bad", str(error), error.action)
        return
    yield _probe(first, loaded, time.monotonic() - again)
    for remark in _confinement(hello):
        yield remark


def _probe(analysed: Analysed, loaded: float, again: float) -> Examined:
    shown = [shape_text(value) for seen in analysed.trace.observations if seen.kind == "return" for value in seen.values]
    if analysed.findings or PROBE_SHAPE not in shown:
        said = analysed.findings[0].message if analysed.findings else f"it shows {', '.join(shown) or 'nothing'}"
        action = "run `shapelens lsp --log-level debug` and report what it logs"
        return Examined("bad", f"a model with one Linear layer does not run as it should: {said}", action)
    return Examined("ok", f"a model with one Linear layer ran: first shapes after {loaded:.1f} s, the next after {again * 1000:.0f} ms")


def _confinement(hello: protocol.Hello) -> Iterator[Examined]:
    how = "in a forked process of its own" if hello.fork else "in a process that is replaced when it fails (this system has no fork)"
    yield Examined("note", f"each run happens {how}, within a deadline and, on Linux, a memory limit")
    yield Examined("note", "network, writes and other programs are refused to it by an audit hook: a guard against accidents, no sandbox")
    for held in held_by_kernel(hello):
        yield Examined("ok", f"the kernel holds each run to it as well, by {held}")
    if not hello.landlock:
        yield Examined("note", "no Landlock (Linux 5.13 or newer): C code may write where you may")
    if not hello.seccomp:
        yield Examined("note", "no seccomp (Linux on x86-64 or arm64): C code may start processes, and use the network")


def held_by_kernel(hello: protocol.Hello) -> list[str]:
    """Returns the boundaries that the kernel sets to runs. See `kernel_boundary.py` and `system_calls.py` in `worker/sandbox/`."""
    kept = [(1, "no writes outside of its scratch folder"), (4, "no TCP"), (6, "no signals to other processes")]
    found = [what for first, what in kept if hello.landlock >= first]
    held = [f"Landlock {hello.landlock}: {', '.join(found)}"] if found else []
    return held + (["seccomp: no other processes, programs or connections"] if hello.seccomp else [])
