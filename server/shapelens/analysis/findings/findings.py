"""Findings: what is wrong, where, with what it has to do, and how to mend it. A finding always lies in the file that was asked about;
its related places and its fixes may lie in others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from shapelens.analysis.evidence import fits_nothing, judged, nothing_fits, rests_on_guess
from shapelens.analysis.explanations.blame import blamed
from shapelens.analysis.explanations.checkpoint_messages import CHECKPOINT
from shapelens.analysis.explanations.device_messages import DEVICE
from shapelens.analysis.explanations.expression_parts import parts_of
from shapelens.analysis.explanations.messages import in_size_message, operation_message
from shapelens.analysis.explanations.operation_messages import failed_at
from shapelens.analysis.explanations.passed_arguments import passed_argument
from shapelens.analysis.explanations.related_places import (
    Related,
    argument_place,
    call_places,
    construction_places,
    distinct_places,
    example_call,
    from_inside,
    related_place,
    size_origins,
    unreduced_loss,
    variable_assignments,
)
from shapelens.analysis.findings import codes
from shapelens.analysis.findings.disagreements import (
    Disagreement,
    agreeing_place,
    disagreement_fixes,
    disagreement_message,
    disagreement_places,
    disagreements,
)
from shapelens.analysis.findings.lints import lints
from shapelens.analysis.findings.real_runs import real_runs
from shapelens.analysis.places import OtherModules, Place, Places
from shapelens.analysis.repairs.divisors import divisor_fixes
from shapelens.analysis.repairs.fixes import (
    Fix,
    Likelihood,
    broadcast_fixes,
    cat_fix,
    in_size_fixes,
    producer_fix,
    with_examples,
    wrong_join,
)
from shapelens.analysis.repairs.guesses import guesses, suspected
from shapelens.analysis.repairs.helper_functions import helper_fixes, passed_fixes
from shapelens.analysis.repairs.layer_settings import setting_fixes
from shapelens.analysis.repairs.layouts import alignment_fixes, dtype_fixes, index_fixes, layout_fixes, stride_fixes, transposing_fixes
from shapelens.analysis.repairs.masks import mask_fixes
from shapelens.analysis.repairs.parameters import parameter_fixes
from shapelens.analysis.repairs.pictures import picture_fixes
from shapelens.analysis.repairs.programs.call_settings import WITHOUT_RETURN, call_setting_fixes
from shapelens.analysis.repairs.programs.checkpoint_fixes import checkpoint_fixes
from shapelens.analysis.repairs.programs.device_fixes import device_fixes
from shapelens.analysis.repairs.programs.loader_fixes import loader_fixes
from shapelens.analysis.repairs.programs.registration import initialisation_fixes
from shapelens.analysis.repairs.programs.tape_fixes import tape_fixes
from shapelens.analysis.repairs.targets import target_fixes
from shapelens.examples.choose import Choice
from shapelens.examples.settings import Settings
from shapelens.protocol import DeepReport, ExampleRun, Finished, LayerSeen, Mismatch, Trace
from shapelens.source.module import Module
from shapelens.source.positions import Span

_FAILURES = {
    "deadline": "the run did not end within the deadline",
    "memory": "the run needed more memory than the limit",
    "exit": "the code ended the Python process",
    "crash": "the Python process that ran the code crashed",
}

MOST_LINES = 6  # that a note names beside its own


@dataclass(frozen=True)
class Finding:
    """severity: "error" | "warning" | "information" | "hint". candidates: gives what may mend it, in the order to try it; no one has
    yet. fix and alternatives: those of them that were run and found to work, the likeliest first; see `shapelens.repair`."""

    code: str
    severity: str
    message: str
    span: Span
    file: str
    related: list[Related] = field(default_factory=list)
    fix: Fix | None = None
    alternatives: list[Fix] = field(default_factory=list)
    examples: tuple[int, ...] = ()  # of the trace, those that it was found in
    guessed: bool = False  # it rests on an input that nobody gave: another one may avoid it
    candidates: Callable[[], list[Fix]] = field(
        default=list, compare=False
    )  # They take their time, and the finding is to be shown at once.


def findings(module: Module, trace: Trace, settings: Settings, other_modules: OtherModules) -> list[Finding]:
    """The findings of a trace in the order of the text, without those that are silenced by `# shapelens: ignore[...]` or the settings."""
    trace = judged(trace)
    places = Places(module, trace, other_modules)
    contradicted, groups = disagreements(places, _groups(trace))
    found = [*(_disagreement(places, each) for each in contradicted), *(_in_size(places, group) for group in groups)]
    found += _operations(places)
    found += [_failed_example(places, number, run) for number, run in enumerate(trace.examples) if _failed_otherwise(trace, number, run)]
    found += _notes(places)
    failed = {(finding.code, finding.span.line) for finding in found}
    found += [
        Finding(
            each.code,
            each.severity,
            each.message,
            each.span,
            trace.file,
            distinct_places(each.related, each.span),
            each.fix,
            guessed=each.guessed,
        )
        for each in lints(places, settings.lints)
        if (each.code, each.span.line) not in failed  # Else the same is said as an error.
    ]
    shown = [finding for each in found if (finding := with_settings(module, each, settings)) is not None]
    return sorted(shown, key=lambda finding: (finding.span, finding.code))


def findings_of_real_runs(
    module: Module, trace: Trace, settings: Settings, other_modules: OtherModules, reports: list[DeepReport]
) -> list[Finding]:
    """Returns the findings of a real run of a file's models, less those that are silenced."""
    told = real_runs(Places(module, trace, other_modules), reports)
    found = [Finding(each.code, each.severity, each.message, each.span, trace.file, each.related) for each in told]
    return [shown for each in found if (shown := with_settings(module, each, settings)) is not None]


def example_problems(file: str, choice: Choice) -> list[Finding]:
    """The given examples that cannot be run."""
    return [Finding("example", "error", problem.message, problem.span, file) for problem in choice.problems]


def failure(module: Module, file: str, finished: Finished, settings: Settings, *, given: bool) -> list[Finding]:
    """The finding for a run that ended badly, at the class that ended it, else at the top of the file.

    given: the run had examples that somebody gave.
    """
    cls = module.class_named(finished.target) if finished.target else None
    span = cls.name_span if cls is not None else Span(1, 0, 1, len(module.lines.line(1)))
    message = finished.detail or _FAILURES.get(finished.outcome, finished.outcome)
    found = with_settings(module, Finding(finished.outcome, codes.severity(finished.outcome), message, span, file), settings)
    if found is None:
        return []
    if finished.outcome == "unavailable":  # That no worker can be started says nothing about the code.
        return [replace(found, severity="warning")]
    # Nobody has said that the code can be run without an example.
    return [found if given else replace(found, severity="information", guessed=True)]


def with_settings(module: Module, finding: Finding, settings: Settings) -> Finding | None:
    """The finding with the severity that the settings give its code; None where it is silenced."""
    severity = settings.findings_severity.get(finding.code, finding.severity)
    if _is_silenced(module, finding.code, finding.span) or not settings.shows(finding.code) or severity in ("off", "none", "ignore"):
        return None
    if severity == finding.severity:
        return finding
    return replace(finding, severity=severity)


def _is_silenced(module: Module, code: str, span: Span) -> bool:
    """True if a comment in its line silences a code."""
    silenced = module.ignores.get(span.line, set())
    return silenced is None or code in silenced


def _as_certain(trace: Trace, finding: Finding, mismatches: Sequence[Mismatch]) -> Finding:
    """The finding; where all that it is of rests on a guess, which may be what is wrong, it is a note, with nothing to mend."""
    if all(mismatch.remainder for mismatch in mismatches):
        finding = replace(finding, message=f"{finding.message}, in the last, smaller batch: {mismatches[0].remainder}")
    if not all(rests_on_guess(trace, mismatch) for mismatch in mismatches):
        return finding
    return replace(finding, severity="hint", message=f"{finding.message} (input guessed)", candidates=list, guessed=True)


def _at_most_information(severity: str) -> str:
    return "information" if severity in ("error", "warning") else severity


# --- sizes that a constructor's argument fixed ---


def _is_in_size(mismatch: Mismatch) -> bool:
    return mismatch.layer is not None and mismatch.argument != "" and mismatch.got is not None and mismatch.need is not None


def _groups(trace: Trace) -> Iterable[list[Mismatch]]:
    """The in-size mismatches, those of one constructor call's argument together: they have one cause and get one finding."""
    groups: dict[object, list[Mismatch]] = defaultdict(list)
    for number, mismatch in enumerate(trace.mismatches):
        if _is_in_size(mismatch):
            span = _layer(trace, mismatch).span
            where = (span.file, span.line, span.column, span.end_line, span.end_column) if span is not None else number
            groups[(mismatch.code, mismatch.argument, where)].append(mismatch)
    return groups.values()


def _layer(trace: Trace, mismatch: Mismatch) -> LayerSeen:
    assert mismatch.layer is not None
    return trace.layers[mismatch.layer]


def _disagreement(places: Places, found: Disagreement) -> Finding:
    mismatches = found.mismatches
    code = mismatches[0].code
    finding = Finding(
        code,
        codes.severity(code),
        disagreement_message(places, found),
        found.place.span,
        places.trace.file,
        disagreement_places(places, found),
        examples=_examples(mismatches),
        candidates=lambda: _ranked(places, disagreement_fixes(places, found), guesses(places, mismatches[0])),
    )
    return _as_certain(places.trace, finding, mismatches)


def _in_size(places: Places, group: list[Mismatch]) -> Finding:
    first = group[0]
    layer = _layer(places.trace, first)
    argument = places.argument(layer, first.argument)
    call = places.here(first)
    given = passed_argument(places, group, argument)
    is_direct = bool(first.origins and first.origins[0].argument)  # Else what was joined on the way may be what is wrong.
    join = wrong_join(places, first)
    in_size = in_size_fixes(places, group, argument) if join is not None and argument is not None else []
    # Where a part of what the layer is given is what arrived, either may be wrong.
    is_join = join is not None and all(fix.likelihood is not Likelihood.PART for fix in in_size)
    if join is not None and is_join and join.place.file == places.trace.file:
        span = join.place.span
    elif given is not None and given.file == places.trace.file and is_direct:
        span = given.span
    elif argument is not None and argument.file == places.trace.file:
        span = argument.span
    else:
        span = (call or places.of_example(first.example)).span
    callers = call_places(places, first, span)
    related = [
        *callers[:1],
        *argument_place(places, layer, argument, first, span),
        *agreeing_place(places, first),
        *size_origins(places, first),
        *example_call(places, first),
        *suspected(places, first),
        *callers[1:],
    ]
    related += variable_assignments(places, from_inside(first), first.example, related)
    message, severity = in_size_message(places, group), codes.severity(first.code)
    if join is not None and is_join:
        message = f"{message}: joined along dim {join.dim} instead of {join.needed}"

    def candidates() -> list[Fix]:
        here = [*helper_fixes(places, first, argument), *in_size_fixes(places, group, argument)] if argument is not None else []
        if given is not None:
            here = [*passed_fixes(places, group, given), *here]
        joined = [join.fix] if join is not None else []
        known = [*joined, *layout_fixes(places, first), *here, producer_fix(places, group), *setting_fixes(places, first)]
        return _ranked(places, known, guesses(places, first))

    found = Finding(
        first.code,
        severity,
        message,
        span,
        places.trace.file,
        distinct_places(related, span),
        examples=_examples(group),
        candidates=candidates,
    )
    return _as_certain(places.trace, found, group)


def _examples(mismatches: Iterable[Mismatch]) -> tuple[int, ...]:
    return tuple(sorted({mismatch.example for mismatch in mismatches if mismatch.example >= 0}))


def _ranked(places: Places, known: Iterable[Fix | None], guessed: Iterable[Fix]) -> list[Fix]:
    """Each edit once: those that are known to make the sizes fit, then guesses, likely ones first."""
    kept: dict[object, Fix] = {}
    for fixes in ([each for each in known if each is not None], guessed):
        for fix in sorted(fixes, key=lambda each: each.likelihood):
            kept.setdefault((fix.file, *((edit.span, edit.new_text) for edit in fix.edits)), fix)
    return [with_examples(places, fix) for fix in kept.values()]


# --- all other mismatches ---


def _operations(places: Places) -> list[Finding]:
    """One finding for each place and message; a loop that fails in the same way each time has one cause, and so has what fails in the same
    way at several places as the same operation gave it the shape that it has."""
    found: dict[object, Finding] = {}
    causes = set[object]()
    at_calls = {(each.code, each.message) for each in places.trace.mismatches if not each.inside and places.here(each) is not None}
    for mismatch in places.trace.mismatches:
        if _is_in_size(mismatch):
            continue
        here = places.here(mismatch)
        if here is None and not mismatch.trail and (mismatch.code, mismatch.message) in at_calls:
            continue  # The example was taken from that call.
        if here is None and mismatch.code == "definition":
            continue  # It is told in the file that it belongs to, when that one is open.
        place = here or places.of_example(mismatch.example)
        cause = _cause(mismatch)
        is_known = (place.span, mismatch.code) in found or cause in causes
        causes |= {cause} if cause is not None else set()
        if is_known:
            continue
        failed = failed_at(mismatch, parts_of(place) if place == places.locate(mismatch.span) else None)
        message, span = operation_message(places, failed), blamed(places, failed, place)
        join = wrong_join(places, mismatch)
        if join is not None and join.place.file == places.trace.file:
            message, span = f"{message}: joined along dim {join.dim} instead of {join.needed}", join.place.span
        callers = call_places(places, mismatch, span)
        built = list(construction_places(places, mismatch))
        around = [
            *(size_origins(places, mismatch) if mismatch.of_parameter else ()),
            *(built if mismatch.of_parameter else ()),  # The parameter's sizes are said there, whoever calls.
            *callers[:1],
            *size_origins(places, mismatch),
            *unreduced_loss(places, mismatch),
            *built,
            *suspected(places, mismatch),
            *example_call(places, mismatch),
            *callers[1:],
        ]
        around += variable_assignments(places, from_inside(mismatch), mismatch.example, around)
        related, severity = distinct_places(around, span), codes.severity(mismatch.code)
        candidates = partial(_of_operation, places, mismatch)
        finding = Finding(
            mismatch.code, severity, message, span, places.trace.file, related, examples=_examples([mismatch]), candidates=candidates
        )
        found[place.span, mismatch.code] = _as_certain(places.trace, finding, [mismatch])
    return list(found.values())


def _cause(mismatch: Mismatch) -> object:
    """Returns a key for the cause of a mismatch, for mismatches at several places; None where that is the place itself."""
    if mismatch.of_parameter and mismatch.inside:  # A module that is as wide as something else: each of its parameters is.
        return mismatch.code, mismatch.example, mismatch.inside[0], str([origin.result for origin in mismatch.origins[:1]])
    if mismatch.exception == "NameError" or WITHOUT_RETURN.search(mismatch.message):  # What is missing is so wherever it is asked for.
        return mismatch.code, mismatch.message
    if mismatch.code in ("exception", "matmul"):  # An exception is of its place; each product has sizes of its own.
        return None
    nearest = mismatch.suspects[0] if mismatch.suspects else None
    if nearest is None or nearest.span is None or nearest.layer is not None or nearest.shape == nearest.result:
        return None
    return mismatch.code, mismatch.operation, mismatch.example, nearest.operation, str(nearest.span), str(nearest.result)


def _of_operation(places: Places, mismatch: Mismatch) -> list[Fix]:
    of_its_own = tape_fixes(places, mismatch) or device_fixes(places, mismatch) or checkpoint_fixes(places, mismatch)
    if of_its_own or mismatch.code in (DEVICE, CHECKPOINT):
        return _ranked(places, of_its_own, [])
    join = wrong_join(places, mismatch)
    known = [
        join.fix if join is not None else None,
        *target_fixes(places, mismatch),
        *mask_fixes(places, mismatch),
        cat_fix(places, mismatch),
        *broadcast_fixes(places, mismatch),
    ]
    known += [*alignment_fixes(places, mismatch), *transposing_fixes(places, mismatch), *index_fixes(places, mismatch)]
    known += [*setting_fixes(places, mismatch), *parameter_fixes(places, mismatch)]
    known += [*loader_fixes(places, mismatch), *call_setting_fixes(places, mismatch)]
    known += [*divisor_fixes(places, mismatch), *layout_fixes(places, mismatch), *dtype_fixes(places, mismatch)]
    known += [*stride_fixes(places, mismatch), *picture_fixes(places, mismatch)]
    # No other number mends what lacks a dim.
    guessed = [] if mismatch.lacks_transpose and mismatch.code == "broadcast" else guesses(places, mismatch)
    return _ranked(places, [*known, *initialisation_fixes(places, mismatch)], guessed)


# --- examples that did not run, and notes ---


_LACKS_FORWARD = 'is missing the required "forward" function'


def _failed_otherwise(trace: Trace, number: int, run: ExampleRun) -> bool:
    """True if an example failed for a reason that no mismatch tells."""
    if _LACKS_FORWARD in (run.error or ""):
        return False  # Its steps are what it is called by.
    if fits_nothing(run):
        return not run.file
    if run.error is None or run.error_kind == "mismatch":
        return False
    if run.file and (run.error_span is None or run.error_span.file != trace.file):
        return False  # It is told in the file that asks for the example.
    told = [mismatch.span for mismatch in trace.mismatches if mismatch.example == number and mismatch.span is not None]
    return run.error_span not in told


def _failed_example(places: Places, number: int, run: ExampleRun) -> Finding:
    error = run.error_span
    place = places.locate(error) if error is not None and error.file == places.trace.file else None
    if place is None and run.error_kind in ("definitions", "syntax"):
        place = Place(places.trace.file, places.module, places.top())
    elif place is None:
        place = places.of_example(number)
    code = run.error_kind if run.error_kind in codes.CODES else "exception"
    message = run.error or ""
    if fits_nothing(run):
        code, message, place = "no-example", nothing_fits(run), places.of_example(number)
    elif code == "definitions":
        message = f"the file cannot be run: {message}"
    elif code == "example":
        message = f"the example {run.expression} cannot be run: {message}"
    related = []
    if error is not None and (error.file != places.trace.file or code == "no-example") and (there := places.locate(error)) is not None:
        related.append(related_place(places, there, "it fails here"))
    severity = _at_most_information(codes.severity(code)) if run.evidence else codes.severity(code)
    return Finding(code, severity, message, place.span, places.trace.file, related, guessed=bool(run.evidence))


def _notes(places: Places) -> list[Finding]:
    """Returns the notes, one finding for each cause: at the first place that is not silenced, with the lines of the others."""
    found: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for note in places.trace.notes:
        if note.span is None or note.span.file == places.trace.file:  # A note on another file is told when that one is open.
            place = places.locate(note.span)
            span = place.span if place is not None else places.top()
            if not _is_silenced(places.module, note.code, span):
                found[note.code, note.message].append(span)
    return [_note(places.trace.file, code, message, sorted(set(spans))) for (code, message), spans in found.items()]


def _note(file: str, code: str, message: str, spans: list[Span]) -> Finding:
    severity = codes.severity(code) if code in codes.CODES else "information"
    lines = sorted({span.line for span in spans} - {spans[0].line})
    if lines:
        shown = ", ".join(map(str, lines[:MOST_LINES]))
        message += f" (also in {'line' if len(lines) == 1 else 'lines'} {shown}{', …' if len(lines) > MOST_LINES else ''})"
    return Finding(code, severity, message, spans[0], file)
