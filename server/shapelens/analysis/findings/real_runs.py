"""Findings of models that were run for real: outputs that see the future, inputs that do not matter, samples of a batch that meet."""

from __future__ import annotations

import ast

from shapelens.analysis.explanations.related_places import Related, distinct_places
from shapelens.analysis.findings import codes
from shapelens.analysis.findings.lint import Lint
from shapelens.analysis.places import Place, Places
from shapelens.dependences import BATCH_MIX, FUTURE_LEAK, INSIDE, CausalClaim, DeepReport, Dependence
from shapelens.stated.syntax_trees import all_parameters, program_of
from shapelens.traces import FileSpan

MOST_CALLERS = 2


def real_runs(places: Places, reports: list[DeepReport]) -> list[Lint]:
    """Returns the findings of a file, each place once; another file tells its own."""
    found: dict[object, Lint] = {}
    for report in reports:
        for each in report.dependences:
            lint = _told(places, each)
            if lint is not None:
                found.setdefault((lint.code, lint.span), lint)
    return list(found.values())


def _told(places: Places, each: Dependence) -> Lint | None:
    definition = _place(places, each.definition)
    if each.code not in (FUTURE_LEAK, BATCH_MIX):
        place = _parameter(places, each)
        return Lint(each.code, codes.severity(each.code), _ignored(each), place.span) if place is not None else None
    own = [place for span in each.trail if (place := _place(places, span)) is not None and place.file == places.trace.file]
    place = own[-1] if own else _parameter(places, each) or definition
    if place is None or place.file != places.trace.file:
        return None
    innermost = _place(places, each.trail[-1]) if each.trail else None
    related = []
    if innermost is not None and innermost.file != places.trace.file:
        words = "the first result that sees later steps" if each.code == FUTURE_LEAK else "the first result that mixes samples"
        related.append(Related(innermost.file, innermost.span, words))
    claim = _place(places, each.claim.span) if each.claim is not None else None
    if claim is not None and each.claim is not None:
        here = claim.file == places.trace.file
        related.append(Related(None if here else claim.file, claim.span, f"says that it is causal: {_claim(each.claim)}"))
    callers = own[:-1] if own else []
    related += [Related(None, caller.span, "called from here") for caller in reversed(callers[-MOST_CALLERS:])]
    message = _leak(each) if each.code == FUTURE_LEAK else _mix(each)
    return Lint(each.code, codes.severity(each.code), message, place.span, distinct_places(related, place.span))


def _leak(each: Dependence) -> str:
    assert each.claim is not None
    seen = f"{_output(each)} at {_range(each.changed)} {_change(each)} with {each.input} at {each.place}"
    first = "; this is the first result that does" if each.trail and each.output != INSIDE else ""
    return f"{each.model} says that it is causal ({_claim(each.claim)}), but {seen}{first}"


def _mix(each: Dependence) -> str:
    one = "sample" if len(each.changed) == 1 else "samples"
    seen = f"{_output(each)} of {one} {_range(each.changed)} {_change(each)} with sample {each.place} of {each.input}"
    first = "; this is the first result that does" if each.trail else ""
    return f"samples of the batch meet in {each.model}: {seen}{first}"


def _ignored(each: Dependence) -> str:
    if each.reads:
        return f"nothing that {each.model} gives depends on {each.input}, though its forward reads it"
    return f"{each.input} is never used: {each.model} gives the same whatever it holds"


def _output(each: Dependence) -> str:
    return each.output if each.output and each.output != each.input else "the output"


def _change(each: Dependence) -> str:
    return "change" if _output(each).endswith("s") and not _output(each).endswith("ss") else "changes"


def _claim(claim: CausalClaim) -> str:
    if claim.kind == "mask":
        return f"mask {claim.text}" if claim.text else "a mask that hides later steps"
    if claim.kind == "generate":
        return f"the next token comes from {claim.text}"
    return f"targets a step ahead, {claim.text}" if claim.kind == "shift" else claim.text


def _range(places: list[int]) -> str:
    """`0–4`, `3`, `0, 2`."""
    if len(places) > 1 and places == list(range(places[0], places[-1] + 1)):
        return f"{places[0]}–{places[-1]}"
    return ", ".join(map(str, places[:4])) + (", …" if len(places) > 4 else "")


def _place(places: Places, span: FileSpan | None) -> Place | None:
    return places.locate(span)


def _parameter(places: Places, each: Dependence) -> Place | None:
    """Where the `forward` names its input; None where it stands in another file or says it is unused."""
    line = each.definition
    if line is None or line.file != places.trace.file:
        return None
    name = each.input.partition("[")[0].partition(".")[0]
    tree = program_of(places.module.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _first_line(node) == line.line:
            if any(isinstance(part, ast.Delete) and name in map(ast.unparse, part.targets) for part in ast.walk(node)):
                return None
            for argument in all_parameters(node):
                if argument.arg == name and not name.startswith("_"):
                    start = argument.col_offset
                    end = start + len(name.encode())
                    span = FileSpan(line.file, argument.lineno, start, argument.lineno, end)
                    return places.locate(span)
    return None


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *[each.lineno for each in node.decorator_list]])
