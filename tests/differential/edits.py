"""Edits of models: what is said of them at once, and what the whole run says. Where the two differ, `worker/memo/replay.py` is wrong.

An edit changes one number in a function of the file. The run before it is rehearsed in a process of its own, as in a worker, and the edited
text is run there. For each file it prints how often something could be said at once, how often that was not what the run said, and how long
both took.

    python tests/differential/edits.py FILE [FILE ...] [--example EXPRESSION] [--edits 10] [--root FOLDER] [--always] [--json]

FILE has a directive, or --example says how it is run. To be run with an interpreter that has what the files import.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from shapelens.protocol import ExampleRequest, Run, Trace, Traced
from shapelens.worker import run as running
from shapelens.worker.evaluation.example_runner import ExampleRunner
from shapelens.worker.memo import early_diagnosis
from shapelens.worker.memo.early_diagnosis import RehearsedExamples
from shapelens.worker.memo.recording import Recording
from shapelens.worker.memo.replay import Replay
from shapelens.worker.process import child, warm
from shapelens.worker.reload.loaded_project import LoadedProject, Unsuitable
from shapelens.worker.shims import initialisers

DIRECTIVE = re.compile(r"^\s*# shapelens:\s*(.+)$", re.MULTILINE)


@dataclass
class Edited:
    """What became of one edit. seconds: until something was said at once, and of the evaluation that follows."""

    what: str
    said: bool = False
    again: bool = False  # the run said it again, as something was another one
    differs: bool = False  # and that was what is wrong, or where
    built: int = 0  # modules that were taken over, and those that were built
    constructed: int = 0
    known: int = 0  # calls that were taken over, and those that were made
    called: int = 0
    seconds: list[float] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)  # that were said at once, then those of the run
    first: list[str] = field(default_factory=list)  # those said when it was met


def main() -> None:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="files with models")
    parser.add_argument("--example", help="how they are run, where they have no directive")
    parser.add_argument("--root", type=Path, help="the folder that they are imported from (default: that of each file)")
    parser.add_argument("--edits", type=int, default=10, help="of each file (default: 10)")
    parser.add_argument("--change", nargs=2, metavar=("OLD", "NEW"), help="this edit, and no other")
    parser.add_argument("--always", action="store_true", help="also where too little time would be saved to try it")
    parser.add_argument("--json", action="store_true", help="print what became of each edit")
    options = parser.parse_args()
    if options.always:
        early_diagnosis.WORTH_SECONDS = early_diagnosis.WORTH_SHARE = 0.0
    warm.leave_out_the_compiler()
    warm.load_kernels()
    initialisers.make_free()
    for file in options.files:
        found = _apart(partial(_all_of, file.resolve(), options))
        if options.json:
            print(json.dumps(found))
        else:
            _tell(file, found)


def _tell(file: Path, found: list[dict[str, Any]]) -> None:
    said = [each for each in found if each["said"]]
    quick_time, whole_time = (sum(each["seconds"][part] for each in said) for part in (0, 1))
    ratio = f"{1000 * quick_time / len(said):.0f} of {1000 * whole_time / len(said):.0f} ms" if said else ""
    again, differ = (sum(each[name] for each in said) for name in ("again", "differs"))
    print(f"{file}: {len(said)} of {len(found)} said at once, {again} said again, {differ} differ; {ratio}", flush=True)
    for each in said:
        if each["differs"]:
            print(f"    {each['what']}", *each["words"][0], "    but:", *each["words"][-1], sep="\n        ", flush=True)


def _all_of(file: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    return list(_compare(file, options))


def _compare(file: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    found = DIRECTIVE.search(text)
    example = options.example or (found and found.group(1))
    if not example:
        return
    root = str((options.root or file.parent).resolve())

    def run_of(text: str, number: int) -> Run:
        return Run(number, str(file), text, root, [ExampleRequest("", example)], deadline=60.0, findings_first=True)

    project = LoadedProject(run_of(text, 0))
    with project.context.environment(), contextlib.redirect_stdout(sys.stderr):
        project.load()
        for what, edited in _edits(text, options):
            yield asdict(_apart(partial(_edit, project, run_of(text, 1), run_of(edited, 2), what)))


def _edits(text: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    if options.change:
        yield " → ".join(options.change), text.replace(options.change[0], options.change[1], 1)
        return
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    numbers = {
        (node.lineno, node.col_offset, node.end_col_offset, node.value)
        for function in functions
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and type(node.value) is int
    }
    chosen = random.Random(0).sample(sorted(numbers), min(options.edits, len(numbers)))
    for line, start, end, value in chosen:
        other = value + 1 if value < 8 else value * 2
        before = lines[line - 1].encode()
        changed = (before[:start] + str(other).encode() + before[end:]).decode()
        yield f"line {line}: {value} → {other}", "".join([*lines[: line - 1], changed, *lines[line:]])


def _edit(project: LoadedProject, before: Run, after: Run, what: str) -> Edited:
    """Rehearse a run, and do another one."""
    nothing, _ = os.pipe()
    child.rehearse(before, project, nothing)
    found = Edited(what)
    _watch(found)
    messages: list[Any] = []
    with contextlib.suppress(Unsuitable):
        running.execute(after, lambda message: messages.append(message) if isinstance(message, Traced) else None, project)
    stages = [message.stage for message in messages]
    found.again = found.said and stages.count("findings") + stages.count("run") > 1
    found.words = [_words(message.trace) for message in messages if message.stage not in ("first", "partial")]
    found.first = [word for message in messages if message.stage == "first" for word in _words(message.trace)]
    found.differs = found.said and (found.words[0] != found.words[-1] or not set(found.first) <= set(found.words[-1]))
    return found


def _words(trace: Trace) -> list[str]:
    """What is wrong, and where, each once."""
    told = [f"{found.code} @ {found.span and found.span.line}: {found.message}" for found in trace.mismatches]
    told += [f"{example.error_kind}: {example.error}" for example in trace.examples if example.error]
    return list(dict.fromkeys(told))


def _watch(found: Edited) -> None:
    diagnose, evaluate = early_diagnosis.diagnose_early, ExampleRunner.evaluate
    build, construct, result, begin = Replay._taken_over, Recording.construct, Replay.result, Recording.begin

    def timed(function: Any) -> Any:
        def run(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                found.seconds.append(time.perf_counter() - start)

        return run

    def said(runner: ExampleRunner, rehearsed: RehearsedExamples) -> bool:
        went_on: bool = timed(diagnose)(runner, rehearsed)
        found.said = runner.findings.said is not None
        return went_on

    def counted(name: str, function: Any, counts: Any) -> Any:
        def call(*arguments: Any) -> Any:
            given = function(*arguments)
            setattr(found, name, getattr(found, name) + counts(given, *arguments))
            return given

        return call

    early_diagnosis.diagnose_early = said
    ExampleRunner.evaluate = timed(evaluate)  # type: ignore[method-assign]
    Replay._taken_over = counted("built", build, lambda *_: 1)  # type: ignore[method-assign]
    Recording.construct = counted("constructed", construct, lambda *_: 1)  # type: ignore[method-assign]
    Replay.result = counted("known", result, lambda given, *_: given is not None)  # type: ignore[method-assign]
    Recording.begin = counted("called", begin, lambda _, __, module, *___: module is not None)  # type: ignore[method-assign]


def _apart(function: Any) -> Any:
    """What a function gives, in a process of its own."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            given = function()
            body = json.dumps(asdict(given) if isinstance(given, Edited) else given).encode()
            with os.fdopen(writable, "wb") as stream:
                stream.write(body)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        body = stream.read()
    os.waitpid(pid, 0)
    given = json.loads(body) if body else None
    return Edited(**given) if isinstance(given, dict) else given or []


if __name__ == "__main__":
    main()
