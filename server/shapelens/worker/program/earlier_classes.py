"""Classes that the document defines once more under the same name, as tutorials do: the earlier ones have examples of their own.

Whoever loads a document sees the last class of a name only. A program has held the others; the search finds what they are called with.
"""

from __future__ import annotations

import ast
import contextlib
from typing import Any, Dict, Iterator, Optional

from ...protocol import ExampleRun, Search
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.clocks import WorkClock
from ..sandbox.limits import TooLong, within
from ..search.events import ExampleFound
from ..search.finder import Finder
from ..search.trials.trial import TrialRunner
from .program import Program

MOST_SECONDS = 1.0  # for one class


def call_earlier_classes(runner: ExampleRunner, program: Program, seconds: float) -> None:
    """Call the classes that the program has held under a name that another class has now, and that show nothing yet."""
    clock = WorkClock()
    for cls in program.earlier:
        left = min(MOST_SECONDS * runner.run.patience, seconds - clock())
        if left <= 0:
            return
        with contextlib.suppress(TooLong, MemoryError), _named(program, cls):
            _call(runner, program, cls, left)


@contextlib.contextmanager
def _named(program: Program, cls: type) -> Iterator[None]:
    """Meanwhile the program's name of a class means this one, as when its `super(Net, self)` was written."""
    later = program.names[cls.__name__]
    program.names[cls.__name__] = cls
    try:
        yield
    finally:
        program.names[cls.__name__] = later


def _call(runner: ExampleRunner, program: Program, cls: type, seconds: float) -> None:
    node, text = _definition(runner.run.text, cls)
    if node is None or _shows_something(runner, node):
        return
    names = dict(program.names)
    expression = _found(runner, names, cls, text, seconds)
    if expression is None:
        return
    example = ExampleRun("%s (line %d)" % (cls.__name__, node.lineno), expression, evidence="inferred")
    before, runner.names = runner.names, names
    try:
        with within(MOST_SECONDS * runner.run.patience):
            found = runner.evaluate(example)
        runner.evaluation.watch_anew()
        example.doubtful = True  # What it shows is no ground for an error.
        if found is not None:
            runner.record(found)
            runner.name_dims([found])
    finally:
        runner.names = before


def _found(runner: ExampleRunner, names: Dict[str, Any], cls: type, text: str, seconds: float) -> Optional[str]:
    """The example of a class of a text; None where nothing fits."""
    trials = TrialRunner(runner, names, seconds)
    finder = Finder(trials, names, runner.run.file, text, Search(classes=[cls.__name__]), lambda path: "")
    with within(seconds):
        event = next((event for event in finder.events() if isinstance(event, ExampleFound)), None)
    return None if event is None or event.example.doubtful else event.example.expression


def _definition(text: str, cls: type) -> "tuple[Optional[ast.ClassDef], str]":
    """The definition of a class that another one of its name follows, and the text before that one."""
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    same = [node for node in ast.parse(text.lstrip("\ufeff")).body if isinstance(node, ast.ClassDef) and node.name == cls.__name__]
    for number, node in enumerate(same[:-1]):
        if code is not None and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
            following = same[number + 1]
            first = min([following.lineno, *[decorator.lineno for decorator in following.decorator_list]])
            return node, "\n".join(text.split("\n")[: first - 1])
    return None, text


def _shows_something(runner: ExampleRunner, node: ast.ClassDef) -> bool:
    """True if the trace shows more of a class than its construction."""
    inside = range(node.lineno, (node.end_lineno or 0) + 1)
    return any(
        seen.span.line in inside and seen.span.file == runner.run.file and not seen.function.endswith("__init__")
        for seen in runner.trace.observations
    )
