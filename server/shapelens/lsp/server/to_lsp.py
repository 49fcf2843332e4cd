"""Our plain data as LSP types. Positions become the client's: 0-based lines, characters in its encoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lsprotocol import types

from shapelens.analysis.display.hints import Hint
from shapelens.analysis.display.lenses import Lens
from shapelens.analysis.findings.codes import CODES
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.paths import uri_of
from shapelens.lsp.server.places import ClientPlaces, TextDocument, same_file
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Position

SOURCE = "ShapeLens"
# By the action of a lens. Commands of the client, which asks its user; `applyExample` is the server's own.
LENS_COMMANDS = {
    "set": "shapelens.setExample",
    "write": "shapelens.applyExample",
    "show": "shapelens.showModel",
    "menu": "shapelens.exampleActions",
    "": "",
}

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
# Edits of a text document of the client: its URI, its version (None: any), the edits.
Change = tuple[str, "int | None", Sequence[types.TextEdit]]


def diagnostic(finding: Finding, text: TextDocument, places: ClientPlaces, encoding: str) -> types.Diagnostic:
    """A finding in a text document. Its fixes travel in `data`, with the version of the document that their positions are of."""
    uri = text.document.uri
    related = []
    for each in finding.related:
        location = places.location(uri if each.file is None else uri_of(each.file), each.span, encoding)
        if location is not None:
            related.append(types.DiagnosticRelatedInformation(location, each.message))
    fixes = [fix for fix in (finding.fix, *finding.alternatives) if fix is not None]
    data = [plain for fix in fixes if (plain := fix_data(fix, uri, places, encoding)) is not None]
    return types.Diagnostic(
        range=text.range_(finding.span, encoding),
        message=finding.message,
        severity=_SEVERITIES.get(finding.severity, types.DiagnosticSeverity.Error),
        code=finding.code,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code in CODES and CODES[finding.code].unnecessary else None,
        related_information=related,
        data={"version": text.document.version, "fixes": data},
    )


def fix_data(fix: Fix, uri: str, places: ClientPlaces, encoding: str) -> dict[str, Any] | None:
    """A fix as JSON: title and changes (ClientPlaces.edits). None where the text of its file cannot be had."""
    changes = places.edits(uri if same_file(fix.file, uri) else uri_of(fix.file), fix.edits, encoding)
    return {"title": fix.label, "changes": changes} if changes is not None else None


def changes_of(data: Sequence[dict[str, Any]], document: Document, places: ClientPlaces) -> list[Change]:
    """Edits that were written as JSON; those of a document's own text with its version."""
    changes: list[Change] = []
    for each in data:
        text = places.named(each["uri"])
        edits = [types.TextEdit(types.Range(types.Position(*edit[:2]), types.Position(*edit[2:4])), edit[4]) for edit in each["edits"]]
        changes.append((each["uri"], text.version if text is not None and text.document is document else None, edits))
    return changes


def change_of(edit: TextEdit, document: Document, places: ClientPlaces, encoding: str) -> list[Change]:
    """One edit of a document."""
    return changes_of(places.edits(document.uri, [edit], encoding) or [], document, places)


def workspace_edit(changes: Sequence[Change], *, versioned: bool) -> types.WorkspaceEdit:
    """Edits of documents; `versioned` where the client takes documentChanges, which it refuses if a text has changed since."""
    if versioned:
        documents = [
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version), list(edits))
            for uri, version, edits in changes
        ]
        return types.WorkspaceEdit(document_changes=documents)
    return types.WorkspaceEdit(changes={uri: list(edits) for uri, _, edits in changes})


def inlay_hint(
    text: TextDocument, version: int, number: int, hint: Hint, place: Position, encoding: str, written: TextEdit | None = None
) -> types.InlayHint:
    """A hint without its tooltip, which `inlayHint/resolve` brings. version: of the analysis that it is from.

    written: the edit that writes its shape as a comment, which a double click on the hint does.
    """
    edits = [types.TextEdit(text.range_(written.span, encoding), written.new_text)] if written is not None else None
    return types.InlayHint(
        text_edits=edits,
        position=text.position(place, encoding),
        label=hint.short_label,
        kind=types.InlayHintKind.Parameter if hint.kind == "parameter" else types.InlayHintKind.Type,
        # A hint right behind a name reads as an annotation; behind a line it keeps its distance.
        padding_left=not hint.label.startswith(":"),
        data={"uri": text.document.uri, "version": version, "number": number},
    )


def code_lenses(text: TextDocument, lenses: Iterable[Lens], encoding: str, *, has_view: bool) -> list[types.CodeLens]:
    """The lenses of a text document. has_view: whether the client is ours, which shows models and opens a menu of what a lens offers;
    another one gets no lens that would do nothing, and one of its own for the example that is to be written down.
    """
    found = []
    for each in lenses:
        if text.has(each.span.line) and (has_view or each.action != "show"):
            action = "menu" if has_view and len(each.menu) > 1 else each.action
            found.append(_code_lens(text, each, encoding, action, each.short_title))
            if not has_view and "write" in each.menu:
                found.append(_code_lens(text, each, encoding, "write", "Write as directive"))
    return found


def _code_lens(text: TextDocument, lens: Lens, encoding: str, action: str, title: str) -> types.CodeLens:
    arguments: list[Any] = [text.document.uri, lens.target, lens.expression]
    arguments += [list(lens.menu)] if action == "menu" else []
    command = types.Command(title=title, command=LENS_COMMANDS[action], tooltip=lens.details or None, arguments=arguments)
    return types.CodeLens(range=text.range_(lens.span, encoding), command=command)


def markdown(text: str) -> types.MarkupContent:
    """Markdown content."""
    return types.MarkupContent(types.MarkupKind.Markdown, text)
