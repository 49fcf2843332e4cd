"""Attack files, one after the other in one server: what is said of each, what is still shown, and what is left behind.

    python tests/hostile/table.py [FILE ...] [--python PYTHON]

A file is opened, then replaced by one that is well, then closed; fixtures/hostile/ is the default. A row says the findings with their
lines, how many hints the file has, the seconds until it was settled and those until the text that is well had its hints. At the end it is
looked whether a process of the server's, or a file in the workspace, the home folder or the temporary folder, is left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "differential")]

from keystrokes import Server  # noqa: E402

from fixtures import read  # noqa: E402
from time_limits import timeout  # noqa: E402

FOLDER = TESTS.parent / "fixtures" / "hostile"
PATIENCE_SECONDS = 60.0
MARK = "SHAPELENS_TABLE"
WELL = """\
from torch import nn


# shapelens: Stays()(f32[B:2, 8])
class Stays(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 6)

    def forward(self, x):
        y = self.fc(x)
        return y
"""


@dataclass
class Row:
    """What became of one file."""

    name: str
    findings: list[str] = field(default_factory=list)
    hints: int = 0
    seconds: float = 0.0  # until the file was settled
    next_edit: float = 0.0  # until the text that is well had its hints
    failures: list[str] = field(default_factory=list)  # of ours, in the log


@dataclass
class Left:
    """What was there at the end that had not been there."""

    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


class Table:
    """One server and its world: a workspace, a home folder and a temporary folder of its own."""

    def __init__(self, python: str, options: list[str]) -> None:
        self.python = python
        self.options = options
        self.world = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.workspace, self.home, self.temporary = (self.world / name for name in ("workspace", "home", "tmp"))
        self.mark = uuid.uuid4().hex
        self.left = Left()

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[Server]:
        """A server; after that `left` is known."""
        for folder in (self.workspace, self.home, self.temporary):
            folder.mkdir()
        command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", self.python, *self.options]
        world = {"HOME": self.home, "TMPDIR": self.temporary, MARK: self.mark, "SHAPELENS_CACHE_DIR": ""}
        before = dict(os.environ)
        os.environ.update({name: str(value) for name, value in world.items()})
        try:
            async with Server(command, self.workspace) as server:
                os.environ.clear()
                os.environ.update(before)
                yield server
            await asyncio.sleep(0.5)
            self.left = Left(self._processes(), self._files())
        finally:
            shutil.rmtree(self.world, ignore_errors=True)

    def _processes(self) -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
        return found

    def _files(self) -> list[str]:
        return sorted(str(path.relative_to(self.world)) for path in self.world.rglob("*") if path.is_file() and path.suffix != ".py")

    async def row(self, server: Server, file: Path) -> Row:
        """Open a file, then make it one that is well."""
        row = Row(file.stem)
        text, _ = read(file)
        path = self.workspace / file.name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        start = time.perf_counter()
        uri = server.open(path, text)
        shown = await self._settled(server, uri)
        row.seconds = round(time.perf_counter() - start, 2)
        row.findings = [f"{where[0] + 1}: {code}: {message}" for where, code, message in shown["findings"]]
        row.hints = len(shown["hints"])
        start = time.perf_counter()
        server.change(uri, WELL, None)
        async with timeout(PATIENCE_SECONDS):
            while (await self._labels(server, uri)).count("→ [B, 6]") < 3:
                await asyncio.sleep(0.02)
        row.next_edit = round(time.perf_counter() - start, 2)
        row.failures, server.failures = list(server.failures), []
        server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        server.published.pop(uri, None)
        return row

    async def _settled(self, server: Server, uri: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_SECONDS
        while server.published.get(uri, (0.0, 0, []))[1] != server.versions[uri] and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return await server.shown(uri)

    async def _labels(self, server: Server, uri: str) -> list[str]:
        return [label for _, _, label in (await server.shown_now(uri))["hints"]]


async def rows_of(files: list[Path], python: str, *options: str, tell: Callable[[Row], None] = lambda row: None) -> tuple[list[Row], Left]:
    """The table, and what is left."""
    table = Table(python, list(options))
    rows = []
    async with table.server() as server:
        for file in files:
            try:
                rows.append(await table.row(server, file))
            except (TimeoutError, RuntimeError) as error:
                rows.append(Row(file.stem, failures=[f"no answer: {type(error).__name__} {error}", *server.failures]))
            tell(rows[-1])
    return rows, table.left


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    print("| file | findings, with their lines | hints | settled, s | next edit, s |\n|---|---|---|---|---|")
    rows, left = asyncio.run(rows_of(options.files or sorted(FOLDER.glob("*.py")), options.python, tell=_tell))
    failures = [(row.name, row.failures) for row in rows if row.failures]
    print(f"\nProcesses left: {left.processes or 'none'}. Files left: {left.files or 'none'}. Failures of ours: {failures or 'none'}.")


def _tell(row: Row) -> None:
    said = "<br>".join(row.findings).replace("|", "\\|") or "–"
    print(f"| {row.name} | {said} | {row.hints} | {row.seconds} | {row.next_edit} |", flush=True)


if __name__ == "__main__":
    main()
