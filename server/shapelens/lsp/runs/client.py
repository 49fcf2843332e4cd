"""Names what the session needs of the editor. The server implements it with LSP; nothing else of LSP reaches the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from shapelens.analysis.findings.findings import Finding
from shapelens.lsp.documents.document import Document


class Client(Protocol):
    """Tells the editor what there is to show. No method waits for an answer."""

    def publish(self, document: Document, findings: Sequence[Finding]) -> None:
        """Show these findings, whose positions are of the document's newest text, and no others."""

    def clear(self, uri: str) -> None:
        """Show no findings for a document that was closed."""

    def refresh(self) -> None:
        """Ask again for inlay hints and lenses, as there is something new."""

    def status(self, state: str, message: str = "", detail: str = "") -> None:
        """Say what the server is doing. state: "starting" | "idle" | "running" | "error" | "no-torch"."""

    def ask(self, question: str, answers: Sequence[str], on_answer: Callable[[str | None], None]) -> None:
        """Have the user choose one of some answers; None: the user, or the editor, has chosen none."""

    def progress(self, title: str | None) -> None:
        """Show that something takes its time; None: it has ended."""
