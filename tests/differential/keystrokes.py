"""Typing: real files are edited as people edit them, through the server, and what is shown at the end is compared with a fresh open.

Functions are cut and typed again, key by key and with typos; numbers are changed and changed back; lines are moved and commented out;
text is cut, pasted and taken back; several cursors type at once; whole files are replaced. Hints, hovers and lenses are asked for in
between, and requests cancelled. A difference is one between a text that parses, as it is shown after typing, and the same text opened by
another server.

    python tests/differential/keystrokes.py FILE [FILE ...] [--keys 5000] [--python PYTHON] [--seed 0]

FILE may be a folder and what it is opened in, `FOLDER:FILE`, else the folder is that of the file. One line a file is printed, with what
was wrong: `internal` (an error of ours, in a message, a reply or the log), `outside` (a position that the text does not have), `vanished`
(no hint is left while a small part of the text is broken, and lines that had some were left alone), `differs`, `unsteady` (it differs, and
so do two fresh opens). Counted apart are texts, never the file as it is, that are `surer` after typing: what fails there ran before the
edits, so that it is an error, where a fresh open can only say that the example may be what is wrong, or shows another example, that does
not fail; they show what is shown where the file as it is, or a text that was compared before, is opened, and becomes this one by a single
edit. And texts of which the same is wrong, at the same places, where `another` example shows a class than in a fresh open: the one that
ran before the edits stays. And those of which an example that ran before the edits shows what is wrong, which is what is shown, hints
included, where a directive has `given` this example in the text that is opened. Nothing is written to the folders. KEYSTROKES_KEEP names a
folder that gets the texts which differ.

A text is compared once the server says that nothing is left to be done.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))

from deeds import DEEDS, undone
from wire import Client

import shapelens

QUIET_SECONDS = 0.7  # without anything new, after which a process has printed all of its traceback
IDLE_SECONDS = 300.0  # until a server has nothing more to do, on a busy machine
BETWEEN_KEYS = 0.004  # seconds at least; a pause comes now and then, so that runs come to their end
DEEDS_BETWEEN_LOOKS = 6
MOST_OF_IT = 0.9  # of a text, that is still there when its hints should be, too
MOST_BEFORE = 8  # texts that a text is compared with as an edit of them
OURS = Path(shapelens.__file__).parent
OUTPUT = "output: "  # begins what the server logs of the processes that run code
FAILED = re.compile(r"Traceback \(most recent call last\)|ShapeLens failed|internal error|Internal Error|AssertionError", re.IGNORECASE)
NO_EXAMPLE = "no example found"
DOUBT = re.compile(r" · may be wrong| \(input guessed\)", re.DOTALL)


@dataclass
class Report:
    """What became of one file."""

    keys: int = 0
    checked: int = 0  # texts that were compared with a fresh open
    unsteady: int = 0  # of these, those that were equal only to another fresh open
    surer: int = 0  # of these, those that were equal but for the doubts of the fresh open, or to one edit of a text before
    another: int = 0  # of these, those of which the same is wrong, and whose classes are shown by another example
    given: int = 0  # of these, those that were equal to a text which gives the examples that are shown
    wrong: list[tuple[str, str]] = field(default_factory=list)  # (kind, what)
    seconds: float = 0.0

    def note(self, kind: str, what: str) -> None:
        """Something is wrong; each thing is noted once."""
        if (kind, what) not in self.wrong:
            self.wrong.append((kind, what))


class Server(Client):
    """A server that is listened to for what is wrong with it."""

    def __init__(self, command: list[str], root: Path) -> None:
        super().__init__(command, root)
        self.heard = time.monotonic()
        self.failures: list[str] = []
        self.output = ""  # of the processes that run code, as far as it was not looked at

    def _receive(self, message: dict[str, Any]) -> None:
        self.heard = time.monotonic()
        text = str(message["params"].get("message")) if message.get("method") in ("window/logMessage", "window/showMessage") else ""
        if text.startswith(OUTPUT):
            self.output += text.removeprefix(OUTPUT) + "\n"
        elif FAILED.search(text):
            self.failures.append(text[-1500:])
        if "id" in message and "method" not in message and "error" in message and message["error"].get("code") not in (-32800, -32801):
            self.failures.append(f"reply: {message['error']}")
        super()._receive(message)

    def failed(self) -> list[str]:
        """What has failed since it was asked for last. What processes print is looked at once nothing more comes; a traceback that ends in
        code of the project is the user's own.
        """
        found = [*self.failures]
        self.failures.clear()
        if self.output and time.monotonic() - self.heard > QUIET_SECONDS:
            output, self.output = self.output, ""
            files = [Path(file) for file in re.findall(r'File "(.+?)", line', output)]
            ends = [file for file in files if OURS in file.parents or self.root in file.parents][-1:]
            if FAILED.search(output) and not (ends and self.root in ends[0].parents):
                found.append(output[-1500:])
        return found

    def change(self, uri: str, text: str, changes: list[tuple[int, int, str]] | None) -> None:
        """Send an edit: (start, end, new) spans of the text, from the last one to the first; None for the whole text."""
        old = self.texts[uri]
        if changes is None:
            content: list[dict[str, Any]] = [{"text": text}]
        else:
            content = [{"range": {"start": position(old, s), "end": position(old, e)}, "text": new} for s, e, new in changes]
        self.texts[uri] = text
        self.versions[uri] += 1
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": self.versions[uri]}, "contentChanges": content})

    async def shown(self, uri: str) -> dict[str, Any]:
        """What is shown of a document once the server has nothing more to do. Raises TimeoutError where that does not come."""
        await self.request("shapelens/idle", None, IDLE_SECONDS)
        return await self.shown_now(uri)

    async def shown_now(self, uri: str) -> dict[str, Any]:
        """Hints, findings and the titles of fixes as they are now."""
        document = {"textDocument": {"uri": uri}}
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}}
        hints = await self.request("textDocument/inlayHint", {**document, "range": whole})
        lenses = await self.request("textDocument/codeLens", document)
        found = self.published.get(uri, (0.0, 0, []))[2]
        heard = self.heard
        fixes = await self.request("textDocument/codeAction", {**document, "range": whole, "context": {"diagnostics": found}})
        self.heard = heard
        return {
            "hints": sorted((each["position"]["line"], each["position"]["character"], _label(each)) for each in hints or []),
            "findings": sorted((_range(each["range"]), str(each.get("code")), each["message"]) for each in found),
            "lenses": sorted((_range(each["range"]), _lens(each)) for each in lenses or []),
            "fixes": sorted(each["title"] for each in fixes or []),
        }


def _lens(lens: dict[str, Any]) -> str:
    """The title of a lens; in front of it the whole expression, which the title leaves out."""
    command = lens.get("command") or {}
    expression = (command.get("arguments") or ["", "", ""])[2]
    title = str(command.get("title", ""))
    return title if not expression or title.startswith(NO_EXAMPLE) else f"{expression} · {title}"


def position(text: str, offset: int) -> dict[str, int]:
    """Where an index into a text is, in UTF-16 units."""
    before = text[:offset]
    return {"line": before.count("\n"), "character": len(before[before.rfind("\n") + 1 :].encode("utf-16-le", "surrogatepass")) // 2}


def _range(where: dict[str, Any]) -> tuple[int, int, int, int]:
    return where["start"]["line"], where["start"]["character"], where["end"]["line"], where["end"]["character"]


def _is_surer(shown: dict[str, Any], fresh: dict[str, Any]) -> bool:
    """Whether something is shown as by one who saw examples run before the text was edited: without doubts of a fresh open, with examples
    of classes for which that finds none, and with fixes, that are not tried for what is doubtful.
    """
    lacking = {span for span, title in fresh["lenses"] if title.startswith(NO_EXAMPLE)}
    unsaid = [each for each in fresh["findings"] if each[1] == "no-example"]
    found = [[each, (*each[:2], DOUBT.sub("", each[2]))] for each in fresh["findings"] if each not in unsaid]
    lenses = [[each, (each[0], DOUBT.sub("", each[1]))] for each in fresh["lenses"] if each[0] not in lacking]
    fixes = [each for each in fresh["fixes"] if each != "Silence no-example on this line"]
    less = [Counter(fresh["hints"]) - Counter(shown["hints"]), Counter(fixes) - Counter(shown["fixes"])]
    return (
        _is_one_of_each([each for each in shown["findings"] if each not in unsaid], found)
        and _is_one_of_each([each for each in shown["lenses"] if each[0] not in lacking], lenses)
        and (shown["hints"] == fresh["hints"] or bool(lacking))
        and not any(less)
    )


def _is_by_another_example(shown: dict[str, Any], fresh: dict[str, Any]) -> bool:
    """Whether the same is wrong at the same places, and a class is shown by another example, which has to be one that runs."""

    def wrong(each: dict[str, Any]) -> list[Any]:
        return [(where, code) for where, code, _ in each["findings"] if code != "no-example"]

    others = [title for span, title in shown["lenses"] if (span, title) not in fresh["lenses"]]
    return wrong(shown) == wrong(fresh) and bool(others) and not any(title.startswith(NO_EXAMPLE) for title in others)


def _example_in(title: str) -> str:
    """The example that a lens shows for a class, unless it may be wrong; "" where it shows none."""
    expression = title.partition(" · ")[0]
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return ""
    return expression if isinstance(tree, ast.Call) and not DOUBT.search(title) else ""


def _is_one_of_each(shown: list[Any], fresh: list[list[Any]]) -> bool:
    """Whether the things shown are those of the fresh open, each as one of the things that are written for it, in any order."""
    left = [*fresh]
    for each in shown:
        same = next((choice for choice in left if each in choice), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def _label(hint: dict[str, Any]) -> str:
    label = hint["label"]
    return label if isinstance(label, str) else "".join(part["value"] for part in label)


# --- one file ---


def parses(text: str) -> bool:
    """Whether Python can read it."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class Typist:
    """Types in one file of a server, and compares with another server."""

    def __init__(
        self, server: Server, other: Server, newest: Callable[[], Server], path: Path, chance: random.Random, report: Report
    ) -> None:
        self.server = server
        self.other = other
        self.newest = newest  # makes a server that has opened nothing yet
        self.path = path
        self.chance = chance
        self.report = report
        self.original = path.read_text(encoding="utf-8")
        self.fresh: dict[str, dict[str, Any]] = {}  # what a fresh open shows, by text
        self.hinted: set[str] = set()  # the lines with hints, when it was compared last, that nobody has touched since
        self.text_before = ""  # the text then
        self.compared: list[str] = []  # the texts that were compared last; the file as it is comes back in between, uncompared
        self.typed: list[str] = []  # all texts since it was compared last but one
        self.typed_before = 0  # how many of them were compared
        self.texts: list[str] = []  # since hints were seen last, the one from which they were first

    async def type(self, keys: int) -> None:
        """Edit and compare until so many edits are made."""
        self.uri = self.server.open(self.path, self.original)
        await self._compare("opened")
        while self.report.keys < keys:
            deeds = self.chance.choices(DEEDS, k=DEEDS_BETWEEN_LOOKS)
            for deed in deeds:
                for text, spans in deed(self.server.texts[self.uri], self.chance):
                    self.server.change(self.uri, text, spans)
                    self.texts.append(text)
                    self.typed.append(text)
                    self.report.keys += 1
                    self.hinted &= set(text.split("\n"))  # A line that is typed anew has no hint before it can be read.
                    if spans is None:  # Nothing is known of where hints would be now.
                        self.hinted = set()
                    await self._between()
            if parses(self.server.texts[self.uri]):
                await self._compare(", ".join(deed.__name__ for deed in deeds))
            if self.chance.random() < 0.6 or not parses(self.server.texts[self.uri]):
                self.server.change(self.uri, self.original, None)
                self.typed.append(self.original)
                self.report.keys += 1
        self.server.change(self.uri, self.original, None)
        self.typed.append(self.original)
        await self._compare("at the end")
        self._close(self.server)

    def _close(self, server: Server) -> None:
        server.notify("textDocument/didClose", {"textDocument": {"uri": self.path.as_uri()}})
        server.published.pop(self.path.as_uri(), None)

    async def _between(self) -> None:
        """What happens between two keys: mostly nothing, sometimes a pause, a request, or one that is cancelled."""
        lot = self.chance.random()
        await asyncio.sleep(BETWEEN_KEYS if lot < 0.97 else 0.25)
        text = self.server.texts[self.uri]
        if lot < 0.06:
            hints = await self.server.request("textDocument/inlayHint", {"textDocument": {"uri": self.uri}, "range": self._whole(text)})
            self._look_at(hints or [], text)
            if hints:
                self.texts = self.texts[next((at for at in range(len(self.texts) - 1, -1, -1) if parses(self.texts[at])), 0) :]
            most_is_there = self.hinted and len(text) > MOST_OF_IT * len(self.text_before)
            if not hints and most_is_there and not parses(text) and await self._had_hints():
                self._keep(text)
                self.report.note("vanished", f"all hints, after {self.report.keys} keys")
        elif lot < 0.09:
            place = position(text, self.chance.randrange(len(text) + 1))
            await self.server.request("textDocument/hover", {"textDocument": {"uri": self.uri}, "position": place})
        elif lot < 0.1:
            self.server._requests += 1
            number = self.server._requests
            self.server._send({"id": number, "method": "textDocument/codeLens", "params": {"textDocument": {"uri": self.uri}}})
            self.server.notify("$/cancelRequest", {"id": number})
        self._failures(self.server)

    async def _had_hints(self) -> bool:
        """Whether each text that could be read has hints, since some were seen last: one that has none takes them away, and it may be the
        only one that ran.
        """
        for before in [text for text in reversed(self.texts) if parses(text)] or [self.text_before]:
            if before not in self.fresh:
                self.fresh[before] = await self._opened(before)
            if not self.fresh[before]["hints"]:
                return False
        return True

    def _whole(self, text: str) -> dict[str, Any]:
        return {"start": {"line": 0, "character": 0}, "end": position(text, len(text))}

    def _failures(self, server: Server) -> None:
        for failure in server.failed():
            self.report.note("internal", failure)

    def _look_at(self, hints: list[Any], text: str) -> None:
        lines = re.split("\r\n|\r|\n", text)
        for each in hints:
            where = each["position"]
            line = lines[where["line"]] if where["line"] < len(lines) else None
            if line is None or not 0 <= where["character"] <= len(line.encode("utf-16-le", "surrogatepass")) // 2:
                self.report.note("outside", f"{where} of {len(lines)} lines")

    async def _compare(self, what: str) -> None:
        text = self.server.texts[self.uri]
        shown = await self.server.shown(self.uri)
        self._look_at([{"position": {"line": line, "character": column}} for line, column, _ in shown["hints"]], text)
        if text not in self.fresh:
            self.fresh[text] = await self._opened(text)
        self.report.checked += 1
        lines = text.split("\n")
        self.hinted, self.text_before = {lines[line] for line, _, _ in shown["hints"] if line < len(lines)}, text
        self.texts.clear()
        self.compared = [each for each in self.compared if each != text][-MOST_BEFORE:]
        try:
            await self._compare_with_fresh(text, shown, what)
        finally:
            self.compared.append(text)
            self.typed = self.typed[self.typed_before :]
            self.typed_before = len(self.typed)

    async def _compare_with_fresh(self, text: str, shown: dict[str, Any], what: str) -> None:
        if shown == self.fresh[text]:
            return
        if text != self.original and _is_surer(shown, self.fresh[text]):
            self.report.surer += 1
            return
        others = [self.fresh[text]]
        for _ in range(2):  # What has limits of time may end otherwise where the machine is busy.
            shown = await self.server.shown(self.uri)
            others.append(await self._opened(text))
            if shown in others:
                self.report.unsteady += 1
                return
        async with self.newest() as newest:  # The other one has opened texts before this, and may know something of them.
            first = await self._opened(text, newest)
        if shown == first:
            return
        if text != self.original and _is_surer(shown, first):
            self.report.surer += 1
            return
        if text != self.original and await self._is_as_given(text, shown, first):
            self.report.given += 1
            return
        for before in dict.fromkeys([*reversed(self.compared), self.original] if text != self.original else ()):
            if before != text and shown == await self._edited(before, text):
                self.report.surer += 1
                return
        if text != self.original and _is_by_another_example(shown, first):
            self.report.another += 1
            return
        kind = "differs" if others[0] == others[1] == others[2] else "unsteady"
        await self._tell_difference(kind, what, text, shown, others[-1])

    async def _opened(self, text: str, server: Server | None = None) -> dict[str, Any]:
        """What another server shows of a text that it opens."""
        server = server or self.other
        uri = server.open(self.path, text)
        shown = await server.shown(uri)
        self._close(server)
        self._failures(server)
        return shown

    async def _is_as_given(self, text: str, shown: dict[str, Any], fresh: dict[str, Any]) -> bool:
        """Whether something is wrong of which a fresh open says nothing, and it and the hints are those of the text with directives for the
        examples which are shown, and not by the fresh open.
        """
        others = [(span[0], title) for span, title in shown["lenses"] if (span, title) not in fresh["lenses"]]
        given = {line: found for line, title in others if (found := _example_in(title))}
        if not given or not any(each not in fresh["findings"] for each in shown["findings"]):
            return False
        lines = text.split("\n")
        for line in sorted(given, reverse=True):
            lines.insert(line, f"# shapelens: {given[line]}")
        async with self.newest() as newest:
            opened = await self._opened("\n".join(lines), newest)
        added = [line + number for number, line in enumerate(sorted(given))]

        def line_of(line: int) -> int:
            return line - sum(each < line for each in added)

        hints = [(line_of(line), column, label) for line, column, label in opened["hints"]]
        findings = [((line_of(start), left, line_of(end), right), *what) for (start, left, end, right), *what in opened["findings"]]
        return hints == shown["hints"] and findings == shown["findings"]

    async def _edited(self, before: str, text: str) -> dict[str, Any]:
        """What is shown of a text that comes of another one by one edit."""
        uri = self.other.open(self.path, before)
        await self.other.shown(uri)
        self.other.change(uri, *undone(before, text))
        shown = await self.other.shown(uri)
        self._close(self.other)
        self._failures(self.other)
        return shown

    def _keep(self, text: str, more: dict[str, Any] | None = None) -> None:
        folder = Path(os.environ.get("KEYSTROKES_KEEP", ""))
        if folder.name:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{self.path.stem}-{self.report.keys}.py"
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            if more is not None:
                file.with_suffix(".json").write_text(json.dumps(more), encoding="utf-8")

    async def _tell_difference(self, kind: str, what: str, text: str, shown: dict[str, Any], fresh: dict[str, Any]) -> None:
        parts = []
        for part in shown:
            gone = [each for each in fresh[part] if each not in shown[part]]
            more = [each for each in shown[part] if each not in fresh[part]]
            if gone or more:
                parts.append(f"{part}: missing {gone[:3]}{'…' if len(gone) > 3 else ''} extra {more[:3]}{'…' if len(more) > 3 else ''}")
        self._keep(text, {"shown": shown, "fresh": fresh, "typed": self.typed})
        self.report.note(kind, f"after {self.report.keys} keys ({what}): " + "; ".join(parts))


@asynccontextmanager
async def servers(root: Path, python: str) -> AsyncIterator[tuple[Server, Server]]:
    """The one that is typed in, and the one that opens."""
    os.environ["SHAPELENS_CACHE_DIR"] = ""
    async with server_of(root, python) as server, server_of(root, python) as other:
        yield server, other


def server_of(root: Path, python: str) -> Server:
    """A server that knows nothing from before."""
    return Server([sys.executable, "-m", "shapelens.lsp", "--interpreter", python], root)


async def type_in(path: Path, root: Path, python: str, keys: int, seed: int) -> Report:
    """Type in one file."""
    report = Report()
    start = time.monotonic()
    try:
        async with servers(root, python) as (server, other):
            newest = partial(server_of, root, python)
            await Typist(server, other, newest, path, random.Random(f"{seed} {path.name}"), report).type(keys)
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
        report.note("internal", f"no answer: {type(error).__name__} {error}")
    report.seconds = time.monotonic() - start
    return report


def main() -> None:
    """Type in each file, and print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = Report()
    for each in options.files:
        folder, _, file = each.rpartition(":")
        path = Path(folder, file).resolve()
        report = asyncio.run(type_in(path, Path(folder).resolve() if folder else path.parent, options.python, options.keys, options.seed))
        kinds = dict(Counter(kind for kind, _ in report.wrong))
        counted_apart = f"{report.unsteady} unsteady, {report.surer} surer, {report.another} by another example, {report.given} as given"
        compared = f"{report.checked} compared ({counted_apart})"
        print(f"{path}: {report.keys} keys, {compared}, {kinds}, {report.seconds:.0f} s", flush=True)
        for kind, what in report.wrong:
            print(f"    {kind}: {what}", flush=True)
        total.keys += report.keys
        total.checked += report.checked
        total.wrong += report.wrong
    print(f"{total.keys} keys, {total.checked} compared, {dict(Counter(kind for kind, _ in total.wrong))}")


if __name__ == "__main__":
    main()
