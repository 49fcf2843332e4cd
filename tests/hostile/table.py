"""Attack files, one after the other in a server: what is said of each, what is still shown, and what is left behind.

    python tests/hostile/table.py [NAME ...] [--python PYTHON]

A file is opened, then replaced by one that is well, then closed: those of fixtures/hostile/, and the texts of `texts.py`. NAME is a part
of the names of those that are wanted. A row says the findings with their lines, how many hints the file has, whether the class below the
attack has all of its own, the seconds until the file was settled and those until the text that is well had its hints. At the end it is
looked whether a process of the server's, or a file in the workspace, the home folder or the temporary folder, is left, and whether the
files themselves are as they were.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "differential")]

from keystrokes import Server  # noqa: E402

from fixtures import read  # noqa: E402
from hostile.texts import STAYS, TEXTS, Text  # noqa: E402
from time_limits import timeout  # noqa: E402

FOLDER = TESTS.parent / "fixtures" / "hostile"
PATIENCE_SECONDS = 60.0
ENDING_SECONDS = 5.0  # in which the processes of a server that has ended are gone
MARK = "SHAPELENS_TABLE"
STAYS_HINT = "→ [B, 6]"
STAYS_HINTS = 3
MOST_SAID = 600  # characters of a row


@dataclass
class Row:
    """What became of one file."""

    name: str
    findings: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)  # of the findings
    hints: int = 0
    stays: bool | None = None  # whether the class below the attack has its hints; None: there is none
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

    def __init__(self, python: str, deadline: float | None, timeouts: str) -> None:
        self.python = python
        self.deadline = deadline
        self.timeouts = timeouts
        self.world = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.workspace, self.home, self.temporary = (self.world / name for name in ("workspace", "home", "tmp"))
        self.mark = uuid.uuid4().hex
        self.written: dict[Path, bytes] = {}  # the files, as they have to stay
        self.left = Left()

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[Server]:
        """A server; after that `left` is known."""
        for folder in (self.workspace, self.home, self.temporary):
            folder.mkdir()
        deadline = f"deadline = {self.deadline}\n" if self.deadline is not None else ""
        settings = self.workspace / "pyproject.toml"
        self.written[settings] = f"[tool.shapelens]\n{deadline}hints.unchanged = true\n".encode()  # All hints are counted.
        settings.write_bytes(self.written[settings])
        command = [sys.executable, "-m", "shapelens.lsp", "--interpreter", self.python]
        world = {
            "HOME": self.home,
            "TMPDIR": self.temporary,
            MARK: self.mark,
            "SHAPELENS_CACHE_DIR": "",
            "SHAPELENS_TIMEOUTS": self.timeouts,
        }
        before = dict(os.environ)
        os.environ.update({name: str(value) for name, value in world.items()})
        try:
            async with Server(command, self.workspace) as server:
                os.environ.clear()
                os.environ.update(before)
                yield server
            end = time.monotonic() + ENDING_SECONDS
            while (processes := self._processes()) and time.monotonic() < end:
                await asyncio.sleep(0.05)
            self.left = Left(processes, self._files())
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
        found = [str(path.relative_to(self.world)) for path in self.world.rglob("*") if path.is_file() and path not in self.written]
        changed = [path.name for path, content in self.written.items() if not path.is_file() or path.read_bytes() != content]
        return sorted(found) + [f"{name} is not as it was" for name in changed]

    async def row(self, server: Server, name: str, attack: Text) -> Row:
        """Open a file, then make it one that is well."""
        row = Row(name)
        path = self.workspace / (re.sub(r"\W+", "_", name) + ".py")
        text = attack.text
        self.written[path] = text.encode("utf-8", "surrogatepass")
        path.write_bytes(self.written[path])
        start = time.perf_counter()
        uri = server.open(path, text)
        shown = await server.shown(uri)
        row.seconds = round(time.perf_counter() - start, 2)
        row.findings = [f"{where[0] + 1}: {code}: {message}" for where, code, message in shown["findings"]]
        row.codes = [code for _, code, _ in shown["findings"]]
        row.hints = len(shown["hints"])
        if attack.stays:
            row.stays = sum(label == STAYS_HINT for _, _, label in shown["hints"]) >= STAYS_HINTS
        start = time.perf_counter()
        server.change(uri, STAYS, None)
        async with timeout(PATIENCE_SECONDS):
            while (await self._labels(server, uri)).count(STAYS_HINT) < STAYS_HINTS:
                await asyncio.sleep(0.02)
        row.next_edit = round(time.perf_counter() - start, 2)
        row.failures, server.failures = list(server.failures), []
        server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        server.published.pop(uri, None)
        return row

    async def _labels(self, server: Server, uri: str) -> list[str]:
        return [label for _, _, label in (await server.shown_now(uri))["hints"]]


def attacks() -> dict[str, dict[str, Text]]:
    """Each fixture and each text, by kind and name."""
    fixtures = {file.stem: Text(read(file)[0], frozenset(), stays=False) for file in sorted(FOLDER.glob("*.py"))}
    return {"fixtures": fixtures, **TEXTS}


async def rows_of(
    chosen: dict[str, Text],
    python: str,
    *,
    deadline: float | None = None,
    timeouts: str = "",
    tell: Callable[[Row], None] = lambda row: None,
) -> tuple[list[Row], Left]:
    """The table, and what is left. deadline: in seconds, of a run; None: the default. timeouts: as in SHAPELENS_TIMEOUTS."""
    table = Table(python, deadline, timeouts)
    rows = []
    async with table.server() as server:
        for name, attack in chosen.items():
            try:
                rows.append(await table.row(server, name, attack))
            except (TimeoutError, RuntimeError) as error:
                rows.append(Row(name, failures=[f"no answer: {type(error).__name__} {error}", *server.failures]))
            tell(rows[-1])
    return rows, table.left


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    every = {name: each for kind in attacks().values() for name, each in kind.items()}
    chosen = {name: each for name, each in every.items() if not options.names or any(part in name for part in options.names)}
    print("| file | findings, with their lines | hints | the rest | settled, s | next edit, s |\n|---|---|---|---|---|---|")
    rows, left = asyncio.run(rows_of(chosen, options.python, tell=_tell))
    failures = [(row.name, row.failures) for row in rows if row.failures]
    print(f"\nProcesses left: {left.processes or 'none'}. Files left: {left.files or 'none'}. Failures of ours: {failures or 'none'}.")


def _tell(row: Row) -> None:
    said = "<br>".join(row.findings).replace("|", "\\|") or "–"
    rest = {None: "–", True: "shown", False: "**lost**"}[row.stays]
    print(f"| {row.name} | {said[:MOST_SAID]} | {row.hints} | {rest} | {row.seconds} | {row.next_edit} |", flush=True)


if __name__ == "__main__":
    main()
