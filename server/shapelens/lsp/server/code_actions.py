"""Code actions for the findings at a place: the fixes that travel with them, and a comment that silences them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from shapelens.analysis.display.lenses import Lens
from shapelens.analysis.display.written_shapes import written_shapes
from shapelens.analysis.evidence import evidence_text
from shapelens.lsp.documents.document import Document
from shapelens.lsp.server import to_lsp
from shapelens.lsp.server.editor import Editor
from shapelens.lsp.server.places import TextDocument
from shapelens.source.edits import set_directive
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span

_IGNORE = re.compile(r"#\s*shapelens:\s*ignore\[([^\]]*)\]")


def code_actions(text: TextDocument, diagnostics: Iterable[types.Diagnostic], editor: Editor) -> list[types.CodeAction]:
    """First the fixes of all diagnostics, then a way to silence each. A fix of an older text is left out: a newer one is on its way."""
    own = [each for each in diagnostics if each.source == to_lsp.SOURCE]
    fixes = [action for each in own for action in _fixes(text.document, each, editor)]
    silencing = [action for each in own if (action := _silence(text, each, editor)) is not None]
    return fixes + silencing


def example_actions(text: TextDocument, lenses: Iterable[Lens], where: types.Range, editor: Editor) -> list[types.CodeAction]:
    """Actions for the classes in a range whose example was found: write the example down as a directive, or run another one."""
    document = text.document
    actions = []
    for lens in lenses:
        if "write" not in lens.menu or not text.has(lens.span.line):
            continue
        if not where.start.line <= lens.span.line - 1 - text.first <= where.end.line:
            continue
        try:
            edit = set_directive(document.module, lens.target, lens.expression)
        except ValueError:
            continue  # The class was removed since the lens was made.
        changes = to_lsp.change_of(edit, document, editor.places, editor.encoding)
        change = to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits)
        actions.append(types.CodeAction("Write the example down as a directive", types.CodeActionKind.RefactorRewrite, edit=change))
        for other in lens.others:
            use = types.Command("Use this example", "shapelens.useExample", arguments=[document.uri, lens.target, other.expression])
            title = f"Use the example {other.expression} ({evidence_text(other.evidence, other.where, document.module, lens.target)})"
            actions.append(types.CodeAction(title, types.CodeActionKind.RefactorRewrite, command=use))
    return actions


def writing_actions(text: TextDocument, where: types.Range, editor: Editor) -> list[types.CodeAction]:
    """An action for the function whose head is at a place, or in whose body text is selected: its shapes written as comments."""
    document = text.document
    analysis = document.analysis
    if analysis is None or analysis.trace is None or analysis.version != document.version:
        return []
    place = text.place(where.start, editor.encoding)
    given = (seen for seen in analysis.trace.observations if seen.kind == "parameter" and seen.span.file == document.path)
    heads = [seen.function for seen in given if seen.span.line <= place.line <= seen.span.end_line]
    function = heads[0] if heads else document.module.scope_at(place) if where.start != where.end else ""
    if not function:
        return []
    edits = list(written_shapes(analysis.module, analysis.trace, {function}).values())
    changes = to_lsp.changes_of(editor.places.edits(document.uri, edits, editor.encoding) or [], document, editor.places)
    if not edits or not changes:
        return []
    change = to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits)
    title = f"Write the shapes of {function.rpartition('.')[2]} as comments"
    return [types.CodeAction(title, types.CodeActionKind.RefactorRewrite, edit=change)]


def lacks_fixes(document: Document, diagnostic: types.Diagnostic) -> bool:
    """True if a diagnostic of the newest text came before it was known which fixes work."""
    data = _plain(diagnostic.data) if diagnostic.source == to_lsp.SOURCE else None
    return isinstance(data, dict) and data.get("version") == document.version and not data.get("fixes")


def _fixes(document: Document, diagnostic: types.Diagnostic, editor: Editor) -> list[types.CodeAction]:
    data = _plain(diagnostic.data)
    if not isinstance(data, dict) or data.get("version") != document.version:
        return []
    actions = []
    for number, fix in enumerate(data.get("fixes", [])):
        changes = to_lsp.changes_of(fix["changes"], document, editor.places)
        actions.append(
            types.CodeAction(
                title=fix["title"],
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=number == 0,
                edit=to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits),
            )
        )
    return actions


def _silence(text: TextDocument, diagnostic: types.Diagnostic, editor: Editor) -> types.CodeAction | None:
    document, number = text.document, text.first + diagnostic.range.start.line + 1
    edit = silencing_edit(document.lines.line(number), number, str(diagnostic.code))
    if edit is None:
        return None
    changes = to_lsp.change_of(edit, document, editor.places, editor.encoding)
    return types.CodeAction(
        title=f"Silence {diagnostic.code} on this line",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        edit=to_lsp.workspace_edit(changes, versioned=editor.takes_versioned_edits),
    )


def silencing_edit(line: str, number: int, code: str) -> TextEdit | None:
    """Adds `# shapelens: ignore[code]` to a line of text, or the code to such a comment. None where the line cannot take a comment."""
    comment = _IGNORE.search(line)
    if comment is not None:
        before = comment.group(1).rstrip()
        column = comment.start(1) + len(before)
        return TextEdit(Span(number, column, number, column), f", {code}" if before else code)
    if line.rstrip().endswith("\\") or '"""' in line or "'''" in line:
        return None
    end = len(line.rstrip())
    return TextEdit(Span(number, end, number, len(line)), f"  # shapelens: ignore[{code}]")


def _plain(data: Any) -> Any:
    """pygls gives `data` as it came in JSON, or as an object with attributes, depending on its version."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)) and not hasattr(data, "_fields"):
        return [_plain(each) for each in data]
    if hasattr(data, "_asdict"):
        return {key: _plain(value) for key, value in data._asdict().items()}
    return data
