"""Examples that were found rather than given: what is said of where they came from, and how far what they show is to be trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from shapelens.analysis.shapes import shape_text
from shapelens.protocol import ExampleRun, Mismatch, Trace
from shapelens.source.module import Module

LONGEST_ERROR = 120
_LINE = re.compile(r"line (\d+)\Z")
_LEADING_CALL = re.compile(r"[\w.]+\([^()]+\)(?=\()")  # `Net(64, 10)` of `Net(64, 10)(f32[B:2, 8])`
_WITHOUT_SIZES = ("inferred", "annotation")  # evidence that says no size; annotations say names at most

_CALL = re.compile(r"([A-Za-z_][\w.]*)\(\)\Z")
GIVEN = ("directive", "settings", "command line")
ANNOTATION = "the annotation"  # where an annotation of `forward` says the shape


def evidence_text(evidence: str, where: str = "", module: Module | None = None, target: str = "", line: int | None = None) -> str:
    """Where an example is from: `given` by the user, `from line 88`, `from test(), line 57` or `from train.py:40`, else `guessed input`.

    target: the class that it is for; line: of its call in this file. What a program gives a class (`as train.py calls it`) and `part of
    Net` are said where there is no example (display/lenses.py). Nothing else is ever said of where an example is from.
    """
    if evidence in GIVEN:
        return "given"
    if evidence == "inferred" or not where:
        return "guessed input"
    if module is None:
        return f"from {where}"
    if where == ANNOTATION:
        cls = module.class_named(target)
        head = cls.methods.get("forward", cls.name_span) if cls is not None else None
        return f"from {module.line_name(head.line) if head is not None else where}"
    called = _CALL.match(where)
    function = module.function_named(called[1]) if called is not None else None
    at = f", {module.line_name(line or function.name_span.line)}" if function is not None else ""
    return f"from {where_text(where, module)}{at}"


def evidence_of(run: ExampleRun, module: Module | None) -> str:
    """The same of what a run has found. What may be wrong of it was guessed, whatever the rest is from."""
    if run.doubtful and run.evidence not in GIVEN:
        return "guessed input"
    return evidence_text(run.evidence, run.where, module, run.target, run.call.line if run.call is not None and not run.file else None)


def where_text(where: str, module: Module | None) -> str:
    """Where an example was found, for someone who looks at the module: `line 88`, `cell 3, line 2`, `train.py:40`."""
    line = _LINE.match(where)
    return module.line_name(int(line[1])) if line is not None and module is not None else where


def guessed_sizes(run: ExampleRun, dims: Mapping[str, int]) -> str:
    """Which sizes of an example nobody gives or writes: `B = 2, T = 16, and the arguments of Net(64)`; "" where there are none.

    dims: the sizes that it was run with, by name; those that are others than the example's were asked for.
    """
    if run.evidence not in _WITHOUT_SIZES:
        return ""
    own = [f"{name} = {size}" for name, size in dims.items() if run.dims.get(name, size) == size]
    parts = [", ".join(own)] if own else [] if dims else ["the sizes of its input"]
    return ", and ".join([*parts, *guessed_arguments(run)])


def guessed_arguments(run: ExampleRun) -> list[str]:
    """`the arguments of Net(64)`, where nobody gives or writes these; [] where somebody does."""
    built = _LEADING_CALL.match(run.expression) if run.evidence == "inferred" else None
    return [f"the arguments of {built[0]}"] if built is not None else []


def fits_nothing(run: ExampleRun) -> bool:
    """Whether this is only the best of what was tried for a class: nothing was found that runs."""
    return run.evidence != "" and run.error is not None and (run.doubtful or run.error_kind in ("example", "syntax"))


def nothing_fits(run: ExampleRun) -> str:
    """What was tried for a class and how to give an example, in one line."""
    name = run.target.rpartition(".")[2]
    error = " ".join((run.error or "").split())
    error = error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"
    best = f"{run.expression} fails with {error}" if run.expression else error
    return f"no example input was found for {name}: {best}; write one above the class: # shapelens: {name}(…)(f32[…])"


def outcome(trace: Trace) -> tuple[bool, str]:
    """Whether the only example of a trace ran without anything wrong, and what came out of its model, or else what was wrong."""
    run = trace.examples[0]
    wrong = run.error or next((mismatch.message for mismatch in trace.mismatches), None)
    if wrong is not None:
        return False, " ".join(wrong.split())
    calls = next((layer.calls for layer in trace.layers if layer.path == "" and layer.calls), [])
    return True, f"→ {shape_text(calls[-1].output)}" if calls else "it runs"


def judged(trace: Trace) -> Trace:
    """The trace without the mismatches of examples that fit nothing: they say nothing about the code. What examples that nobody doubts have
    shown comes first."""
    out = {number for number, run in enumerate(trace.examples) if fits_nothing(run)}
    if not out and not any(run.doubtful for run in trace.examples) and not any(mismatch.guessed for mismatch in trace.mismatches):
        return trace
    kept = [mismatch for mismatch in trace.mismatches if mismatch.example not in out]
    return replace(trace, mismatches=sorted(kept, key=lambda mismatch: rests_on_guess(trace, mismatch)))


def rests_on_guess(trace: Trace, mismatch: Mismatch) -> bool:
    """True if another guess at an input or a setting may avoid a mismatch; never for one that needs no example."""
    return mismatch.guessed or (0 <= mismatch.example < len(trace.examples) and trace.examples[mismatch.example].doubtful)
