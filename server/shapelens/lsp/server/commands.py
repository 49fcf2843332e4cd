"""The commands that a client may have the server carry out (`workspace/executeCommand`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from shapelens.analysis.evidence import evidence_text
from shapelens.lsp.runs.model_views import ModelOptions
from shapelens.lsp.server import to_lsp
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.server.language_server import PlainJson
from shapelens.lsp.session import Session
from shapelens.report.model_document import ModelView, memory_document, model_document
from shapelens.report.model_html import html
from shapelens.report.model_table import markdown

Handler = TypeVar("Handler", bound=Callable[..., Any])


def register_commands(server: LanguageServer, session: Session, editor: Editor) -> None:  # noqa: C901  One function a command.
    """Make the server carry out the commands. Arguments come from the client as JSON; wrong ones are answered with what is expected."""

    def command(name: str) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            # pygls asks whether what the first parameter is annotated with is a server; `Any` is no class in Python 3.10.
            handler.__annotations__ = {}
            server.command(name)(handler)
            return handler

        return register

    @command("shapelens.restartWorker")
    async def restart_worker(*arguments: Any) -> None:
        """[]: end the workers, start them anew, run every document again."""
        await session.restart()

    @command("shapelens.emptyCache")
    async def empty_cache(*arguments: Any) -> str:
        """[]: forget what was kept of earlier runs, run every document again; what was removed, in words."""
        return await session.clear_caches()

    @command("shapelens.checkExample")
    def check_example(*arguments: Any) -> str | None:
        """[uri, class, expression]: what is wrong with the expression, or null."""
        _, _, expression = _strings(arguments, "uri", "class", "expression")
        return session.check_example(expression)

    @command("shapelens.tryExample")
    async def try_example(*arguments: Any) -> dict[str, Any] | None:
        """[uri, class, expression]: whether the expression runs, and what comes out or is wrong; null where that cannot be told now."""
        tried = await session.try_example(*_strings(arguments, "uri", "class", "expression"))
        return {"works": tried[0], "message": tried[1]} if tried is not None else None

    @command("shapelens.foundExamples")
    def found_examples(*arguments: Any) -> list[dict[str, str]]:
        """[uri, class]: the examples that were found for a class, the one that it runs with first; each with its evidence in words."""
        uri, class_name = _strings(arguments, "uri", "class")
        found = session.found_examples(uri, class_name)
        module = session.documents[uri].module if found else None
        return [{"expression": each.expression, "evidence": evidence_text(each.evidence, each.where, module, class_name)} for each in found]

    @command("shapelens.useExample")
    def use_example(*arguments: Any) -> str | None:
        """[uri, class, expression]: run the class with this one of the examples that were found for it. What stood in the way, or null."""
        uri, class_name, expression = _strings(arguments, "uri", "class", "expression")
        return session.use_example(uri, class_name, expression)

    @command("shapelens.applyExample")
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

    @command("shapelens.model")
    async def model(*arguments: Any) -> dict[str, Any] | None:
        """[uri, class, line, options]: a class as a whole, from the newest analysis, in {version, model}, where report/model.schema.json
        describes `model`; {version, message, without_example} where there is none, the last the class that an example would help, or "";
        null where a later request of the document takes its place.

        class: "" for the one at the line (1-based), or the last. options: {sizes: {dim: size}, optimizer, device, autocast, example}, and
        format: "markdown" or "html" for {version, text}; amounts: "memory" for the columns of memory in Markdown;
        until: "shapes" for what is known at once, if anything is, without the graph; "steps" for a model that may be without operations
        and memory (`complete` says whether more is to come);
        memory: a named dim, for {version, memory, largest} alone, where largest is the size of the dim that fits `limit` bytes.
        """
        uri, class_name, line, options = _model_request(arguments)
        text_document = editor.places.named(uri)
        if text_document is not None:
            uri, line = text_document.document.uri, text_document.first + line
        found = await session.model(uri, class_name, line, options)
        asked = _plain(arguments[3])
        amounts = "memory" if asked.get("amounts") == "memory" else "cost"
        texts: dict[str, Callable[[ModelView], str]] = {"markdown": partial(markdown, amounts=amounts), "html": html}
        text = texts.get(asked.get("format", ""))
        if found is None:
            return None
        if found.view is None:
            return {"version": found.version, "message": found.message, "without_example": found.without_example}
        if text is not None:
            return {"version": found.version, "text": text(found.view)}
        if options.only_memory:
            return {"version": found.version, "memory": memory_document(found.view, editor.places.place), "largest": found.largest}
        return {"version": found.version, "model": PlainJson(model_document(found.view, editor.places.place))}

    @command("shapelens.summary")
    def summary(*arguments: Any) -> dict[str, int] | None:
        """[uri]: {tensors, mistakes, guessed} of a document; for a cell, of its notebook. Null where nothing is shown of it."""
        (uri,) = _strings(arguments, "uri")
        document = editor.places.document(uri)
        found = session.summary(document.uri) if document is not None else None
        return asdict(found) if found is not None else None

    @command("shapelens.examine")
    async def examine(*arguments: Any) -> dict[str, Any] | None:
        """[uri]: run the models of a document for real, as `shapelens check --deep` does, and publish what that tells until the next edit:
        {message, found}, where found is a number, or null where that could not be done; null if it is not open. It may be cancelled."""
        (uri,) = _strings(arguments, "uri")
        document = editor.places.document(uri)
        examined = await session.examine(document.uri) if document is not None else None
        return asdict(examined) if examined is not None else None

    @command("shapelens.annotated")
    def annotated(*arguments: Any) -> dict[str, str] | None:
        """[uri]: the text of a document with its hints in the margin; for a cell, that of its notebook."""
        (uri,) = _strings(arguments, "uri")
        document = editor.places.document(uri)
        text = session.annotated(document.uri) if document is not None else None
        return {"text": text} if text is not None else None


def _model_request(arguments: tuple[Any, ...]) -> tuple[str, str, int, ModelOptions]:
    if len(arguments) != 4 or not isinstance(arguments[0], str) or not isinstance(arguments[1], str) or not isinstance(arguments[2], int):
        raise JsonRpcInvalidParams("expected the arguments uri, class, line, options")
    given = _plain(arguments[3])
    sizes, example = given.get("sizes"), given.get("example")
    known = {str(name): size for name, size in _plain(sizes).items() if isinstance(size, int) and size > 0}
    device = "cpu" if given.get("device") == "cpu" else "cuda"
    limit, autocast = given.get("limit"), str(given.get("autocast") or "")
    options = ModelOptions(
        known,
        str(given.get("optimizer") or ""),
        device,
        autocast if autocast in ("bfloat16", "float16", "none") else "",
        example if isinstance(example, int) else 0,
        str(given.get("until") or ""),
        str(given.get("memory") or ""),
        limit if isinstance(limit, int) else 0,
    )
    return arguments[0], arguments[1], arguments[2], options


def _plain(value: Any) -> dict[str, Any]:
    """A JSON object, which pygls makes a named tuple of."""
    return dict(value) if isinstance(value, dict) else dict(value._asdict()) if hasattr(value, "_asdict") else {}


def _strings(arguments: tuple[Any, ...], *names: str) -> list[str]:
    if len(arguments) != len(names) or not all(isinstance(each, str) for each in arguments):
        raise JsonRpcInvalidParams(f"expected the arguments {', '.join(names)}")
    return list(arguments)
