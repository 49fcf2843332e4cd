"""Our plain data as LSP types. Positions become the client's: 0-based lines, characters in its encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls import uris

from shapelens.analysis.display.hints import Hint
from shapelens.analysis.display.lenses import Lens
from shapelens.analysis.findings.codes import CODES
from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.lsp.documents.paths import path_of
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Lines, Position, Span

SOURCE = "ShapeLens"
# Commands of the client, which asks its user; the last one is the server's own.
LENS_COMMANDS = {"set": "shapelens.setExample", "choose": "shapelens.chooseExample", "write": "shapelens.applyExample", "": ""}

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
# The lines of a file by its URI; None where its text cannot be had.
LinesOf = Callable[[str], "Lines | None"]


def position(lines: Lines, place: Position, encoding: str) -> types.Position:
    """A position in the client's terms."""
    line, character = lines.to_lsp(place, encoding)
    return types.Position(line, character)


def range_(lines: Lines, span: Span, encoding: str) -> types.Range:
    """A range in the client's terms."""
    start, end = Position(span.line, span.column), Position(span.end_line, span.end_column)
    return types.Range(position(lines, start, encoding), position(lines, end, encoding))


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    return str(uris.from_fs_path(path))


def diagnostic(finding: Finding, uri: str, version: int, lines: Lines, lines_of: LinesOf, encoding: str) -> types.Diagnostic:
    """A finding. Its fixes travel in `data`, with the version that their positions are of."""
    related = []
    for each in finding.related:
        where = uri if each.file is None else uri_of(each.file)
        text = lines if where == uri else lines_of(where)
        if text is not None:
            related.append(types.DiagnosticRelatedInformation(types.Location(where, range_(text, each.span, encoding)), each.message))
    fixes = [fix for fix in (finding.fix, *finding.alternatives) if fix is not None]
    data = [plain for fix in fixes if (plain := fix_data(fix, uri, lines, lines_of, encoding)) is not None]
    return types.Diagnostic(
        range=range_(lines, finding.span, encoding),
        message=finding.message,
        severity=_SEVERITIES.get(finding.severity, types.DiagnosticSeverity.Error),
        code=finding.code,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code in CODES and CODES[finding.code].unnecessary else None,
        related_information=related,
        data={"version": version, "fixes": data},
    )


def fix_data(fix: Fix, uri: str, lines: Lines, lines_of: LinesOf, encoding: str) -> dict[str, Any] | None:
    """A fix as JSON: title, uri and edits (range as four numbers, text). None where the text of its file cannot be had."""
    where = uri if _same_file(fix.file, uri) else uri_of(fix.file)
    text = lines if where == uri else lines_of(where)
    if text is None:
        return None
    return {
        "title": fix.title,
        "uri": where,
        "edits": [[*_numbers(range_(text, edit.span, encoding)), edit.new_text] for edit in fix.edits],
    }


def text_edit(lines: Lines, edit: TextEdit, encoding: str) -> types.TextEdit:
    """One edit in the client's terms."""
    return types.TextEdit(range_(lines, edit.span, encoding), edit.new_text)


def workspace_edit(uri: str, version: int | None, edits: Sequence[types.TextEdit], *, versioned: bool) -> types.WorkspaceEdit:
    """Edits of one document; `versioned` where the client takes documentChanges, which it refuses if the text has changed since."""
    if versioned:
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(edits))])
    return types.WorkspaceEdit(changes={uri: list(edits)})


def inlay_hint(uri: str, version: int, number: int, hint: Hint, place: Position, lines: Lines, encoding: str) -> types.InlayHint:
    """A hint without its tooltip, which `inlayHint/resolve` brings."""
    return types.InlayHint(
        position=position(lines, place, encoding),
        label=hint.label,
        kind=types.InlayHintKind.Parameter if hint.kind == "parameter" else types.InlayHintKind.Type,
        # A hint right behind a name reads as an annotation; behind a line it keeps its distance.
        padding_left=not hint.label.startswith(":"),
        data={"uri": uri, "version": version, "number": number},
    )


def code_lens(uri: str, lens: Lens, lines: Lines, encoding: str) -> types.CodeLens:
    """A lens with the command that changes the example of its class."""
    command = types.Command(title=lens.title, command=LENS_COMMANDS[lens.action], arguments=[uri, lens.target, lens.expression])
    return types.CodeLens(range=range_(lines, lens.span, encoding), command=command)


def markdown(text: str) -> types.MarkupContent:
    """Markdown content."""
    return types.MarkupContent(types.MarkupKind.Markdown, text)


def _same_file(path: str, uri: str) -> bool:
    # A document without a file of its own has a made-up path, which must not leave the server.
    return path == path_of(uri)


def _numbers(where: types.Range) -> list[int]:
    return [where.start.line, where.start.character, where.end.line, where.end.character]
