"""The folders that a client works in, and which worker runs the documents in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.configuration import Configuration
from shapelens.lsp.workspace.consent import Consent
from shapelens.lsp.workspace.workers import Workers
from shapelens.runner import Worker


class Workspace:
    """Finds the folder, the settings and the worker of a document."""

    def __init__(self, documents: Mapping[str, Document], workers: Workers, consent: Consent, interpreter_option: str | None) -> None:
        """interpreter_option: what the command line said; nothing else counts then."""
        self.folders: list[str] = []  # absolute paths of the workspace folders
        self.workers = workers
        self.configuration = Configuration(self.root)
        self._documents = documents
        self._consent = consent
        self._interpreter_option = interpreter_option
        self._interpreter: str | None = None

    def use_interpreter(self, path: str | None) -> bool:
        """The editor has found this interpreter; None: find one. Returns whether it is another one."""
        if path == self._interpreter:
            return False
        self._interpreter = path
        return True

    def root(self, document: Document) -> str:
        """The workspace folder that a document lies in, the innermost one; "" where there is none."""
        return _innermost(document.path, tuple(self.folders))

    def worker(self, document: Document) -> Worker:
        """The worker that runs a document. It need not have been started."""
        # A file outside of the workspace shares the environment of a folder that is in use; no folder's is started for it.
        root = self.root(document) or next(filter(None, map(self.root, self._documents.values())), "")
        settings = self.configuration.of(document)
        said = self._interpreter_option or settings.interpreter or self._interpreter
        return self.workers.of(self._consent.interpreter(root, said, settings), root)

    def only_worker(self, document: Document) -> Worker:
        """The worker that runs a document, which is about to run. Workers whose interpreter no document uses any more are stopped."""
        worker = self.worker(document)
        self.workers.keep({self.worker(each) for each in self._documents.values()} | {worker})
        return worker


@lru_cache(maxsize=1024)
def _innermost(path: str, folders: tuple[str, ...]) -> str:
    """The longest of these folders that a file lies in; "" where there is none."""
    return max((folder for folder in folders if Path(path).is_relative_to(folder)), key=len, default="")
