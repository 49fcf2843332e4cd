"""The commands that a client may have the server carry out (`workspace/executeCommand`)."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from shapelens.analysis.evidence import evidence_text
from shapelens.lsp.server import to_lsp
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.session import Session


def register_commands(server: LanguageServer, session: Session, editor: Editor) -> None:
    """Make the server carry out the commands. Arguments come from the client as JSON; wrong ones are answered with what is expected."""

    @server.command("shapelens.restartWorker")
    async def restart_worker(*arguments: Any) -> None:
        """[]: end the workers, start them anew, run every document again."""
        await session.restart()

    @server.command("shapelens.checkExample")
    def check_example(*arguments: Any) -> str | None:
        """[uri, class, expression]: what is wrong with the expression, or null."""
        _, _, expression = _strings(arguments, "uri", "class", "expression")
        return session.check_example(expression)

    @server.command("shapelens.tryExample")
    async def try_example(*arguments: Any) -> dict[str, Any] | None:
        """[uri, class, expression]: whether the expression runs, and what comes out or is wrong; null where that cannot be told now."""
        tried = await session.try_example(*_strings(arguments, "uri", "class", "expression"))
        return {"works": tried[0], "message": tried[1]} if tried is not None else None

    @server.command("shapelens.foundExamples")
    def found_examples(*arguments: Any) -> list[dict[str, str]]:
        """[uri, class]: the examples that were found for a class, the one that it runs with first; each with its evidence in words."""
        uri, class_name = _strings(arguments, "uri", "class")
        found = session.found_examples(uri, class_name)
        module = session.documents[uri].module if found else None
        return [{"expression": each.expression, "evidence": evidence_text(each.evidence, each.where, module)} for each in found]

    @server.command("shapelens.useExample")
    def use_example(*arguments: Any) -> str | None:
        """[uri, class, expression]: run the class with this one of the examples that were found for it. What stood in the way, or null."""
        uri, class_name, expression = _strings(arguments, "uri", "class", "expression")
        return session.use_example(uri, class_name, expression)

    @server.command("shapelens.applyExample")
    async def apply_example(*arguments: Any) -> str | None:
        """[uri, class, expression]: make the expression the class's example by a comment above it. What stood in the way, or null."""
        uri, class_name, expression = _strings(arguments, "uri", "class", "expression")
        edit = session.example_edit(uri, class_name, expression)
        if isinstance(edit, str):
            return edit
        document = session.documents[uri]
        if document.lines.text_of(edit.span) == edit.new_text:
            return None  # The class has this example already.
        changes = to_lsp.change_of(edit, document, editor.places, editor.encoding)
        change = to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits)
        return await editor.apply(change, f"Set the example of {class_name}")

    @server.command("shapelens.annotated")
    def annotated(*arguments: Any) -> dict[str, str] | None:
        """[uri]: the text of a document with its hints in the margin; for a cell, that of its notebook."""
        (uri,) = _strings(arguments, "uri")
        document = editor.places.document(uri)
        text = session.annotated(document.uri) if document is not None else None
        return {"text": text} if text is not None else None


def _strings(arguments: tuple[Any, ...], *names: str) -> list[str]:
    if len(arguments) != len(names) or not all(isinstance(each, str) for each in arguments):
        raise JsonRpcInvalidParams(f"expected the arguments {', '.join(names)}")
    return list(arguments)
