"""`check --fix` and `--diff`: the verified fixes of findings, applied to the files or printed as a diff."""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path

from shapelens.checking import CheckedFinding, CheckedFix
from shapelens.commands import RefusedRequest
from shapelens.source.files import read
from shapelens.source.position_map import TextEdit, apply
from shapelens.source.positions import Span


def unified_diff(name: str, before: str, after: str) -> str:
    """The difference of two texts of a file, as `diff -u` writes it."""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def edits_of(fix: CheckedFix) -> list[TextEdit]:
    """The edits of a fix, to apply."""
    return [TextEdit(Span(edit.line, edit.column, edit.end_line, edit.end_column), edit.new_text) for edit in fix.edits]


class Fixes:
    """The texts of files with the fixes of their findings. A fix that touches what another one has changed is left for the next time."""

    def __init__(self) -> None:
        self.applied: list[tuple[CheckedFinding, CheckedFix]] = []
        self._edits: dict[Path, list[TextEdit]] = {}
        self._texts: dict[Path, str] = {}

    def add(self, findings: Iterable[CheckedFinding]) -> None:
        """Take the fixes of these findings, the earlier ones first."""
        for finding in findings:
            fix = finding.fix
            if fix is None or any(fix == other for _, other in self.applied):
                continue
            path = Path(fix.file)
            if path not in self._texts:
                self._texts[path] = read(path)
            edits = edits_of(fix)
            try:
                apply(self._texts[path], [*self._edits.get(path, []), *edits])
            except ValueError:
                continue
            self._edits.setdefault(path, []).extend(edits)
            self.applied.append((finding, fix))

    def change(self, path: Path, text: str, edits: list[TextEdit]) -> None:
        """Take edits of a file that has this text."""
        self._texts[path] = text
        self._edits.setdefault(path, []).extend(edits)

    def diff(self, shown: dict[Path, str]) -> str:
        """The changes as a unified diff; `shown`: how the paths of files are printed."""
        texts = [(shown.get(path, str(path)), self._texts[path], edits) for path, edits in self._edits.items()]
        return "".join(unified_diff(name, before, apply(before, edits)) for name, before, edits in texts)

    def write(self) -> None:
        """Change the files, each in its own encoding. Raises RefusedRequest where one cannot be written."""
        for path, edits in self._edits.items():
            content = path.read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            try:
                path.write_bytes(apply(self._texts[path], edits).encode(encoding))
            except OSError as error:
                raise RefusedRequest(f"{path}: {error.strerror or error}") from None
