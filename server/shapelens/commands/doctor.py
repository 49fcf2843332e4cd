"""`shapelens doctor [FOLDER]`."""

from __future__ import annotations

import platform
import time
from importlib import metadata
from pathlib import Path

from rich.console import Console

from shapelens import __version__, protocol
from shapelens.analysis.shapes import shape_text
from shapelens.batch import Analysed, Batch, Unavailable
from shapelens.commands import RefusedRequest
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

_MARKS = {"ok": ("✓", "green"), "bad": ("✗", "bold red"), "note": ("·", "dim")}


class _Report:
    """Lines with a mark before each, and whether ShapeLens can work."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.can_work = True

    def say(self, mark: str, text: str, action: str = "") -> None:
        sign, style = _MARKS[mark]
        self._console.print(f"[{style}]{sign}[/] ", end="", soft_wrap=True)
        self._console.print(text, soft_wrap=True, markup=False)
        if action:
            self._console.print(f"  → {action}", soft_wrap=True, markup=False)
        self.can_work = self.can_work and mark != "bad"


async def doctor(folder: Path, python: str | None) -> int:
    """Say what ShapeLens finds for a folder and what is missing; 1 if it cannot work. Raises RefusedRequest."""
    if not folder.is_dir():
        raise RefusedRequest(f"{folder}: no such folder")
    report = _Report()
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("pygls", "lsprotocol", "libcst"))
    report.say("ok", f"ShapeLens {__version__} on Python {platform.python_version()} ({packages})")
    scope = ProjectScope([folder])
    root = scope.project_root(folder.absolute())
    _settings(report, root, scope.settings(root))
    async with Batch(python, root=root, scope=scope) as batch:
        if batch.notice is not None:
            report.say("note", batch.notice)
        await _worker(report, batch)
    return 0 if report.can_work else 1


def _settings(report: _Report, root: Path, settings: Settings) -> None:
    if settings.problems:
        report.say("note", f"settings of {settings.folder}:")
    elif settings.examples_from == "settings":
        report.say(
            "note", f"no [tool.shapelens] in a pyproject.toml of {root} or above it in its repository: all settings have their defaults"
        )
    else:
        report.say("ok", f"settings: [tool.shapelens] of {Path(settings.folder, 'pyproject.toml')}")
    for problem in settings.problems:
        report.say("note", f"settings: {problem}", "it is ignored until it is mended")


async def _worker(report: _Report, batch: Batch) -> None:
    report.say("note", f"interpreter for your code: {batch.interpreter}")
    started = time.monotonic()
    try:
        hello = await batch.start()
        report.say("ok", f"Python {hello.python}, its worker answered in {time.monotonic() - started:.1f} s")
        torch_version = tuple(int(part) for part in (hello.torch or "0.0").split("+")[0].split(".")[:2])
        if torch_version < OLDEST_TORCH:
            oldest = ".".join(map(str, OLDEST_TORCH))
            report.say("bad", f"torch {hello.torch} is too old", f"{batch.interpreter} -m pip install 'torch>={oldest}'")
        else:
            report.say("ok", f"torch {hello.torch}")
        first = await batch.analyse(batch.root / "shapelens_probe.py", PROBE)
        loaded = time.monotonic() - started
        again = time.monotonic()
        await batch.analyse(batch.root / "shapelens_probe.py", PROBE)
    except Unavailable as error:
        report.say("bad", str(error), error.action)
        return
    _probe(report, first, loaded, time.monotonic() - again)
    _confinement(report, hello)


def _probe(report: _Report, analysed: Analysed, loaded: float, again: float) -> None:
    shown = [shape_text(value) for seen in analysed.trace.observations if seen.kind == "return" for value in seen.values]
    if analysed.findings or PROBE_SHAPE not in shown:
        said = analysed.findings[0].message if analysed.findings else f"it shows {', '.join(shown) or 'nothing'}"
        action = "run `shapelens lsp --log-level debug` and report what it logs"
        report.say("bad", f"a model with one Linear layer does not run as it should: {said}", action)
    else:
        report.say("ok", f"a model with one Linear layer ran: first shapes after {loaded:.1f} s, the next after {again * 1000:.0f} ms")


def _confinement(report: _Report, hello: protocol.Hello) -> None:
    how = "in a forked process of its own" if hello.fork else "in a process that is replaced when it fails (this system has no fork)"
    report.say("note", f"each run happens {how}, within a deadline and, on Linux, a memory limit")
    report.say("note", "network, writes and other programs are refused to it by an audit hook: a guard against accidents, no sandbox")
    if held := held_by_kernel(hello.landlock):
        report.say("ok", f"the kernel holds each run to it as well (Landlock {hello.landlock}): {held}")
    else:
        report.say("note", "the kernel does not hold it to that: this system has no Landlock (Linux 5.13 or newer)")


def held_by_kernel(landlock: int) -> str:
    """What a version of Landlock keeps a run from; "" for none. See `worker/sandbox/kernel_boundary.py`."""
    kept = [(1, "writes outside of its scratch folder"), (4, "TCP"), (6, "signals to other processes")]
    return ", ".join(what for first, what in kept if landlock >= first)
