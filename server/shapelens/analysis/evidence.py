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
    """Returns the source of an example: `given`, `from line 88`, `from test(), line 57`, `from train.py:40` or `guessed input`.

    target: the class that it is for; line: of its call in this file. Where there is no example, display/lenses.py writes `as train.py calls
    it` or `part of Net`. There are no other words for a source.
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
    """Returns the source of an example that a run has found. A doubtful one is `guessed input`, whatever parts of it the project gives."""
    if run.doubtful and run.evidence not in GIVEN:
        return "guessed input"
    return evidence_text(run.evidence, run.where, module, run.target, run.call.line if run.call is not None and not run.file else None)


def where_text(where: str, module: Module | None) -> str:
    """Returns the place of an example, as somebody who looks at the module would call it: `line 88`, `cell 3, line 2`, `train.py:40`."""
    line = _LINE.match(where)
    return module.line_name(int(line[1])) if line is not None and module is not None else where


def guessed_sizes(run: ExampleRun, dims: Mapping[str, int]) -> str:
    """Returns the sizes of an example that ShapeLens guessed: `B = 2, T = 16, and the arguments of Net(64)`; "" if there are none.

    dims: the sizes of the run, by name. A size that differs from the example's was asked for, and is no guess.
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
    """True if no example of the class runs, and this one is only the best attempt."""
    return run.evidence != "" and run.error is not None and (run.doubtful or run.error_kind in ("example", "syntax"))


def nothing_fits(run: ExampleRun) -> str:
    """Returns one line that names the best attempt for a class, its error, and the way to give an example."""
    name = run.target.rpartition(".")[2]
    error = " ".join((run.error or "").split())
    error = error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 1] + "…"
    best = f"{run.expression} fails with {error}" if run.expression else error
    return f"no example input was found for {name}: {best}; write one above the class: # shapelens: {name}(…)(f32[…])"


def outcome(trace: Trace) -> tuple[bool, str]:
    """Returns (True, the output of the model) if the only example of a trace ran without a mistake, else (False, the mistake)."""
    run = trace.examples[0]
    wrong = run.error or next((mismatch.message for mismatch in trace.mismatches), None)
    if wrong is not None:
        return False, " ".join(wrong.split())
    calls = next((layer.calls for layer in trace.layers if layer.path == "" and layer.calls), [])
    return True, f"→ {shape_text(calls[-1].output)}" if calls else "it runs"


def judged(trace: Trace) -> Trace:
    """Returns the trace without the mismatches of examples that fit nothing, as those say nothing about the code.

    Mismatches that rest on no guess come first.
    """
    out = {number for number, run in enumerate(trace.examples) if fits_nothing(run)}
    if not out and not any(run.doubtful for run in trace.examples) and not any(mismatch.guessed for mismatch in trace.mismatches):
        return trace
    kept = [mismatch for mismatch in trace.mismatches if mismatch.example not in out]
    return replace(trace, mismatches=sorted(kept, key=lambda mismatch: rests_on_guess(trace, mismatch)))


def rests_on_guess(trace: Trace, mismatch: Mismatch) -> bool:
    """True if another guess at an input or a setting may avoid a mismatch; never for one that needs no example."""
    return mismatch.guessed or (0 <= mismatch.example < len(trace.examples) and trace.examples[mismatch.example].doubtful)
