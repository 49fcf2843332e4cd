"""What holds of a document when something is added to what is known of it."""

from __future__ import annotations

from dataclasses import replace

from shapelens.analysis.findings.findings import Finding
from shapelens.examples.settings import Settings
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.protocol import Trace
from shapelens.source.positions import Position, Span


def test_what_is_made_of_an_analysis_holds_when_fixes_are_found() -> None:
    """Pictures of models and notes on memory, say; not when something else was seen, or the text or a setting is another one."""
    document = Document("file:///net.py", 1, "x = 1\n")
    finding = Finding("exception", "error", "no", Span.of(Position(1, 0), Position(1, 1)), document.path)
    shown = Analysis(1, document.module, Settings(), trace=Trace(document.path), findings=[finding])
    document.show(shown)
    fixed = document.add_fixes(shown, [replace(finding, message="no, but mended")])
    assert document.analysis is fixed is not shown
    assert shown.shows_the_same(fixed)
    assert not shown.shows_the_same(replace(fixed, trace=Trace(document.path)))
    assert not shown.shows_the_same(replace(fixed, settings=Settings(device_memory=1)))
    document.change(2, [(None, "x = 2\n")], "utf-16")
    assert not shown.shows_the_same(replace(fixed, module=document.module))
