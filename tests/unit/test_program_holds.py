"""When what a document showed as a program still holds after an edit (lsp/documents/importer_traces.py)."""

from __future__ import annotations

from typing import Any

from shapelens.lsp.documents.importer_traces import ImporterTraces
from shapelens.protocol import ExampleRun, Trace
from shapelens.source.module import parse

TEXT = """\
def main(x):
    return x


def encode(x):
    return x{}
"""


def trace_of(*reached: str) -> Trace:
    """What an example saw that came to these functions."""
    return Trace("/net.py", examples=[ExampleRun("", "", reached=list(reached))])


def test_a_function_that_nothing_came_to_may_be_come_to_after_it_has_changed() -> None:
    traces = ImporterTraces("/net.py")
    run: Any = None
    traces.follow_program(trace_of("main"), parse(TEXT.format(".missing()")), run)
    assert traces.program_holds(parse(TEXT.format(".missing()") + "\n# a comment\n"), None)
    changed = parse(TEXT.format(""))
    assert not traces.program_holds(changed, None)
    assert not traces.program_holds(changed, trace_of("main"))
    assert traces.program_holds(changed, trace_of("encode")), "the examples see it, and ran for the edit"
