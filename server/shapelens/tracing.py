"""The interface for programs: `shapelens.trace(model, example)` gives what the editor shows of a model, as plain data.

The model runs in a worker, a process of its own, on torch's meta device; nothing of it runs in the process that asks.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelens.batch import Analysed, Batch, Unavailable
from shapelens.examples.expression import check
from shapelens.examples.settings import acts_from_here
from shapelens.project_scope import ProjectScope
from shapelens.report.document import document
from shapelens.source.files import Unreadable, read

UNNAMED = "shapelens_source.py"  # the name that a text without a file has in places


class TracingError(Exception):
    """Raised where there is nothing to trace: no such file, no source, no torch, a wrong example. The message names the reason."""


@dataclass(frozen=True)
class Place:
    """Where something stands: lines from 1, columns from 0 in code points, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Example:
    """An example that ran: the expression that builds a model of this class and calls it, and its origin.

    error: why it did not run to its end; None where it did.
    """

    cls: str
    expression: str
    evidence: str
    dims: dict[str, int]
    error: str | None


@dataclass(frozen=True)
class Seen:
    """The values of a line of the code. kind: "parameter", "assign", "return", "expression" or "layer".

    name: the variable, or the layer's path ("features.0"). shapes: the distinct ones in the order in which they came, each the dims of a
    tensor (None: a size that only data knows), or a list of such for a tuple of tensors. named: the same as hints show them.
    dtype: as torch names it; None where several tensors differ in it. count: how often the line was reached.
    """

    name: str
    kind: str
    shapes: list[Any]
    named: list[str]
    dtype: str | None
    count: int
    place: Place


@dataclass(frozen=True)
class Finding:
    """A mistake in the code. fix: its correction, in words, where a fix was tried and works."""

    code: str
    severity: str
    message: str
    place: Place
    fix: str | None = None


@dataclass(frozen=True)
class Trace:
    """The shapes and findings of a model."""

    file: str
    examples: list[Example]
    layers: list[Seen]
    values: list[Seen]
    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """True if anything ran, and no finding is an error."""
        return bool(self.examples) and not any(finding.severity == "error" for finding in self.findings)


def trace(model: object, example: str | list[str] | None = None, *, interpreter: str | None = None, allow: Sequence[str] = ()) -> Trace:
    """The shapes and findings of a model.

    model: a class, or an object of one, whose source is in a file; a path, also with a class behind it (`"net.py::Net"`); or source text
    (anything with a line end). example: the expression that builds and calls it, as in `# shapelens:` comments; without one it is found.
    interpreter: the Python that has torch; without one, that of the running program. allow: what the model's code may do besides:
    "network", "processes", or the path of a folder that it writes below.
    Raises TracingError.
    """
    path, text, only = _source(model)
    examples = [example] if isinstance(example, str) else example or []
    for expression in examples:
        if problem := check(expression):
            raise TracingError(f"the example {expression!r} cannot be read: {problem}")
    allowed, wrong = acts_from_here(allow)
    if wrong:
        raise TracingError(wrong[0])
    try:
        analysed = _outside_of_any_loop(path, text, examples, only, interpreter or sys.executable, allowed)
    except Unreadable as error:
        raise TracingError(str(error)) from None
    except Unavailable as error:
        raise TracingError(f"{error} {error.action}".strip()) from None
    return _trace(document(analysed))


def _source(model: object) -> tuple[Path, str, str | None]:
    """The file of a model, its text, and the class of it that is meant."""
    if isinstance(model, str) and "\n" in model:
        return Path(UNNAMED), model, None
    try:
        if isinstance(model, str | Path):
            file, separator, name = str(model).rpartition("::")
            path = Path(file if separator and not Path(str(model)).exists() else str(model))
            return path, read(path), name if path != Path(str(model)) else None
        cls = model if isinstance(model, type) else type(model)
        found = inspect.getsourcefile(cls)
        if found is None or not Path(found).is_file():
            raise TypeError
        return Path(found), read(Path(found)), cls.__qualname__
    except Unreadable as error:
        raise TracingError(str(error)) from None
    except (TypeError, OSError):
        raise TracingError(f"the source of {model!r} is in no file: pass its text") from None


def _outside_of_any_loop(path: Path, text: str, examples: list[str], only: str | None, python: str, allow: list[str]) -> Analysed:
    """Analyse a text in a thread of its own: the caller's may have an event loop that runs, as in a notebook."""
    result: list[Analysed] = []
    errors: list[BaseException] = []

    async def analyse() -> Analysed:
        scope = ProjectScope(allow=allow)
        async with Batch(python, root=scope.project_root(path.absolute()), scope=scope) as batch:
            return await batch.analyse(path, text, examples=examples, only=only)

    def run() -> None:
        try:
            result.append(asyncio.run(analyse()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="shapelens")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return result[0]


def _trace(seen: dict[str, Any]) -> Trace:
    file = seen["file"]
    examples = [Example(each["class"], each["expression"], each["evidence"], each["dims"], each["error"]) for each in seen["examples"]]
    held = [
        Seen(each["name"], each["kind"], each["shapes"], each["named"], each["dtype"], each["count"], _place(file, each))
        for each in seen["observations"]
    ]
    findings = [
        Finding(each["code"], each["severity"], each["message"], _place(file, each), each["fix"]["title"] if each["fix"] else None)
        for each in seen["findings"]
    ]
    return Trace(
        file,
        examples,
        [each for each in held if each.kind == "layer"],
        [each for each in held if each.kind != "layer"],
        findings,
    )


def _place(file: str, place: dict[str, Any]) -> Place:
    return Place(file, place["line"], place["column"], place["end_line"], place["end_column"])
