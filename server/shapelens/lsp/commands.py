"""The commands that a client may have the server carry out (`workspace/executeCommand`)."""

from __future__ import annotations

from typing import Any

from shapelens.lsp import to_lsp
from shapelens.lsp.editor import Editor
from shapelens.lsp.session import Session
from shapelens.source.edits import TextEdit


class Commands:
    """Their arguments come from the client as JSON; a wrong number of them is answered with what is missing."""

    def __init__(self, session: Session, editor: Editor) -> None:
        self._session = session
        self._editor = editor

    async def restart_worker(self, *arguments: Any) -> None:
        """[]: end the workers, start them anew, run every document again."""
        await self._session.restart()

    def check_example(self, *arguments: Any) -> str | None:
        """[uri, class, expression]: what is wrong with the expression, or null."""
        _, _, expression = _strings(arguments, "uri", "class", "expression")
        return self._session.check_example(expression)

    async def apply_example(self, *arguments: Any) -> str | None:
        """[uri, class, expression]: make the expression the class's example by a comment above it. What stood in the way, or null."""
        uri, class_name, expression = _strings(arguments, "uri", "class", "expression")
        edit = self._session.example_edit(uri, class_name, expression)
        if not isinstance(edit, TextEdit):
            return edit
        document = self._session.documents[uri]
        edits = [to_lsp.text_edit(document.lines, edit, self._editor.encoding)]
        change = to_lsp.workspace_edit(uri, document.version, edits, versioned=self._editor.takes_versioned_edits)
        return await self._editor.apply(change, f"Set the example of {class_name}")

    def annotated(self, *arguments: Any) -> dict[str, str] | None:
        """[uri]: the text of a document with its hints in the margin."""
        (uri,) = _strings(arguments, "uri")
        text = self._session.annotated(uri)
        return {"text": text} if text is not None else None


def _strings(arguments: tuple[Any, ...], *names: str) -> list[str]:
    if len(arguments) != len(names) or not all(isinstance(each, str) for each in arguments):
        raise ValueError(f"expected the arguments {', '.join(names)}")
    return list(arguments)
