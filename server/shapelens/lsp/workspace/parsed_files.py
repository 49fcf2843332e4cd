"""Other files: the parsed text of one that findings lead to, and which documents import a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from shapelens.examples.importing_files import LARGEST_NOTEBOOK
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.paths import same_path
from shapelens.notebooks import SUFFIX
from shapelens.python_sources import as_python
from shapelens.regular_files import read_regular
from shapelens.source.module import Module, parse

LARGEST_FILE = 2 << 20  # bytes


class ParsedFiles:
    """The module of a file by its absolute path: as the editor has it, else from disk, parsed once for each state of it."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._parsed: dict[str, tuple[int, Module]] = {}

    def __call__(self, path: str) -> Module | None:
        """The module of the file at this path; None where it cannot be read."""
        for document in self._documents.values():
            if same_path(document.path, path):
                return document.module
        try:
            state = Path(path).stat()
            known = self._parsed.get(path)
            if known is None or known[0] != state.st_mtime_ns:
                text = _read(path)
                self._parsed[path] = (state.st_mtime_ns, parse(text, known[1] if known is not None else None))
            return self._parsed[path][1]
        except (OSError, UnicodeDecodeError):
            return None

    def text_of(self, path: str) -> str:
        """The text of the file at this path, as Python; "" where it cannot be read."""
        for document in self._documents.values():
            if same_path(document.path, path):
                return document.text
        try:
            return _read(path)
        except (OSError, UnicodeDecodeError):
            return ""

    def state_of(self, path: str) -> object:
        """Returns what changes whenever the text of a file does."""
        for document in self._documents.values():
            if same_path(document.path, path) and not document.saved:
                return document.text
        try:
            return Path(path).stat().st_mtime_ns
        except OSError:
            return None


def _read(path: str) -> str:
    largest = LARGEST_NOTEBOOK if path.endswith(SUFFIX) else LARGEST_FILE
    return as_python(path, read_regular(path, largest).decode("utf-8"))


def depends_on(document: Document, path: str) -> bool:
    """True if a run of `document` may look different after an edit of the file at `path`.

    That is so where the last run went through that file, and where an import statement has its name: after a run that failed to import
    it there is no other trace of it. A name that is something else costs a run and does no harm.
    """
    analysis = document.analysis
    if analysis is None or not (analysis.runs_by_itself or document.importer_traces.program_run is not None):
        return False
    if analysis.trace is not None and path in analysis.trace.files:
        return True
    file = Path(path)
    name = file.parent.name if file.stem == "__init__" else file.stem
    return re.search(rf"^\s*(?:from|import)\b[^#\n]*\b{re.escape(name)}\b", document.text, re.MULTILINE) is not None
